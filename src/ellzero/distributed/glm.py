"""Generalised linear models whose rows are in partitions: every sum over rows is a pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ellzero.checks import as_support
from ellzero.core import Features
from ellzero.data.design import Design, divided_columns
from ellzero.distributed.columns import SpreadColumns
from ellzero.distributed.passes import Parts
from ellzero.distributed.rows import Rows, Summary, stacked
from ellzero.distributed.table import Table
from ellzero.objectives.glm.families import Family, LogisticLoss, SoftmaxLoss
from ellzero.objectives.glm.glm import GLM
from ellzero.objectives.glm.logistic import Logistic
from ellzero.objectives.glm.multinomial import Multinomial
from ellzero.objectives.glm.newton import Derivatives
from ellzero.objectives.glm.rows import Counts, Linear, LocalRows, Losses
from ellzero.supports import Matrix, Support, Vector
from ellzero.threads import current_blas_threads


class DistributedLogistic(Logistic):
    """`Logistic` of a table, whose features are divided by `units`."""

    def __init__(self, table: Table, *, units: Vector | None = None, **options: Any):
        hold_table(self, table, LogisticLoss(), units, **options)


class DistributedMultinomial(Multinomial):
    """`Multinomial` of a table, whose features are divided by `units`."""

    def __init__(
        self, table: Table, *, n_classes: int, units: Vector | None = None, **options: Any
    ):
        hold_table(self, table, SoftmaxLoss(n_classes), units, **options)


def hold_table(
    f: GLM,
    table: Table,
    family: Family,
    units: Vector | None,
    *,
    fit_intercept: bool = False,
    forced: ArrayLike = (),
    ridge: ArrayLike = 0.0,
) -> None:
    """Make f of the rows of a table. Its partitions are standardised where they are, and kept."""
    summary, n = table.summary, table.n_features
    assert summary.classes is not None
    mean, scale = _mean_and_scale(summary, fit_intercept)
    F = as_support(forced, "forced", n)
    labels = summary.classes[0]
    parts = table.parts.map(_local_rows, labels, mean, scale, family, fit_intercept, F)
    rows = SpreadRows(parts, summary.n_rows, summary.is_sparse, fit_intercept, F)
    features = Features(np.full(n, family.n_outputs), F)
    units = np.ones(n) if units is None else units
    f.hold(rows, features, family, mean / units, scale / units, fit_intercept, ridge)


class SpreadRows:
    """Rows in partitions, each of which holds `LocalRows`; their answers are added up."""

    def __init__(self, parts: Parts, n_rows: int, is_sparse: bool, centre: bool, F: Support):
        self.parts, self.n_rows = parts, n_rows
        self.is_sparse, self.centre, self.F = is_sparse, centre, F

    def counts(self) -> Counts:
        _, weight, null = self._sum("counts")
        return Counts(self.n_rows, weight, null)

    def loss(self, S: Support, fixed: Linear | None = None, back: Matrix | None = None) -> Losses:
        def look(B: Matrix) -> tuple[float, Derivatives]:
            value, g, H = self.parts.ask(_look, S, fixed, back, B)
            return value, lambda: (g, H)

        return look

    def slopes(self, at: Linear) -> Matrix:
        return self._sum("slopes", at)

    def gram(self, at: Linear | None, T: Support | None = None) -> Matrix:
        return self._sum("gram", at, T)

    def columns(self, at: Linear | None, ridge: Vector) -> tuple[SpreadColumns, Matrix, Matrix]:
        own, cross = self._sum("nuisance", at)
        view = partial(_view, at=at)
        return SpreadColumns(self.parts, view, self.centre, self.F, ridge), own, cross

    def agreeing(self, at: Linear, slopes: Vector) -> Vector:
        return self._sum("agreeing", at, slopes)

    def margins(self, at: Linear) -> tuple[float, float]:
        return self.parts.ask(_answer, "margins", (at,), merge=_widest)

    def triangle(self, S: Support) -> Matrix:
        return self.parts.ask(_answer, "triangle", (S,), merge=stacked)

    def duals(self, at: Linear, steps: NDArray[np.float64]) -> Vector:
        return self._sum("duals", at, steps)

    def slope_rounding(self, at: Linear) -> Vector:
        return self._sum("slope_rounding", at)

    def _sum(self, question: str, *args: Any) -> Any:
        return self.parts.ask(_answer, question, args)


# on the workers


def _local_rows(
    rows: Rows | None,
    labels: NDArray[Any],
    mean: Vector,
    scale: Vector,
    family: Family,
    centre: bool,
    F: Support,
) -> LocalRows | None:
    """Return a partition's rows, standardised as all of them are; None if none has weight."""
    if rows is None or not rows.weight.any():
        return None
    if sparse.issparse(rows.X):
        Z = divided_columns(rows.X, scale)
    else:
        Z = np.asfortranarray(rows.X, dtype=np.float64) - mean
        Z /= scale
    target = family.target(np.searchsorted(labels, rows.y).astype(np.float64))
    threads = current_blas_threads()
    return LocalRows(Design(Z), target, rows.weight, family, centre, F, threads)


def _answer(part: LocalRows | None, question: str, args: tuple[Any, ...]) -> Any:
    return None if part is None else getattr(part, question)(*args)


def _look(
    part: LocalRows | None, S: Support, fixed: Linear | None, back: Matrix | None, B: Matrix
) -> tuple[float, Vector, Matrix] | None:
    """Return value, gradient and Hessian: all that a Newton step needs, in one pass."""
    if part is None:
        return None
    value, derivatives = part.loss(S, fixed, back)(B)
    return value, *derivatives()


def _view(part: LocalRows | None, at: Linear | None) -> tuple[Design, Vector] | None:
    return None if part is None else (part.design, part.curvatures(at)[:, 0])


def _widest(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return min(a[0], b[0]), max(a[1], b[1])


def _mean_and_scale(summary: Summary, centre: bool) -> tuple[Vector, Vector]:
    """Return what takes columns to [−1, 1]. A constant one is taken out, and goes to zero.

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
