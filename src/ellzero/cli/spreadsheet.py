"""CSV that a spreadsheet reads as text and numbers, never as formulas.

The page of `ellzero report` saves tables by the same rules, in `report/csv.js`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

STARTS_FORMULA = re.compile("'*[=+\\-@\\t\\r\\n\\uff1d\\uff0b\\uff0d\\uff20]")
"""Apostrophes before it count, so that one apostrophe less always gives the text back."""

IS_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)

NEEDS_QUOTES = re.compile(r'[",;|\t\r\n]|^\s|\s$')
"""Whatever may separate columns, and not only the comma: programs guess it."""


def csv_line(values: Iterable[Any]) -> str:
    """Return one line of a CSV file.

    >>> csv_line(["@SUM(1)", "-1.5", "a", -1.5]).rstrip()
    "'@SUM(1),-1.5,a,-1.5"
    """
    return ",".join(map(_cell, values)) + "\n"


def _cell(value: Any) -> str:
    text = str(value)
    if isinstance(value, str) and STARTS_FORMULA.match(text) and not IS_NUMBER.fullmatch(text):
        text = f"'{text}"
    if NEEDS_QUOTES.search(text):
        text = '"' + text.replace('"', '""') + '"'
    return text
