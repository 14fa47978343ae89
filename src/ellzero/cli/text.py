"""Text files: unpacked, in UTF-8, with the names of columns in the first line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ellzero.cli.columns import NUMBERS, as_meant, check_names, not_numbers
from ellzero.cli.console import note, shown
from ellzero.datasets.formats import pandas, unpacked
from ellzero.datasets.progress import progress
from ellzero.silence import warning_filter

OTHER_SEPARATORS = ";\t|,"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")

MISSING_WORDS = ("?",)
"""Besides those that pandas knows: nothing, NA, N/A, NaN, null, None and their like."""


def text_frame(path: Path, separator: str, decimal: str, words: Collection[str]) -> Any:
    """The table in a text file with a header; `words` are columns that are not read as numbers."""
    names = _header(path, separator)
    with (
        opened(path) as stream,
        warning_filter("error", pandas().errors.ParserWarning, r"ellzero\.cli\.text$"),
    ):
        # rows longer than the header only warn
        try:
            frame = pandas().read_csv(
                stream,
                sep=separator,
                decimal=decimal,
                header=0,
                names=names,
                index_col=False,
                dtype={name: str for name in names if name in words},
                na_values=list(MISSING_WORDS),
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
            )
        except pandas().errors.ParserWarning:
            raise ValueError("its rows have more entries than its first line has names") from None
    return as_meant(frame, NUMBERS | {"string"}, words)


def _header(path: Path, separator: str) -> list[str]:
    with opened(path, told=False) as stream:
        try:
            first = pandas().read_csv(
                stream,
                sep=separator,
                header=None,
                nrows=1,
                dtype=str,
                keep_default_na=False,
                skipinitialspace=True,
                encoding="utf-8-sig",
            )
        except pandas().errors.EmptyDataError:
            raise ValueError("it is empty") from None
    names = [str(name).strip() for name in first.iloc[0]]
    if any("\0" in name for name in names):
        raise UnicodeError("it holds zeros")
    check_names(names)
    others = [c for c in OTHER_SEPARATORS if c != separator and c in names[0]]
    if len(names) == 1 and others:
        raise ValueError(
            f"its first line is one name, '{shown(names[0])}'; say --separator "
            + ("tab" if others[0] == "\t" else f"'{others[0]}'")
        )
    if not len(not_numbers(first.iloc[0])):
        note(f"the first line of {path} is taken for names, and all of them are numbers", "warning")
    return names


def about_encoding(path: Path) -> str:
    """How to make UTF-8 of it, by a guess of what it is."""
    with opened(path, told=False) as stream:
        start = stream.read(100)
    is_wide = start.startswith(WIDE_MARKS) or 3 * start.count(0) >= len(start)
    if 0 in start and not is_wide:
        return f"{path}: is not text; say what it is by the ending of its name, or with --format."
    return (
        f"{path}: is not UTF-8 text; convert it, perhaps by `iconv -f "
        f"{'UTF-16' if is_wide else 'LATIN1'} -t UTF-8`, and read the new file."
    )


@contextmanager
def opened(path: Path, told: bool = True) -> Iterator[IO[bytes]]:
    """The unpacked content; a bar shows how far it is read, if somebody is looking."""
    with path.open("rb") as file:
        if not told or sys.stderr is None or not sys.stderr.isatty():
            yield from _content(file, path)
            return
        with progress(f"reading {path.name!a}", path.stat().st_size) as advance:
            yield from _content(io.BufferedReader(_Told(file, advance)), path)


def _content(file: Any, path: Path) -> Iterator[IO[bytes]]:
    inside = unpacked(file, path.name.lower())
    first = next(inside, None)
    if first is None:
        raise ValueError("it is empty")
    yield first[1]
    for name, _ in inside:
        raise ValueError(f"there is more than one file in it, such as {name!a}")


class _Told(io.RawIOBase):
    """A file that tells how many bytes were read."""

    def __init__(self, file: IO[bytes], advance: Callable[[int], None]):
        self._file, self._advance = file, advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._advance(n)
        return n
