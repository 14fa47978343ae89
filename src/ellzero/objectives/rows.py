"""Least squares of few rows that stand for many, where moments have lost too many digits.

The triangle of a QR factorisation has the same products as the data it is made of, but tells
columns apart that differ by 1e-12 of their length; squares of such differences do not show in
moments.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, lstsq, qr

from ellzero.core import Iterate, Objective
from ellzero.supports import Matrix, Support, Vector

SAME = 1e-12
"""Columns of unit norm that differ by less are the same up to the rounding of the data."""

UNCERTAIN = 1e-13
"""A bound uses all that may be more than rounding: what is taken for a difference lowers it."""

WELL_CONDITIONED = 1e10
"""The largest of the diagonal of (AᵀA)⁻¹ up to which removals have a closed form."""

FEW = 60
"""So many removals are refitted where they have none."""


class Rows(Objective):
    """½‖Az − t‖² with z = scale · x, the ridge included; `forced` features are taken out.

    That has made rounding of A `lost` times as large, where these are nearly dependent.
    """

    def __init__(self, A: Matrix, t: Vector, scale: Vector, forced: tuple[int, ...], lost: float):
        self.A, self.t, self.scale, self.forced, self.lost = A, t, scale, forced, lost
        self.n_features = A.shape[1]
        self.ridge = np.zeros(self.n_features)
        self.floor = 0.0
        self.resolution = 0.5e-12 * float(t @ t)

    def _value(self, S: Support, coef: Vector) -> float:
        residual = self.A[:, S] @ (coef * self.scale[S]) - self.t
        return 0.5 * float(residual @ residual)

    def _gradient(self, point: Iterate) -> Vector:
        S = point.support
        return self.A.T @ (self.A[:, S] @ (point.coef * self.scale[S]) - self.t) * self.scale

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        z = np.empty(0)
        if len(S):
            z = lstsq(self.A[:, S], self.t, UNCERTAIN, lapack_driver="gelsy", check_finite=False)[0]
        residual = self.A[:, S] @ z - self.t
        return Iterate(S, z / self.scale[S], 0.5 * float(residual @ residual), self.n_features)

    def smoothness(self, k: int) -> float:
        return float(np.linalg.norm(self.A * self.scale, 2) ** 2 * (1 + 1e-12))

    @property
    def moment_diagonal(self) -> Vector:
        return np.append(np.einsum("ij,ij->j", self.A, self.A), self.t @ self.t)

    def rounding(self, x: Iterate) -> float:
        """What changes of A by a few units in the last place change."""
        size = self.lost * np.abs(x.coef * self.scale[x.support]).sum()
        size += (self.lost - 1) * np.linalg.norm(self.t)
        moved = 8 * len(self.A) * np.finfo(float).eps * size
        return self.resolution + float(moved * (np.sqrt(2 * max(x.value, 0.0)) + moved))

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        here = x.value - self.rounding(x)
        cost = self._removal_costs(x)
        if cost is not None:
            return here, here + cost
        if len(x.support) > FEW:
            return here, np.full(len(x.support), here)
        without = np.full(len(x.support), here)
        for j in range(len(x.support)) if asked is None else asked:
            y = self.minimize(np.delete(x.support, j))
            without[j] = y.value - self.rounding(y)
        return here, without

    def _removal_costs(self, x: Iterate) -> Vector | None:
        """z²/2h at least, with h the diagonal of (AᵀA)⁻¹; None where that is ill-conditioned."""
        S = x.support
        if not len(S) or len(S) > len(self.A):
            return None
        inverse, info = lapack.dtrtri(qr(self.A[:, S], mode="r", check_finite=False)[0][: len(S)])
        h = np.einsum("ij,ij->i", inverse, inverse)
        if info or not h.max() < WELL_CONDITIONED:
            return None
        z, r = np.abs(x.coef * self.scale[S]), np.sqrt(2 * max(x.value, 0.0))
        error = 8 * len(S) * np.finfo(float).eps * (np.sqrt(h.max()) * z.sum() + h.max() * r)
        return (1 - 1e-6) * np.maximum(z - error, 0.0) ** 2 / (2 * h)


def triangle(A: Matrix, deadline: float = np.inf) -> Matrix:
    """R with RᵀR = AᵀA, from blocks of rows; a `TimeoutError` at the deadline."""
    width = A.shape[1]
    R, step = A[:0], max(1000, 4 * width)
    for begin in range(0, len(A), step):
        if time.monotonic() > deadline:
            raise TimeoutError
        part = np.vstack([R, A[begin : begin + step]])
        R = qr(part, mode="r", overwrite_a=True, check_finite=False)[0][:width]
    return R


def without_span(A: Matrix, first: int) -> tuple[Matrix, float]:
    """What the first columns leave of the others, as a matrix of the same products, and how many
    times larger that has made rounding."""
    if not first:
        return A, 1.0
    Q, R, _ = qr(A[:, :first], pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    kept = size > SAME * size.max(initial=0.0)
    return (Q.T @ A[:, first:])[int(kept.sum()) :], 1 / size[kept].min(initial=1.0)
