"""Columns of a table: which hold numbers, and which hold words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.wording import listed

STORED_NUMBERS = frozenset({"integer", "decimal"})
"""What pandas calls Python objects that are numbers."""

WHOLE = re.compile(r"([-+]?\d+)\.0*")


def pandas() -> Any:
    """Import pandas, or say how to install it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'ellzero[data]'") from error
    return pd


def check_names(names: Collection[str]) -> None:
    """Refuse columns without a name, and two of the same name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"more than one column is called {listed(twice)}")
    if "" in names:
        raise ValueError(f"column {list(names).index('') + 1} has no name in the first line")


def is_number(column: Any) -> bool:
    """Say whether a column holds real numbers or booleans."""
    return pandas().api.types.is_numeric_dtype(column) and column.dtype.kind != "c"


def as_numbers(column: Any) -> NDArray[np.float64]:
    """Return the entries of a column of numbers, missing ones as NaN."""
    if column.dtype == np.float64:
        return column.to_numpy()  # without the copy that `na_value` makes
    return column.to_numpy(np.float64, na_value=np.nan)


def with_numbers(frame: Any, kinds: Collection[str], words: Collection[str] = ()) -> Any:
    """Make numbers where pandas left objects: booleans with gaps, decimals, very large integers.

    kinds : which of the kinds that pandas infers may be numbers
    words : the names of columns to leave as they are
    """
    changed = {}
    for name, column in frame.items():
        if is_number(column) or name in words or column.dtype == "category":
            continue
        kind = pandas().api.types.infer_dtype(column, skipna=True)
        if kind == "boolean":
            changed[name] = column.astype("boolean")
        elif kind in kinds and not len(not_numbers(column[:1])) and not len(not_numbers(column)):
            changed[name] = pandas().to_numeric(column).astype(np.float64)
    return frame.assign(**changed) if changed else frame


def word(value: Any) -> str:
    """Return a value as the name of a level, without blanks around it; 1.0 is the same as 1."""
    text = str(value).strip()
    whole = WHOLE.fullmatch(text)
    return whole[1] if whole else text


def word_codes(column: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct entries of a column as words, and which of them each row has.

    Missing entries have the code −1. A word comes twice if two different entries are written so.
    """
    if column.dtype == object:
        column = column.map(str, na_action="ignore")
    given = column.astype("category").cat.remove_unused_categories().cat
    return [word(entry) for entry in given.categories], given.codes.to_numpy(np.intp)


def as_words(column: Any) -> Any:
    """Return a column with its entries as words; missing entries stay missing."""
    words, codes = word_codes(column)
    entries = np.array([*words, None], dtype=object)[codes]
    return pandas().Series(entries, column.index, object, column.name)


def as_categories(column: Any) -> Any:
    """Return a column with its entries as sorted categories of words."""
    return as_words(column).astype("category")


def level_codes(
    words: Collection[str], codes: NDArray[np.intp], levels: Collection[str]
) -> NDArray[np.intp]:
    """Return which of the levels each row has, −1 where it has none of them.

    words, codes : what `word_codes` found
    """
    at = {level: k for k, level in enumerate(levels)}
    return np.array([*(at.get(text, -1) for text in words), -1], dtype=np.intp)[codes]


def not_numbers(words: Any) -> Any:
    """Return the words that do not parse as numbers."""
    return words[words.notna() & pandas().to_numeric(words, errors="coerce").isna()]
