"""What people see: names that cannot harm a terminal, notes and progress on stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ellzero.core import Iterate
from ellzero.files import writing

LONGEST_NAME = 60
LONGEST_MESSAGE = 4000
LONGEST_LIST = 8
LONGEST_LINE = 100

OUTPUT = "standard output"
"""What errors call it."""

RIGHT_TO_LEFT = {"R", "AL"}
ISOLATE, END_OF_ISOLATE = "\u2068", "\u2069"


class UsageError(ValueError):
    """The command line is wrong, whatever the files hold."""


def escaped(text: str, allowed: str = "") -> str:
    """The text without anything a terminal would obey: control characters are spelt out.

    >>> escaped("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(
        c if c.isprintable() or c in allowed else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def shown(name: Any, longest: int = LONGEST_NAME) -> str:
    """A name from a file, fit to be printed: escaped, cut in its middle, kept in its place.

    >>> shown("x" * 100, longest=11)
    'xxxxx…xxxxx'
    """
    text = str(name)
    if len(text) > longest:
        half = longest // 2
        text = f"{text[:half]}…{text[-half:]}"
    if text.isascii() and text.isprintable():  # a file may have a million names
        return text
    if any(unicodedata.bidirectional(c) in RIGHT_TO_LEFT for c in text):
        return f"{ISOLATE}{escaped(text)}{END_OF_ISOLATE}"
    return escaped(text)


def listed(names: Iterable[Any]) -> str:
    """The first names, quoted, and how many more there are."""
    names = list(names)
    first = ", ".join(f"'{shown(name)}'" for name in names[:LONGEST_LIST])
    rest = len(names) - LONGEST_LIST
    return first + (f" and {rest} more" if rest > 0 else "")


def counted(n: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1 200 rows')
    """
    return f"{grouped(n)} {noun}{'' if n == 1 else 's'}"


def grouped(n: int) -> str:
    """Return a whole number with its digits in groups of three."""
    return f"{n:,}".replace(",", " ")


def note(message: str, kind: str = "") -> None:
    """One line on stderr."""
    line = escaped(" ".join(message.split()), allowed=ISOLATE + END_OF_ISOLATE)
    cut = line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + "…"
    sys.stderr.write(f"ellzero: {kind and kind + ': '}{cut}\n")


def write(text: str) -> None:
    with writing(OUTPUT):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def document(value: Any) -> str:
    """JSON that every parser takes: ASCII only, so nothing in it can move a terminal; no NaN.

    >>> write(document({"a": [1, 2], "b": "é"}))
    {"a": [1, 2], "b": "\\u00e9"}
    """
    return _json(value, "") + "\n"


def _json(value: Any, indent: str) -> str:
    """On one line where that is short."""
    line = json.dumps(value, allow_nan=False)
    if len(indent) + len(line) <= LONGEST_LINE or not isinstance(value, dict | list):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_json(v, inner)}" for key, v in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_json(v, inner)}" for v in value) + f"\n{indent}]"


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(str(message), "warning")
        yield


@contextmanager
def searching(what: str) -> Iterator[Callable[[Iterate], None] | None]:
    """A callback that shows how the search goes; None where nobody is looking."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def see(x: Iterate) -> None:
            bar.update(task, description=f"{what}: size {len(x.support)}, loss {x.value:.6g}")

        yield see
