"""Names and counts as messages to people write them; nothing in them can harm a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

LONGEST_NAME = 60  # characters
LONGEST_LIST = 8  # names

RIGHT_TO_LEFT = {"R", "AL"}
ISOLATE, END_OF_ISOLATE = "\u2068", "\u2069"


def escaped(text: str, allowed: str = "") -> str:
    """Spell out control characters, so that the text has nothing that a terminal would obey.

    >>> escaped("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(
        c if c.isprintable() or c in allowed else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def shown(name: Any, longest: int = LONGEST_NAME) -> str:
    """Make a name from a file fit to be printed: escape it, and cut its middle if it is long.

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
    """Quote the first names, and count the others.

    >>> listed("ab")
    "'a', 'b'"
    """
    names = list(names)
    first = ", ".join(f"'{shown(name)}'" for name in names[:LONGEST_LIST])
    rest = len(names) - LONGEST_LIST
    return first + (f" and {rest} more" if rest > 0 else "")


def counted(n: int, noun: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1 200 rows')
    """
    return f"{grouped(n)} {noun}{'' if n == 1 else 's'}"


def grouped(n: int) -> str:
    """Write a whole number with its digits in groups of three."""
    return f"{n:,}".replace(",", " ")
