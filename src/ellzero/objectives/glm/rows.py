"""Sums over rows: all that a generalised linear model asks of its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ellzero.data.design import Design, dense
from ellzero.objectives.exact_rows import triangle
from ellzero.objectives.glm.families import Family
from ellzero.objectives.glm.newton import Derivatives
from ellzero.objectives.glm.products import curved_square, weighted_square
from ellzero.objectives.moments.columns import ProjectedColumns
from ellzero.supports import Matrix, Support, Vector

NUMBERS_AT_ONCE = 1 << 22
"""Numbers of predictions that are made at a time: 32 MB."""

TRACE = 1e-100
"""Saturated losses keep a trace of curvature, so that their columns do not seem to be zero."""

TOLERATED_LOSS = 1e9
"""A model may lose nine digits where sparse columns are centred afterwards: it only ranks."""


class Linear(NamedTuple):
    """Coefficients of standardised columns, with K numbers in each row of B.

    The first rows belong to the intercept and the forced features, the others to the features S.
    """

    S: Support
    B: Matrix


Losses: TypeAlias = Callable[[Matrix], tuple[float, Derivatives]]
"""The sum of the losses as a function of the coefficients of some columns."""


class Counts(NamedTuple):
    """Numbers that add up over parts of the rows."""

    rows: int
    weight: float
    null: float
    """The loss where all predictions are zero."""


class RowSums(Protocol):
    """Sums over rows of data. The rows may be in memory, or in partitions on other machines."""

    is_sparse: bool
    n_rows: int

    def counts(self) -> Counts:
        """Count the rows, and sum their weights and their losses at zero."""

    def loss(self, S: Support, fixed: Linear | None = None, back: Matrix | None = None) -> Losses:
        """Return the losses as a function of the coefficients of intercept, forced features and S.

        Parameters
        ----------
        fixed : Linear, optional
            Predictions of these coefficients are added.
        back : matrix, optional
            The columns are combined by it, and the function takes coefficients of combinations.
        """

    def slopes(self, at: Linear) -> Matrix:
        """Return the K derivatives of the losses for each standardised column."""

    def gram(self, at: Linear | None, T: Support | None = None) -> Matrix:
        """Return the second derivatives for intercept, forced features and the features T.

        T is all features by default. Without a point, return those that the curvature of the
        family bounds, for one output.
        """

    def columns(self, at: Linear | None, ridge: Vector) -> tuple[ProjectedColumns, Matrix, Matrix]:
        """Return columns for moments on demand, for one output, after profiling.

        Also return NᵀDN and NᵀDX, for the columns N of intercept and forced features.
        """

    def agreeing(self, at: Linear, slopes: Vector) -> Vector:
        """Sum, for each column, the losses of the rows that would gain from a step of its own."""

    def margins(self, at: Linear) -> tuple[float, float]:
        """Return the least and the largest margin by which rows are on the side of their class."""

    def triangle(self, S: Support) -> Matrix:
        """Return R with RᵀR = AᵀWA, for the columns A of intercept, forced features and S."""

    def duals(self, at: Linear, steps: NDArray[np.float64]) -> Vector:
        """Sum ℓ*(∇ℓ + ∇²ℓ·A·step) over the rows for each step of shape (columns, K)."""

    def slope_rounding(self, at: Linear) -> Vector:
        """Bound the rounding of the slopes of intercept, forced features and S."""


class LocalRows:
    """Rows that are here: standardised columns, targets in the form of the family, and weights."""

    def __init__(
        self,
        design: Design,
        target: NDArray[Any],
        weight: Vector,
        family: Family,
        centre: bool,
        F: Support,
        threads: int = 1,
    ):
        self.design, self.target, self.weight = design, target, weight
        self.family, self.centre, self.F, self.threads = family, centre, F, threads
        self.is_sparse, self.n_rows = design.is_sparse, len(weight)
        self.N = np.column_stack([np.ones((len(weight), int(centre))), design.columns(F)])
        self.live: Any = slice(None) if weight.all() else weight > 0

    def __sizeof__(self) -> int:
        """Count the columns in, for schedulers that move parts about."""
        return super().__sizeof__() + self.design.nbytes + self.target.nbytes + self.weight.nbytes

    def counts(self) -> Counts:
        zero = np.zeros((len(self.weight), self.family.n_outputs))
        losses = self.family.taylor(zero, self.target).value
        # the product `@` would wake threads of BLAS
        return Counts(len(zero), float(self.weight.sum()), float((self.weight * losses).sum()))

    def loss(self, S: Support, fixed: Linear | None = None, back: Matrix | None = None) -> Losses:
        A = self._with_nuisance(S)
        if back is not None:
            A = dense(A) @ back
        offset = 0.0 if fixed is None else self._with_nuisance(fixed.S) @ fixed.B

        def look(B: Matrix) -> tuple[float, Derivatives]:
            losses, slopes, second = self.family.taylor(A @ B + offset, self.target)

            def derivatives() -> tuple[Vector, Matrix]:
                D = self.weight[:, None] * second()
                g = A.T @ (self.weight[:, None] * slopes)
                return g.ravel(), curved_square(A, D, self.family.forms, self.threads)

            return float(self.weight @ losses), derivatives

        return look

    def slopes(self, at: Linear) -> Matrix:
        return self.design.transposed_times(self._weighted_slopes(at), self.threads)

    def gram(self, at: Linear | None, T: Support | None = None) -> Matrix:
        return self.gram_of(self.curvatures(at), T)

    def gram_of(self, D: Matrix, T: Support | None = None) -> Matrix:
        """Return the Gram matrix of intercept, forced features and T with these weights.

        A single weight for each row stands for one output.
        """
        if D.shape[1] > 1:
            columns = self.design.columns(np.arange(self.design.shape[1]) if T is None else T)
            A = np.column_stack([self.N, columns])
            return curved_square(A, D, self.family.forms, self.threads)
        X = self.design.X if T is None else self.design.X[:, T]
        own, cross = self._nuisance(D)
        cross = cross if T is None else cross[:, T]
        return np.block([[own, cross], [cross.T, weighted_square(X, D[:, 0], self.threads)]])

    def columns(self, at: Linear | None, ridge: Vector) -> tuple[ProjectedColumns, Matrix, Matrix]:
        weight = self.curvatures(at)[:, 0]
        made = ProjectedColumns(
            self.design, weight, self.centre, self.F, ridge, self.threads, TOLERATED_LOSS
        )
        return made, *self.nuisance(at)

    def nuisance(self, at: Linear | None) -> tuple[Matrix, Matrix]:
        """Return NᵀDN and NᵀDX for one output."""
        return self._nuisance(self.curvatures(at))

    def agreeing(self, at: Linear, slopes: Vector) -> Vector:
        losses, rates, _ = self.family.taylor(self._predictions(at), self.target)
        rates, losses = self.weight * rates[:, 0], self.weight * losses
        return self.design.sums_of_agreeing(rates, slopes, losses)

    def margins(self, at: Linear) -> tuple[float, float]:
        eta = self._predictions(at)[self.live]
        margins = self.family.margins(eta, self.target[self.live])
        return float(margins.min(initial=np.inf)), float(margins.max(initial=-np.inf))

    def triangle(self, S: Support) -> Matrix:
        return triangle(np.sqrt(self.weight)[:, None] * dense(self._with_nuisance(S)))

    def duals(self, at: Linear, steps: NDArray[np.float64]) -> Vector:
        A, y, w = (
            part[self.live] for part in (dense(self._with_nuisance(at.S)), self.target, self.weight)
        )
        eta, (p, k, K) = A @ at.B, steps.shape
        at_once = max(NUMBERS_AT_ONCE // max(eta.size, 1), 1)
        found = np.empty(p)
        for begin in range(0, p, at_once):
            some = steps[begin : begin + at_once]
            moves = A @ some.transpose(1, 0, 2).reshape(k, len(some) * K)
            moves = moves.reshape(len(A), len(some), K)
            found[begin : begin + at_once] = w @ self.family.dual(eta, y, moves)
        return found

    def slope_rounding(self, at: Linear) -> Vector:
        A = abs(self._with_nuisance(at.S))
        rounding = A.T @ np.abs(self._weighted_slopes(at))
        return np.finfo(float).eps * rounding.max(axis=1)

    def curvatures(self, at: Linear | None) -> Matrix:
        """Return the weighted second derivatives at a point, or for one output a bound on them."""
        if at is None:
            return (self.weight * self.family.curvature)[:, None]
        second = self.family.taylor(self._predictions(at), self.target).second()
        return np.maximum(self.weight[:, None] * second, TRACE * (self.weight > 0)[:, None])

    def _with_nuisance(self, S: Support) -> Any:
        """Return the columns of intercept, forced features and S. They may be sparse."""
        if not len(S):
            return self.N
        return self.design.beside(self.N, S, self.family.n_outputs == 1)

    def _predictions(self, at: Linear) -> Matrix:
        return self._with_nuisance(at.S) @ at.B

    def _weighted_slopes(self, at: Linear) -> Matrix:
        return self.weight[:, None] * self.family.taylor(self._predictions(at), self.target).slopes

    def _nuisance(self, D: Matrix) -> tuple[Matrix, Matrix]:
        DN = D * self.N
        return DN.T @ self.N, self.design.transposed_times(DN, self.threads).T
