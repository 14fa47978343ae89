"""Parquet and CSV files as pieces of a table, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from ellzero.objectives.tables import Columns, Piece, rows_at_once

BUFFER_BYTES = 1 << 18
"""Of a column of a Parquet file so much is read at a time, however large its row groups are."""

TEXT_BYTES = 1 << 22
"""Of text so much is parsed at a time; pyarrow reads a few such blocks ahead."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def parquet_pieces(path: Path, columns: Columns) -> Iterator[Piece]:
    """A scan of a whole row group, or one that reads ahead many batches, is not bounded memory."""
    _pyarrow()
    from pyarrow import parquet

    for file, keys in _files(path, columns):
        with (
            _about(file),
            parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES) as opened,
        ):
            stored = opened.schema_arrow.names
            features, wanted = _chosen(file, columns, stored, keys)
            groups = opened.metadata
            ends = np.cumsum([groups.row_group(g).num_rows for g in range(groups.num_row_groups)])
            batches = opened.iter_batches(rows_at_once(len(wanted)), columns=wanted)
            yield from _pieces(file, batches, keys, features, ends)


def csv_pieces(path: Path, columns: Columns, delimiter: str | None) -> Iterator[Piece]:
    pa = _pyarrow()
    from pyarrow import csv

    for file, keys in _files(path, columns):
        tab = ".tsv" in file.suffixes or ".tab" in file.suffixes
        parse = csv.ParseOptions(delimiter=delimiter or ("\t" if tab else ","))
        with _about(file):
            with csv.open_csv(str(file), parse_options=parse) as header:
                stored = header.schema.names
            features, wanted = _chosen(file, columns, stored, keys)
            types = {
                name: pa.string() if name in columns.levels else pa.float64() for name in wanted
            }
            with csv.open_csv(
                str(file),
                read_options=csv.ReadOptions(block_size=TEXT_BYTES),
                parse_options=parse,
                convert_options=csv.ConvertOptions(
                    column_types=types, include_columns=wanted, strings_can_be_null=True
                ),
            ) as batches:
                yield from _pieces(file, batches, keys, features)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("reading tables needs pyarrow: pip install 'ellzero[data]'") from error
    return pyarrow


def _files(path: Path, columns: Columns) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The files of a folder in the order of their names, and what the folders in between say."""
    if not path.is_dir():
        yield path, {}
        return
    found = False
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if file.is_file() and not any(part.startswith((".", "_")) for part in parts):
            found = True
            named = (part.partition("=") for part in parts[:-1] if "=" in part)
            yield file, {key: _said(text, key in columns.levels) for key, _, text in named}
    if not found:
        raise ValueError(f"{path}: there is no file in this folder.")


def _said(text: str, as_level: bool) -> Any:
    """The value in the name of a folder: a number where it is one and no level is wanted."""
    if text == NO_VALUE:
        return None
    try:
        return unquote(text) if as_level else float(text)
    except ValueError:
        return unquote(text)


@contextmanager
def _about(file: Path) -> Iterator[None]:
    """Errors of reading, told with the name of the file."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: is not UTF-8 ({error}); convert it first.") from error
    except pa.ArrowException as error:
        text = "; name text in categorical=, or leave it out of columns=" * (
            "conversion" in str(error)
        )
        raise ValueError(f"{file}: {error}{text}") from error


def _chosen(
    file: Path, columns: Columns, stored: Sequence[str], keys: dict[str, Any]
) -> tuple[tuple[str, ...], list[str]]:
    """The features, and which columns of the file are to be read."""
    features = columns.within(file, [*stored, *(key for key in keys if key not in stored)])
    needed = {*features, columns.target, columns.weight}
    return features, [name for name in stored if name in needed]


def _pieces(
    file: Path, batches: Any, keys: dict[str, Any], features: tuple[str, ...], ends: Any = None
) -> Iterator[Piece]:
    import pyarrow as pa

    begin = 0
    for batch in batches:
        extra = {key: keys[key] for key in features if key not in batch.schema.names}
        columns = [pa.array([value] * batch.num_rows) for value in extra.values()]
        table = pa.RecordBatch.from_arrays(
            [*batch.columns, *columns], names=[*batch.schema.names, *extra]
        )
        yield Piece(file, begin, table, features, ends)
        begin += batch.num_rows
