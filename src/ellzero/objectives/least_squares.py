"""Least squares, from the data or from their sufficient statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, lstsq

from ellzero.checks import as_support, check_ridge
from ellzero.core import Features, Iterate, Model
from ellzero.data.design import (
    TOLERATED_LOSS,
    VANISHED,
    Design,
    check_target,
    check_weight,
)
from ellzero.objectives.exact_rows import ExactRows, triangle
from ellzero.objectives.moments.columns import ProjectedColumns
from ellzero.objectives.moments.held import (
    CONSTANT,
    HeldMoments,
    penalty_on,
    profiled_out,
    unit_moments,
    unit_of,
)
from ellzero.objectives.moments.on_demand import Columns, OnDemandMoments
from ellzero.objectives.moments.statistics import Statistics, check_squarable
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Matrix, Support, Vector
from ellzero.threads import current_blas_threads

LARGEST_HELD = 3000
"""Features up to which the whole Gram matrix is held: 72 MB. Of more, rows are made on demand."""

DIGITS = 1e-11
"""What is reported has ten digits: from the moments where they give these, else from the rows."""


class LeastSquares(Quadratic):
    """f(x) = ½ Σ_k w_k ((Xx)_k + a − y_k)² + ½ ridge ‖x‖².

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (m, n)
    y : array of m numbers
    sample_weight : array of m non-negative weights, optional
        1 by default.
    fit_intercept : bool
        Whether a is free (and never penalised) or zero.
    forced : array of int
        Features that are in every model and do not count towards s.
    ridge : float or array of n numbers
        One non-negative number for all features, or one for each.

    Examples
    --------
    >>> from ellzero import LeastSquares, omp
    >>> f = LeastSquares([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 0.2, 1.1])
    >>> omp(f, 1).support
    array([0])
    """

    floor = 0.0
    observations: float
    """How many observations f sums over; a weight of two counts as two of them."""
    n_rows: int
    has_rows = True
    """Whether `weighted_rows` can answer; otherwise only moments are known."""

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ):
        design = Design(X)
        m, n = design.shape
        y = check_target(y, m)
        w = check_weight(sample_weight, m)
        if 0 < np.abs(y).max() < np.sqrt(VANISHED):
            raise ValueError("y: is too small to square in float64; rescale it.")
        if n <= LARGEST_HELD:
            stats = Statistics.from_arrays(design, y, w)
            squares = stats.xx.diagonal() / stats.weight + stats.mean**2
            design.raise_if_squares_vanish(squares, w)
            self.hold_statistics(stats, fit_intercept, forced, ridge)
        else:
            self._make_on_demand(design, y, w, fit_intercept, forced, ridge)
        self._data = design, y, w

    @classmethod
    def from_statistics(
        cls,
        stats: Statistics,
        *,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ) -> LeastSquares:
        """Make the same objective of the statistics of the data."""
        if not isinstance(stats, Statistics):
            raise TypeError(f"stats: expected Statistics, got {type(stats).__name__}.")
        if not (np.isfinite(stats.xx).all() and np.isfinite(stats.xy).all()):
            raise ValueError("stats: contain NaN or infinite values.")
        self = cls.__new__(cls)
        self.hold_statistics(stats, fit_intercept, forced, ridge)
        self.has_rows = False
        return self

    def hold_statistics(
        self, stats: Statistics, fit_intercept: bool, forced: Any, ridge: Any
    ) -> None:
        n = len(stats.mean)
        F, ridge = as_support(forced, "forced", n), check_ridge(ridge, n)
        raw = 0.0 if fit_intercept else stats.weight
        means = np.append(stats.mean, stats.mean_y)
        M = np.empty((n + 1, n + 1))
        M[:n, :n], M[:n, n], M[n, :n], M[n, n] = stats.xx, stats.xy, stats.xy, stats.yy
        if raw:
            M += raw * np.outer(means, means)
        profiled = profiled_out(M, F, ridge[F])
        zero = profiled.zero | (M.diagonal()[:n] <= CONSTANT * stats.weight * stats.mean**2)
        left = profiled.M
        moments, scale, unit = unit_moments(
            left[:n, :n], left[:n, n], 0.5 * max(float(left[n, n]), 0.0), zero
        )
        self.hold(moments, Features(n, F, stats.feature_names), scale, unit, ridge)
        self.n_rows, self.size = stats.n_rows, float(max(stats.n_rows, 1)) * n
        self.fit_intercept, self.observations = fit_intercept, stats.weight
        self._stats: Statistics | None = stats
        self._follow = profiled.follow
        self._squares = M.diagonal()
        self._lost = self._digits_lost(M, F)
        of_y = self._explained_by_forced() / unit**2
        self.digits_lost = max(float(self._lost[moments.diagonal > 0].max(initial=1.0)), of_y)

    def _digits_lost(self, M: Matrix, F: Support) -> Vector:
        """Return by how much rounding of each column grew when others were taken out of it.

        It grew by how much larger the column was than what the forced features leave of it, and by
        as much again where these are nearly dependent. Centring loses digits, too, up to the loss
        from which on statistics are made anew.
        """
        stats, own = self._stats, self._squares[:-1]
        assert stats is not None
        norms = np.sqrt(np.where(own[F] > 0, own[F], 1.0))
        unit = M[np.ix_(F, F)] / norms / norms[:, None] + np.diag(penalty_on(self.ridge[F], norms))
        least = np.linalg.eigvalsh(unit).min(initial=1.0)
        offset = self.fit_intercept * stats.weight * stats.mean**2 / np.where(own > 0, own, 1.0)
        centring = np.minimum(1 + offset, TOLERATED_LOSS)
        return centring * own / self.scale**2 / max(least, 1e-12)

    def _explained_by_forced(self) -> float:
        """Return the part of yᵀy that forced features take away: its rounding stays."""
        return float(self._squares[-1]) if len(self.features.forced) else 0.0

    def _make_on_demand(
        self, design: Design, y: Vector, w: Any, fit_intercept: bool, forced: Any, ridge: Any
    ) -> None:
        m, n = design.shape
        F, ridge = as_support(forced, "forced", n), check_ridge(ridge, n)
        weight = np.ones(m) if w is None else w
        with np.errstate(over="ignore", invalid="ignore"):
            columns = ProjectedColumns(
                design, weight, fit_intercept, F, ridge, current_blas_threads()
            )
            if not np.isfinite(columns.norms2).all():
                design.raise_if_not_finite()
            check_squarable(columns.norms2, float(weight @ y**2))
            design.raise_if_squares_vanish(columns.norms2 / weight.sum() + columns.mean**2, w)
        t = y - np.average(y, weights=w) if fit_intercept else y
        on_forced = columns.N.T @ (weight * t)
        yy = max(float(weight @ t**2 - on_forced @ columns.K @ on_forced), 0.0)
        c = columns.inner(t[:, None])[:, 0]
        self.hold_columns(columns, columns.scale, c, yy, Features(n, F, design.names), ridge)
        self.n_rows, self.size = m, float(m) * n
        self.fit_intercept, self.observations = fit_intercept, float(weight.sum())

    def hold_columns(
        self,
        columns: Columns,
        scale: Vector,
        c: Vector,
        yy: float,
        features: Features,
        ridge: Vector,
    ) -> None:
        """Make moments on demand of columns of unit norm. A subclass calls it once.

        Parameters
        ----------
        scale : vector
            The norms that the columns had.
        c, yy : vector, float
            Their products with the target, and its squared norm.
        """
        unit = unit_of(c, 0.5 * yy)
        moments = OnDemandMoments(columns, c / unit, 0.5 * yy / unit**2)
        self.hold(moments, features, scale, unit, ridge)
        self._stats = None

    # what criteria and proofs ask

    def deviance(self, loss: float) -> float:
        """Return the Gaussian deviance at the maximum-likelihood variance.

        Residuals below rounding count as zero.
        """
        mean_square = 2 * max(loss, self.resolution, np.finfo(float).tiny) / self.observations
        return float(self.observations * np.log(mean_square))

    def rounding(self, x: Iterate) -> float:
        """Bound the rounding of a value, also where the intercept or forced features explain
        almost all of y."""
        y2 = 0.0
        if self._stats is not None:
            stats = self._stats
            y2 = float(stats.yy + stats.weight * stats.mean_y**2)
            if self.fit_intercept:  # statistics lose no more when they centre y
                y2 = min(y2, TOLERATED_LOSS * float(stats.yy))
        return super().rounding(x) + 8 * float(np.finfo(float).eps) * y2

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether the fit of x is perfect, up to the rounding of y."""
        if not self.has_rows:
            return x.value <= 0 and self._stats is not None and self._stats.yy == 0
        return self._of_rows(x.support).is_perfect(np.sqrt(2 * max(x.value, 0.0)))

    def exact(self, free: Support | None = None, deadline: float = np.inf) -> ExactRows | None:
        """Return f from the rows it is made of, over the forced features and `free`.

        It tells columns apart that moments cannot. None where only moments are at hand.
        """
        if not self.has_rows:
            return None
        return self._of_rows(self.features.choosable if free is None else free, deadline)

    def forced_hide(self) -> bool:
        """Say whether the forced features leave less than rounding of a column that may matter."""
        if self._stats is None or not len(self.features.forced):
            return False
        constant = self._squares[:-1] <= CONSTANT * self._stats.weight * self._stats.mean**2
        hidden = (self.moments.diagonal == 0) & ~constant
        return bool(hidden[self.features.choosable].any())

    def _of_rows(self, free: Support, deadline: float = np.inf) -> ExactRows:
        F = self.features.forced
        T = np.concatenate([F, free])
        A, t, mean, _ = self.weighted_rows(T)
        norms = np.linalg.norm(A, axis=0)
        zero = norms**2 <= CONSTANT * self.observations * mean**2
        norms[zero] = 1.0
        penalty = penalty_on(self.ridge[T], norms)
        whole = np.sqrt(~zero + penalty)
        whole[whole == 0] = 1.0
        ridge = np.diag(np.sqrt(penalty) / whole)
        A = np.column_stack([A * ~zero / norms / whole, t])
        R = triangle(np.vstack([A, np.pad(ridge, ((0, 0), (0, 1)))]), deadline)
        n = len(self.features)
        columns, scale = np.zeros((len(R), n)), np.ones(n)
        columns[:, T], scale[T] = R[:, :-1], norms * whole
        return ExactRows(columns, R[:, -1], scale, self.features, self.n_rows)

    def weighted_rows(self, T: Support) -> tuple[Matrix, Vector, Vector, float]:
        """Return columns of X and y, centred and weighted, and their means.

        Other rows with the same products will do as well.
        """
        design, y, w = self._data
        A, t = design.columns(T), y
        mean, mean_y = np.zeros(len(T)), 0.0
        if self.fit_intercept:
            share = np.full(len(y), 1 / len(y)) if w is None else w / w.sum()
            mean, mean_y = share @ A, float(share @ y)
            A, t = A - mean, y - mean_y
            left, left_y = share @ A, share @ t  # of large means, which are rounded too
            A, mean, t, mean_y = A - left, mean + left, t - left_y, mean_y + left_y
        if w is not None:
            root = np.sqrt(w)
            A, t = root[:, None] * A, root * t
        return A, t, mean, mean_y

    # what is reported

    def refit(self, x: Iterate) -> Model:
        """Return the model behind x, from the rows where moments do not give ten digits."""
        F = self.features.forced
        T = np.concatenate([F, x.support])
        if not self.has_rows or self._is_clear(x):
            return self._from_moments(x, T)
        A, t, mean, mean_y = self.weighted_rows(T)
        squares = np.einsum("ij,ij->j", A, A)
        A = A * (squares > CONSTANT * self.observations * mean**2)  # or rounding counts as data
        free = slice(None) if x.minimizer else slice(0, len(F))
        coef = np.concatenate([np.zeros(len(F)), x.coef])
        coef[free] = 0.0
        coef[free] = _ridge_regression(A[:, free], t - A @ coef, self.ridge[T][free])
        residual = t - A @ coef
        value = 0.5 * residual @ residual + 0.5 * np.sum(self.ridge[T] * coef * coef)
        return self._model(T, coef, float(value), float(mean_y - mean @ coef))

    def _is_clear(self, x: Iterate) -> bool:
        """Say whether moments give ten digits of the coefficients and the value of x."""
        stats, S = self._stats, x.support
        if stats is None or not isinstance(self.moments, HeldMoments) or x.value <= 0:
            return False
        factor, info = lapack.dpotrf(self.block(S, S), lower=1)
        if info != 0 or not self.moments.diagonal[S].all():
            return False
        offset = stats.weight * stats.mean[S] ** 2
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            lost = 1 + np.max(offset / stats.xx.diagonal()[S], initial=0.0)
        size = lost * self.unit**2
        if len(self.features.forced):
            size = size * self._lost[S].max(initial=1.0) + self._explained_by_forced()
        pivot = factor.diagonal().min(initial=1.0) ** 2
        return bool(1e-15 * size <= DIGITS * x.value * pivot)

    def _from_moments(self, x: Iterate, T: Support) -> Model:
        stats, F = self._stats, self.features.forced
        assert stats is not None
        forced = self._follow[:, -1] - self._follow[:, x.support] @ x.coef
        coef = np.concatenate([forced, x.coef]) if len(F) else x.coef
        mean, mean_y = (stats.mean[T], stats.mean_y) if self.fit_intercept else (0 * coef, 0.0)
        value = max(self.at(x).value, 0.0)  # below zero there is only rounding
        return self._model(T, coef, value, float(mean_y - mean @ coef))

    def _model(self, T: Support, coef: Vector, value: float, intercept: float) -> Model:
        return Model(T, coef, intercept if self.fit_intercept else 0.0, value)


def _ridge_regression(A: Matrix, t: Vector, ridge: Vector) -> Vector:
    """Minimise ½‖Au − t‖² + ½ Σ ridge u².

    The normal equations, solved and then corrected with the residual on the data, are as accurate
    as QR unless they are ill-conditioned. Then it is QR with pivoting.
    """
    if not A.shape[1]:
        return np.empty(0)
    scale = np.linalg.norm(A, axis=0)
    scale[scale == 0] = 1.0
    A = A / scale
    penalty = penalty_on(ridge, scale)
    factor, info = lapack.dpotrf(A.T @ A + np.diag(penalty), lower=1)
    if info == 0 and factor.diagonal().min() > 1e-4:
        u = np.zeros(A.shape[1])
        for _ in range(3):
            u += lapack.dpotrs(factor, A.T @ (t - A @ u) - penalty * u, lower=1)[0]
        return u / scale
    if ridge.any():
        A = np.vstack([A, np.diag(np.sqrt(penalty))])
        t = np.concatenate([t, np.zeros(len(ridge))])
    return lstsq(A, t, cond=1e-12, lapack_driver="gelsy", check_finite=False)[0] / scale
