"""Limits for sparse files: a few bytes can ask for any number of features."""

from __future__ import annotations

from collections.abc import Iterable

from ellzero.cli.console import counted, shown

MAX_FEATURES = 1_000_000
"""Features that any sparse file may have; a file with more stored entries may have as many."""

RAISE_LIMIT = "correct the file, or raise the limit with --features N"

LARGEST_INDEX = 2**31 - 1
"""SciPy and scikit-learn count the features of a file in 32 bits."""


def most_features(n_entries: int, features: int | None) -> int:
    """Return how many features a sparse file may have.

    n_entries : how many entries it stores
    features : what --features says, if it was given
    """
    return features or max(MAX_FEATURES, n_entries)


def libsvm_fault(lines: Iterable[bytes], most: int) -> str | None:
    """Return what is wrong with the first faulty line of a LIBSVM file, None if nothing is.

    most : the largest index that a feature may have
    """
    for i, line in enumerate(lines, start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        fault = _not_number(words[0]) or _features_fault(words[1:], most)
        if fault is not None:
            return f"line {i}: {fault}"
    return None


def _not_number(word: bytes, what: str = "the target") -> str | None:
    try:
        float(word)
    except ValueError:
        return f"{what} is '{_text(word)}', which is no number"
    return None


def _features_fault(words: list[bytes], most: int) -> str | None:
    before = -1
    for word in words:
        index, colon, value = word.partition(b":")
        if not colon:
            return f"'{_text(word)}' must be written as index:value"
        if index == b"qid":
            continue
        if not index.removeprefix(b"-").removeprefix(b"+").isdigit():
            return f"the feature index '{_text(index)}' is no whole number"
        if index.startswith(b"-"):
            return f"the feature index {_text(index)} is negative"
        digits = index.removeprefix(b"+").lstrip(b"0")
        if len(digits) > len(str(most)) or int(digits or b"0") > most:
            limit = counted(most, "feature")
            return f"the feature index {_text(index)} is above the limit of {limit}"
        j = int(digits or b"0")
        if j <= before:
            return f"the feature index {j} comes after {before}; indices must ascend"
        before = j
        fault = _not_number(value, f"the value of feature {j}")
        if fault is not None:
            return fault
    return None


def _text(word: bytes) -> str:
    return shown(word.decode("utf-8", "replace"))
