"""ellzero's default search, and each of its single methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.base import Shape, Solver, Supports, Task

LARGE = 1e7
"""Numbers in X from which the single methods take too long on classes."""


class Ellzero(Solver):
    module = package = "ellzero"

    def __init__(self, method: str = "auto", **options: float) -> None:
        self.method, self.options = method, options
        kinds = [method] if method != "auto" else []
        kinds += [f"{name}-{value:g}" for name, value in options.items()]
        self.name = "-".join(["ellzero", *kinds])
        self.kind = "ours-method" if kinds else "ours"
        given = "".join(f", {name}={value:g}" for name, value in options.items())
        self.note = f'`path(f, sizes, method="{method}"{given})`'
        self._steps = 0

    def skip(self, shape: Shape) -> str:
        slow = self.method in ("ompr", "els", "exchange", "arht", "lasso")
        large = shape.task == "logistic" and shape.m * shape.n > LARGE
        return "minutes to hours: see the reproduction of the experiments" if slow and large else ""

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        import ellzero as lz

        loss = lz.LeastSquares if task == "least_squares" else lz.Logistic
        path = lz.path(
            loss(X, y, fit_intercept=True), list(sizes), method=self.method, **self.options
        )
        self._steps = sum(int(getattr(path[s], "n_iter", 0)) for s in sizes)
        return {s: np.asarray(path[s].support) for s in sizes}

    def info(self) -> dict[str, float]:
        return {"steps": self._steps}


METHODS = ("auto", "omp", "ompr", "els", "arht", "exchange", "lasso")
SOLVERS = [*(Ellzero(method) for method in METHODS), Ellzero(effort=0)]
