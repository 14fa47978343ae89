"""The judge: refits every returned support in float64 and says what it is worth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import linalg, sparse

from benchmarks import refit
from benchmarks.base import Supports, Task

SEPARABLE = 1e-8  # loss per row below which the classes count as separated, and the loss as zero


class Judge:
    """Losses of supports of one problem: ½‖residual‖², or the summed logistic or softmax loss.

    The intercept is always in and never counted. Each support is fitted once.
    """

    def __init__(self, X: Any, y: np.ndarray, task: Task) -> None:
        self._X, self._y, self._task = X, np.asarray(y, dtype=float), task
        self._seen: dict[bytes, float] = {}
        m, n = X.shape
        self._R = _triangle(X, self._y) if self._can_compress(m, n) else None
        self.null = self.loss(np.empty(0, dtype=int))

    def _can_compress(self, m: int, n: int) -> bool:
        return self._task == "least_squares" and m > 2 * n and not sparse.issparse(self._X)

    def loss(self, support: Iterable[int]) -> float:
        S = np.unique(np.asarray(support, dtype=np.int64))
        key = S.tobytes()
        if key not in self._seen:
            self._seen[key] = self._fit(S)
        return self._seen[key]

    def _fit(self, S: np.ndarray) -> float:
        if self._task != "least_squares":
            A = refit.columns(self._X, S)
            fit = refit.logistic if self._task == "logistic" else refit.multinomial
            loss = fit(A, self._y).loss
            return loss if loss > SEPARABLE * len(self._y) else 0.0
        if self._R is not None:
            return refit.least_squares(self._R[:, S], self._R[:, -1])
        A = refit.columns(self._X, S)
        return refit.least_squares(A - A.mean(axis=0), self._y - self._y.mean())

    def levels(self, supports: Supports, sizes: Iterable[int]) -> list[dict[str, Any]]:
        """For every s, the best of the supports with at most s features."""
        worth = [(len(S), self.loss(S), S) for S in map(np.unique, supports.values())]
        rows = []
        for s in sizes:
            allowed = [w for w in worth if w[0] <= s]
            if allowed:
                size, loss, S = min(allowed, key=lambda w: w[1])
                rows.append({"s": s, "size": size, "loss": loss, "support": S.tolist()})
        return rows


def _triangle(X: np.ndarray, y: np.ndarray, rows: int = 50_000) -> np.ndarray:
    """R of the QR factors of [X y], centred and scaled: it has the same least-squares losses."""
    mean = X.mean(axis=0)
    R = np.empty((0, X.shape[1] + 1))
    for i in range(0, len(y), rows):
        block = np.column_stack([X[i : i + rows] - mean, y[i : i + rows] - y.mean()])
        R = linalg.qr(np.vstack([R, block]), mode="r", overwrite_a=True, check_finite=False)[0]
        R = R[: X.shape[1] + 1]
    scale = np.sqrt(np.einsum("ij,ij->j", R, R))
    scale[-1] = 0.0
    return R / np.where(scale > 0, scale, 1.0)
