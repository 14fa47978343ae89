"""Reading a file of any of the formats, packed or not, into one frame, and checking it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from ellzero.datasets.registry import Entry, Part

UNREADABLE = (ValueError, OverflowError, EOFError, OSError, KeyError, IndexError, TypeError,
              NotImplementedError, csv.Error, zlib.error, lzma.LZMAError, tarfile.TarError,
              zipfile.BadZipFile)  # fmt: skip


def pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'ellzero[data]'") from error
    return pd


def read(path: Path, part: Part, entry: Entry, called: str = "") -> Any:
    """The checked frame of a part: the features in the entry's order, then `target`.

    `called` is the name of the file, which says how it is packed, where `path` has another.
    """
    pandas()
    try:
        with path.open("rb") as file:
            # to the end, for the checksums of packed files come last
            frames = [
                PARSERS[part.format](stream, part)
                for name, stream in unpacked(file, called or path.name)
                if name == part.name
            ]
        if not frames:
            raise ValueError(f"there is no {part.name} in it")
        return checked(frames[0], part, entry)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.filename is not None:  # not about the content
            raise
        advice = "" if called else " Delete it to have it downloaded again."
        reason = str(error).rstrip(".") or type(error).__name__
        raise ValueError(
            f"{called or path} is not a whole {part.name}: {reason}.{advice}"
        ) from error


# unpacking


def unpacked(stream: IO[bytes], name: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The files in a file, however deep archives lie in archives; itself if it is not packed."""
    if name.endswith((".tgz", ".tbz2")):
        name = name.replace(".tgz", ".tar.gz").replace(".tbz2", ".tar.bz2")
    stem, _, suffix = name.rpartition(".")
    if suffix in OPENERS and stem:
        with OPENERS[suffix](stream) as inner:
            yield from unpacked(inner, stem)
            while inner.read(1 << 20):
                pass
    elif suffix == "tar":
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is not None:
                    yield from unpacked(content, PurePosixPath(member.name).name)
    elif suffix == "zip":
        seekable = stream if stream.seekable() else io.BytesIO(stream.read())
        with zipfile.ZipFile(seekable) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as content:
                        yield from unpacked(content, PurePosixPath(info.filename).name)
    else:
        yield name, stream


OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    "gz": lambda stream: gzip.GzipFile(fileobj=stream),
    "bz2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}


# parsing


def _parquet(stream: IO[bytes], part: Part) -> Any:
    return pandas().read_parquet(stream)


def _text(stream: IO[bytes], part: Part) -> Any:
    """Words stay words, NA and ? included: which of them mean nothing is the caller's to say."""
    return pandas().read_csv(
        stream,
        sep=part.separator,
        header=0 if part.header else None,
        skipinitialspace=True,
        keep_default_na=False,
        low_memory=False,
    )


def _arff(stream: IO[bytes], part: Part) -> Any:
    return arff_frame(stream)


def arff_frame(stream: IO[bytes]) -> Any:
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


def _libsvm(stream: IO[bytes], part: Part) -> Any:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(stream, n_features=len(part.columns), zero_based=False)
    frame = pandas().DataFrame(X.toarray(), columns=list(part.columns))
    return frame.assign(target=y)


PARSERS: dict[str, Callable[[IO[bytes], Part], Any]] = {
    "parquet": _parquet,
    "csv": _text,
    "text": _text,
    "arff": _arff,
    "libsvm": _libsvm,
}


# checking


def checked(frame: Any, part: Part, entry: Entry) -> Any:
    """The frame as every format gives it: floats and categories; or an error if it is not it."""
    if part.columns and part.format != "libsvm":
        if len(frame.columns) != len(part.columns):
            raise ValueError(f"{len(frame.columns)} columns, not {len(part.columns)}")
        frame.columns = list(part.columns)
    missing = [name for name in (*entry.features, "target") if name not in frame.columns]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r}")
    if len(frame) != part.rows:
        raise ValueError(f"{len(frame)} rows, not {part.rows}")
    frame = _typed(frame, part, entry)
    if part.log_mean is not None:
        numbers = frame.select_dtypes("number").to_numpy()
        found = float(np.mean(np.log1p(np.abs(numbers))))
        if not abs(found - part.log_mean) <= 1e-7 * part.log_mean:
            raise ValueError(f"the numbers are others: {found:.10g}, not {part.log_mean:.10g}")
    return frame


def _typed(frame: Any, part: Part, entry: Entry) -> Any:
    columns = {
        name: (_words if name in entry.categorical else _numbers)(frame[name])
        for name in entry.features
    }
    target = frame["target"]
    if part.labels:
        words = _words(target)
        unknown = set(words.cat.categories) - set(part.labels)
        if unknown:
            raise ValueError(f"{unknown.pop()!r} is no label")
        target = words.map(part.labels)
    columns["target"] = (_words if entry.positives else _numbers)(target)
    for name, column in columns.items():
        if name not in entry.categorical and column.isna().any():
            raise ValueError(f"an entry of {name!r} is missing")
    return pandas().DataFrame(columns)


def _words(column: Any) -> Any:
    """Categories without blanks around them, sorted, whatever the type of the column."""
    pd = pandas()
    given = column.astype("category").cat
    words = np.array([*(str(word).strip() for word in given.categories), None], dtype=object)
    return pd.Series(pd.Categorical(words[given.codes]), index=column.index)  # -1: missing


def _numbers(column: Any) -> Any:
    try:
        return pandas().to_numeric(column).astype(np.float64)
    except ValueError as error:
        raise ValueError(f"column {column.name!r} is not all numbers: {error}") from error
