"""Least squares of few rows that stand for many, where moments have lost too many digits.

The triangle of a QR factorisation has the same products as the data it is made of, but tells
columns apart that differ by 1e-12 of their length; squares of such differences do not show in
moments. What the rounding of the triangle may change of a fit is part of the fit (`Fit.error`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, lstsq, qr, solve_triangular

from ellzero.core import Features, Iterate, Objective, Point, as_features
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
    def value(self) -> Any:
        return 0.5 * self.distance**2

    @property
    def doubt(self) -> Any:
        """How far the value may be from that of the exact fit."""
        distance, error = self.distance, np.where(np.isinf(self.error), 0.0, self.error)
        near = np.where(
            error >= distance, 0.5 * (distance + error) ** 2, error * (distance + 0.5 * error)
        )
        return np.where(np.isinf(self.error), self.value, near)


class ExactRows(Objective):
    """½‖Az − t‖² with z = scale · x, the ridge included; columns of A have unit length.

    The forced columns are in every fit. A and t stand for `n_rows` rows.
    """

    def __init__(self, A: Matrix, t: Vector, scale: Vector, features: Features, n_rows: float):
        self.A, self.t, self.scale, self.features = A, t, scale, features
        self.ridge = np.zeros(len(features))
        self.floor = 0.0
        self.resolution = 0.5e-12 * float(t @ t)
        self.length = float(np.linalg.norm(t))
        self.noise = EPS * (2 * np.sqrt(max(A.shape)) + 0.5 * np.sqrt(n_rows))
        self.precision = 8 * len(A) * EPS

    def at(self, x: Point) -> Iterate:
        x = self.point(x)
        residual = self._residual(x)
        return replace(x, value=0.5 * float(residual @ residual))

    def gradient(self, x: Point) -> Vector:
        g = -self.A.T @ self._residual(self.point(x)) * self.scale
        g[self.features.forced] = 0.0
        return g

    def _residual(self, x: Iterate) -> Vector:
        """Return what the forced columns leave of t − Az."""
        F, S = self.features.forced, x.support
        r = self.t - self.A[:, S] @ (x.coef * self.scale[S])
        if not len(F):
            return r
        columns = self.A[:, F]
        return r - columns @ lstsq(columns, r, self.noise, lapack_driver="gelsy")[0]

    def fit(self, S: Support) -> Fit:
        """Fit t by the forced columns and the columns S."""
        if not len(S) and not len(self.features.forced):
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
        forced = np.tile(self.features.forced, (len(supports), 1))
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
        coef = np.einsum("nj,njk->nk", along / sizes, V)[:, forced.shape[1] :]
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

    def minimize(self, S: ArrayLike, start: Iterate | None = None, below: float = inf) -> Iterate:
        S = as_features(S)
        fit = self.fit(S)
        return Iterate(self.features, S, fit.coef / self.scale[S], fit.value)

    def rounding(self, x: Iterate) -> float:
        """Bound how far the value of a minimiser may be from the minimum over its support."""
        return float(self.fit(x.support).doubt)

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        here = x.value - self.rounding(x)
        cost = self._removal_costs(x)
        if cost is not None:
            return here, here + cost
        S, without = x.support, np.full(len(x.support), here)
        asked = np.arange(len(S)) if asked is None else asked
        if len(S) > FEW or not len(asked):
            return here, without
        if len(S) + len(self.features.forced) == 1:
            rest = self.fit(S[:0])
        else:
            rest = self.fits(np.array([np.delete(S, j) for j in asked]))
        without[asked] = rest.value - rest.doubt
        return here, without

    def _removal_costs(self, x: Iterate) -> Vector | None:
        """z²/2h at least, with h the diagonal of (AᵀA)⁻¹; None where that is ill-conditioned."""
        S, first = x.support, len(self.features.forced)
        T = np.append(self.features.forced, S)
        if not len(S) or len(T) > len(self.A):
            return None
        inverse, info = lapack.dtrtri(qr(self.A[:, T], mode="r", check_finite=False)[0][: len(T)])
        h = np.einsum("ij,ij->i", inverse, inverse)[first:]
        if info or not h.max() < WELL_CONDITIONED:
            return None
        z, r = np.abs(x.coef * self.scale[S]), np.sqrt(2 * max(x.value, 0.0))
        error = self.precision * (np.sqrt(h.max()) * (z.sum() + self.length) + h.max() * r)
        return (1 - 1e-6) * np.maximum(z - error, 0.0) ** 2 / (2 * h)


def best_of_rows(rows: ExactRows, subsets: Support) -> tuple[Support, float, bool]:
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
