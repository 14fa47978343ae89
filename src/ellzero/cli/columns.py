"""What a column holds: numbers or words, and words that seem to be something else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.cli.console import counted, listed, shown
from ellzero.datasets.formats import pandas

FEW_WORDS = 20
"""So many different words never seem too many for a feature."""

LARGEST = 1e100
"""Squares and weighted sums of larger numbers may overflow."""

NUMBERS = frozenset({"integer", "decimal"})
"""What pandas calls objects that are numbers."""

WHOLE = r"([-+]?\d+)\.0*"
DECIMAL_COMMA = r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?"
DATE = (
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d\d)"
    r"(?:[T ].*)?"  # the time of day
    r"|-?\d+ days .*"  # pandas' way to write a span of time
)


def check_names(names: Collection[str]) -> None:
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"more than one column is called {listed(twice)}")
    if "" in names:
        raise ValueError(f"column {list(names).index('') + 1} has no name in the first line")


def is_number(column: Any) -> bool:
    return pandas().api.types.is_numeric_dtype(column) and column.dtype.kind != "c"


def as_numbers(column: Any) -> NDArray[np.float64]:
    """The entries of a column of numbers, missing ones as NaN."""
    return column.to_numpy(np.float64, na_value=np.nan)


def n_too_large(numbers: NDArray[Any]) -> int:
    """How many are infinite, or too large to compute with."""
    return int((np.abs(numbers) > LARGEST).sum())


def as_words(column: Any) -> Any:
    """Entries as text, with 1.0 the same as 1; missing ones stay missing."""
    words = column.astype(object).where(column.notna(), None)
    words = words.map(lambda entry: str(entry).strip(), na_action="ignore")
    named = words.unique()
    short = {word: re.sub(f"^{WHOLE}$", r"\1", word) for word in named if isinstance(word, str)}
    return words.map(short, na_action="ignore").astype(object)


def not_numbers(words: Any) -> Any:
    """Those of the words that no number is written as."""
    return words[words.notna() & pandas().to_numeric(words, errors="coerce").isna()]


def fault(column: Any, few: int = FEW_WORDS) -> str | None:
    """Why these words should not be taken for categories; None if nothing is odd.

    few : how many different words are never too many
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
    if len(levels) > max(few, len(words) / 2):
        return (
            f"has {len(levels)} different words in {counted(len(words), 'row')}, as if to name them"
        )
    return None


def as_meant(frame: Any, kinds: Collection[str], words: Collection[str] = ()) -> Any:
    """Numbers where pandas leaves objects: booleans with gaps, decimals, very large integers.

    kinds : what, in pandas' words, may be numbers
    """
    meant = {}
    for name, column in frame.items():
        if is_number(column) or name in words:
            continue
        kind = pandas().api.types.infer_dtype(column, skipna=True)
        if kind == "boolean":
            meant[name] = column.astype("boolean")
        elif kind in kinds and not len(not_numbers(column[:1])) and not len(not_numbers(column)):
            meant[name] = pandas().to_numeric(column).astype(np.float64)
    return frame.assign(**meant) if meant else frame
