"""Generalised linear models: a pointwise loss of a linear prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.checks import as_support
from ellzero.core import Iterate, Model, Objective
from ellzero.objectives.design import (
    Design,
    Standardised,
    check_ridge,
    check_target,
    check_weight,
)
from ellzero.objectives.dual import insertion_bounds, removal_bounds
from ellzero.objectives.gram import (
    LARGEST_GRAM,
    Gram,
    profiled_moments,
    scaled_ridge,
)
from ellzero.objectives.lazy_gram import LazyGram
from ellzero.objectives.local_model import (
    CurvedGram,
    clear_in_single,
    local_model,
    single_gram,
)
from ellzero.objectives.losses import Loss
from ellzero.objectives.newton import Minimum
from ellzero.objectives.quadratic import Quadratic
from ellzero.objectives.restricted import Restricted
from ellzero.objectives.statistics import Statistics
from ellzero.supports import Matrix, Support, Vector, magnitudes
from ellzero.threads import current_blas_threads, thread_budget

if TYPE_CHECKING:
    from typing import Self

FEW = 500
"""So many supports of one size are all looked at ..."""

QUICK = 1_000_000
"""... if they, times the rows and columns of a fit, are up to this."""


SETTLED = 1e-4
"""Where the last step moved predictions by no more than this, there is no doubt of a minimiser."""


class GeneralizedLinear(Objective):
    """f(x) = Σ_k w_k loss((Xx)_k + a, y_k) + ½ ridge ‖x‖²; parameters as for `LeastSquares`.

    Where a feature owns several coefficients, (Xx)_k and a are rows of as many numbers; a subclass
    then says how the smooth problems inside (`Restricted`) are solved.

    What depends on the rows is asked for in "sums over the rows", so that rows may also be apart.
    """

    blas_threads = 1  # our own share what gains from them, and do not spin when it ends

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Loss,
        *,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ):
        self.design, self.mean, self.scale = _standardised(X, fit_intercept)
        self.is_sparse = self.design.is_sparse
        self.feature_names = self.design.names
        m, n = self.design.shape
        self.loss = loss
        self.y = self._target(y, m)
        w = check_weight(sample_weight, m)
        self.weight = np.ones(m) if w is None else w
        self.fit_intercept = fit_intercept
        F = as_support(forced, "forced", n)
        self.forced = tuple(F.tolist())
        self.n_features = n
        self.ridge = check_ridge(ridge, n)
        self.N = np.column_stack([np.ones((m, int(fit_intercept))), self.design.columns(F)])
        self.threads = current_blas_threads()
        self._set_size(*self._size())
        self._last, self._data = Last(), object()

    def _set_size(self, m: int, total_weight: float, null: float) -> None:
        """What follows from the number of rows, their weight and their loss at zero."""
        self.total_weight = total_weight
        self.tol = min(1e-10 * null, 1e-5)  # Newton's last step squares what is left of the error
        self.resolution = 1e-12 * null
        size = m * self.n_features * self._width**2
        self.n_rows, self.breadth = m, int(np.clip(2.3e6 / size, 1, 4))

    def __sizeof__(self) -> int:
        """With the columns, which a scheduler that moves objectives about must reckon with."""
        return super().__sizeof__() + self.design.nbytes

    # the contract

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        return self._minimize(S, x0)[0]

    def minimize_below(
        self, support: ArrayLike, x0: Iterate, limit: float, expected: float = -np.inf
    ) -> Iterate | None:
        """Newton's method is given up where its steps promise too little."""
        S = np.sort(np.asarray(support, dtype=np.intp))
        x = self._minimize(S, x0, hoped=limit, expected=expected)[0]
        return x if x.value < limit else None

    def _minimize(
        self,
        S: Support,
        x0: Iterate | None,
        tol: float | None = None,
        below: float = np.inf,
        hoped: float = np.inf,
        expected: float = -np.inf,
    ) -> tuple[Iterate, Minimum, Restricted]:
        """With `below`, a value that is not less than it may be a lower bound instead; with
        `hoped` (and `expected`), one above the minimum."""
        tol = self.tol if tol is None else tol
        q = self.N.shape[1]
        rows = np.zeros((q + len(S), *self.per_feature))
        if x0 is not None:
            coef = self._standard(x0.support, x0.coef)
            if np.array_equal(S, x0.support):
                rows[q:] = coef
            else:
                _, here, there = np.intersect1d(S, x0.support, return_indices=True)
                rows[q + here] = coef[there]
            if x0.nuisance is not None:
                rows[:q] = x0.nuisance
        problem = self._restricted(S)
        u = problem.unknowns(rows)
        best = problem.minimize(u, tol, below, hoped, expected)
        if x0 is not None and not best.converged:  # a bad start must not decide the result
            best = min(
                best,
                problem.minimize(0 * u, tol),
                key=lambda b: b.value,
            )
        rows = problem.rows(best.u)
        coef = rows[q:] / self._column(self.scale[S])
        memory = None
        if best.converged and below == np.inf:
            step = problem.rows(best.step)
            memory = Found(self._data, self._penalty(S), rows, step, best.clear)
        found = Iterate(S, coef, best.value, self.n_features, nuisance=rows[:q], memory=memory)
        self._last.predictions = found, problem.eta(best.u)
        return found, best, problem

    def _value(self, S: Support, coef: NDArray[np.float64]) -> float:
        return self._profile(S, coef).value

    def at(self, x: ArrayLike, note: str = "") -> Iterate:
        point = self.point(x)
        return replace(self._profile(point.support, point.coef), note=note)

    def _gradient(self, point: Iterate) -> NDArray[np.float64]:
        g = self._slope_products(point) * self._column(self.scale)
        g[point.support] += self._column(self.ridge[point.support]) * point.coef
        g[list(self.forced)] = 0.0
        return g

    def smoothness(self, k: int) -> float:
        return self._bound(self._curved_gram(None, LARGEST_GRAM).gram).smoothness(k)

    def curved(self, second: Vector) -> Quadratic:
        """½ xᵀHx, with the H that f has wherever these are the second derivatives of the losses.

        H grows with each of them, also after the intercept and the forced features are profiled
        out: bounds on second derivatives are bounds on the curvature of f.
        """
        return self._bound(self._gram(self.weight * second))

    def _bound(self, gram: Gram) -> Quadratic:
        bound = Quadratic(gram, np.zeros(self.n_features))
        bound.forced = self.forced
        return bound.ridged(self.ridge)

    def lower_bound(self) -> float:
        m, n = self.n_rows, self.n_features
        affordable = m * (n * self._width) ** 2 <= 2e9 and n < m
        return super().lower_bound() - self.resolution if affordable else 0.0

    def complete(self, x: Iterate) -> Model:
        attained = True
        if x.minimizer:
            x, found = self._found(x)
            free = self._penalty(x.support) == 0
            step = found.step * self._column(free)  # a ridge holds the others
            attained = not (
                free.all() and self._separates(x.support, found.rows)
            ) and not self._escapes(x.support, step)
        else:
            x = self._profile(x.support, x.coef)
        F = np.array(self.forced, dtype=np.intp)
        has_intercept = int(self.fit_intercept)
        assert x.nuisance is not None
        forced = x.nuisance[has_intercept:] / self._column(self.scale[F])
        T, coef = np.concatenate([F, x.support]), np.concatenate([forced, x.coef])
        if has_intercept:
            intercept = x.nuisance[0] - self.mean[T] @ coef
        else:
            intercept = np.zeros(self.per_feature)
        a = intercept if self.per_feature else float(intercept)
        return Model(T, coef, a, x.value, attained, self.feature_names)

    def _found(self, x: Iterate) -> tuple[Iterate, Found]:
        """A minimiser, and how it was found; found once more if that is not known, or in doubt."""
        known, penalty = x.memory, self._penalty(x.support)
        same_data = isinstance(known, Found) and known.data is self._data
        if same_data and np.array_equal(known.penalty, penalty):
            low, high = self._margin_range(x.support, known.step)
            if -SETTLED <= low and high <= SETTLED:
                return x, known
        x, best, problem = self._minimize(x.support, x)
        step = problem.rows(best.step)
        return x, Found(self._data, penalty, problem.rows(best.u), step, best.clear)

    def rounding(self, x: Iterate) -> float:
        """Also what rounding of the predictions may change, where coefficients are huge."""
        columns = np.abs(self.design.columns(x.support)) @ magnitudes(
            self._standard(x.support, x.coef)
        )
        return self.resolution + 8 * float(np.finfo(float).eps) * float(self.weight @ columns)

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether the classes are separated over the support of x: losses fall to nothing."""
        if self.floor == -np.inf or self._penalty(x.support).any():
            return x.value <= self.floor
        x, found = self._found(x)
        return self._separates(x.support, found.rows)

    def apart(self) -> Self:
        other = super().apart()
        other._last = Last()
        return other

    def best_subset(self, k: int) -> tuple[Iterate, bool] | None:
        n_supports = comb(self.n_choosable, k)
        work = n_supports * self.n_rows * (k + 1) * self._width**2
        if n_supports > FEW or work > QUICK:
            return None
        supports = np.array(list(combinations(self.choosable.tolist(), k)), dtype=np.intp)
        fits = [self._minimize(S, None)[:2] for S in supports]
        proven = all(found.converged and found.clear for _, found in fits)  # or one may be lower
        return min((x for x, _ in fits), key=lambda x: x.value), proven

    # what a Hessian makes possible

    def insertion_values(
        self, S: Support, x0: Iterate | None = None, below: float = np.inf
    ) -> Vector:
        """Exact where it matters: candidates are refitted in the order of a dual lower bound.

        A refit is given up where a better bound, made on its way, shows that it is in vain.
        """
        S = np.sort(S)
        base = self._minimize(S, x0, tol=1e-4 * self.resolution)[0]  # the bounds want ∇f = 0
        values = self._insertion_bounds(base)
        for i in np.argsort(values, kind="stable"):
            if values[i] >= below or values[i] == np.inf:
                break
            T = np.sort(np.append(S, i))
            values[i] = self._minimize(T, base, below=below)[0].value
            below = min(below, values[i])
        return values

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        every = np.arange(len(x.support))
        # where a fit has diverged nothing is claimed
        with np.errstate(over="ignore", invalid="ignore"):  # as a decorator threads would share it
            return self._removal_bounds(x, every if asked is None else asked)

    def _removal_bounds(self, x: Iterate, asked: Support) -> tuple[float, Vector]:
        return removal_bounds(self, x, asked)

    def _insertion_bounds(self, base: Iterate) -> Vector:
        return insertion_bounds(self, base)

    def quadratic_model(self, x: Iterate) -> Objective:
        """f(x) + ∇f·(z − x) + ½ (z − x)ᵀ H (z − x), with H the Hessian after profiling."""
        if (
            self._last.model is None
            or self._last.model[0] is not x
            or self._last.model[1] is not self.ridge
        ):
            self._last.model = None  # a model of wide data is large: not two at a time
            self._last.model = x, self.ridge, self._local_model(x)
        return self._last.model[2]

    def _local_model(self, x: Iterate) -> Objective:
        return local_model(self, x if x.nuisance is not None else self._profile(x.support, x.coef))

    # sums over the rows

    def _size(self) -> tuple[int, float, float]:
        """How many rows there are, their weight, and their loss where all predictions are zero."""
        m = len(self.y)
        losses = self.loss.value(np.zeros((m, *self.per_feature)), self.y)
        null = float((self.weight * losses).sum())  # the product `@` would wake threads of BLAS
        return m, float(self.weight.sum()), null

    def _slope_products(self, point: Iterate) -> NDArray[np.float64]:
        """The gradient of the losses with respect to coefficients of the standardised columns."""
        return self.design.transposed_times(self._slopes(point)[0], self.threads)

    def _agreeing_losses(self, x: Iterate, g: Vector) -> Vector:
        """For every feature the losses of the rows that would gain from a step along −g."""
        losses = self.weight * self.loss.value(self._predicted(x), self.y)
        return self.design.sums_of_agreeing(self._slopes(x)[0], g, losses)

    def _curved_gram(self, x: Iterate | None, largest: int) -> CurvedGram:
        """The Gram matrix weighted with the losses' curvature at x, or with a bound on it.

        At x it is for a model, for which single precision may do.
        """
        D = self._curvatures(x)
        own, cross = self._nuisance_products(D)
        rough = x is not None and self.n_features <= largest
        gram = single_gram(self, D, own, cross) if rough else None
        return CurvedGram(gram or self._gram(D, largest), own, cross)

    @cached_property
    def _clear_in_single(self) -> bool:
        return clear_in_single(self)

    def _nuisance_products(self, D: Vector) -> tuple[Matrix, Matrix]:
        DN = D[:, None] * self.N
        return DN.T @ self.N, self.design.transposed_times(DN, self.threads).T

    def _margins(self, S: Support, rows: NDArray[np.float64]) -> Vector:
        """By how much predictions favour the class of each row; empty where y holds no classes."""
        return np.empty(0)

    def _margin_range(self, S: Support, rows: NDArray[np.float64]) -> tuple[float, float]:
        margins = self._margins(S, rows)
        return margins.min(initial=np.inf), margins.max(initial=-np.inf)

    # inside

    def _target(self, y: Any, m: int) -> NDArray[np.float64]:
        return check_target(y, m)

    def _restricted(self, S: Support, fixed: Iterate | None = None) -> Restricted:
        """The problem in the coefficients of S, the intercept and the forced features, on top of
        the predictions of `fixed`."""
        offset = 0.0 if fixed is None else self._predictions(fixed)
        return self._problem(self, self._with_nuisance(S), self._penalty(S), offset)

    @property
    def _problem(self) -> type[Restricted]:
        return Restricted

    @property
    def _width(self) -> int:
        """How many numbers a feature owns."""
        return int(np.prod(self.per_feature))

    def _column(self, w: Vector) -> NDArray[np.float64]:
        """One number per row, to be multiplied with rows of what features own."""
        return w.reshape(len(w), *(1,) * len(self.per_feature))

    def _rows(self, x: Iterate) -> NDArray[np.float64]:
        """What the columns of `_with_nuisance` own at x."""
        assert x.nuisance is not None
        return np.concatenate([x.nuisance, self._standard(x.support, x.coef)])

    def _predictions(self, x: Iterate) -> NDArray[np.float64]:
        """Without those of the intercept and the forced features."""
        return self.design.columns(x.support) @ self._standard(x.support, x.coef)

    def _standard(self, S: Support, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of the standardised columns."""
        return coef * self._column(self.scale[S])

    def _with_nuisance(self, S: Support) -> Any:
        """The columns of the intercept and the forced features, and those of S, perhaps sparse."""
        if not len(S):
            return self.N
        key = S.tobytes()
        if self._last.columns is None or self._last.columns[0] != key:
            self._last.columns = None  # not two at a time
            self._last.columns = key, self.design.beside(self.N, S, not self.per_feature)
        return self._last.columns[1]

    def _gram(self, weight: Vector, largest: int = LARGEST_GRAM) -> Gram:
        if self.n_features <= largest:
            return self._profiled(self._statistics(weight))
        F = np.array(self.forced, dtype=np.intp)
        ridge = scaled_ridge(self.ridge, self.scale)
        gram = LazyGram(
            self.design, weight, self.fit_intercept, F, ridge, self.threads, tolerated=1e9
        )
        gram.scale = gram.scale * self.scale  # back to the units of X
        return gram

    def _statistics(self, weight: Vector) -> Statistics:
        with thread_budget(self.threads):
            return Statistics.from_arrays(self.design, np.zeros(len(weight)), weight)

    def _profiled(self, stats: Statistics) -> Gram:
        F = np.array(self.forced, dtype=np.intp)
        ridge = scaled_ridge(self.ridge, self.scale)
        gram = profiled_moments(stats, self.fit_intercept, F, ridge)[0]
        gram.scale = gram.scale * self.scale  # back to the units of X
        return gram

    def _penalty(self, S: Support) -> Vector:
        T = np.concatenate([np.array(self.forced, dtype=np.intp), S])
        return np.concatenate(
            [np.zeros(int(self.fit_intercept)), scaled_ridge(self.ridge[T], self.scale[T])]
        )

    def _profile(self, S: Support, coef: NDArray[np.float64]) -> Iterate:
        """The point with the best intercept and forced coefficients for it."""
        fixed = Iterate(S, coef, np.nan, self.n_features)
        problem = self._restricted(S[:0], fixed)
        start = problem.unknowns(np.zeros((self.N.shape[1], *self.per_feature)))
        best = problem.minimize(start, self.tol)
        value = best.value + 0.5 * float(self.ridge[S] @ magnitudes(coef) ** 2)
        nuisance = problem.rows(best.u)
        return Iterate(S, coef, value, self.n_features, minimizer=False, nuisance=nuisance)

    def _slopes(self, point: Iterate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weighted first and second derivatives of the losses at the point's predictions."""
        _, first, second = self.loss.taylor(self._predicted(point), self.y)
        w = self._column(self.weight)
        return w * first, w * second

    def _predicted(self, point: Iterate) -> NDArray[np.float64]:
        if self._last.predictions is None or self._last.predictions[0] is not point:
            full = point if point.nuisance is not None else self._profile(point.support, point.coef)
            self._last.predictions = point, self.N @ full.nuisance + self._predictions(full)
        return self._last.predictions[1]

    def _curvatures(self, x: Iterate | None) -> Vector:
        """Weighted second derivatives of the losses at x, or bounds on them."""
        if x is None:
            return self.weight * self.loss.curvature
        # saturated losses keep a trace of curvature
        return np.maximum(self._slopes(x)[1], 1e-100 * (self.weight > 0))

    def _separates(self, S: Support, rows: NDArray[np.float64]) -> bool:
        """Do these coefficients, scaled up, lower every loss for ever?"""
        low, high = self._margin_range(S, rows)
        return 0 < low <= high

    def _escapes(self, S: Support, step: NDArray[np.float64]) -> bool:
        """The classes are quasi-separable: Newton still moves far, and to no row's harm."""
        low, high = self._margin_range(S, step)
        return high > 0.1 and low > -1e-6 * high


class Found(NamedTuple):
    """What Newton's method ended with, for what the columns of `_with_nuisance` own."""

    data: object  # the same for f of the same data
    penalty: Vector
    rows: NDArray[np.float64]
    step: NDArray[np.float64]
    clear: bool  # are the columns told apart?


@dataclass
class Last:
    """What was computed last. f and f under other ridges share one: it may be as large as X."""

    predictions: tuple[Iterate, NDArray[np.float64]] | None = None
    columns: tuple[bytes, Any] | None = None
    model: tuple[Iterate, Vector, Objective] | None = None


def _standardised(X: Any, centre: bool) -> Standardised:
    if isinstance(X, Standardised):
        return X
    design = Design(X)
    design.check_finite()
    made = design.standardised(centre)
    made.design.names = design.names
    return made
