"""What happens to one partition, where it is: loading, checking, and sums over its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.data.design import Design, as_array, check_target, dense
from ellzero.estimators.validation import check_finite
from ellzero.objectives.moments.statistics import Statistics
from ellzero.supports import Matrix, Support, Vector


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one partition, checked."""

    number: int
    X: Any  # dense or sparse
    y: NDArray[Any]
    weight: Vector

    def __sizeof__(self) -> int:
        return int(Design(self.X).nbytes + self.y.nbytes + self.weight.nbytes)


def together(X: Any, *columns: Any) -> Any:
    """A partition of a frame and its columns as one object of Dask's frames."""
    import pandas

    return pandas.Series([([X], *columns)], dtype=object)


def load(number: int, part: Any, names: Any, classes: bool, clear: bool) -> Rows | None:
    """A partition's column blocks, target and weights; None if it has no rows.

    clear : does every row need an index of its own, by which its target was found?
    """
    blocks, y, *weights = part if isinstance(part, tuple) else part.iloc[0]
    try:
        if clear:
            _check_no_repeats(blocks[0].index)
        X = _table(blocks)
        m = X.shape[0]
        checked = (_labels if classes else check_target)(_column(y, "y", m), m)
        weight = _weights(weights[0] if weights else None, m)
        check_finite(X, names)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from error
    return Rows(number, X, checked, weight) if m else None


def _check_no_repeats(index: Any) -> None:
    repeated = index[index.duplicated()]
    if len(repeated):
        raise ValueError(
            f"y: is divided otherwise than X, whose index has {repeated[0]} twice, so that rows "
            "cannot be told apart; give both the same partitions, or an index without repeats."
        )


def _table(blocks: list[Any]) -> Any:
    arrays = [_numbers(block) for block in blocks]
    if any(sparse.issparse(block) for block in arrays):
        X = sparse.hstack([sparse.csc_matrix(block) for block in arrays], format="csc")
    else:
        X = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _numbers(block: Any) -> Any:
    if hasattr(block, "tocsc"):
        return block.tocsc()
    if hasattr(block, "to_numpy"):
        kinds = {np.dtype(np.float32)} == set(block.dtypes)
        return block.to_numpy(dtype=np.float32 if kinds else np.float64, na_value=np.nan)
    return as_array(block, "X")


def _column(values: Any, name: str, m: int) -> NDArray[Any]:
    column = as_array(values, name)
    if column.shape != (m,):
        raise ValueError(
            f"{name}: shape {column.shape}, but X has {m} rows in this partition; give both the "
            "same partitions."
        )
    return column


def _weights(weight: Any, m: int) -> Vector:
    if weight is None:
        return np.ones(m)
    w = check_target(_column(weight, "sample_weight", m), m, "sample_weight")
    if (w < 0).any():
        raise ValueError(f"sample_weight: negative in row {np.flatnonzero(w < 0)[0]}.")
    return w


def _labels(y: NDArray[Any], m: int) -> NDArray[Any]:
    missing = np.array([_is_missing(label) for label in y]) if y.dtype.kind == "O" else y != y
    if np.any(missing):
        raise ValueError(f"y: no class in row {np.flatnonzero(missing)[0]}.")
    if y.dtype.kind == "f" and (y != np.round(y)).any():
        raise ValueError("y: holds numbers that are no classes; use SparseRegressor.")
    return y


def _is_missing(label: Any) -> bool:
    """None, NaN or pandas' NA, which is not even unequal to itself."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


@dataclass(frozen=True, eq=False)
class Summary:
    """Of some rows: weighted means, centred squares and the range of every column; and the classes.

    Summaries add up.
    """

    n_rows: int
    weight: float
    mean: Vector
    squares: Vector
    low: Vector
    high: Vector
    mean_y: float = 0.0
    classes: tuple[NDArray[Any], Vector] | None = None
    is_sparse: bool = False

    def __add__(self, other: Summary) -> Summary:
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        shift = other.mean - self.mean
        return Summary(
            n_rows=self.n_rows + other.n_rows,
            weight=weight,
            mean=self.mean + share * shift,
            squares=self.squares + other.squares + self.weight * share * shift**2,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            mean_y=self.mean_y + share * (other.mean_y - self.mean_y),
            classes=_joined(self.classes, other.classes),
            is_sparse=self.is_sparse or other.is_sparse,
        )


def _joined(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    return _weighed(np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]))


def _weighed(y: NDArray[Any], weight: Vector) -> tuple[NDArray[Any], Vector]:
    """The classes, sorted, and the weight of each."""
    classes, codes = np.unique(y, return_inverse=True)
    return classes, np.bincount(codes.ravel(), weight, len(classes)).astype(np.float64)


def summary(rows: Rows | None, classes: bool) -> Summary | None:
    if rows is None:
        return None
    design, w = Design(rows.X), rows.weight
    live = w if w.any() else np.full(len(w), 1e-300)  # means of rows without weight do not count
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = design.means_and_norms(live, centre=True)
    return Summary(
        n_rows=len(w),
        weight=float(w.sum()),
        mean=mean,
        squares=squares if w.any() else 0 * squares,
        low=dense(rows.X.min(axis=0)).ravel().astype(np.float64),
        high=dense(rows.X.max(axis=0)).ravel().astype(np.float64),
        mean_y=0.0 if classes else float(np.average(rows.y, weights=live)),
        classes=_weighed(rows.y, w) if classes else None,
        is_sparse=design.is_sparse,
    )


def statistics(rows: Rows | None) -> tuple[int, Statistics | None] | None:
    """How many rows there are, and the statistics of those with weight."""
    if rows is None:
        return None
    if not rows.weight.any():
        return len(rows.y), None
    unit = (rows.weight == 1).all()
    return len(rows.y), Statistics.from_arrays(rows.X, rows.y, None if unit else rows.weight)


def triangle(rows: Rows | None, T: Support, mean: Vector, mean_y: float) -> Matrix | None:
    """R of the QR factors of the columns T and y, centred and weighted: of equal products."""
    if rows is None:
        return None
    A = np.column_stack([Design(rows.X).columns(T) - mean, rows.y - mean_y])
    return np.asarray(np.linalg.qr(np.sqrt(rows.weight)[:, None] * A, mode="r"))


def stacked(a: Matrix, b: Matrix) -> Matrix:
    """R of the rows of both."""
    return np.asarray(np.linalg.qr(np.vstack([a, b]), mode="r"))
