"""Sufficient statistics of least squares: centred moments that add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.design import TOLERATED_LOSS, Design, check_target, check_weight


@dataclass(frozen=True, eq=False)
class Statistics:
    """Weight, means and centred co-moments of X and y: all that least squares needs of the data.

    `a + b` is the statistics of the rows of both, whatever way the rows were divided.
    """

    n_rows: int
    weight: float
    mean: NDArray[np.float64]
    mean_y: float
    xx: NDArray[np.float64]
    xy: NDArray[np.float64]
    yy: float

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None) -> Statistics:
        design = X if isinstance(X, Design) else Design(X)
        m = design.shape[0]
        y = check_target(y, m)
        w = check_weight(sample_weight, m)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = _sparse_moments if design.is_sparse else _moments
            stats = moments(design, y, w)
        if not np.isfinite(stats.xx).all():
            design.raise_if_not_finite()
        check_squarable(stats.xx.diagonal(), stats.yy)
        return stats

    def __add__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        if len(self.mean) != len(other.mean):
            raise ValueError(
                f"Statistics of {len(self.mean)} and of {len(other.mean)} features do not add up."
            )
        weight = self.weight + other.weight
        if weight == 0:
            return self
        shift, shift_y = other.mean - self.mean, other.mean_y - self.mean_y
        share = other.weight / weight
        between = self.weight * share
        return Statistics(
            n_rows=self.n_rows + other.n_rows,
            weight=weight,
            mean=self.mean + share * shift,
            mean_y=self.mean_y + share * shift_y,
            xx=self.xx + other.xx + between * np.outer(shift, shift),
            xy=self.xy + other.xy + between * shift * shift_y,
            yy=self.yy + other.yy + between * shift_y**2,
        )

    def scaled(self, scale: NDArray[np.float64]) -> Statistics:
        """The statistics of X / scale."""
        return replace(
            self,
            mean=self.mean / scale,
            xx=self.xx / scale / scale[:, None],
            xy=self.xy / scale,
        )

    def __repr__(self) -> str:
        return f"Statistics({self.n_rows} rows, {len(self.mean)} features, weight {self.weight:g})"


def check_squarable(norms2: Any, yy: float) -> None:
    """Squares that overflow: say of which column."""
    if not np.isfinite(norms2).all():
        j = int(np.argmin(np.isfinite(norms2)))
        raise ValueError(f"X: column {j} is too large to square in float64; rescale it.")
    if not np.isfinite(yy):
        raise ValueError("y: is too large to square in float64; rescale it.")


def _centred(n_rows: int, weight: float, shift: Any, shift_y: float, raw: tuple) -> Statistics:
    """Statistics from moments about a shift: sums of 1, x, y; products xx, xy, yy."""
    sum_x, sum_y, xx, xy, yy = raw
    d, d_y = sum_x / weight, sum_y / weight
    return Statistics(
        n_rows=n_rows,
        weight=weight,
        mean=shift + d,
        mean_y=shift_y + d_y,
        xx=xx - np.multiply.outer(d, sum_x),
        xy=xy - d * sum_y,
        yy=max(yy - d_y * sum_y, 0.0),
    )


def _cancelled(stats: Statistics, raw_diagonal: Any, raw_yy: float) -> bool:
    """Did taking differences cost more digits than we can spare?"""
    return bool(
        (raw_diagonal > TOLERATED_LOSS * np.diag(stats.xx)).any()
        or raw_yy > TOLERATED_LOSS * stats.yy
    )


def _moments(design: Design, y: Any, w: Any, shift: Any = None) -> Statistics:
    """One pass over row blocks; again about the means found if cancellation shows."""
    m, n = design.shape
    first = shift is None
    shift_x, shift_y = (np.zeros(n), 0.0) if first else shift
    xx, sums, products = np.zeros((n, n)), np.zeros((n, 2)), np.zeros((2, 2))
    for part, block in design.row_blocks():
        right = np.column_stack([np.ones(len(block)), y[part] - shift_y])
        if not first:
            block = block - shift_x
        if w is not None:
            root = np.sqrt(w[part])[:, None]
            block, right = root * block, root * right
        xx += block.T @ block
        sums += block.T @ right
        products += right.T @ right
    weight = products[0, 0]
    raw = (sums[:, 0], products[0, 1], xx, sums[:, 1], products[1, 1])
    stats = _centred(m, weight, shift_x, shift_y, raw)
    if first and np.isfinite(xx).all() and _cancelled(stats, np.diag(xx), products[1, 1]):
        return _moments(design, y, w, (stats.mean, stats.mean_y))
    return stats


def _sparse_moments(design: Design, y: Any, w: Any) -> Statistics:
    m = design.shape[0]
    X = design.X.astype(np.float64)
    w = np.ones(m) if w is None else w
    XTW = X.T.multiply(w[None, :]).tocsr()
    xx = np.asarray((XTW @ X).todense())
    sums = np.asarray(XTW @ np.column_stack([np.ones(m), y]))
    raw = (sums[:, 0], float(w @ y), xx, sums[:, 1], float(w @ y**2))
    stats = _centred(m, float(w.sum()), np.zeros(len(xx)), 0.0, raw)
    if np.isfinite(xx).all() and _cancelled(stats, np.diag(xx), raw[-1]):
        return _moments(design, y, w, (stats.mean, stats.mean_y))
    return stats
