"""The formats of data files, and how a file of each becomes a table."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from ellzero.data.io import parquet
from ellzero.data.io.columns import pandas
from ellzero.data.io.libsvm import libsvm_matrix
from ellzero.data.io.npz import npz_matrix
from ellzero.data.io.packed import OPENERS, content_errors, opened
from ellzero.data.io.table import Table
from ellzero.data.io.text import MISSING_WORDS, column_names, text_frames


@dataclass(frozen=True)
class Options:
    """What the name of a file does not say of its content.

    separator : of the columns of a text file; None means that of the format
    decimal : of the numbers of a text file; None means a point
    words : columns of a text file whose entries are words, also if they look like numbers
    features : the most features that a sparse file may have; None means the usual limit
    """

    separator: str | None = None
    decimal: str | None = None
    words: Collection[str] = ()
    features: int | None = None


@dataclass(frozen=True)
class Format:
    """A format of data files."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, Options], Table]
    is_sparse: bool = False
    separator: str | None = None  # of the columns, if it is text
    target: str | None = None  # the column that is the target by the rules of the format


def format_of(path: Path) -> str | None:
    """Return the format that the ending of a name stands for; `.csv.gz` is a CSV file.

    >>> format_of(Path("a.csv.gz")), format_of(Path("a.txt"))
    ('csv', None)
    """
    name = path.name.lower()
    for packing in (*OPENERS, "zip"):
        name = name.removesuffix(f".{packing}")
    return next((kind for kind, form in FORMATS.items() if name.endswith(form.suffixes)), None)


def read_table(path: Path, kind: str, options: Options) -> Table:
    """Return the table in a file of a format; errors name the file."""
    pandas()
    path.stat()  # names a file that is not there
    if path.is_dir() and kind != "parquet":
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{path}: is a pipe or a device; write what it gives to a file first.")
    with content_errors(lambda reason: f"{path}: cannot be read as {kind}: {reason}"):
        table = FORMATS[kind].read(path, options)
        if not table.n_rows:
            raise ValueError("it has no rows")
    return table


def arff_frame(stream: IO[bytes]) -> Any:
    """Return the table of an ARFF file; words stay words."""
    from scipy.io import arff

    try:
        data, _ = arff.loadarff(io.StringIO(stream.read().decode("utf-8")))
    except StopIteration:
        raise ValueError("it ends before its @data") from None
    columns = {name: data[name] for name in data.dtype.names}
    for name, column in columns.items():
        if column.dtype.kind == "S":
            columns[name] = np.char.decode(column, "utf-8")
    return pandas().DataFrame(columns)


def _text(separator: str) -> Callable[[Path, Options], Table]:
    def read(path: Path, options: Options) -> Table:
        between = options.separator or separator
        [frame] = text_frames(
            path,
            column_names(path, between),
            between,
            decimal=options.decimal or ".",
            words=options.words,
            show_progress=True,
        )
        return Table(frame)

    return read


def _parquet(path: Path, options: Options) -> Table:
    return Table(parquet.whole_frame(path))


def _arff(path: Path, options: Options) -> Table:
    with opened(path, show_progress=True) as stream:
        frame = arff_frame(stream)
    text = frame.select_dtypes(exclude="number").columns
    frame[text] = frame[text].mask(frame[text].isin(MISSING_WORDS))
    return Table(frame)


def _libsvm(path: Path, options: Options) -> Table:
    """Feature j of the file is called fj, whether the file counts from 0 or from 1."""
    X, y = libsvm_matrix(path, options.features, show_progress=True)
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    names = tuple(f"f{j}" for j in range(first, X.shape[1]))
    frame = pandas().DataFrame({FORMATS["libsvm"].target: y})
    return Table(frame, X[:, first:], names, more_zeros=True)


def _npz(path: Path, options: Options) -> Table:
    X, names, columns = npz_matrix(path, options.features)
    beside = pandas().DataFrame(columns, index=range(X.shape[0]))
    if sparse.issparse(X):
        return Table(beside, X, tuple(names))
    return Table(pandas().concat([beside, pandas().DataFrame(X, columns=names)], axis=1))


FORMATS = {
    "csv": Format((".csv",), _text(","), separator=","),
    "tsv": Format((".tsv", ".tab"), _text("\t"), separator="\t"),
    "parquet": Format((".parquet", ".pq"), _parquet),
    "libsvm": Format((".libsvm", ".svmlight", ".svm"), _libsvm, is_sparse=True, target="target"),
    "npz": Format((".npz",), _npz, is_sparse=True, target="y"),
    "arff": Format((".arff",), _arff),
}
