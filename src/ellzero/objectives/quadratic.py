"""Quadratic objectives: restricted minimisers, insertions and exchanges in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, eigvalsh, lapack

from ellzero.core import Iterate, Objective, Support
from ellzero.objectives.gram import DEPENDENT, DenseGram, Gram

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


class Tableau(NamedTuple):
    """All that insertions and exchanges need to know about a support S, on the unit scale."""

    x: Vector  # restricted minimiser
    value: float
    inverse: Matrix | None  # of C_SS; None if C_SS is singular
    W: Matrix  # C_SS⁻¹ C_S,:
    residual: Vector  # c − C_:,S x, minus the gradient
    left: Vector  # what S leaves of the squared norm of each column


class Quadratic(Objective):
    """f(x) = ½ xᵀGx − bᵀx + constant + ½ Σ ridge_j x_j².

    Inside, everything is on the scale on which G has a unit diagonal (``x̂ = scale · x / unit``) and
    values are in units of ``unit²``.
    """

    def __init__(
        self,
        gram: Any,
        b: ArrayLike,
        constant: float = 0.0,
        ridge: ArrayLike = 0.0,
        forced: tuple[int, ...] = (),
    ):
        self.gram: Gram = gram if hasattr(gram, "rows") else DenseGram(np.asarray(gram, float))
        b = np.asarray(b, dtype=float)
        self.n_features = len(b)
        self.forced = forced
        self.ridge = np.broadcast_to(np.asarray(ridge, float), b.shape).copy()
        self.scale = self.gram.scale
        self.unit = np.sqrt(2.0 * abs(constant)) or 1.0
        self.c = np.where(self.gram.diagonal > 0, b / self.scale / self.unit, 0.0)
        self.half = constant / self.unit / self.unit  # ½ for least squares
        self.resolution = 1e-14 * self.unit**2

    # the contract

    def _value(self, S: Support, coef: Vector) -> float:
        x = coef * (self.scale[S] / self.unit)
        A = self._block(S, self.gram.rows(S))
        return float(self.unit**2 * (self.half - self.c[S] @ x + 0.5 * x @ A @ x))

    def _gradient(self, point: Iterate) -> Vector:
        S = point.support
        x = point.coef * (self.scale[S] / self.unit)
        g = (x @ self.gram.rows(S) - self.c) * (self.scale * self.unit)
        g[S] += self.ridge[S] * point.coef
        return g

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        x = self._solve(self._block(S, self.gram.rows(S)), self.c[S])
        value = float(self.unit**2 * (self.half - 0.5 * self.c[S] @ x))
        return Iterate(S, x * (self.unit / self.scale[S]), value, self.n_features)

    def smoothness(self, k: int) -> float:
        """Exact for k ≤ 2 when the Gram matrix is held; otherwise the best of several bounds."""
        diagonal = self.gram.diagonal * self.scale**2 + self.ridge
        top = diagonal.max(initial=0.0)
        if k <= 1 or not isinstance(self.gram, DenseGram):
            return float(top * min(k, self.n_features))  # trace of a k × k block
        G = np.abs(self.gram.matrix * self.scale * self.scale[:, None])
        np.fill_diagonal(G, 0.0)
        if k == 2:
            half_sum = (diagonal[:, None] + diagonal) / 2
            half_gap = (diagonal[:, None] - diagonal) / 2
            return float((half_sum + np.hypot(half_gap, G)).max())
        kept = min(k - 1, self.n_features - 1)
        largest = -np.partition(-G, kept - 1, axis=1)[:, :kept] if kept else G[:, :0]
        bound = min(top * k, (diagonal + largest.sum(axis=1)).max())
        if self.n_features <= 1000:
            full = self.gram.matrix * self.scale * self.scale[:, None] + np.diag(self.ridge)
            n = self.n_features
            bound = min(bound, eigvalsh(full, subset_by_index=[n - 1, n - 1])[0] * (1 + 1e-12))
        return float(bound)

    def lower_bound(self) -> float:
        if isinstance(self.gram, DenseGram):
            return super().lower_bound()
        return min(0.0, self.half * self.unit**2)

    # closed forms

    def insertion_values(
        self, S: Support, x0: Iterate | None = None, below: float = np.inf
    ) -> Vector:
        t = self._tableau(S)
        drop = _gain(t.residual, t.left)
        return np.where(self.outside(S), self.unit**2 * (t.value - drop), np.inf)

    def exchange_values(self, S: Support, x0: Iterate | None = None) -> Matrix:
        t = self._tableau(S)
        if t.inverse is None:
            return super().exchange_values(S)
        h = np.diag(t.inverse)[:, None]
        cost = t.x[:, None] ** 2 / (2 * h)
        residual = t.residual + t.W * (t.x[:, None] / h)
        left = t.left + t.W**2 / h
        values = self.unit**2 * (t.value + cost - _gain(residual, left))
        values[:, ~self.outside(S)] = np.inf
        return values

    def quadratic_model(self, x: Iterate) -> Objective:
        return self

    def least_squares_form(self) -> tuple[Matrix, Vector]:
        S = np.arange(self.n_features)
        G = self.gram.rows(S) * self.scale * self.scale[:, None] + np.diag(self.ridge)
        b = self.c * self.scale * self.unit
        w, Q = eigh(G)
        keep = w > w.max(initial=0.0) * 1e-13
        root = np.sqrt(w[keep])
        return (Q[:, keep] * root).T, (Q[:, keep] / root).T @ b

    def _tableau(self, S: Support) -> Tableau:
        rows = self.gram.rows(S)
        block = self._block(S, rows)
        factor = _cholesky(block)
        if factor is None:
            inverse = None
            pseudo = _pseudo_inverse(block)
        else:
            pseudo = lapack.dpotri(factor, lower=1)[0]
            pseudo = np.tril(pseudo) + np.tril(pseudo, -1).T
            inverse = pseudo
        x = pseudo @ self.c[S]
        W = pseudo @ rows
        d = self.gram.diagonal + self.ridge / self.scale**2
        left = d - np.einsum("ij,ij->j", rows, W)
        left[left <= DEPENDENT * d] = 0.0
        value = float(self.half - 0.5 * self.c[S] @ x)
        return Tableau(x, value, inverse, W, self.c - x @ rows, left)

    def _block(self, S: Support, rows: Matrix) -> Matrix:
        block = rows[:, S]
        block[np.diag_indices(len(S))] += self.ridge[S] / self.scale[S] ** 2
        return block

    def _solve(self, A: Matrix, c: Vector) -> Vector:
        """A⁻¹c, or the solution of least norm where A is singular."""
        factor = _cholesky(A)
        if factor is None:
            return _pseudo_inverse(A) @ c
        return lapack.dpotrs(factor, c, lower=1)[0] if len(c) else np.empty(0)


def _gain(residual: Matrix, left: Matrix) -> Matrix:
    """How much inserting a column lowers f: ½ residual² / left; nothing if it is dependent."""
    return np.divide(residual**2, 2 * left, out=np.zeros_like(residual), where=left > 0)


def _cholesky(A: Matrix) -> Matrix | None:
    """The lower Cholesky factor, or None if A is singular to working precision."""
    if not len(A):
        return A
    factor, info = lapack.dpotrf(A, lower=1, clean=0)
    pivots = factor.diagonal() ** 2
    if info != 0 or (pivots <= DEPENDENT * A.diagonal()).any():
        return None
    return factor


def _pseudo_inverse(A: Matrix) -> Matrix:
    w, Q = eigh(A)
    keep = w > DEPENDENT * max(w.max(initial=0.0), 1e-300)
    return (Q[:, keep] / w[keep]) @ Q[:, keep].T
