"""How time grows: one of m, n and s at a time, the other two held fixed."""

from __future__ import annotations

from functools import partial

from benchmarks.base import Problem
from benchmarks.problems.synthetic import classification, regression

ROWS = (5_000, 20_000, 80_000, 320_000, 1_280_000)
WIDE = (2_500, 5_000, 10_000, 20_000, 40_000)
FEATURES = (50, 100, 200, 400, 800)
SIZES = (5, 10, 20, 40, 80)


def _scaling(axis: str, m: int, n: int, s: int, logistic: bool = False) -> Problem:
    value = {"m": m, "n": n, "wide-n": n, "s": s}[axis]
    make = classification if logistic else regression
    task = "logistic" if logistic else "least_squares"
    name = f"scaling-{'logit' if logistic else 'ls'}-{axis}-{value}"
    sizes = tuple(range(1, s + 1))
    return Problem(name, task, sizes, partial(make, m, n, min(20, s)), family="scaling")


PROBLEMS = [
    *(_scaling("m", m, 100, 20) for m in ROWS),
    *(_scaling("n", 20_000, n, 20) for n in FEATURES),
    *(_scaling("s", 20_000, 200, s) for s in SIZES),
    *(_scaling("wide-n", 500, n, 10) for n in WIDE),
    *(_scaling("m", m, 50, 10, logistic=True) for m in ROWS[:-1]),
    *(_scaling("n", 10_000, n, 10, logistic=True) for n in FEATURES[:-1]),
]
