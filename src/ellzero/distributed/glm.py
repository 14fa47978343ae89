"""Generalised linear models whose rows are apart: every sum over rows is a pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.core import Iterate, Objective
from ellzero.distributed.gram import SpreadGram
from ellzero.distributed.rows import Rows, Summary
from ellzero.distributed.table import Table
from ellzero.objectives.design import Design, Standardised, divided_columns
from ellzero.objectives.glm import Found, GeneralizedLinear
from ellzero.objectives.gram import scaled_ridge
from ellzero.objectives.local_model import CurvedGram
from ellzero.objectives.logistic import Logistic
from ellzero.objectives.multinomial import Multinomial
from ellzero.objectives.restricted import Restricted
from ellzero.objectives.statistics import Statistics
from ellzero.supports import Matrix, Support, Vector


class Spread(GeneralizedLinear):
    """The parts are the same objective of their rows without a ridge; here is a ridge without rows
    (one row, which has no weight, stands for none)."""

    local: type[GeneralizedLinear]

    def _spread(self, table: Table, units: Vector | None, options: dict[str, Any]) -> None:
        summary = table.summary
        mean, scale = _mean_and_scale(summary, options["fit_intercept"])
        units = np.ones(len(mean)) if units is None else units
        assert summary.classes is not None
        make = partial(self.local, **{**options, "ridge": 0.0})
        self.parts = table.parts.map(_part, make, mean, scale, units, summary.classes[0])
        self._all_rows = summary.n_rows
        nothing = Design(np.zeros((1, len(mean))))
        standardised: Any = Standardised(nothing, mean / units, scale / units)
        super().__init__(standardised, [0], **options)
        self.is_sparse = summary.is_sparse
        self.weight = np.zeros(1)

    def _sum(self, question: str, *args: Any) -> Any:
        return self.parts.ask(_answer, question, args)

    # sums over the rows

    def _size(self) -> tuple[int, float, float]:
        return self._all_rows, *self._sum("_size")[1:]

    def _slope_products(self, point: Iterate) -> NDArray[np.float64]:
        return self._sum("_slope_products", self._with_nuisances(point))

    def _agreeing_losses(self, x: Iterate, g: Vector) -> Vector:
        return self._sum("_agreeing_losses", self._with_nuisances(x), g)

    def _curved_gram(self, x: Iterate | None, largest: int) -> CurvedGram:
        whole = self.n_features <= largest
        stats, own, cross = self.parts.ask(_curved_moments, x, whole)
        if whole:
            return CurvedGram(self._profiled(stats), own, cross)
        F = np.array(self.forced, dtype=np.intp)
        ridge = scaled_ridge(self.ridge, self.scale)
        gram = SpreadGram(self.parts, partial(_view, x=x), self.fit_intercept, F, ridge)
        gram.scale = gram.scale * self.scale
        return CurvedGram(gram, own, cross)

    def _margin_range(self, S: Support, rows: NDArray[np.float64]) -> tuple[float, float]:
        return self.parts.ask(_answer, "_margin_range", (S, rows), merge=_widest)

    def _restricted(self, S: Support, fixed: Iterate | None = None) -> Restricted:
        return _Summed(super()._restricted(S, fixed), partial(self.parts.ask, _look, S, fixed))

    def best_subset(self, k: int) -> None:
        """Every support would take passes of its own."""

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        """Without a dual bound a fit is its own, where it has converged on columns that are clearly
        independent."""
        known = x.memory
        if not (isinstance(known, Found) and known.clear):
            return self.floor, np.full(len(x.support), self.floor)
        return Objective.removal_bounds(self, x)

    def _insertion_bounds(self, base: Iterate) -> Vector:
        """None are known: every candidate is refitted."""
        return np.where(self.outside(base.support), -np.inf, np.inf)

    def _with_nuisances(self, x: Iterate) -> Iterate:
        return x if x.nuisance is not None else self._profile(x.support, x.coef)


class DistributedLogistic(Spread, Logistic):
    """`Logistic` of a table, whose features are divided by `units`."""

    local = Logistic

    def __init__(self, table: Table, *, units: Vector | None = None, **options: Any):
        self._spread(table, units, options)


class DistributedMultinomial(Spread, Multinomial):
    """`Multinomial` of a table, whose features are divided by `units`."""

    local = Multinomial

    def __init__(self, table: Table, *, units: Vector | None = None, **options: Any):
        self._spread(table, units, options)

    def _curvature_at(self, x: Iterate, known: Support) -> Matrix:
        return self._sum("_curvature_at", x, known)


class _Summed(Restricted):
    """One pass gives value, gradient and Hessian at a point, all that a Newton step needs."""

    has_rows = False

    def __init__(self, own: Restricted, look: Callable[[Vector], tuple[float, Vector, Matrix]]):
        super().__init__(own.f, own.A, own.penalty, own.offset)
        self.own, self.look = own, look
        self._at: tuple[Vector, Any] | None = None

    def unknowns(self, rows: NDArray[np.float64]) -> Vector:
        return self.own.unknowns(rows)

    def rows(self, u: Vector) -> NDArray[np.float64]:
        return self.own.rows(u)

    def _looked(self, u: Vector) -> tuple[float, Vector, Matrix]:
        if self._at is None or self._at[0] is not u:
            self._at = u, self.look(u)
        return self._at[1]

    def value(self, u: Vector) -> float:
        return self.own.value(u) + self._looked(u)[0]

    def gradient(self, u: Vector) -> Vector:
        return self.own.gradient(u) + self._looked(u)[1]

    def hessian(self, u: Vector) -> Matrix:
        return self.own.hessian(u) + self._looked(u)[2]

    def lower(self, u: Vector, step: Vector) -> float:
        return -np.inf  # it would take a pass of its own


# on the workers


def _part(
    rows: Rows | None, make: Any, mean: Vector, scale: Vector, units: Vector, labels: Any
) -> GeneralizedLinear | None:
    """The objective of a partition's rows, standardised as all of them are."""
    if rows is None or not rows.weight.any():
        return None
    if sparse.issparse(rows.X):
        Z = divided_columns(rows.X, scale)
    else:
        Z = np.asfortranarray(rows.X, dtype=np.float64) - mean
        Z /= scale
    standardised = Standardised(Design(Z), mean / units, scale / units)
    return make(standardised, np.searchsorted(labels, rows.y), sample_weight=rows.weight)


