"""abess: adaptive best-subset selection by splicing, C++."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.base import Solver, Supports, Task


class Abess(Solver):
    name = module = package = "abess"
    note = (
        '`LinearRegression` / `LogisticRegression(path_type="seq", support_size=sizes, '
        'ic_type="loss", thread=0)`. The fit keeps the support of one size only, so the clock '
        "covers one fit of the whole path, and the other supports come from fits of the path "
        "up to each size, off the clock; warm starts run upwards, so they are the same ones. y is "
        "put in units where its spread is 1000: abess stops splicing at an absolute gain, which in "
        "the data's own units can be too coarse."
    )

    def _fit(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> np.ndarray:
        import abess

        if task == "least_squares":
            y = y * (1000.0 / y.std())
        model = abess.LinearRegression if task == "least_squares" else abess.LogisticRegression
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = model(path_type="seq", support_size=list(sizes), ic_type="loss", thread=0)
            return np.flatnonzero(fit.fit(X, y).coef_)

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        support = self._fit(X, y, task, sizes)
        return {len(support): support}

    def finish(
        self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]
    ) -> Iterator[tuple[int, np.ndarray]]:
        for i, s in enumerate(sizes[:-1]):
            yield s, self._fit(X, y, task, sizes[: i + 1])


SOLVERS = [Abess()]
