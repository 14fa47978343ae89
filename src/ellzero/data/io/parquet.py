"""Parquet files: read whole, or in batches of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from ellzero.data.io.columns import STORED_NUMBERS, check_names, pandas, with_numbers

BUFFER_BYTES = 1 << 18
"""Bytes of a column that are read at a time; without it, pyarrow reads whole row groups."""


def pyarrow() -> Any:
    """Import pyarrow, or say how to install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("reading tables needs pyarrow: pip install 'ellzero[data]'") from error
    return pyarrow


def whole_frame(path: Path) -> Any:
    """Return the table in a Parquet file, or in a folder of them."""
    frame = pandas().read_parquet(path).reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    check_names(list(frame.columns))
    return with_numbers(frame, STORED_NUMBERS)


def layout(path: Path) -> tuple[list[str], list[int]]:
    """Return the names of the columns of a Parquet file, and how many rows its row groups have."""
    pyarrow()
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        groups = range(file.metadata.num_row_groups)
        return file.schema_arrow.names, [file.metadata.row_group(g).num_rows for g in groups]


def batch_frames(
    path: Path, names: list[str], words: Collection[str], n_rows: int
) -> Iterator[Any]:
    """Yield some columns of a Parquet file as frames of at most `n_rows` rows.

    words : columns that become categories
    """
    pa = pyarrow()
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        for batch in file.iter_batches(n_rows, columns=names):
            columns = [
                column.dictionary_encode()
                if name in words and not pa.types.is_dictionary(column.type)
                else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            table = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
            yield with_numbers(table.to_pandas(split_blocks=True), STORED_NUMBERS)
