"""Dask collections as partitions of rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.distributed import rows
from ellzero.distributed.passes import Parts, dask_or_error
from ellzero.estimators.problem import nonzero
from ellzero.objectives.least_squares import LARGEST_HELD
from ellzero.objectives.moments.statistics import Statistics, check_squarable
from ellzero.supports import Vector


def is_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__")


def is_frame(X: Any) -> bool:
    return hasattr(X, "columns")


def is_frame_like(X: Any) -> bool:
    """A data frame or a series."""
    return hasattr(X, "divisions")


class Table:
    """X, y and weights, row by row in partitions, and what passes over them have shown."""

    def __init__(self, X: Any, y: Any, weight: Any, classes: bool):
        dask = dask_or_error()
        if not is_dask(X) or X.ndim != 2:
            raise TypeError(
                f"X: expected a dask array or data frame (rows × features), got "
                f"{type(X).__name__}; for data in memory use ellzero.{_twin(classes)}."
            )
        self.classes_wanted = classes
        self.names = names_of(X)
        self.n_features = _n_columns(X)
        self.dtype = _dtype(X)
        named = None if self.names is None else np.asarray(self.names, dtype=object)
        given = {"y": y} | ({} if weight is None else {"sample_weight": weight})
        clear = any(_divided_otherwise(values, X) for values in given.values())
        columns = [_aligned(values, name, X) for name, values in given.items()]
        load = dask.delayed(rows.load, pure=False)
        self.parts = Parts(
            [load(i, part, named, classes, clear) for i, part in enumerate(_partitions(X, columns))]
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    @property
    def n_rows(self) -> int:
        return self.statistics.n_rows if self.adds_up else self.summary.n_rows

    @property
    def adds_up(self) -> bool:
        """Do sums of n × n numbers tell all that is asked of the data?"""
        return not self.classes_wanted and self.n_features <= LARGEST_HELD

    @cached_property
    def statistics(self) -> Statistics:
        n_rows, stats = _some(self.parts.ask(rows.statistics))
        if stats is None:
            raise ValueError("sample_weight: all weights are zero.")
        check_squarable(stats.xx.diagonal(), stats.yy)
        return Statistics(**{**vars(stats), "n_rows": n_rows})

    @cached_property
    def summary(self) -> rows.Summary:
        summary = _some(self.parts.ask(rows.summary, self.classes_wanted))
        if not summary.weight:
            raise ValueError("sample_weight: all weights are zero.")
        check_squarable(summary.squares, 0.0)
        return summary

    def deviations(self) -> Vector:
        """The standard deviation of every column; 1 where it is constant."""
        if self.adds_up:
            stats = self.statistics
            return nonzero(np.sqrt(stats.xx.diagonal() / stats.weight), stats.mean)
        return nonzero(np.sqrt(self.summary.squares / self.summary.weight), self.summary.mean)


def names_of(X: Any) -> list[Any] | None:
    """The columns of a data frame, where all of them have names, as scikit-learn has it."""
    if not is_frame(X):
        return None
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _twin(classes: bool) -> str:
    return "SparseClassifier" if classes else "SparseRegressor"


def _some(answer: Any) -> Any:
    if answer is None:
        raise ValueError("X: has no rows.")
    return answer


def _n_columns(X: Any) -> int:
    n = len(X.columns) if is_frame(X) else X.shape[1]
    if n != n:
        raise ValueError("X: the number of columns is not known; call X.compute_chunk_sizes().")
    if n == 0:
        raise ValueError("X: has no columns.")
    return int(n)


def _dtype(X: Any) -> np.dtype[Any]:
    """float32 where all of X is that, otherwise float64."""
    if is_frame(X) and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X: two columns have the name {twice!r}; rename or drop one.")
    dtypes = dict(X.dtypes) if is_frame(X) else {"X": X.dtype}
    for name, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            column = f"column {name!r} " if is_frame(X) else ""
            raise ValueError(f"X: {column}has dtype {dtype}; encode text and categories first.")
    single = all(dtype == np.float32 for dtype in dtypes.values())
    return np.dtype(np.float32 if single else np.float64)


def _partitions(X: Any, columns: list[Any]) -> list[Any]:
    """For every partition of the rows the blocks of its columns, and of y and the weights."""
    if all(map(is_frame_like, [X, *columns])):
        # in one expression: Dask would make each its own, and a shuffle may order rows anew
        from dask.dataframe import map_partitions

        meta = ("rows", object)
        parts = map_partitions(rows.together, X, *columns, align_dataframes=False, meta=meta)
        return list(parts.to_delayed())
    blocks = [[row] for row in X.to_delayed()] if is_frame(X) else [*map(list, X.to_delayed())]
    others = [np.ravel(np.array(column.to_delayed(), dtype=object)) for column in columns]
    return list(zip(blocks, *others, strict=True))


def _aligned(values: Any, name: str, X: Any) -> Any:
    """A column of numbers with the partitions of X."""
    known = not is_frame(X) and not np.isnan(X.shape[0])
    if not is_dask(values):
        if not known:
            raise TypeError(
                f"{name}: expected a dask collection with the partitions of X, got "
                f"{type(values).__name__}; X does not know its lengths."
            )
        values = _spread(values, name, X)
    if getattr(values, "ndim", None) != 1:
        raise ValueError(f"{name}: expected one column, got {values.ndim} dimensions.")
    if hasattr(values, "chunks") and known and not np.isnan(values.shape[0]):
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"{name}: has {values.shape[0]} rows, but X has {X.shape[0]}.")
        values = values.rechunk((X.chunks[0],))
    if _divided_otherwise(values, X):
        values = values.repartition(divisions=X.divisions)
    n, n_parts = _n_partitions(values), _n_partitions(X)
    if n != n_parts:
        if is_frame(X):
            advice = "take both from one frame, or set one index without repeats on both"
        else:
            advice = "rechunk one like the other, or call compute_chunk_sizes() on both"
        raise ValueError(f"{name}: has {n} partitions, but X has {n_parts}; {advice}.")
    return values


def _n_partitions(values: Any) -> int:
    return values.npartitions if is_frame_like(values) else len(values.chunks[0])


def _divided_otherwise(values: Any, X: Any) -> bool:
    """Are both sorted by one index, and divided at different places of it?

    Dividing them at the same places keeps the order of the rows. So they stay together wherever no
    index comes twice and partitions are of equal lengths then: both are checked when loading.
    """
    both = (values, X)
    if not all(getattr(collection, "known_divisions", False) for collection in both):
        return False
    ours, theirs = (collection.divisions for collection in both)
    return ours != theirs and (ours[0], ours[-1]) == (theirs[0], theirs[-1])


def _spread(values: Any, name: str, X: Any) -> Any:
    import dask.array

    array: NDArray[Any] = np.asarray(values)
    if array.shape != (X.shape[0],):
        raise ValueError(f"{name}: expected shape ({X.shape[0]},), got {array.shape}.")
    return dask.array.from_array(array, chunks=(X.chunks[0],))
