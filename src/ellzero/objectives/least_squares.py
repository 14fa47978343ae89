"""Least squares, from the data or from their sufficient statistics."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, lstsq

from ellzero.checks import as_support
from ellzero.core import Iterate, Model
from ellzero.objectives.all_subsets import (
    ENUMERABLE,
    ENUMERABLE_WORK,
    all_supports,
)
from ellzero.objectives.design import (
    TOLERATED_LOSS,
    VANISHED,
    Design,
    check_ridge,
    check_target,
    check_weight,
)
from ellzero.objectives.gram import (
    CONSTANT,
    LARGEST_GRAM,
    DenseGram,
    gram_inverse,
    profiled_moments,
    scaled_ridge,
)
from ellzero.objectives.lazy_gram import LazyGram
from ellzero.objectives.quadratic import Quadratic, breadth
from ellzero.objectives.rows import Rows, best_of_rows, triangle
from ellzero.objectives.statistics import Statistics, check_squarable
from ellzero.supports import Matrix, Support, Vector
from ellzero.threads import current_blas_threads


class LeastSquares(Quadratic):
    """f(x) = ½ Σ_k w_k ((Xx)_k + a − y_k)² + ½ ridge ‖x‖².

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (m, n)
    y : m numbers
    sample_weight : m non-negative weights, 1 by default
    fit_intercept : whether a is free (and never penalised) or zero
    forced : indices of features that are in every model and do not count towards s
    ridge : one non-negative number, or one per feature

    Examples
    --------
    >>> from ellzero import LeastSquares, omp
    >>> f = LeastSquares([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 0.2, 1.1])
    >>> omp(f, 1).support
    array([0])
    """

    floor = 0.0

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
        self.feature_names = design.names
        m, n = design.shape
        y = check_target(y, m)
        w = check_weight(sample_weight, m)
        if 0 < np.abs(y).max() < np.sqrt(VANISHED):
            raise ValueError("y: is too small to square in float64; rescale it.")
        if n <= LARGEST_GRAM:
            stats = Statistics.from_arrays(design, y, w)
            squares = stats.xx.diagonal() / stats.weight + stats.mean**2
            design.raise_if_squares_vanish(squares, w)
            self._set_statistics(stats, fit_intercept, forced, ridge)
        else:
            self._set_lazily(design, y, w, fit_intercept, forced, ridge)
        self._data: Any = design, y, w

    @classmethod
    def from_statistics(
        cls,
        stats: Statistics,
        *,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ) -> LeastSquares:
        """The same objective where only the statistics of the data are at hand."""
        if not isinstance(stats, Statistics):
            raise TypeError(f"stats: expected Statistics, got {type(stats).__name__}.")
        if not (np.isfinite(stats.xx).all() and np.isfinite(stats.xy).all()):
            raise ValueError("stats: contain NaN or infinite values.")
        self = cls.__new__(cls)
        self._set_statistics(stats, fit_intercept, forced, ridge)
        self.feature_names = stats.feature_names
        self._data = None
        return self

    def _set_statistics(
        self, stats: Statistics, fit_intercept: bool, forced: Any, ridge: Any
    ) -> None:
        n = len(stats.mean)
        F, ridge = as_support(forced, "forced", n), check_ridge(ridge, n)
        gram, b, yy = profiled_moments(stats, fit_intercept, F, ridge)
        super().__init__(gram, b, 0.5 * yy, ridge)
        self.n_rows, self.breadth = stats.n_rows, breadth(stats.n_rows * n)
        self.forced = tuple(F.tolist())
        self.fit_intercept = fit_intercept
        self.total_weight = stats.weight
        self._stats = stats
        self._lost = self._digits_lost(F)
        of_y = self._explained_by_forced() / self.unit**2
        self.digits_lost = max(float(self._lost[gram.diagonal > 0].max(initial=1.0)), of_y)

    def _squares(self) -> Vector:
        """Of every column the sum of its squares, about the mean if there is an intercept."""
        stats = self._stats
        raw = (not self.fit_intercept) * stats.weight
        return stats.xx.diagonal() + raw * stats.mean**2

    def _digits_lost(self, F: Support) -> Vector:
        """How much larger a column was than what the forced features leave of it, and rounding by
        as much again where these are nearly dependent.

        Centring loses digits, too, up to the loss from which on statistics are made anew."""
        stats = self._stats
        raw = (not self.fit_intercept) * stats.weight
        own = self._squares()
        norms = np.sqrt(np.where(own[F] > 0, own[F], 1.0))
        block = stats.xx[np.ix_(F, F)] + raw * np.outer(stats.mean[F], stats.mean[F])
        unit = block / norms / norms[:, None] + np.diag(scaled_ridge(self.ridge[F], norms))
        least = np.linalg.eigvalsh(unit).min(initial=1.0)
        centred = np.where(own > 0, own, 1.0)
        offset = (not raw) * stats.weight * stats.mean**2 / centred
        lost = np.minimum(1 + offset, TOLERATED_LOSS)
        return lost * own / self.gram.scale**2 / max(least, 1e-12)

    def _set_lazily(
        self, design: Design, y: Vector, w: Any, fit_intercept: bool, forced: Any, ridge: Any
    ) -> None:
        m, n = design.shape
        F, ridge = as_support(forced, "forced", n), check_ridge(ridge, n)
        weight = np.ones(m) if w is None else w
        with np.errstate(over="ignore", invalid="ignore"):
            gram = LazyGram(design, weight, fit_intercept, F, ridge, current_blas_threads())
            if not np.isfinite(gram.norms2).all():
                design.raise_if_not_finite()
            check_squarable(gram.norms2, float(weight @ y**2))
            design.raise_if_squares_vanish(gram.norms2 / weight.sum() + gram.mean**2, w)
        t = y - np.average(y, weights=w) if fit_intercept else y
        on_forced = gram.N.T @ (weight * t)
        yy = float(weight @ t**2 - on_forced @ gram.K @ on_forced)
        b = gram.inner(t[:, None])[:, 0] * gram.scale
        super().__init__(gram, b, 0.5 * max(yy, 0.0), ridge)
        self.n_rows, self.breadth = m, breadth(m * n)
        self.forced = tuple(F.tolist())
        self.fit_intercept = fit_intercept
        self.total_weight = float(weight.sum())

    def lower_bound(self) -> float:
        return max(super().lower_bound(), 0.0) if isinstance(self.gram, DenseGram) else 0.0

    def rounding(self, x: Iterate) -> float:
        """Also what is lost of y where intercept and forced features explain almost all of it."""
        y2 = 0.0
        if isinstance(self.gram, DenseGram):
            stats = self._stats
            y2 = float(stats.yy + stats.weight * stats.mean_y**2)
            if self.fit_intercept:  # statistics lose no more when they centre y
                y2 = min(y2, TOLERATED_LOSS * float(stats.yy))
        return super().rounding(x) + 8 * np.finfo(float).eps * y2

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether the fit of x is perfect, up to the rounding of y."""
        if self._data is None:
            return x.value <= 0 and self._stats.yy == 0
        return self._of_rows(x.support).is_perfect(np.sqrt(2 * max(x.value, 0.0)))

    def deviance(self, loss: float) -> float:
        """That of normal errors with the variance that fits best; what is rounding is no fit."""
        mean_square = 2 * max(loss, self.resolution, np.finfo(float).tiny) / self.total_weight
        return float(self.total_weight * np.log(mean_square))

    def best_subset(self, k: int) -> tuple[Iterate, bool] | None:
        """From the rows where moments do not tell which one it is."""
        if self._data is None or not self._ranks(k):
            return super().best_subset(k)
        S, doubtful = self._ranked(k, -np.inf)
        if self._forced_hide() or not self._tells(S):
            if comb(self.n_choosable, k) > ENUMERABLE:
                return None
            subsets = all_supports(self.choosable, k)
        else:
            if not len(doubtful):
                return self.minimize(S), True
            if len(doubtful) > ENUMERABLE:
                return None
            subsets = np.vstack([S, doubtful])
        features = np.unique(subsets)
        if self.n_rows * len(features) ** 2 > ENUMERABLE_WORK:
            return None
        S, value, proven = best_of_rows(self._of_rows(features), subsets)
        return replace(self.minimize(S), value=value), proven

    def _forced_hide(self) -> bool:
        """Is what the forced features leave of some others less than rounding, which may matter?"""
        constant = self._squares() <= CONSTANT * self._stats.weight * self._stats.mean**2
        hidden = (self.gram.diagonal == 0) & ~constant
        return bool(self.forced) and bool(hidden[self.choosable].any())

    def complete(self, x: Iterate) -> Model:
        """From the moments where these give ten digits, otherwise from the rows."""
        F = np.array(self.forced, dtype=np.intp)
        T = np.concatenate([F, x.support])
        if self._data is None or self._well_determined(x):
            return self._complete_from_moments(x, F, T)
        A, t, mean, mean_y = self._rows(T)
        squares = np.einsum("ij,ij->j", A, A)
        A = A * (squares > CONSTANT * self.total_weight * mean**2)  # or rounding is taken for data
        free = slice(None) if x.minimizer else slice(0, len(F))
        coef = np.concatenate([np.zeros(len(F)), x.coef])
        coef[free] = 0.0
        coef[free] = _ridge_regression(A[:, free], t - A @ coef, self.ridge[T][free])
        residual = t - A @ coef
        value = 0.5 * residual @ residual + 0.5 * np.sum(self.ridge[T] * coef * coef)
        return self._model(T, coef, value, mean_y - mean @ coef)

    def from_rows(self, deadline: float = np.inf) -> Rows | None:
        return None if self._data is None else self._of_rows(self.choosable, deadline)

    def _of_rows(self, free: Support, deadline: float = np.inf) -> Rows:
        """Of no other than the forced and these features."""
        F = np.array(self.forced, dtype=np.intp)
        T = np.concatenate([F, free])
        A, t, mean, _ = self._rows(T)
        norms = np.linalg.norm(A, axis=0)
        zero = norms**2 <= CONSTANT * self.total_weight * mean**2
        norms[zero] = 1.0
        penalty = scaled_ridge(self.ridge[T], norms)
        whole = np.sqrt(~zero + penalty)
        whole[whole == 0] = 1.0
        ridge = np.diag(np.sqrt(penalty) / whole)
        A = np.column_stack([A * ~zero / norms / whole, t])
        R = triangle(np.vstack([A, np.pad(ridge, ((0, 0), (0, 1)))]), deadline)
        columns, scale = np.zeros((len(R), self.n_features)), np.ones(self.n_features)
        columns[:, T], scale[T] = R[:, :-1], norms * whole
        return Rows(columns, R[:, -1], scale, self.forced, self.n_rows)

    def _rows(self, T: Support) -> tuple[Matrix, Vector, Vector, float]:
        """Columns of X and y, centred and weighted, or others of equal products; and the means."""
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

    def _well_determined(self, x: Iterate) -> bool:
        """Do the moments of the data give ten digits of the coefficients and value of x?"""
        if not isinstance(self.gram, DenseGram) or x.value <= 0:
            return False
        S = x.support
        factor, info = lapack.dpotrf(self._block(S), lower=1)
        if info != 0:
            return False
        if self.forced and not self.gram.diagonal[S].all():  # as the forced ones, or nearly so
            return False
        offset = self._stats.weight * self._stats.mean[S] ** 2
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            lost = 1 + np.max(offset / self._stats.xx.diagonal()[S], initial=0.0)
        pivot = factor.diagonal().min(initial=1.0) ** 2
        if self.forced:
            lost *= self._lost[S].max(initial=1.0)
        size = lost * self.unit**2 + self._explained_by_forced()
        return bool(1e-15 * size <= 1e-11 * x.value * pivot)

    def _explained_by_forced(self) -> float:
        """Return the part of yᵀy that forced features take away: its rounding stays."""
        stats = self._stats
        raw = (not self.fit_intercept) * stats.weight
        return float(stats.yy + raw * stats.mean_y**2) if self.forced else 0.0

    def _complete_from_moments(self, x: Iterate, F: Any, T: Any) -> Model:
        stats, coef = self._stats, x.coef
        mean, mean_y = (stats.mean, stats.mean_y) if self.fit_intercept else (0 * stats.mean, 0.0)
        if len(F):
            offset, offset_y = stats.mean - mean, stats.mean_y - mean_y
            G = stats.xx[F] + stats.weight * np.outer(offset[F], offset)
            b = stats.xy[F] + stats.weight * offset[F] * offset_y
            K = gram_inverse(G[:, F] + np.diag(self.ridge[F]))
            coef = np.concatenate([K @ (b - G[:, x.support] @ coef), coef])
        intercept = mean_y - mean[T] @ coef
        value = max(self._value(x.support, x.coef), 0.0)  # below zero there is only rounding
        return self._model(T, coef, value, intercept)

    def _model(self, T: Any, coef: Vector, value: float, intercept: float) -> Model:
        a = float(intercept) if self.fit_intercept else 0.0
        return Model(T, coef, a, float(value), feature_names=self.feature_names)


def _ridge_regression(A: Matrix, t: Vector, ridge: Vector) -> Vector:
    """argmin ½‖Au − t‖² + ½ Σ ridge u², on columns of unit norm.

    The normal equations, solved and then corrected with the residual on the data, are as accurate
    as QR unless they are ill-conditioned; then it is QR with pivoting.
    """
    if not A.shape[1]:
        return np.empty(0)
    scale = np.linalg.norm(A, axis=0)
    scale[scale == 0] = 1.0
    A = A / scale
    penalty = scaled_ridge(ridge, scale)
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
