"""Reading a file of any format into named columns."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.cli.columns import NUMBERS, as_meant, check_names
from ellzero.cli.console import UsageError, counted, grouped
from ellzero.cli.sparse_limits import (
    LARGEST_INDEX,
    MAX_FEATURES,
    RAISE_LIMIT,
    libsvm_fault,
    most_features,
)
from ellzero.cli.text import MISSING_WORDS, about_encoding, opened, text_frame
from ellzero.datasets.formats import OPENERS, UNREADABLE, arff_frame, pandas

SUFFIXES = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "libsvm": (".libsvm", ".svmlight", ".svm"),
    "npz": (".npz",),
    "arff": (".arff",),
}
SEPARATORS = {"csv": ",", "tsv": "\t"}
MATRIX_TARGETS = {"libsvm": "target", "npz": "y"}
"""The target of formats that have one of their own."""

FOLDER = "{} is a folder; name a file in it."

SAVED_BY_SCIPY = ("data", "indices", "indptr", "shape", "format", "_is_array")


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: those of a frame, then those of a sparse matrix."""

    frame: Any
    matrix: Any = None
    matrix_names: tuple[str, ...] = ()
    more_zeros: bool = False
    """Whether columns beyond those named are there and zero, as in LIBSVM's format."""

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        return [*self.frame.columns, *self.matrix_names]

    @cached_property
    def _places(self) -> dict[str, int]:
        """The columns of the matrix by name."""
        return {name: j for j, name in enumerate(self.matrix_names)}

    def column(self, name: str) -> Any:
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
        if name in self.frame.columns or name in self._places:
            return True
        return self.more_zeros and name.startswith("f") and name[1:].isdecimal()

    def where(self, test: Callable[[Any], Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows and columns of the entries that the matrix stores and that pass a test, in order."""
        if self.matrix is None:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        places = np.flatnonzero(test(self.matrix.data))
        columns = np.searchsorted(self.matrix.indptr, places, side="right") - 1
        return self.matrix.indices[places], columns

    def without(self, names: Collection[str]) -> Table:
        kept = [j for j, name in enumerate(self.matrix_names) if name not in names]
        return Table(
            self.frame[[name for name in self.frame.columns if name not in names]],
            self.matrix if len(kept) == len(self.matrix_names) else self.matrix[:, kept],
            tuple(self.matrix_names[j] for j in kept),
            self.more_zeros,
        )

    def rows(self, keep: Any) -> Table:
        if keep.all():
            return self
        matrix = None if self.matrix is None else self.matrix.tocsr()[keep].tocsc()
        frame = self.frame[keep].reset_index(drop=True)
        return Table(frame, matrix, self.matrix_names, self.more_zeros)


def format_of(path: Path) -> str:
    """By the ending of the name; `.csv.gz` is a CSV file."""
    name = path.name.lower()
    for packing in (*OPENERS, "zip"):
        name = name.removesuffix(f".{packing}")
    for kind, suffixes in SUFFIXES.items():
        if name.endswith(suffixes):
            return kind
    if path.is_dir():
        raise IsADirectoryError(FOLDER.format(path))
    raise UsageError(
        f"{path}: the ending of the name does not say what it is; name one with --format: "
        f"{', '.join(SUFFIXES)}."
    )


def read(
    path: Path,
    kind: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    words: Collection[str] = (),
    features: int | None = None,
) -> Table:
    """The table in a file.

    kind : the format, if the name of the file does not say it
    separator : of the columns of a text file; a comma for CSV
    decimal : of the numbers of a text file; a point if not given
    words : columns of a text file whose entries are words, also if they look like numbers
    features : the most features that a sparse file may have; None means the usual limit
    """
    pandas()
    kind = kind or format_of(path)
    for option, value in (("--separator", separator), ("--decimal", decimal)):
        if value is not None and kind not in SEPARATORS:
            raise UsageError(f"{option}: is for text; a {kind} file has none.")
    if features is not None and kind not in SPARSE_READERS:
        raise UsageError(
            f"--features: is for {' and '.join(SPARSE_READERS)} files, not for {kind}."
        )
    if path.is_dir() and kind != "parquet":
        raise IsADirectoryError(FOLDER.format(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path}: is a pipe or a device; write what it gives to a file first.")
    try:
        if kind in SEPARATORS:
            frame = text_frame(path, separator or SEPARATORS[kind], decimal or ".", words)
            table = Table(frame)
        elif kind in SPARSE_READERS:
            table = SPARSE_READERS[kind](path, features)
        else:
            table = READERS[kind](path)
        if not table.n_rows:
            raise ValueError("it has no rows")
        return table
    except UnicodeError as error:
        raise ValueError(about_encoding(path)) from error
    except MemoryError as error:
        raise ValueError(f"{path}: there is not enough memory to read it.") from error
    except (*UNREADABLE, Warning) as error:
        if isinstance(error, OSError) and error.filename is not None:  # not about the content
            raise
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: cannot be read as {kind}: {reason}") from error


# formats


def _parquet(path: Path) -> Table:
    frame = pandas().read_parquet(path).reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    check_names(list(frame.columns))
    return Table(as_meant(frame, NUMBERS))


def _arff(path: Path) -> Table:
    with opened(path) as stream:
        frame = arff_frame(stream)
    text = frame.select_dtypes(exclude="number").columns
    missing = frame[text].isin(MISSING_WORDS)
    frame[text] = frame[text].mask(missing)
    return Table(frame)


def _libsvm(path: Path, features: int | None) -> Table:
    """Feature j of the file is called fj, whether the file counts from 0 or from 1."""
    from sklearn.datasets import load_svmlight_file

    try:
        with opened(path) as stream:
            X, y = load_svmlight_file(stream, zero_based=True)
    except (ValueError, OverflowError) as error:
        with opened(path, told=False) as stream:
            fault = libsvm_fault(stream, LARGEST_INDEX) or str(error)
        raise ValueError(f"{fault}; correct the file") from error
    most = most_features(X.nnz, features)
    if X.shape[1] > most + 1:  # with a feature 0
        with opened(path, told=False) as stream:
            raise ValueError(f"{libsvm_fault(stream, most)}; {RAISE_LIMIT}")
    X = X.tocsc()
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    names = tuple(f"f{j}" for j in range(first, X.shape[1]))
    frame = pandas().DataFrame({MATRIX_TARGETS["libsvm"]: y})
    return Table(frame, X[:, first:], names, more_zeros=True)


def _npz(path: Path, features: int | None) -> Table:
    """`X` (or the arrays of a sparse matrix as SciPy saves it), and columns of their own."""
    with path.open("rb") as stream:
        # NumPy takes what begins otherwise for a pickle
        if stream.read(2) != b"PK" or not zipfile.is_zipfile(stream):
            raise ValueError("it is no archive of arrays as numpy.savez makes them")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as file:
            arrays = {name: _array(file, name) for name in file.files}
    names = arrays.pop("feature_names", None)
    if "indptr" in arrays:
        own = {name: array for name, array in arrays.items() if name not in SAVED_BY_SCIPY}
        if arrays.get("format", np.array(0)).dtype.kind not in "SU":
            raise ValueError("'format' must be text, such as 'csr'")
        _check_shape(arrays.get("shape"), arrays.get("data"), bool(own), features)
        X = sparse.load_npz(path)
        X.check_format(full_check=True)  # an index out of bounds would be followed
        arrays = own
    elif "X" in arrays:
        X = arrays.pop("X")
    else:
        raise ValueError("there is no array 'X' in it")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"'X' must be a matrix of numbers; its shape is {X.shape}, of {X.dtype}")
    for name, array in arrays.items():
        if array.shape != X.shape[:1]:
            raise ValueError(f"{name!a} must have one entry for each of the {X.shape[0]} rows of X")
    names = [f"f{j}" for j in range(X.shape[1])] if names is None else np.ravel(names).tolist()
    if len(names) != X.shape[1]:
        raise ValueError(f"there are {counted(X.shape[1], 'column')} and {len(names)} names")
    names = [str(name) for name in names]
    check_names([*arrays, *names])
    own = pandas().DataFrame(arrays, index=range(X.shape[0]))
    if sparse.issparse(X):
        X = X.tocsc()
        X.sum_duplicates()
        return Table(own, X, tuple(names))
    frame = pandas().DataFrame(X, columns=names)
    return Table(pandas().concat([own, frame], axis=1))


def _check_shape(shape: Any, data: Any, has_columns: bool, features: int | None) -> None:
    """Refuse the shape of a sparse matrix that asks for more than the file holds.

    has_columns : whether other arrays in the file say how many rows there are
    """
    if shape is None or shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise ValueError("'shape' must be two whole numbers: of the rows and the columns")
    if data is None:
        raise ValueError("there is no array 'data' in it")
    n_rows, n_columns = shape.tolist()
    most = most_features(data.size, features)
    if n_columns > most:
        raise ValueError(
            f"its shape has {counted(n_columns, 'feature')}, above the limit of {grouped(most)}; "
            f"{RAISE_LIMIT}"
        )
    if n_rows > max(MAX_FEATURES, data.size) and not has_columns:
        raise ValueError(
            f"its shape has {counted(n_rows, 'row')}, but it stores only "
            f"{counted(data.size, 'number')}"
        )


def _array(file: Any, name: str) -> Any:
    try:
        return file[name]
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError(
            f"{name!a} holds Python objects, which could do harm; save numbers or text"
        ) from None


READERS: dict[str, Callable[[Path], Table]] = {
    "parquet": _parquet,
    "arff": _arff,
}
SPARSE_READERS: dict[str, Callable[[Path, int | None], Table]] = {"libsvm": _libsvm, "npz": _npz}
