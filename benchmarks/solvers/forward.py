"""Forward stepwise: at each step the feature whose addition lowers the loss most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import refit
from benchmarks.base import Shape, Solver, Supports, Task, unit_columns

TRIED = 10  # logistic: candidates refitted per step, the best by the local quadratic model


class Forward(Solver):
    name = "forward"
    package = "numpy"
    note = (
        "plain NumPy. Least squares: exact gains by orthogonalising against the support. "
        f"Logistic: the {TRIED} best by the local quadratic model, refitted, the best taken."
    )

    def skip(self, shape: Shape) -> str:
        return "least squares: dense only" if shape.sparse and shape.task != "logistic" else ""

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        grow = _least_squares if task == "least_squares" else _logistic
        order = grow(X, y, min(max(sizes), *X.shape))
        return {s: np.array(order[:s]) for s in sizes if s <= len(order)}


def _least_squares(X: np.ndarray, y: np.ndarray, stop: int) -> list[int]:
    Z, r = unit_columns(X, y)
    c, left = r @ Z, np.ones(Z.shape[1])
    G = Z.T @ Z if Z.shape[0] > Z.shape[1] else None
    Q = np.zeros((stop, Z.shape[1] if G is not None else Z.shape[0]))
    order: list[int] = []
    for k in range(stop):
        gain = np.where(left > 1e-9, c * c / np.maximum(left, 1e-9), -1.0)
        gain[order] = -1.0
        j = int(gain.argmax())
        if gain[j] < 0:
            break
        order.append(j)
        if G is not None:  # row k of Q: qᵀZ, from the Gram matrix alone
            along = (G[j] - Q[:k, j] @ Q[:k]) / np.sqrt(left[j])
            Q[k] = along
        else:
            q = Z[:, j] - Q[:k].T @ (Q[:k] @ Z[:, j])
            q -= Q[:k].T @ (Q[:k] @ q)
            Q[k] = q / np.linalg.norm(q)
            along = Q[k] @ Z
        c = c - along * (c[j] / np.sqrt(left[j]))
        left = left - along**2
    return order


def _logistic(X: Any, y: np.ndarray, stop: int) -> list[int]:
    squares = X.multiply(X) if sparse.issparse(X) else X * X
    order: list[int] = []
    A = np.empty((len(y), 0))
    fit = refit.logistic(A, y)
    while len(order) < stop:
        gain = _quadratic_gains(X, squares, A, y, fit.probability)
        gain[order] = -1.0
        best = None
        for j in np.argsort(-gain)[:TRIED]:
            if gain[j] <= 0:
                continue
            wider = np.column_stack([A, refit.columns(X, np.array([j]))])
            trial = refit.logistic(wider, y)
            if best is None or trial.loss < best[0].loss:
                best = (trial, int(j), wider)
        if best is None or fit.loss < 1e-8 * len(y):
            break
        fit, j, A = best
        order.append(j)
    return order


def _quadratic_gains(
    X: Any, squares: Any, A: np.ndarray, y: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """½ g²/h for every column, h its weighted norm left after the support and the intercept."""
    w = p * (1 - p)
    B = np.linalg.qr(np.sqrt(w)[:, None] * np.column_stack([np.ones(len(y)), A]))[0]
    g = X.T @ (y - p)
    norm = np.asarray(squares.T @ w).ravel()
    across = np.asarray(X.T @ (np.sqrt(w)[:, None] * B))
    h = norm - np.square(across).sum(axis=1)
    return np.where(h > 1e-9 * norm, 0.5 * g * g / np.where(h > 0, h, 1.0), -1.0)


SOLVERS = [Forward()]
