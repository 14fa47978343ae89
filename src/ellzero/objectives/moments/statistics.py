"""Sufficient statistics of least squares: centred moments that add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.data.design import (
    TOLERATED_LOSS,
    Design,
    check_target,
    check_weight,
)
from ellzero.objectives.moments.shards import read_fields, write_fields
from ellzero.supports import Matrix, Vector
from ellzero.threads import current_blas_threads, in_parts

FEWEST_ROWS = 4096
"""Products of blocks of fewer rows do not reach the speed of one product of all rows."""

SHARED_UP_TO = 1000
"""Up to so many features, threads with rows of their own are faster than as many of BLAS."""

FEWEST_SHARED, MOST_PARTS = 4096, 8
"""Rows in a part, and parts: the sums shall not depend on the number of threads."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Weight, means and centred co-moments of X and y: all that least squares needs of the data.

    `a + b` is the statistics of the rows of both, whatever way the rows were divided. `shards` are
    fingerprints of what was read by `from_batches`, `from_parquet` or `from_csv`: the same rows are
    not added twice. To count rows twice on purpose, give them a weight of two.

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import LeastSquares, Statistics, path
    >>> rng = np.random.default_rng(0)
    >>> def batches():
    ...     for _ in range(10):
    ...         X = rng.standard_normal((1000, 6))
    ...         yield X, 3 * X[:, 4] - X[:, 1] + rng.standard_normal(1000)
    >>> stats = Statistics.from_batches(batches(), feature_names="abcdef")
    >>> stats
    Statistics(10000 rows, 6 features, weight 10000)
    >>> found = path(LeastSquares.from_statistics(stats, fit_intercept=True), [2])
    >>> found.to_frame()["feature"].tolist()
    ['b', 'e']
    """

    n_rows: int
    weight: float
    mean: Vector
    mean_y: float
    xx: NDArray[np.float64]
    xy: Vector
    yy: float
    feature_names: tuple[str, ...] | None = None
    shards: frozenset[str] = frozenset()

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None) -> Statistics:
        design = X if isinstance(X, Design) else Design(X)
        m = design.shape[0]
        y = check_target(y, m)
        w = check_weight(sample_weight, m)
        stats = checked_moments(design, y, w, origin(design.shape[1]))
        return replace(stats, feature_names=design.names)

    @classmethod
    def from_batches(
        cls, batches: Iterable[Any], *, feature_names: Sequence[str] | None = None
    ) -> Statistics:
        """One pass over batches of rows, of which one at a time is in memory.

        batches : of ``(X, y)`` or ``(X, y, sample_weight)``, of any sizes
        feature_names : of the columns; by default those of data frames
        """
        from ellzero.objectives.moments.streaming import summed

        return summed(batches, None if feature_names is None else tuple(feature_names))

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        columns: Sequence[str] | None,
        target: str,
        *,
        weight: str | None = None,
        categorical: Iterable[str] | Mapping[str, Iterable[Any] | None] = (),
        missing: str = "error",
    ) -> Statistics:
        """One pass over a Parquet file, or a folder of them, in bounded memory; needs pyarrow.

        Parameters
        ----------
        path : a file, or a folder of files; folders named ``key=value`` make a column `key`
        columns : the features, in this order; None takes all columns but target and weight
        target : the column to be explained
        weight : a column of non-negative weights
        categorical : columns that become one feature ``column=level`` for every level, in the order
            of the levels' names; levels are found on the way, or given: ``{"city": ["A", "B"]}``
        missing : "error" names the file, row and column of the first missing value; "drop" leaves
            rows with missing values out
        """
        from ellzero.data.io.pieces import parquet_pieces
        from ellzero.data.io.rows import Roles
        from ellzero.objectives.moments.streaming import summed_files

        roles = Roles.of(columns, target, weight, categorical, missing)
        return summed_files(parquet_pieces(Path(path), roles.chosen, roles.levels), roles)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        columns: Sequence[str] | None,
        target: str,
        *,
        weight: str | None = None,
        categorical: Iterable[str] | Mapping[str, Iterable[Any] | None] = (),
        missing: str = "error",
        delimiter: str | None = None,
    ) -> Statistics:
        """The same for text with a header, or a folder of it; packed (.gz, .bz2, .xz, .zip) or not.

        delimiter : by default a tab for names such as ``data.tsv.gz``, otherwise a comma; the other
            parameters are those of `from_parquet`
        """
        from ellzero.data.io.pieces import text_pieces
        from ellzero.data.io.rows import Roles
        from ellzero.objectives.moments.streaming import summed_files

        roles = Roles.of(columns, target, weight, categorical, missing)
        return summed_files(text_pieces(Path(path), roles.chosen, roles.levels, delimiter), roles)

    def __add__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        _check_same_features(self, other)
        if self.shards & other.shards:
            raise ValueError(
                "Statistics: both have the same rows in them (a shard read twice); to count rows "
                "twice on purpose, give them a weight of two."
            )
        return replace(merged(self, other), shards=self.shards | other.shards)

    def __radd__(self, other: object) -> Statistics:
        """For `sum`, which begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def aligned(self, feature_names: Sequence[str]) -> Statistics:
        """The same rows with these features; those that are new were zero in every row."""
        names = tuple(feature_names)
        if self.feature_names is None:
            raise ValueError("Statistics: without feature names there is nothing to align by.")
        if len(set(names)) < len(names):
            raise ValueError("feature_names: one stands there twice.")
        lost = set(self.feature_names) - set(names)
        if lost:
            raise ValueError(f"feature_names: lack {some(lost)}, which these statistics have.")
        at = {name: j for j, name in enumerate(names)}
        where = np.array([at[name] for name in self.feature_names], dtype=np.intp)
        mean, xy, xx = np.zeros(len(names)), np.zeros(len(names)), np.zeros((len(names),) * 2)
        mean[where], xy[where], xx[np.ix_(where, where)] = self.mean, self.xy, self.xx
        return replace(self, mean=mean, xy=xy, xx=xx, feature_names=names)

    def save(self, path: str | Path) -> None:
        """Write to a file, which is there whole or not at all."""
        write_fields(Path(path), {f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> Statistics:
        """What `save` wrote, after a check that it is that."""
        return cls(**read_fields(Path(path)))

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


def merged(a: Statistics, b: Statistics) -> Statistics:
    """The moments of the rows of both."""
    weight = a.weight + b.weight
    if weight == 0:
        return a
    shift, shift_y = b.mean - a.mean, b.mean_y - a.mean_y
    share = b.weight / weight
    between = a.weight * share
    xx = np.multiply.outer(between * shift, shift)
    xx += a.xx
    xx += b.xx
    return replace(
        a,
        n_rows=a.n_rows + b.n_rows,
        weight=weight,
        mean=a.mean + share * shift,
        mean_y=a.mean_y + share * shift_y,
        xx=xx,
        xy=a.xy + b.xy + between * shift * shift_y,
        yy=a.yy + b.yy + between * shift_y**2,
    )


def _check_same_features(a: Statistics, b: Statistics) -> None:
    names, others = a.feature_names, b.feature_names
    if len(a.mean) == len(b.mean) and names == others:
        return
    if names is None or others is None:
        known = "" if names is others else "; only one of them has names for its features"
        raise ValueError(
            f"Statistics of {len(a.mean)} and of {len(b.mean)} features do not add up{known}."
        )
    if set(names) == set(others):
        j = next(j for j, name in enumerate(names) if name != others[j])
        raise ValueError(
            f"Statistics: the same features in another order ({names[j]!r} and {others[j]!r} in "
            f"place {j}); `aligned` puts them in order."
        )
    lacks = [
        f"the {which} lacks {some(lacking)}"
        for which, lacking in (
            ("first", set(others) - set(names)),
            ("second", set(names) - set(others)),
        )
        if lacking
    ]
    raise ValueError(
        f"Statistics of different features do not add up: {' and '.join(lacks)}. If those were "
        "zero in every row, as levels that did not occur, `aligned` adds them."
    )


def some(names: Iterable[str], shown: int = 5) -> str:
    """The first few names, in order."""
    names = sorted(names)
    return ", ".join(map(repr, names[:shown])) + (", ..." if len(names) > shown else "")


Shift = tuple[Vector, float]
"""What is taken from X and y before their moments are."""


def origin(n: int) -> Shift:
    return np.zeros(n), 0.0


def checked_moments(design: Design, y: Vector, w: Vector | None, about: Shift) -> Statistics:
    """The statistics of X − about and y − about, or an error that names what is not a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        moments = _sparse_moments if design.is_sparse else _moments
        stats = moments(design, y, w, about)
    if not np.isfinite(stats.xx).all():
        design.raise_if_not_finite()
    check_squarable(stats.xx.diagonal(), stats.yy)
    return stats


def check_squarable(norms2: Any, yy: float) -> None:
    """Squares that overflow: say of which column."""
    if not np.isfinite(norms2).all():
        j = int(np.argmin(np.isfinite(norms2)))
        raise ValueError(f"X: column {j} is too large to square in float64; rescale it.")
    if not np.isfinite(yy):
        raise ValueError("y: is too large to square in float64; rescale it.")


def _centred(n_rows: int, weight: float, raw: tuple) -> Statistics:
    """Statistics from sums of x and y and of products xx, xy, yy; those of x are used up."""
    sum_x, sum_y, xx, xy, yy = raw
    d, d_y = sum_x / weight, sum_y / weight
    xx -= np.multiply.outer(d, sum_x)
    return Statistics(
        n_rows=n_rows,
        weight=weight,
        mean=d,
        mean_y=d_y,
        xx=xx,
        xy=xy - d * sum_y,
        yy=max(yy - d_y * sum_y, 0.0),
    )


def _cancelled(stats: Statistics, raw_diagonal: Any, raw_yy: float) -> bool:
    """Did taking differences cost more digits than we can spare?"""
    return bool(
        (raw_diagonal > TOLERATED_LOSS * np.diag(stats.xx)).any()
        or raw_yy > TOLERATED_LOSS * stats.yy
    )


def _moments(design: Design, y: Any, w: Any, about: Shift, again: bool = True) -> Statistics:
    """One pass over row blocks; again about the means found if cancellation shows."""
    m, n = design.shape
    n_parts = min(max(m // FEWEST_SHARED, 1), MOST_PARTS) if n <= SHARED_UP_TO else 1
    add = partial(_products, design, y, w, about)
    (xx, sums, products), *others = in_parts(add, m, n_parts, min(n_parts, current_blas_threads()))
    for other_xx, other_sums, other_products in others:
        xx += other_xx
        sums += other_sums
        products += other_products
    weight = float(products[0, 0])
    raw = (sums[0], products[0, 1], xx, sums[1], products[1, 1])
    diagonal, finite = xx.diagonal().copy(), np.isfinite(xx).all()
    stats = _centred(m, weight, raw)
    if again and finite and _cancelled(stats, diagonal, products[1, 1]):
        return _moments_again(design, y, w, about, stats)
    return stats


def _products(
    design: Design, y: Any, w: Any, about: Shift, within: slice
) -> tuple[Matrix, Matrix, Matrix]:
    """XᵀX, [1 y]ᵀX and [1 y]ᵀ[1 y] of some rows."""
    n, (about_x, about_y) = design.shape[1], about
    xx, sums, products = None, np.zeros((2, n)), np.zeros((2, 2))
    for part, block in design.row_blocks(fewest=max(n, FEWEST_ROWS), within=within):
        beside = np.vstack([np.ones(len(block)), y[part] - about_y])
        if about_x.any():
            block = block - about_x
        if w is not None:
            root = np.sqrt(w[part])
            block, beside = root[:, None] * block, root * beside
        own = block.T @ block
        xx = own if xx is None else np.add(xx, own, out=xx)
        sums += beside @ block
        products += beside @ beside.T
    return np.zeros((n, n)) if xx is None else xx, sums, products


def _moments_again(design: Design, y: Any, w: Any, about: Shift, first: Statistics) -> Statistics:
    """About the means that are known now."""
    near = about[0] + first.mean, about[1] + first.mean_y
    stats = _moments(design, y, w, near, again=False)
    return replace(
        stats,
        mean=near[0] - about[0] + stats.mean,
        mean_y=near[1] - about[1] + stats.mean_y,
    )


def _sparse_moments(design: Design, y: Any, w: Any, about: Shift) -> Statistics:
    """Of columns as they are, which keeps their zeros; only y is moved."""
    m = design.shape[0]
    X, y_moved = design.X.astype(np.float64), y - about[1]
    w = np.ones(m) if w is None else w
    XTW = X.T.multiply(w[None, :]).tocsr()
    xx = np.asarray((XTW @ X).todense())
    sums = np.asarray(XTW @ np.column_stack([np.ones(m), y_moved]))
    raw = (sums[:, 0], float(w @ y_moved), xx, sums[:, 1], float(w @ y_moved**2))
    diagonal, finite = xx.diagonal().copy(), np.isfinite(xx).all()
    stats = _centred(m, float(w.sum()), raw)
    if finite and _cancelled(stats, diagonal, raw[-1]):
        return _moments_again(design, y, w, about, stats)
    return stats
