"""Generalised linear models: a pointwise loss of K linear predictions."""

from __future__ import annotations

import copy
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.checks import as_support, check_ridge
from ellzero.core import Features, Iterate, Model, Objective, Point, as_features
from ellzero.data.design import Design, check_target, check_weight
from ellzero.objectives.glm.dual import removal_bounds
from ellzero.objectives.glm.families import Family
from ellzero.objectives.glm.fit import Fit, Problem
from ellzero.objectives.glm.model import bound_of, bound_on_demand, local_model
from ellzero.objectives.glm.newton import HOPE
from ellzero.objectives.glm.rows import Linear, LocalRows, RowSums
from ellzero.objectives.moments.held import penalty_on
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import NONE, Matrix, Support, Vector
from ellzero.threads import current_blas_threads

if TYPE_CHECKING:
    from typing import Self

LARGEST_BOUND = 3000
"""Features up to which the matrix that bounds the curvature is held: 72 MB."""

ESCAPING = 0.1
"""A last step that still moves a margin by this, and harms no row, leads to no minimiser."""


class GLM(Objective):
    """f(x) = Σ_k w_k ℓ((Xx)_k + a, y_k) + ½ Σ ridge_j ‖x_j‖², with K predictions for each row.

    A feature owns K coordinates. Whatever depends on the rows is asked of `rows`, so that rows may
    also be in other places. The columns there are standardised: z = scale · x.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (m, n)
    y : array of m numbers
    family : Family
        The loss ℓ.
    sample_weight : array of m non-negative weights, optional
        1 by default.
    fit_intercept : bool
        Whether a is free (and never penalised) or zero.
    forced : array of int
        Features that are in every model and do not count towards s.
    ridge : float or array of n numbers
        One non-negative number for all features, or one for each.
    """

    floor = 0.0
    rows: RowSums
    n_rows: int
    observations: float
    """How many observations f sums over; a weight of two counts as two of them."""

    def __init__(
        self,
        X: Any,
        y: Any,
        family: Family,
        *,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ):
        design = Design(X)
        design.check_finite()
        (m, n), made = design.shape, design.standardised(fit_intercept)
        target = family.target(check_target(y, m))
        w = check_weight(sample_weight, m)
        weight, F = np.ones(m) if w is None else w, as_support(forced, "forced", n)
        rows = LocalRows(
            made.design, target, weight, family, fit_intercept, F, current_blas_threads()
        )
        features = Features(np.full(n, family.n_outputs), F, design.names)
        self.hold(rows, features, family, made.mean, made.scale, fit_intercept, ridge)

    def hold(
        self,
        rows: RowSums,
        features: Features,
        family: Family,
        mean: Vector,
        scale: Vector,
        fit_intercept: bool,
        ridge: ArrayLike,
    ) -> None:
        """Take these rows for those of this f. A subclass calls it once, when it is made."""
        self.rows, self.features, self.family = rows, features, family
        self.mean, self.scale, self.fit_intercept = mean, scale, fit_intercept
        self.ridge = check_ridge(ridge, len(features))
        self.n_nuisance = int(fit_intercept) + len(features.forced)
        self.scale_of_coordinates = features.per_coordinate(scale)
        counts = rows.counts()
        self.n_rows, self.observations = counts.rows, counts.weight
        self.tol = min(1e-10 * counts.null, 1e-5)  # the last step squares what is left of the error
        self.resolution = 1e-12 * counts.null
        self.size = float(counts.rows) * len(features) * family.n_outputs**2

    # the contract

    def at(self, x: Point) -> Iterate:
        x = self.point(x)
        S, K, q = x.support, self.family.n_outputs, self.n_nuisance
        fixed = Linear(S, np.concatenate([np.zeros((q, K)), self._standard(x)]))
        start = np.zeros((q, K)) if x.nuisance is None else x.nuisance.reshape(q, K)
        found = Problem(self.rows, NONE, self.penalty(NONE), fixed).fit(start, self.tol)
        own = 0.5 * float(self.features.per_coordinate(self.ridge[S], S) @ x.coef**2)
        return replace(x, value=found.value + own, nuisance=found.B.ravel())

    def gradient(self, x: Point) -> Vector:
        x = self._with_nuisance(x)
        g = self.rows.slopes(self.linear(x)).ravel() * self.scale_of_coordinates
        T = self.features.coordinates(x.support)
        g[T] += self.features.per_coordinate(self.ridge[x.support], x.support) * x.coef
        g[self.features.coordinates(self.features.forced)] = 0.0
        return g

    def minimize(self, S: ArrayLike, start: Iterate | None = None, below: float = inf) -> Iterate:
        S = as_features(S)
        return self._iterate(S, self._fit(S, start, below))

    def ridged(self, d: ArrayLike) -> Self:
        other = copy.copy(self)
        extra = np.where(self.features.free, np.asarray(d, dtype=float), 0.0)
        other.ridge = self.ridge + extra
        return other

    def smoothness(self, k: int) -> float:
        if len(self.features) > LARGEST_BOUND:
            return bound_on_demand(self).smoothness(k)
        return bound_of(self, self.rows.gram(None)).smoothness(k)

    def curved(self, second: Vector) -> Quadratic:
        """Return ½ xᵀHx, with the H of f where each row's loss has this second derivative.

        H grows with each of them, also after intercept and forced features are profiled out. So
        bounds on second derivatives are bounds on the curvature of f. For one output, and for rows
        that are here.
        """
        if not isinstance(self.rows, LocalRows):
            raise TypeError("curved: needs rows in memory, not in partitions.")
        return bound_of(self, self.rows.gram_of((self.rows.weight * second)[:, None]))

    def quadratic(self, x: Iterate) -> Quadratic:
        return local_model(self, self._with_nuisance(x))

    def refit(self, x: Iterate) -> Model:
        attained = True
        if x.minimizer:
            found = self._fit(x.support, x)
            x, attained = self._iterate(x.support, found), not self._diverges(x.support, found)
        else:
            x = self.at(x)
        K, F, free = self.family.n_outputs, self.features.forced, int(self.fit_intercept)
        assert x.nuisance is not None
        T, nuisance = np.concatenate([F, x.support]), x.nuisance.reshape(-1, K)
        B = np.concatenate([nuisance[free:] / self.scale[F, None], x.coef.reshape(-1, K)])
        a = nuisance[:free].sum(axis=0) - free * self.mean[T] @ B
        intercept = self.family.natural(a[None])[0]
        intercept = intercept if self.family.natural_shape else float(intercept)
        return Model(T, self.family.natural(B), intercept, x.value, attained)

    def point(self, x: Point) -> Iterate:
        """Return x as an iterate whose value is not known (NaN).

        Takes all coordinates, or coefficients as users know them: a row for each feature where
        classes have one each. The mean of such a row does not matter to f, and is taken out.
        """
        shape = self.family.natural_shape
        if not isinstance(x, Iterate) and shape and np.ndim(x) > 1:
            full = np.asarray(x, dtype=float)
            if full.shape != (len(self.features), *shape):
                raise ValueError(
                    f"x: expected shape {(len(self.features), *shape)}, a row for each feature, "
                    f"got {full.shape}."
                )
            x = self.family.reduced(full).ravel()
        return super().point(x)

    # what criteria and proofs ask

    def deviance(self, loss: float) -> float:
        """Return minus twice the log-likelihood."""
        return 2 * loss

    def rounding(self, x: Iterate) -> float:
        """Bound how far the value of a minimiser may be from the minimum over its support.

        It is a few times the resolution where the fit has converged over columns that are told
        apart. Otherwise all that is known is the floor, and the answer is the value above it.
        """
        if not x.minimizer:
            return self.resolution
        problem = Problem(self.rows, x.support, self.penalty(x.support))
        with np.errstate(over="ignore", invalid="ignore"):
            promised, clear = problem.promise(self.linear(self._with_nuisance(x)).B)
        whole = max(x.value - self.floor, self.resolution)
        if not clear or not promised <= 1e3 * self.tol:
            return whole
        return min(self.resolution + HOPE * promised, whole)

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        """Return lower bounds on min f over the support S of x, and over S without each feature.

        With `asked`, only the bounds at these places of S matter.
        """
        at = self.linear(self._with_nuisance(x))
        asked = np.arange(len(x.support)) if asked is None else asked
        penalty = self.penalty(x.support)
        with np.errstate(over="ignore", invalid="ignore"):  # where a fit has diverged
            here, without = removal_bounds(
                self.rows, at, penalty, asked, self.observations, self.resolution
            )
        here = here if here > self.floor else self.floor  # NaN is no bound either
        return here, np.where(without > here, without, here)

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether losses fall to nothing: the classes are separated over the support of x."""
        if self.penalty(x.support).any():
            return x.value <= self.floor
        return self._separates(x.support, self._fit(x.support, x).B)

    # what models ask

    def linear(self, x: Iterate) -> Linear:
        """Return the coefficients of standardised columns, those of the nuisance first."""
        assert x.nuisance is not None
        nuisance = x.nuisance.reshape(-1, self.family.n_outputs)
        return Linear(x.support, np.concatenate([nuisance, self._standard(x)]))

    def penalty(self, S: Support) -> Vector:
        """Return the penalty on the columns of intercept, forced features and S."""
        T = np.concatenate([self.features.forced, S])
        return np.concatenate(
            [np.zeros(int(self.fit_intercept)), penalty_on(self.ridge[T], self.scale[T])]
        )

    # inside

    def _standard(self, x: Iterate) -> Matrix:
        return x.coef.reshape(-1, self.family.n_outputs) * self.scale[x.support, None]

    def _with_nuisance(self, x: Point) -> Iterate:
        x = self.point(x)
        return x if x.nuisance is not None else self.at(x)

    def _fit(self, S: Support, start: Iterate | None, below: float = inf) -> Fit:
        K, q = self.family.n_outputs, self.n_nuisance
        B = np.zeros((q + len(S), K))
        if start is not None:
            B[q:] = start.x.reshape(-1, K)[S] * self.scale[S, None]
            if start.nuisance is not None:
                B[:q] = start.nuisance.reshape(q, K)
        problem = Problem(self.rows, S, self.penalty(S))
        found = problem.fit(B, self.tol, below)
        if start is not None and not found.converged:  # a bad start must not decide the result
            found = min(found, problem.fit(0 * B, self.tol), key=lambda fit: fit.value)
        return found

    def _iterate(self, S: Support, found: Fit) -> Iterate:
        q = self.n_nuisance
        coef = (found.B[q:] / self.scale[S, None]).ravel()
        return Iterate(self.features, S, coef, found.value, nuisance=found.B[:q].ravel())

    def _diverges(self, S: Support, found: Fit) -> bool:
        """Say whether f has no minimiser over S: classes are separable, or nearly so.

        A fit that has not come to rest still moves far, and to no row's harm.
        """
        free = self.penalty(S) == 0
        if free.all() and self._separates(S, found.B):
            return True
        low, high = self.rows.margins(Linear(S, found.step * free[:, None]))
        return high > ESCAPING and low > -1e-6 * high

    def _separates(self, S: Support, B: NDArray[np.float64]) -> bool:
        """Say whether these coefficients, scaled up, lower every loss for ever."""
        low, high = self.rows.margins(Linear(S, B))
        return 0 < low <= high
