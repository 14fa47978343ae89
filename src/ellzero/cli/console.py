"""What people see: names that cannot harm a terminal, notes and progress on stderr."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ellzero.core import Iterate
from ellzero.files import writing
from ellzero.wording import END_OF_ISOLATE, ISOLATE, escaped

LONGEST_MESSAGE = 4000
LONGEST_LINE = 100

OUTPUT = "standard output"
"""What errors call it."""


class UsageError(ValueError):
    """The command line is wrong, whatever the files hold."""


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
