"""Text files: packed or not, in UTF-8, usually with the names of the columns in the first line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from ellzero.data.io.columns import STORED_NUMBERS, check_names, pandas, with_numbers
from ellzero.data.io.packed import opened
from ellzero.silence import warning_filter
from ellzero.wording import shown

MISSING_WORDS = ("?",)
"""Stand for a missing entry, besides those that pandas knows: nothing, NA, NaN, null, None ..."""

OTHER_SEPARATORS = ";\t|,"


def column_names(path: Path, separator: str, argument: str = "separator") -> list[str]:
    """Return the names in the first line of a text file, or say what is wrong with them.

    argument : what the user calls the separator
    """
    with opened(path, start_only=True) as stream:
        try:
            first = _csv(stream, separator, header=None, nrows=1, dtype=str, keep_default_na=False)
        except pandas().errors.EmptyDataError:
            raise ValueError("it is empty") from None
        names = [str(name).strip() for name in first.iloc[0]]
        if any("\0" in name for name in names):
            raise UnicodeError("it holds zeros")
    check_names(names)
    others = [c for c in OTHER_SEPARATORS if c != separator and c in names[0]]
    if len(names) == 1 and others:
        found = f"its first line is one name, '{shown(names[0])}'"
        raise ValueError(f"{found}; say {argument}={others[0]!r}")
    return names


def text_frames(
    path: Path,
    names: list[str],
    separator: str,
    *,
    decimal: str = ".",
    words: Collection[str] = (),
    n_rows: int | None = None,
    show_progress: bool = False,
) -> Iterator[Any]:
    """Yield the rows of a text file as frames of at most `n_rows` rows, or as one.

    names : what `column_names` found
    words : columns whose entries are words, also if they look like numbers
    """
    options: dict[str, Any] = {
        "decimal": decimal,
        "header": 0,
        "names": names,
        "index_col": False,
        "dtype": {name: str for name in names if name in words},
        "na_values": list(MISSING_WORDS),
        "iterator": True,
    }
    with (
        opened(path, show_progress=show_progress) as stream,
        _csv(stream, separator, **options, **_exact_numbers()) as parser,
    ):
        while (frame := _next(parser, n_rows)) is not None:
            yield with_numbers(frame, STORED_NUMBERS | {"string"}, words)
            if n_rows is None:
                break


def plain_frame(stream: IO[bytes], separator: str, has_header: bool) -> Any:
    """Return the table of a published text file; words such as NA and ? stay words."""
    header = 0 if has_header else None
    return _csv(stream, separator, encoding="utf-8", header=header, keep_default_na=False)


def _csv(stream: IO[bytes], separator: str, *, encoding: str = "utf-8-sig", **options: Any) -> Any:
    return pandas().read_csv(
        stream,
        sep=separator,
        skipinitialspace=True,
        low_memory=False,
        encoding=encoding,
        **options,
    )


def _next(parser: Any, n_rows: int | None) -> Any:
    """Return the next rows, None at the end."""
    warning = pandas().errors.ParserWarning  # all that pandas has against too many entries in a row
    try:
        with warning_filter("error", warning, r"ellzero\.data\.io\.text$"):
            return parser.read(n_rows)
    except StopIteration:
        return None
    except warning:
        raise ValueError("its rows have more entries than its first line has names") from None


def _exact_numbers() -> dict[str, str]:
    """Return the option that makes pandas round numbers correctly, as it does since 3.1."""
    version = tuple(int(part) for part in pandas().__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}
