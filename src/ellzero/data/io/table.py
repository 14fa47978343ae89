"""A table in memory: the columns of a frame, then those of a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.data.io.columns import pandas


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length; those of the matrix are numbers."""

    frame: Any
    matrix: Any = None  # by columns (CSC)
    matrix_names: tuple[str, ...] = ()
    more_zeros: bool = False
    """Whether columns f1, f2, ... beyond those named are there and zero, as in LIBSVM's format."""

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        return [*self.frame.columns, *self.matrix_names]

    @cached_property
    def _places(self) -> dict[str, int]:
        """Return the place of each column of the matrix, by its name."""
        return {name: j for j, name in enumerate(self.matrix_names)}

    def column(self, name: str) -> Any:
        """Return a column as a Series."""
        if name in self.frame.columns:
            return self.frame[name]
        rows, entries = self.stored(name)
        values = np.zeros(self.n_rows, entries.dtype)
        values[rows] = entries
        return pandas().Series(values, name=name)

    def is_sparse(self, name: str) -> bool:
        """Say whether a column that the table has is one of the matrix."""
        return name not in self.frame.columns

    def stored(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows and values that the matrix stores of a column; others are zero."""
        j = self._places.get(name)
        if j is None:
            return np.empty(0, np.intp), np.empty(0)
        stored = slice(*self.matrix.indptr[j : j + 2])
        return self.matrix.indices[stored], self.matrix.data[stored]

    def has(self, name: str) -> bool:
        """Say whether the table has a column."""
        if name in self.frame.columns or name in self._places:
            return True
        return self.more_zeros and name.startswith("f") and name[1:].isdecimal()

    def where(self, test: Callable[[Any], Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return rows and columns of the entries that the matrix stores and that pass a test."""
        if self.matrix is None:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        places = np.flatnonzero(test(self.matrix.data))
        columns = np.searchsorted(self.matrix.indptr, places, side="right") - 1
        return self.matrix.indices[places], columns

    def without(self, names: Collection[str]) -> Table:
        """Return the table without some columns."""
        kept = [j for j, name in enumerate(self.matrix_names) if name not in names]
        return Table(
            self.frame[[name for name in self.frame.columns if name not in names]],
            self.matrix if len(kept) == len(self.matrix_names) else self.matrix[:, kept],
            tuple(self.matrix_names[j] for j in kept),
            self.more_zeros,
        )

    def rows(self, keep: NDArray[np.bool_]) -> Table:
        """Return the table with some of its rows."""
        if keep.all():
            return self
        matrix = None if self.matrix is None else self.matrix.tocsr()[keep].tocsc()
        frame = self.frame[keep].reset_index(drop=True)
        return Table(frame, matrix, self.matrix_names, self.more_zeros)