def _answer(part: Any, question: str, args: tuple[Any, ...]) -> Any:
    return None if part is None else getattr(part, question)(*args)


def _look(
    part: GeneralizedLinear | None, S: Support, fixed: Iterate | None, u: Vector
) -> tuple[float, Vector, Matrix] | None:
    if part is None:
        return None
    problem = part._restricted(S, fixed)
    return problem.value(u), problem.gradient(u), problem.hessian(u)


def _curved_moments(
    part: GeneralizedLinear | None, x: Iterate | None, whole: bool
) -> tuple[Statistics | None, Matrix, Matrix] | None:
    if part is None:
        return None
    D = part._curvatures(x)
    return part._statistics(D) if whole else None, *part._nuisance_products(D)


def _view(part: GeneralizedLinear | None, x: Iterate | None) -> tuple[Design, Vector] | None:
    return None if part is None else (part.design, part._curvatures(x))


def _widest(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return min(a[0], b[0]), max(a[1], b[1])


def _mean_and_scale(summary: Summary, centre: bool) -> tuple[Vector, Vector]:
    """What takes columns to [−1, 1]; a constant one is taken out, and goes to zero.

    Sparse columns keep their zeros.
    """
    if summary.is_sparse:
        largest = np.maximum(np.abs(summary.low), np.abs(summary.high))
        return np.zeros_like(largest), np.where(largest > 0, largest, 1.0)
    mean = summary.mean if centre else np.zeros_like(summary.mean)
    largest = np.maximum(summary.high - mean, mean - summary.low)
    constant = largest <= 1e-13 * np.abs(mean)
    mean = np.where(constant, summary.high, mean)
    return mean, np.where(constant, 1.0, largest)
