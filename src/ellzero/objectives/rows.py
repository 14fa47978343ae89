"""Least squares of few rows that stand for many, where moments have lost too many digits.

The triangle of a QR factorisation has the same products as the data it is made of, but tells
columns apart that differ by 1e-12 of their length; squares of such differences do not show in
moments. What the rounding of the triangle may change of a fit is part of the fit (`Fit.error`).
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, lstsq, qr, solve_triangular

from ellzero.core import Iterate, Objective
from ellzero.supports import Matrix, Support, Vector

EPS = float(np.finfo(float).eps)

WELL_CONDITIONED = 1e10
"""The largest of the diagonal of (AᵀA)⁻¹ up to which removals have a closed form."""

FEW = 60
"""So many removals are refitted where they have none."""

CLEAR_ANGLE = 1e-9
"""Where rounding may turn columns further, coefficients in float64 do not reach a perfect fit."""

RESOLVED = 1e-5
"""The part of its value up to which the best of all supports is known when it is called so."""


class Fit(NamedTuple):
    """The fit of t by some columns of A, or a stack of such fits."""

    coef: Any
    distance: Any
    """The length of the residual."""
    error: Any
    """How far the length may be from that of the exact fit; inf where that cannot be said."""
    turned: Any
    """The angle by which rounding may turn the columns."""

    @property
    def value(self) -> float:
        return 0.5 * self.distance**2

    @property
    def doubt(self) -> float:
        """How far the value may be from that of the exact fit."""
        if self.error >= self.distance:
            return self.value if np.isinf(self.error) else 0.5 * (self.distance + self.error) ** 2
        return self.error * (self.distance + 0.5 * self.error)


class Rows(Objective):
    """½‖Az − t‖² with z = scale · x, the ridge included; columns of A have unit length.

    `forced` columns are in every fit. A and t stand for so many rows.
    """

    def __init__(self, A: Matrix, t: Vector, scale: Vector, forced: tuple[int, ...], n_rows: float):
        self.A, self.t, self.scale, self.forced = A, t, scale, forced
        self.n_features = A.shape[1]
        self.ridge = np.zeros(self.n_features)
        self.floor = 0.0
        self.resolution = 0.5e-12 * float(t @ t)
        self.length = float(np.linalg.norm(t))
        self.noise = EPS * (2 * np.sqrt(max(A.shape)) + 0.5 * np.sqrt(n_rows))
        self.precision = 8 * len(A) * EPS

    def _value(self, S: Support, coef: Vector) -> float:
        residual = self._residual(S, coef)
        return 0.5 * float(residual @ residual)

    def _gradient(self, point: Iterate) -> Vector:
        g = -self.A.T @ self._residual(point.support, point.coef) * self.scale
        g[list(self.forced)] = 0.0
        return g

    def _residual(self, S: Support, coef: Vector) -> Vector:
        """What forced features leave of t − Az."""
        r = self.t - self.A[:, S] @ (coef * self.scale[S])
        F = self.A[:, list(self.forced)]
        return r - F @ lstsq(F, r, self.noise, lapack_driver="gelsy")[0] if self.forced else r

    def fit(self, S: Support) -> Fit:
        """Fit t by the forced columns and the columns S."""
        if not len(S) and not self.forced:
            return Fit(np.empty(0), self.length, self.precision * self.length, 0.0)
        fits = self.fits(S[None])
        return Fit(fits.coef[0], *(float(part[0]) for part in fits[1:]))

    def fits(self, supports: Support) -> Fit:
        """Fit t by every row of `supports`, which hold equally many columns.

        With singular values σ_j and an error of A of norm e, the j-th direction of the columns may
        be turned by θ_j = e / σ_j. The best z then changes the residual by what it moves along that
        direction, θ_j |along_j|, and by at most √2 ‖θ‖² ‖t‖ / (1 − ‖θ‖) more (Wedin's theorem).
        Singular values that are rounding belong to columns that are dependent.
        """
        forced = np.tile(np.array(self.forced, dtype=np.intp), (len(supports), 1))
        A = self.A.T[np.column_stack([forced, supports])].transpose(0, 2, 1)
        U, sizes, V = np.linalg.svd(A, full_matrices=False)
        independent = sizes > self.noise
        sizes = np.where(independent, sizes, 1.0)
        along = np.einsum("nij,i->nj", U, self.t) * independent
        distance = np.linalg.norm(self.t - np.einsum("nij,nj->ni", U, along), axis=1)
        angle = self.precision / sizes * independent
        turned = np.linalg.norm(angle, axis=1)
        beyond = np.sqrt(2) * turned**2 / np.maximum(1 - turned, 0.5) * self.length
        hidden = self.precision + self._hidden * (~independent).any(axis=1)
        error = (angle * np.abs(along)).sum(axis=1) + beyond + hidden * self.length
        coef = np.einsum("nj,njk->nk", along / sizes, V)[:, len(self.forced) :]
        return Fit(coef, distance, np.where(turned < 0.5, error, np.inf), turned)

    @cached_property
    def _hidden(self) -> float:
        """Bound the angle by which a fit of dependent columns may differ from one of some of them.

        Where a column is a combination of others with a tiny coefficient, the others and it are
        nearly dependent without the column of that coefficient. The direction that is left then is
        known only up to rounding over the coefficient.
        """
        R, _ = qr(self.A, mode="r", pivoting=True, check_finite=False)
        sizes = np.abs(R.diagonal())
        rank = int((sizes > self.noise * sizes.max(initial=0.0)).sum())
        if not 0 < rank < R.shape[1]:
            return 0.0
        mixed = np.abs(solve_triangular(R[:rank, :rank], R[:rank, rank:]))
        mixed = mixed[mixed > self.noise / sizes[rank - 1]]
        return float(self.noise / mixed.min(initial=1.0))

    def is_perfect(self, distance: float) -> bool:
        """Say whether a residual of this length is the rounding of t."""
        return distance <= self.noise * self.length

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        fit = self.fit(S)
        return Iterate(S, fit.coef / self.scale[S], fit.value, self.n_features, memory=fit.doubt)

    def smoothness(self, k: int) -> float:
        return float(np.linalg.norm(self.A * self.scale, 2) ** 2 * (1 + 1e-12))

    @property
    def moment_diagonal(self) -> Vector:
        return np.append(np.einsum("ij,ij->j", self.A, self.A), self.t @ self.t)

    def rounding(self, x: Iterate) -> float:
        return self.fit(x.support).doubt if x.memory is None else x.memory

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
        S, first = x.support, len(self.forced)
        T = np.append(np.array(self.forced, dtype=np.intp), S)
        if not len(S) or len(T) > len(self.A):
            return None
        inverse, info = lapack.dtrtri(qr(self.A[:, T], mode="r", check_finite=False)[0][: len(T)])
        h = np.einsum("ij,ij->i", inverse, inverse)[first:]
        if info or not h.max() < WELL_CONDITIONED:
            return None
        z, r = np.abs(x.coef * self.scale[S]), np.sqrt(2 * max(x.value, 0.0))
        error = self.precision * (np.sqrt(h.max()) * (z.sum() + self.length) + h.max() * r)
        return (1 - 1e-6) * np.maximum(z - error, 0.0) ** 2 / (2 * h)


def best_of_rows(rows: Rows, subsets: Support) -> tuple[Support, float, bool]:
    """Return the row of `subsets` whose columns fit t best, the value of the fit, and whether that
    is proven: rounding may leave open which columns they are."""
    _, distance, error, turned = rows.fits(subsets)
    best = int(np.argmin(distance))
    least = np.maximum(distance - error, 0.0).min()
    clear = (1 - RESOLVED) * (distance[best] + error[best]) <= least
    perfect = rows.is_perfect(distance[best]) and turned[best] < CLEAR_ANGLE
    proven = bool(clear or perfect)
    return subsets[best], 0.5 * float(distance[best]) ** 2, proven


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
