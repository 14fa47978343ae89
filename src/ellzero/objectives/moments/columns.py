"""Columns of data after intercept and forced features are taken out, on the unit scale."""

from __future__ import annotations

import numpy as np

from ellzero.data.design import TOLERATED_LOSS, Design
from ellzero.objectives.moments.held import CONSTANT, SPANNED, inverse_gram
from ellzero.supports import Matrix, Support, Vector

LONGEST_KEPT_ROW = 100_000
"""Features of sparse data up to which rows of C are kept. Longer ones would outgrow the data."""


class ProjectedColumns:
    """The columns Z of C = ZᵀMZ, of unit norm.

    M is the weighted projection that takes out the intercept (if `centre`) and the forced features
    F, under their ridge.

    Parameters
    ----------
    tolerated : float
        Sparse columns stay sparse in products, and are centred afterwards, where the squares of no
        column are more than this many times those about its mean. More would cost digits.
    """

    blocks_are_cheap = True

    def __init__(
        self,
        design: Design,
        weight: Vector,
        centre: bool,
        F: Support,
        ridge: Vector,
        threads: int = 1,
        tolerated: float = TOLERATED_LOSS,
    ):
        self.design, self.weight, self.threads = design, weight, threads
        total = float(weight.sum())
        self.mean, self.norms2 = design.means_and_norms(weight, centre, threads)
        self.N = design.columns(F) - self.mean[F]
        own = (self.N.T * weight) @ self.N
        self.project(total, own, self.times(weight[:, None] * self.N), F, ridge)
        centrable = (tolerated * self.norms2 >= total * self.mean**2).all()
        self._stays_sparse = design.is_sparse and bool(centrable)
        self.keeps_rows = not self._stays_sparse or design.shape[1] <= LONGEST_KEPT_ROW

    def project(self, total: float, own: Matrix, cross: Matrix, F: Support, ridge: Vector) -> None:
        """Take the forced features out, given NᵀWN and XᵀWN of the centred columns."""
        self._forced_ridge = bool(ridge[F].any())
        self.K, self.cross = inverse_gram(own + np.diag(ridge[F])), cross
        left = self.norms2 - np.einsum("jq,qr,jr->j", cross, self.K, cross)
        zero = left <= SPANNED * self.norms2
        zero |= self.norms2 <= CONSTANT * total * self.mean**2
        zero[F] = True
        self.scale = np.where(zero, 1.0, np.sqrt(np.maximum(left, 0.0)))
        self.diagonal = (~zero).astype(float)

    def times(self, V: Matrix) -> Matrix:
        """Return (X − mean)ᵀV, from one pass over X."""
        product = self.design.transposed_times(V, self.threads)
        if self.mean.any():
            for column, total in zip(product.T, V.sum(axis=0), strict=True):
                column -= total * self.mean
        return product

    def measured(self, V: Matrix) -> Matrix:
        """Return MV for centred columns V."""
        wV = V * self.weight[:, None]
        if self.N.size:
            wV -= (self.N @ (self.K @ (self.N.T @ wV))) * self.weight[:, None]
        return wV

    def inner(self, V: Matrix) -> Matrix:
        """Return ZᵀMV for centred columns V, from one pass over X."""
        out = self.times(self.measured(V))
        out /= self.scale[:, None]
        out[self.diagonal == 0] = 0.0
        return out

    def unit_columns(self, S: Support) -> Matrix:
        return (self.design.columns(S) - self.mean[S]) * (self.diagonal[S] / self.scale[S])

    def rows(self, S: Support) -> Matrix:
        if self._stays_sparse:
            return self._sparse_block(S, slice(None))
        return self.inner(self.unit_columns(S)).T

    def products(self, S: Support, A: Matrix) -> Matrix:
        A = A * (self.diagonal[S] / self.scale[S])
        V = self.design.X[:, S] @ A.T - A @ self.mean[S]
        return np.ascontiguousarray(self.inner(V).T)

    def block(self, S: Support, T: Support) -> Matrix:
        if self._stays_sparse:
            return self._sparse_block(S, T)
        return self.unit_columns(S).T @ self.measured(self.unit_columns(T))

    def _sparse_block(self, S: Support, T: Support | slice) -> Matrix:
        """Return products of sparse columns, centred and projected afterwards."""
        new = self.design.sparse_products(S, T, self.weight)
        new -= np.multiply.outer(self.weight.sum() * self.mean[S], self.mean[T])
        return self.projected(new, S, T)

    def projected(self, new: Matrix, S: Support, T: Support | slice) -> Matrix:
        """Return C[S, T], given the products of the centred columns. Overwrites these."""
        new -= self.cross[S] @ self.K @ self.cross[T].T
        new /= self.scale[T]
        new /= self.scale[S, None]
        new[:, self.diagonal[T] == 0] = 0.0
        new[self.diagonal[S] == 0] = 0.0
        return new

    def factor(self) -> Matrix | None:
        m, n = self.design.shape
        if m >= n or self._forced_ridge:
            return None
        A = self.unit_columns(np.arange(n)) * np.sqrt(self.weight)[:, None]
        B = np.sqrt(self.weight)[:, None] * self.N
        A -= B @ (self.K @ (B.T @ A))
        return A
