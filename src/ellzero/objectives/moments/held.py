"""Moments that are held whole, and what is done to them once: profiling out, and scaling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh

from ellzero.supports import Mask, Matrix, Support, Vector

CONSTANT = 1e-26
"""A column is constant when its variance is less than this part of its squared mean."""

SPANNED = 1e-12
"""A column lies in the span of the forced ones when they leave less than this part of its norm²."""

HEAVIEST_PENALTY = 1e30
"""With a penalty beyond this on the unit scale, a coefficient is zero whatever the number."""


class HeldMoments:
    """Moments of which the whole matrix is held."""

    def __init__(self, C: Matrix, c: Vector, v: float):
        self.matrix = np.ascontiguousarray(C)
        self.target, self.constant = c, v
        self.diagonal = self.matrix.diagonal().copy()

    def block(self, S: Support, T: Support) -> NDArray[np.float64]:
        return self.matrix[S[..., :, None], T[..., None, :]]

    def products(self, S: Support, A: Matrix) -> Matrix:
        return A @ self.matrix.take(S, 0)

    def factor(self) -> None:
        return None


class Scaled(NamedTuple):
    """Moments on the unit scale, and the way back: z = scale · x / unit, f(x) = unit² · f(z)."""

    moments: HeldMoments
    scale: Vector
    unit: float


def unit_moments(G: Matrix, b: Vector, v: float, zero: Mask | None = None) -> Scaled:
    """Scale ½ xᵀGx − bᵀx + v such that G has a unit diagonal and v is near ½.

    Then no product of data overflows, and "dependent" means the same for columns of every size.

    Parameters
    ----------
    zero : mask, optional
        Columns to be treated as zero.
    """
    norms = np.sqrt(np.maximum(G.diagonal(), 0.0))
    zero = (norms == 0) if zero is None else zero | (norms == 0)
    scale = np.where(zero, 1.0, norms)
    C = G / scale
    C /= scale[:, None]
    if zero.any():
        C[zero] = 0.0
        C[:, zero] = 0.0
    np.fill_diagonal(C, ~zero)
    c = np.where(zero, 0.0, b / scale)
    unit = unit_of(c, v)
    return Scaled(HeldMoments(C, c / unit, v / unit / unit), scale, unit)


def unit_of(c: Vector, v: float) -> float:
    """Return a unit of values in which neither squares of c nor v overflow or vanish."""
    return float(max(np.sqrt(2.0 * abs(v)), np.abs(c).max(initial=0.0))) or 1.0


def penalty_on(ridge: Vector, scale: Vector) -> Vector:
    """Return the ridge on the unit scale."""
    with np.errstate(over="ignore"):
        return np.minimum(ridge / scale / scale, HEAVIEST_PENALTY)


class Profiled(NamedTuple):
    """Moments after minimising over the coordinates F, and how F follows the others.

    `M` has zeros in the rows and columns of F. The minimising coordinates are
    `follow`[:, -1] − `follow`[:, :-1] · x for the other coordinates x.
    """

    M: Matrix
    follow: Matrix
    zero: Mask
    """Columns of which F leaves nothing, F included."""


def profiled_out(M: Matrix, F: Support, penalty: Vector) -> Profiled:
    """Minimise a quadratic with moments M = [[G, b], [bᵀ, 2v]] over the coordinates F.

    Parameters
    ----------
    penalty : vector
        The ridge on the coordinates F.
    """
    n = len(M) - 1
    if not len(F):
        return Profiled(M, M[F], M.diagonal()[:n] <= 0)
    follow = inverse_gram(M[np.ix_(F, F)] + np.diag(penalty)) @ M[F]
    left = M - M[:, F] @ follow
    zero = left.diagonal()[:n] <= SPANNED * M.diagonal()[:n]
    zero[F] = True
    gone = np.append(zero, False)
    left[gone] = left[:, gone] = 0.0
    return Profiled(left, follow, zero)


def inverse_gram(A: Matrix) -> Matrix:
    """Return the inverse of a Gram matrix, or its pseudo-inverse, taken on the unit scale."""
    if not len(A):
        return A
    scale = np.sqrt(np.where(A.diagonal() > 0, A.diagonal(), 1.0))
    return pinvh(A / scale / scale[:, None], rtol=1e-12) / scale / scale[:, None]
