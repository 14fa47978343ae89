"""What columns are taken for: numbers, or words that name categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.data.io.columns import as_words, not_numbers
from ellzero.wording import counted, shown

MAX_WORDS = 20
"""Up to this many different words, a column is taken for a category and not for names."""

LARGEST = 1e100
"""Squares and weighted sums of larger numbers may overflow."""

DECIMAL_COMMA = r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?"
DATE = (
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d\d)"
    r"(?:[T ].*)?"  # the time of day
    r"|-?\d+ days .*"  # pandas' way to write a span of time
)


def n_too_large(numbers: NDArray[Any]) -> int:
    """Count the numbers that are infinite, or too large to compute with."""
    return int((np.abs(numbers) > LARGEST).sum())


def fault(column: Any, n_words: int = MAX_WORDS) -> str | None:
    """Say why the entries should not be taken for categories; None if nothing is odd.

    n_words : how many different words are never too many
    """
    if column.dtype.kind == "c":
        return "holds complex numbers (make real ones of them)"
    words = as_words(column).dropna()
    levels, odd = words.drop_duplicates(), not_numbers(words)
    if len(levels) and levels.str.fullmatch(DATE).all():
        example = shown(words.iloc[0])
        return f"holds dates such as '{example}' (make numbers of them, such as days since 1970)"
    if len(odd) and odd.drop_duplicates().str.fullmatch(DECIMAL_COMMA).all():
        example = shown(odd.iloc[0])
        return f"holds numbers with commas such as '{example}' (write points, or say --decimal ,)"
    if 0 < len(odd) < len(words) / 2:
        return (
            f"holds numbers, and {counted(len(odd), 'other word')} such as '{shown(odd.iloc[0])}' "
            f"in row {odd.index[0] + 1} (correct them)"
        )
    if len(levels) > max(n_words, len(words) / 2):
        return (
            f"has {len(levels)} different words in {counted(len(words), 'row')}, as if to name them"
        )
    return None
