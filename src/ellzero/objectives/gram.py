"""Where a quadratic takes the rows of its Gram matrix from.

There are two kinds, `DenseGram` and `LazyGram`, of the matrix C of unit diagonal with
G = diag(scale) · C · diag(scale), so that no product of data overflows and "dependent" means the
same for columns of every size. A column that is zero (or lies in the span of the intercept and the
forced features) has scale 1 and a zero row.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh

from ellzero.objectives.products import product
from ellzero.objectives.statistics import Statistics
from ellzero.supports import NONE, Matrix, Support, Vector

LARGEST_GRAM = 3000
"""With more features than this, only those Gram rows are made, and kept, that are asked for."""

CONSTANT = 1e-26
"""A column is constant when its variance is less than this part of its squared mean."""


def scaled_ridge(ridge: Vector, scale: Vector) -> Vector:
    """The ridge on the unit scale; beyond 1e30 a coefficient is zero whatever the number."""
    with np.errstate(over="ignore"):
        return np.minimum(ridge / scale / scale, 1e30)


class Gram(Protocol):
    scale: Vector
    diagonal: Vector
    keeps: bool
    """Are rows held once they were asked for?"""
    threads: int
    """How many may share large products."""

    roughness: float
    """An entry of a coarse row may be off by so much, besides the rounding of single precision."""

    def rows(self, S: Support) -> Matrix:
        """C[S, :]."""

    def coarse_rows(self, S: Support, ahead: Support = NONE) -> NDArray[Any]:
        """C[S, :], good enough to tell which columns matter; if rows must be made for that, those
        of `ahead` may be made with them."""

    def block(self, S: Support, T: Support | None = None) -> Matrix:
        """C[S, T], by default C[S, S]."""

    def blocks(self, S: Support) -> NDArray[np.float64]:
        """C[T, T] for every row T of S."""

    def holds(self, S: Support) -> bool:
        """Are no rows of C to be made for S?"""

    def at_hand(self, S: Support) -> NDArray[np.bool_]:
        """For every row of S, whether to ask for its coarse rows of C now."""

    def combined(self, S: Support, A: Matrix, ahead: Support = NONE) -> Matrix:
        """A · C[S, :]; if rows must be made for that, those of `ahead` may be made with them."""

    def factor(self) -> Matrix | None:
        """A with AᵀA = C that is cheaper than C, if there is one."""


class DenseGram:
    keeps = True
    threads = 1
    roughness = 0.0

    def __init__(self, G: Matrix, zero: NDArray[np.bool_] | None = None):
        norms = np.sqrt(np.maximum(np.diag(G), 0.0))
        zero = (norms == 0) if zero is None else zero | (norms == 0)
        self.scale = np.where(zero, 1.0, norms)
        C = G / self.scale
        C /= self.scale[:, None]
        if zero.any():
            C[zero] = 0.0
            C[:, zero] = 0.0
        np.fill_diagonal(C, ~zero)
        self.matrix = np.ascontiguousarray(C)  # or `blocks` would copy it
        self.diagonal = np.diag(C).copy()

    def rows(self, S: Support) -> Matrix:
        return self.matrix[S]

    def coarse_rows(self, S: Support, ahead: Support = NONE) -> Matrix:
        return self.matrix[S]

    def block(self, S: Support, T: Support | None = None) -> Matrix:
        return self.matrix[S[:, None], S if T is None else T]

    def blocks(self, S: Support) -> NDArray[np.float64]:
        return blocks_of(self.matrix, S)

    def holds(self, S: Support) -> bool:
        return True

    def at_hand(self, S: Support) -> NDArray[np.bool_]:
        return np.ones(len(S), dtype=bool)

    def combined(self, S: Support, A: Matrix, ahead: Support = NONE) -> Matrix:
        return product(A, self.matrix[S])

    def factor(self) -> None:
        return None


def blocks_of(A: Matrix, S: Support) -> NDArray[np.float64]:
    """A[T, T] for every row T of S."""
    return A.take(S[:, :, None] * len(A) + S[:, None, :])


def profiled_moments(
    stats: Statistics, fit_intercept: bool, F: Support, ridge: Vector
) -> tuple[DenseGram, Vector, float]:
    """XᵀMX, XᵀMy and yᵀMy for the projection M that takes out intercept and forced features."""
    G, b, yy = stats.xx, stats.xy, float(stats.yy)
    offset = stats.weight * stats.mean**2
    if not fit_intercept:
        G = G + stats.weight * np.outer(stats.mean, stats.mean)
        b = b + stats.weight * stats.mean * stats.mean_y
        yy = yy + stats.weight * stats.mean_y**2
    zero = G.diagonal() <= CONSTANT * offset
    if len(F):
        before = G.diagonal()
        K = gram_inverse(G[np.ix_(F, F)] + np.diag(ridge[F]))
        onto = G[:, F] @ K
        yy -= float(b[F] @ K @ b[F])
        G, b = G - onto @ G[F], b - onto @ b[F]
        zero |= G.diagonal() <= 1e-12 * before
        zero[F] = True
    return DenseGram(G, zero), b, max(yy, 0.0)


def gram_inverse(A: Matrix) -> Matrix:
    """The inverse of a Gram matrix, or its pseudo-inverse, taken on the unit-diagonal scale."""
    if not len(A):
        return A
    scale = np.sqrt(np.where(A.diagonal() > 0, A.diagonal(), 1.0))
    return pinvh(A / scale / scale[:, None], rtol=1e-12) / scale / scale[:, None]
