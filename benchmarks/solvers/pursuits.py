"""Orthogonal matching pursuit, as scikit-learn and SPAMS do it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from benchmarks.base import (
    Shape,
    Solver,
    Supports,
    Task,
    dense_only,
    least_squares_only,
    nonzero_path,
    unit_columns,
)


class Pursuit(Solver):
    def skip(self, shape: Shape) -> str:
        return least_squares_only(shape) or dense_only(shape)


class SklearnOMP(Pursuit):
    name = "sklearn-omp"
    module = "sklearn.linear_model"
    package = "scikit-learn"
    note = "`orthogonal_mp(X, y, n_nonzero_coefs=s, return_path=True)`, Gram matrix where m > n."

    def solve_path(
        self, X: np.ndarray, y: np.ndarray, task: Task, sizes: Sequence[int]
    ) -> Supports:
        from sklearn.linear_model import orthogonal_mp

        Z, y = unit_columns(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns when it stops early on dependent columns
            coefs = orthogonal_mp(
                Z,
                y,
                n_nonzero_coefs=int(max(sizes)),
                precompute=Z.shape[0] > Z.shape[1],
                copy_X=False,
                return_path=len(sizes) > 1,  # n × n numbers, so not where one size is asked for
            )
        return nonzero_path(coefs.reshape(Z.shape[1], -1))


class SpamsOMP(Pursuit):
    name = "spams-omp"
    module = "spams"
    package = "spams-bin"
    note = "`spams.omp(y, X, L=s, return_reg_path=True)` on Fortran-ordered unit columns."

    def solve_path(
        self, X: np.ndarray, y: np.ndarray, task: Task, sizes: Sequence[int]
    ) -> Supports:
        import spams

        Z, y = unit_columns(X, y)
        target = np.asfortranarray(y[:, None])
        _, path = spams.omp(target, np.asfortranarray(Z), L=int(max(sizes)), return_reg_path=True)
        return nonzero_path(np.asarray(path))


SOLVERS = [SklearnOMP(), SpamsOMP()]
