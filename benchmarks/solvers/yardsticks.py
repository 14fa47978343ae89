"""What the machine takes for the arithmetic alone: the times others are stated against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.base import Shape, Solver, Supports, Task, dense_only, least_squares_only


class Dsyrk(Solver):
    name = "dsyrk"
    kind = "yardstick"
    module = "scipy.linalg.blas"
    package = "scipy"
    note = "one `scipy.linalg.blas.dsyrk` on the centred matrix, centred off the clock."

    def skip(self, shape: Shape) -> str:
        wide = "for m ≥ n" if shape.n > shape.m else ""
        return least_squares_only(shape) or dense_only(shape) or wide

    def prepare(self, X: np.ndarray, y: np.ndarray, task: Task) -> tuple[np.ndarray, np.ndarray]:
        return X - X.mean(axis=0), y

    def solve_path(
        self, X: np.ndarray, y: np.ndarray, task: Task, sizes: Sequence[int]
    ) -> Supports:
        from scipy.linalg.blas import dsyrk

        dsyrk(1.0, X.T)  # the transpose is Fortran-ordered: no copy
        return {}


class Products(Solver):
    name = "s·Xᵀr"
    kind = "yardstick"
    package = "numpy"
    note = "as many products `X.T @ r` as the largest s."

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        r = y - y.mean()
        for _ in range(max(sizes)):
            X.T @ r
        return {}


SOLVERS = [Dsyrk(), Products()]
