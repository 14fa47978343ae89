"""The files of data sets as checked frames: floats and categories, with a `target`."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np

from ellzero.data.io.columns import as_categories, as_words, pandas
from ellzero.data.io.formats import arff_frame
from ellzero.data.io.libsvm import libsvm_frame
from ellzero.data.io.packed import content_errors, opened
from ellzero.data.io.text import plain_frame
from ellzero.datasets.registry import Entry, Part


def read(path: Path, part: Part, entry: Entry, called: str = "") -> Any:
    """Return the frame of a part: the features in the entry's order, then `target`.

    called : the name of the file, which says how it is packed, if `path` has another
    """
    pandas()
    advice = "" if called else " Delete it to have it downloaded again."
    not_whole = f"{called or path} is not a whole {part.name}"
    with content_errors(lambda reason: f"{not_whole}: {reason}.{advice}"):
        with opened(path, called=called, member=part.name) as stream:
            frame = _parsed(stream, part)
        return checked(frame, part, entry)


def _parsed(stream: IO[bytes], part: Part) -> Any:
    if part.format == "parquet":
        return pandas().read_parquet(stream)
    if part.format == "arff":
        return arff_frame(stream)
    if part.format == "libsvm":
        return libsvm_frame(stream, part.columns)
    return plain_frame(stream, part.separator, part.header)


def checked(frame: Any, part: Part, entry: Entry) -> Any:
    """Return a frame as every format gives it, or say why it is not the part."""
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
    """Return the features and the target as float64 or as sorted categories."""
    columns = {
        name: (as_categories if name in entry.categorical else _numbers)(frame[name])
        for name in entry.features
    }
    target = frame["target"]
    if part.labels:
        target = as_words(target)
        unknown = set(target) - set(part.labels)
        if unknown:
            raise ValueError(f"{unknown.pop()!r} is no label")
        target = target.map(part.labels)
    columns["target"] = (as_categories if entry.positives else _numbers)(target)
    for name, column in columns.items():
        if name not in entry.categorical and column.isna().any():
            raise ValueError(f"an entry of {name!r} is missing")
    return pandas().DataFrame(columns)


def _numbers(column: Any) -> Any:
    try:
        return pandas().to_numeric(column).astype(np.float64)
    except ValueError as error:
        raise ValueError(f"column {column.name!r} is not all numbers: {error}") from error
