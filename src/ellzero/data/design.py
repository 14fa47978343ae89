"""The columns of X, dense or sparse, float32 or float64: every answer is float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.supports import Support, Vector, at_once
from ellzero.threads import in_parts

BLOCK_BYTES = 1 << 21  # a block of rows that stays in the processor's cache

ABREAST = 16  # columns that are standardised at a time: each look at a row serves as many

SHARED_FROM = 1 << 20  # numbers in X; with fewer, threads do not earn what it takes to wake them

WIDE = 2048  # columns; of fewer a part takes nearly as long as all

ENTRIES = 1 << 20  # of a sparse X, so many are worked on at once

SPARSE_FROM, SPARSE_UP_TO = 1 << 18, 0.1
"""Columns stay sparse from so many numbers on, if no larger part of them than that is not zero."""

TOLERATED_LOSS = 1e4
"""A centred moment taken as the difference of raw ones loses log10(raw / centred) digits."""


VANISHED = 1e-305
"""Squares that are less have lost digits, or all of them."""


class Design:
    def __init__(self, X: Any):
        self.names = _column_names(X)
        X = _canonical(X.tocsc()) if sparse.issparse(X) else _as_table(X)
        if X.dtype.kind not in "fiub":
            raise TypeError(
                f"X: expected numbers, got dtype {X.dtype}; encode text and categories first."
            )
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if X.ndim != 2:
            raise ValueError(f"X: expected a table (rows × features), got shape {X.shape}.")
        if min(X.shape) == 0:
            raise ValueError(f"X: is empty, shape {X.shape}.")
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.is_sparse = sparse.issparse(X)

    def __getstate__(self) -> dict[str, Any]:
        """Without the copy in single precision, which is soon made anew."""
        return {name: value for name, value in self.__dict__.items() if name != "single"}

    @property
    def nbytes(self) -> int:
        return int(self.X.data.nbytes + self.X.indices.nbytes if self.is_sparse else self.X.nbytes)

    def standardised(self, centre: bool) -> Standardised:
        """A copy by columns; sparse columns keep their zeros: they are scaled, not centred."""
        n = self.shape[1]
        mean, scale = np.zeros(n), np.ones(n)
        if self.is_sparse:
            for part, begins, entries, _ in self._entries():
                scale[part] = column_sums(np.abs(entries), begins, np.maximum)
            scale[scale == 0] = 1.0
            return Standardised(Design(divided_columns(self.X, scale)), mean, scale)
        Z = np.empty(self.shape, order="F")
        for begin in range(0, n, ABREAST):
            part = slice(begin, begin + ABREAST)
            columns = self.X[:, part].astype(np.float64, order="F")
            if centre:
                mean[part] = columns.mean(axis=0)
                mean[part] += (columns - mean[part]).mean(axis=0)
                columns -= mean[part]
            largest = np.abs(columns).max(axis=0)
            columns[:, largest <= 1e-13 * np.abs(mean[part])] = 0.0  # rounding of their means
            scale[part] = np.where(columns.any(axis=0), largest, 1.0)
            np.divide(columns, scale[part], out=Z[:, part])
        return Standardised(Design(Z), mean, scale)

    def check_finite(self) -> None:
        """One pass; on bad values, a second one to name the column."""
        values = self.X.data if self.is_sparse else self.X
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(values, dtype=np.float64)):
                return
        self.raise_if_not_finite()

    def raise_if_not_finite(self) -> None:
        for j in range(self.shape[1]):
            column = self.columns(np.array([j]))[:, 0]
            bad = np.flatnonzero(~np.isfinite(column))
            if len(bad):
                raise ValueError(
                    f"X: column {j} has {len(bad)} NaN or infinite value(s), the first in row "
                    f"{bad[0]}; drop or impute them."
                )

    def raise_if_squares_vanish(self, mean_squares: Vector, weight: Vector | None) -> None:
        """A column that is not zero must not seem to be."""
        (small,) = (mean_squares < VANISHED).nonzero()
        if self.is_sparse:
            small = small[np.diff(self.X.indptr)[small] > 0]
        counts = slice(None) if weight is None else weight > 0
        for part in at_once(len(small), self.shape[0]):
            nonzero = self.columns(small[part])[counts].any(axis=0)
            if nonzero.any():
                j = small[part][nonzero.argmax()]
                raise ValueError(f"X: column {j} is too small to square in float64; rescale it.")

    def columns(self, S: NDArray[np.intp]) -> NDArray[np.float64]:
        """X[:, S] as a dense float64 array."""
        if self.is_sparse:
            return self.X[:, S].toarray().astype(np.float64, copy=False)
        return self.X[:, S].astype(np.float64, copy=False)

    def beside(self, N: NDArray[np.float64], S: NDArray[np.intp], keep_sparse: bool) -> Any:
        """The columns N and S; sparse, by rows, if asked for and few of their numbers are not 0."""
        m, q = N.shape
        if keep_sparse and self.is_sparse and m * len(S) >= SPARSE_FROM:
            part = self.X[:, S]
            if part.nnz <= SPARSE_UP_TO * m * len(S):
                part = part.astype(np.float64, copy=False)
                return sparse.hstack([sparse.csc_matrix(N), part], format="csr")
        A = np.empty((m, q + len(S)), order="F")
        A[:, :q] = N
        if self.is_sparse or self.X.dtype != np.float64:
            A[:, q:] = self.columns(S)
        else:
            self.X.T.take(S, axis=0, out=A.T[q:], mode="clip")  # without a copy in between
        return A

    def row_blocks(
        self, fewest: int = 16, columns: slice = slice(None), within: slice = slice(None)
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Dense float64 blocks of consecutive rows; views of X where X already is that."""
        m, n = self.shape
        first, last, _ = within.indices(m)
        width = max(len(range(n)[columns]), 1)
        rows = max(BLOCK_BYTES // (8 * width), fewest)
        X = self.by_rows if self.is_sparse else self.X
        for begin in range(first, last, rows):
            part = slice(begin, min(begin + rows, last))
            block = X[part].toarray() if self.is_sparse else X[part]
            yield part, block[:, columns].astype(np.float64, copy=False)

    def transposed_times(self, V: NDArray[np.float64], threads: int = 1) -> NDArray[np.float64]:
        """Xᵀ V; threads can share the columns of a large dense X."""
        if self.is_sparse:
            return np.asarray(self.X.T @ V)
        transposed = np.zeros((*V.shape[1:], self.shape[1]))

        def fill(columns: slice) -> None:
            if self.X.dtype == np.float64:  # twice as fast as Xᵀ @ V where V is narrow
                np.matmul(V.T, self.X[:, columns], out=transposed[..., columns])
                return
            for rows, block in self.row_blocks(columns=columns):
                transposed[..., columns] += V[rows].T @ block

        self._in_parts(fill, threads)
        return transposed.T

    def _in_parts(self, work: Callable[[slice], None], threads: int) -> None:
        is_large = self.X.size >= SHARED_FROM and self.shape[1] >= WIDE
        threads = threads if is_large else 1
        in_parts(work, self.shape[1], threads, threads)

    @cached_property
    def single(self) -> NDArray[np.float32]:
        """A dense X in single precision, by columns."""
        return self.X.astype(np.float32, order="F", copy=False)

    @cached_property
    def by_rows(self) -> Any:
        """Sparse X in the order in which products with its columns want it."""
        return self.X.tocsr()

    def sparse_products(self, S: NDArray[np.intp], T: Any, weight: Vector) -> NDArray[np.float64]:
        """X_Sᵀ diag(weight) X_T for a sparse X; T is features or slice(None), all of them."""
        part = self.X[:, S].astype(np.float64)
        part.data *= weight[part.indices]
        return (part.T @ (self.by_rows if isinstance(T, slice) else self.X[:, T])).toarray()

    def means_and_norms(
        self, weight: Vector, centre: bool, threads: int = 1
    ) -> tuple[Vector, Vector]:
        """The means of the columns (zero unless `centre`) and Σ_k weight_k (X_kj − mean_j)².

        Threads can share the columns of a large dense X.
        """
        total, n = weight.sum(), self.shape[1]
        if self.is_sparse:
            mean = self.X.T @ weight / total if centre else np.zeros(n)
            return mean, self._sparse_norms(weight, mean)
        sums, squares = np.zeros(n), np.zeros(n)

        def add(columns: slice) -> None:
            for part, block in self.row_blocks(fewest=8, columns=columns):
                if centre:
                    sums[columns] += weight[part] @ block
                with np.errstate(over="ignore"):  # it shows in what comes out
                    squares[columns] += weight[part] @ np.square(block)

        self._in_parts(add, threads)
        mean = sums / total
        norms = squares - total * mean**2
        if (squares > TOLERATED_LOSS * norms).any():
            norms[:] = 0.0
            for part, block in self.row_blocks(fewest=8):
                norms += weight[part] @ (block - mean) ** 2
        return mean, norms

    def _sparse_norms(self, weight: Vector, mean: Vector) -> Vector:
        total, norms = weight.sum(), np.empty(self.shape[1])
        for part, begins, entries, rows in self._entries():
            w, offset = weight[rows], total * mean[part] ** 2
            squares = column_sums(w * entries.astype(np.float64) ** 2, begins)
            norms[part] = squares - offset
            if (squares > TOLERATED_LOSS * norms[part]).any():
                about = np.repeat(mean[part], np.diff(begins))
                elsewhere = np.maximum(total - column_sums(w, begins), 0.0)
                elsewhere[np.diff(begins) == self.shape[0]] = 0.0  # or rounding is taken for rows
                norms[part] = column_sums(w * (entries - about) ** 2, begins)
                norms[part] += elsewhere * mean[part] ** 2
        return norms

    def sums_of_agreeing(self, V: Vector, products: Vector, values: Vector) -> Vector:
        """Of a sparse X, for every column the sum of `values` over the rows whose part of XᵀV has
        the sign of the whole, which is given."""
        sums = np.empty(self.shape[1])
        for part, begins, entries, rows in self._entries():
            agree = entries * V[rows] * np.repeat(products[part], np.diff(begins)) > 0
            sums[part] = column_sums(values[rows] * agree, begins)
        return sums

    def _entries(self) -> Iterator[tuple[slice, Support, NDArray[Any], Support]]:
        """Of a sparse X, some columns at a time: where the entries of each begin (and the last
        end), the entries, and their rows."""
        X, n, begin = self.X, self.shape[1], 0
        while begin < n:
            first = X.indptr[begin]
            end = max(int(np.searchsorted(X.indptr, first + ENTRIES, "right")) - 1, begin + 1)
            some = slice(first, X.indptr[end])
            yield (
                slice(begin, end),
                X.indptr[begin : end + 1] - first,
                X.data[some],
                X.indices[some],
            )
            begin = end


def column_sums(values: Vector, begins: Support, add: np.ufunc = np.add) -> Vector:
    """Of the values of each column, which begin there, the sum; zero where there are none."""
    sums, filled = np.zeros(len(begins) - 1), np.diff(begins) > 0
    sums[filled] = add.reduceat(values, begins[:-1][filled])
    return sums


class Standardised(NamedTuple):
    """Columns with entries in [−1, 1], and the means and scales that were taken out of them."""

    design: Design
    mean: Vector
    scale: Vector


def divided_columns(X: Any, scale: Vector) -> Any:
    """A sparse X with its columns divided, which shares with X where its entries are."""
    X = X.tocsc()
    data = np.repeat(scale, np.diff(X.indptr))
    np.divide(X.data, data, out=data)
    return sparse.csc_matrix((data, X.indices, X.indptr), X.shape)


def dense(A: Any) -> NDArray[Any]:
    return A.toarray() if sparse.issparse(A) else A


def _canonical(X: Any) -> Any:
    """Entries that are given twice are summed, in a copy."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def as_array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: cannot be made into an array ({error}).") from None


def _as_table(X: Any) -> NDArray[Any]:
    """A data frame may have columns of several kinds of numbers."""
    table = as_array(X, "X")
    if table.dtype != object or not hasattr(X, "dtypes") or not hasattr(X, "items"):
        return table
    for name, column in X.items():
        if column.dtype.kind not in "fiub":
            raise TypeError(
                f"X: expected numbers, got dtype {column.dtype} in column {name!r}; encode text "
                "and categories first."
            )
    columns = [column.to_numpy(np.float64, na_value=np.nan) for _, column in X.items()]
    return np.column_stack(columns)


def _column_names(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame, if they are all text."""
    names = list(getattr(X, "columns", ()))
    return tuple(names) if names and all(isinstance(name, str) for name in names) else None


def check_target(y: Any, m: int, name: str = "y") -> NDArray[np.float64]:
    y = as_array(y, name)
    if y.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected numbers, got dtype {y.dtype}.")
    if y.shape != (m,):
        raise ValueError(f"{name}: expected one value per row of X, shape ({m},); got {y.shape}.")
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError(f"{name}: NaN or infinite in row {np.flatnonzero(~np.isfinite(y))[0]}.")
    return y


def check_weight(sample_weight: Any, m: int, *, some: bool = True) -> NDArray[np.float64] | None:
    """Weights as float64; `some` of them must be positive."""
    if sample_weight is None:
        return None
    w = as_array(sample_weight, "sample_weight")
    if w.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight: expected numbers, got dtype {w.dtype}.")
    w = w.astype(np.float64)
    if w.shape != (m,):
        raise ValueError(
            f"sample_weight: expected one weight per row, shape ({m},); got {w.shape}."
        )
    if not np.isfinite(w).all():
        raise ValueError("sample_weight: contains NaN or infinite values.")
    if (w < 0).any():
        raise ValueError(f"sample_weight: negative in row {np.flatnonzero(w < 0)[0]}.")
    if some and not w.any():
        raise ValueError("sample_weight: all weights are zero.")
    return w
