"""Tables in files or folders, read in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ellzero.data.io import parquet
from ellzero.data.io.columns import as_numbers, is_number, not_numbers, pandas
from ellzero.data.io.packed import content_errors
from ellzero.data.io.text import column_names, text_frames
from ellzero.wording import shown

PIECE_BYTES = 1 << 25
"""Bytes of numbers in a piece of a table; the next piece is read while one is worked on."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What stands for a missing value in the name of a folder."""


class Piece(NamedTuple):
    """Some rows of a file, and where they are in it."""

    file: Path
    first_row: int
    frame: Any
    columns: tuple[str, ...]  # of the whole file and of the folders around it
    group_ends: Sequence[int] = ()  # the rows at which the row groups of the file end

    def rows(self, begin: int, n_rows: int) -> Piece:
        part = self.frame.iloc[begin : begin + n_rows]
        return self._replace(first_row=self.first_row + begin, frame=part)

    def place(self, row: int) -> str:
        """Say where a row of this piece is in the file."""
        row += self.first_row
        if not len(self.group_ends):
            return f"row {row}"
        return f"row {row} (row group {np.searchsorted(self.group_ends, row, side='right')})"

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where there is no value."""
        column = self.frame[name]
        if is_number(column):
            values = as_numbers(column)
        elif column.isna().all():
            values = np.full(len(column), np.nan)
        else:
            texts = column[column.notna()].astype(str)
            odd = not_numbers(texts)
            odd = odd if len(odd) else texts
            where = self.place(column.index.get_loc(odd.index[0]))
            raise ValueError(
                f"{self.file}: column {name!r} holds '{shown(odd.iloc[0])}' in {where}, not a "
                "number; name it in categorical=, or leave it out of columns=."
            )
        if not np.isfinite(values).all():
            infinite = np.flatnonzero(np.isinf(values))
            if len(infinite):
                where = self.place(int(infinite[0]))
                raise ValueError(f"{self.file}: column {name!r} in {where} is infinite.")
        return values


Chooser = Callable[[tuple[str, ...]], Collection[str]]
"""Say which of the columns of a file to read."""


def rows_in_piece(n_columns: int) -> int:
    return max(PIECE_BYTES // (8 * max(n_columns, 1)), 1)


def parquet_pieces(path: Path, choose: Chooser, words: Collection[str]) -> Iterator[Piece]:
    """Yield the rows of a Parquet file, or of a folder of them.

    words : columns that become categories
    """
    for file, keys in _files(path, words):
        with _errors_in(file):
            stored, sizes = parquet.layout(file)
            columns = (*stored, *(key for key in keys if key not in stored))
            chosen = choose(columns)
            wanted = [name for name in stored if name in chosen]
            frames = parquet.batch_frames(file, wanted, words, rows_in_piece(len(wanted)))
            yield from _pieces(file, columns, keys, frames, np.cumsum(sizes).tolist())


def text_pieces(
    path: Path, choose: Chooser, words: Collection[str], separator: str | None
) -> Iterator[Piece]:
    """Yield the rows of a text file with a header, or of a folder of them.

    separator : of the columns; None takes a tab for names such as data.tsv.gz, else a comma
    """
    for file, keys in _files(path, words):
        tab = ".tsv" in file.suffixes or ".tab" in file.suffixes
        between = separator or ("\t" if tab else ",")
        with _errors_in(file):
            stored = column_names(file, between, "delimiter")
            columns = (*stored, *(key for key in keys if key not in stored))
            choose(columns)  # but all are read: else pandas overlooks rows that are too long
            n_rows = rows_in_piece(len(stored))
            frames = text_frames(file, stored, between, words=words, n_rows=n_rows)
            yield from _pieces(file, columns, keys, frames)


def _errors_in(file: Path) -> AbstractContextManager[None]:
    return content_errors(lambda reason: f"{file}: {reason}.")


def _pieces(
    file: Path,
    columns: tuple[str, ...],
    keys: dict[str, Any],
    frames: Iterator[Any],
    group_ends: Sequence[int] = (),
) -> Iterator[Piece]:
    """Give the frames of a file their places, and the columns that its folders stand for."""
    row = 0
    for frame in frames:
        new = {key: value for key, value in keys.items() if key not in frame}
        yield Piece(file, row, frame.assign(**new) if new else frame, columns, group_ends)
        row += len(frame)


def _files(path: Path, words: Collection[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the files of a folder in the order of their names, with what their folders say."""
    pandas()
    path.stat()  # names a file that is not there
    if not path.is_dir():
        yield path, {}
        return
    found = False
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if file.is_file() and not any(part.startswith((".", "_")) for part in parts):
            found = True
            named = (part.partition("=") for part in parts[:-1] if "=" in part)
            yield file, {key: _folder_value(text, key in words) for key, _, text in named}
    if not found:
        raise ValueError(f"{path}: there is no file in this folder.")


def _folder_value(text: str, is_word: bool) -> Any:
    """Return the value in the name of a folder: a number where it parses as one."""
    if text == NO_VALUE:
        return None
    try:
        return unquote(text) if is_word else float(text)
    except ValueError:
        return unquote(text)
