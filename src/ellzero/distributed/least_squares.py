"""Least squares from one pass over the partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ellzero.checks import as_support
from ellzero.distributed import rows
from ellzero.distributed.gram import SpreadGram, centred_products
from ellzero.distributed.table import Table
from ellzero.objectives.design import Design, check_ridge
from ellzero.objectives.least_squares import LeastSquares
from ellzero.objectives.quadratic import Quadratic, breadth
from ellzero.objectives.statistics import check_squarable
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
            self._set_statistics(stats, fit_intercept, forced, ridge)
            self._means = stats.mean, stats.mean_y
        else:
            table.parts = table.parts.map(_itself)  # there will be many passes
            self._set_from_passes(table, fit_intercept, forced, ridge)
            self._means = table.summary.mean / self.units, table.summary.mean_y
        self._data = table

    def _set_from_passes(self, table: Table, fit_intercept: bool, forced: Any, ridge: Any) -> None:
        n, summary = table.n_features, table.summary
        F, ridge = as_support(forced, "forced", n), check_ridge(ridge, n)
        gram = SpreadGram(table.parts, _view, fit_intercept, F, ridge * self.units**2)
        mean_y = summary.mean_y if fit_intercept else 0.0
        b, yy = table.parts.ask(_target_products, gram.mean, mean_y)
        check_squarable(gram.norms2, yy)
        onto = gram.K @ b[F]
        b, yy = b - gram.cross @ onto, yy - float(b[F] @ onto)
        gram.scale = gram.scale / self.units
        Quadratic.__init__(self, gram, b / self.units, 0.5 * max(yy, 0.0), ridge)
        self.n_rows, self.breadth = summary.n_rows, breadth(summary.n_rows * n)
        self.blocks_are_cheap = False  # they take a pass, as rows do
        self.forced = tuple(F.tolist())
        self.fit_intercept = fit_intercept
        self.total_weight = summary.weight

    def _rows(self, T: Support) -> tuple[Matrix, Vector, Vector, float]:
        """One pass: the triangle of a QR factorisation stands for all rows."""
        mean, mean_y = (self._means[0][T], self._means[1])
        if not self.fit_intercept:
            mean, mean_y = 0 * mean, 0.0
        R = self._data.parts.ask(rows.triangle, T, mean * self.units[T], mean_y, merge=rows.stacked)
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
    """(X − mean)ᵀWt and tᵀWt for t = y − mean_y."""
    if part is None:
        return None
    t = part.y - mean_y
    wt = part.weight * t
    return centred_products(Design(part.X), mean, wt[:, None])[:, 0], float(wt @ t)
