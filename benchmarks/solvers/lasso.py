"""The LASSO path as a chooser of supports; the judge's refit removes the shrinkage."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.base import Shape, Solver, Supports, Task, unit_columns

GRID = np.geomspace(1.0, 1e4, 100)  # multiples of the smallest C with a non-zero coefficient


class Lasso(Solver):
    name = "lasso-refit"
    module = "sklearn.linear_model"
    package = "scikit-learn"
    note = (
        "scikit-learn's `lars_path(method='lasso')`, from the Gram matrix where m > n; logistic: "
        "`LogisticRegression` with an ℓ₁ penalty (liblinear) over a grid of C until the size is "
        "passed. Supports refitted without the penalty."
    )

    def skip(self, shape: Shape) -> str:
        return "least squares: dense only" if shape.sparse and shape.task != "logistic" else ""

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = _least_squares if task == "least_squares" else _logistic
            found = path(X, y, max(sizes))
        return {s: S for s, S in found.items() if s <= max(sizes)}


def _least_squares(X: np.ndarray, y: np.ndarray, stop: int) -> Supports:
    from sklearn.linear_model import lars_path, lars_path_gram

    Z, y = unit_columns(X, y)
    m, n = Z.shape
    if m > n:
        _, _, coefs = lars_path_gram(
            Z.T @ y, Z.T @ Z, n_samples=m, max_iter=4 * stop, method="lasso"
        )
    else:
        _, _, coefs = lars_path(Z, y, max_iter=4 * stop, method="lasso", copy_X=False)
    return _first_of_each_size(coefs.T)


def _logistic(X: Any, y: np.ndarray, stop: int) -> Supports:
    from sklearn.svm import l1_min_c

    scale = np.sqrt(_mean_squares(X))
    scale = np.where(scale > 0, scale, 1.0)
    Z = sparse.csr_matrix(X @ sparse.diags(1 / scale)) if sparse.issparse(X) else X / scale
    steps = []
    least = l1_min_c(Z, y, loss="log", intercept_scaling=10.0)
    for factor in GRID:
        steps.append(_l1_fit(Z, y, least * factor))
        if np.count_nonzero(steps[-1]) >= stop:
            break
    return _first_of_each_size(steps)


def _l1_fit(Z: Any, y: np.ndarray, C: float) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=C, l1_ratio=1.0, solver="liblinear", intercept_scaling=10.0, max_iter=200
    )
    return model.fit(Z, y).coef_.ravel()


def _mean_squares(X: Any) -> np.ndarray:
    squares = X.multiply(X) if sparse.issparse(X) else X * X
    return np.asarray(squares.mean(axis=0)).ravel()


def _first_of_each_size(steps: Any) -> Supports:
    found: Supports = {}
    for coef in steps:
        S = np.flatnonzero(coef)
        if len(S):
            found.setdefault(len(S), S)
    return found


SOLVERS = [Lasso()]
