"""Least squares from one pass over the partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ellzero.checks import as_support, check_ridge
from ellzero.core import Features
from ellzero.data.design import Design
from ellzero.distributed import rows
from ellzero.distributed.columns import SpreadColumns, centred_products
from ellzero.distributed.table import Table
from ellzero.objectives.least_squares import LeastSquares
from ellzero.objectives.moments.statistics import check_squarable
from ellzero.supports import Matrix, Support, Vector


class DistributedLeastSquares(LeastSquares):
    """`LeastSquares` of a table, whose features are divided by `units`."""

    def __init__(
        self,
        table: Table,
        *,
        units: Vector | None = None,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ):
        self.units = np.ones(table.n_features) if units is None else units
        if table.adds_up:
            stats = table.statistics if units is None else table.statistics.scaled(units)
            self.hold_statistics(stats, fit_intercept, forced, ridge)
            self.means = stats.mean, stats.mean_y
        else:
            table.parts = table.parts.map(_itself)  # there will be many passes
            self._hold_passes(table, fit_intercept, forced, ridge)
            self.means = table.summary.mean / self.units, table.summary.mean_y
        self.table = table

    def _hold_passes(self, table: Table, fit_intercept: bool, forced: Any, ridge: Any) -> None:
        n, summary = table.n_features, table.summary
        F, ridge = as_support(forced, "forced", n), check_ridge(ridge, n)
        columns = SpreadColumns(table.parts, _view, fit_intercept, F, ridge * self.units**2)
        mean_y = summary.mean_y if fit_intercept else 0.0
        b, yy = table.parts.ask(_target_products, columns.mean, mean_y)
        check_squarable(columns.norms2, yy)
        onto = columns.K @ b[F]
        b, yy = b - columns.cross @ onto, yy - float(b[F] @ onto)
        c, scale = b / columns.scale * columns.diagonal, columns.scale / self.units
        self.hold_columns(columns, scale, c, max(yy, 0.0), Features(n, F), ridge)
        self.size = float(summary.n_rows) * n
        self.fit_intercept, self.observations = fit_intercept, summary.weight

    def weighted_rows(self, T: Support) -> tuple[Matrix, Vector, Vector, float]:
        """Return columns and target in one pass: a triangle that stands for all rows."""
        mean, mean_y = self.means[0][T], self.means[1]
        if not self.fit_intercept:
            mean, mean_y = 0 * mean, 0.0
        R = self.table.parts.ask(rows.triangle, T, mean * self.units[T], mean_y, merge=rows.stacked)
        return R[:, :-1] / self.units[T], R[:, -1], mean, mean_y


def _itself(part: Any) -> Any:
    return part


def _view(part: rows.Rows | None) -> tuple[Design, Vector] | None:
    if part is None or not part.weight.any():
        return None
    return Design(part.X), part.weight


def _target_products(
    part: rows.Rows | None, mean: Vector, mean_y: float
) -> tuple[Vector, float] | None:
    """Return (X − mean)ᵀWt and tᵀWt for t = y − mean_y."""
    if part is None:
        return None
    t = part.y - mean_y
    wt = part.weight * t
    return centred_products(Design(part.X), mean, wt[:, None])[:, 0], float(wt @ t)
