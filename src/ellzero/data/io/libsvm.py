"""LIBSVM files, and the limit on features: a few bytes of a sparse file can ask for any number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from ellzero.data.io.columns import pandas
from ellzero.data.io.packed import opened
from ellzero.wording import counted, shown

MAX_FEATURES = 1_000_000
"""Features that any sparse file may have; a file with more stored entries may have as many."""

LARGEST_INDEX = 2**31 - 1
"""SciPy and scikit-learn count the features of a file in 32 bits."""

INDEX = re.compile(r"[-+]?[0-9]+")

RAISE_LIMIT = "correct the file, or raise the limit with features=N"


def most_features(n_entries: int, features: int | None) -> int:
    """Return how many features a sparse file may have.

    n_entries : how many entries it stores
    features : the limit that the user has set, if any
    """
    return features or max(MAX_FEATURES, n_entries)


def libsvm_matrix(path: Path, features: int | None, show_progress: bool) -> tuple[Any, Any]:
    """Return the sparse matrix and the target of a LIBSVM file; its column j is feature j.

    features : the most features that the file may have; None means the usual limit
    """
    from sklearn.datasets import load_svmlight_file

    try:
        with opened(path, show_progress=show_progress) as stream:
            X, y = load_svmlight_file(stream, zero_based=True)
    except (ValueError, OverflowError) as error:
        with opened(path, start_only=True) as stream:
            found = _first_fault(stream, LARGEST_INDEX)
        raise ValueError(f"{found or error}; correct the file") from error
    most = most_features(X.nnz, features)
    if X.shape[1] > most + 1:  # with a feature 0
        with opened(path, start_only=True) as stream:
            fault = _first_fault(stream, most)
        raise ValueError(f"{fault}; {RAISE_LIMIT}")
    return X.tocsc(), y


def libsvm_frame(stream: IO[bytes], names: Sequence[str]) -> Any:
    """Return a LIBSVM file with features 1, 2, ... as a frame with these names and a `target`."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(stream, n_features=len(names), zero_based=False)
    return pandas().DataFrame(X.toarray(), columns=list(names)).assign(target=y)


def _first_fault(lines: Iterable[bytes], most: int) -> str | None:
    """Return what is wrong with the first faulty line, None if nothing is.

    most : the largest index that a feature may have
    """
    for i, line in enumerate(lines, start=1):
        target, *entries = line.decode("utf-8", "replace").partition("#")[0].split() or ["0"]
        if not _is_number(target):
            return f"line {i}: the target is '{shown(target)}', which is no number"
        fault = _entries_fault(entries, most)
        if fault is not None:
            return f"line {i}: {fault}"
    return None


def _entries_fault(entries: list[str], most: int) -> str | None:
    before = -1
    for entry in entries:
        index, colon, value = entry.partition(":")
        if not colon:
            return f"'{shown(entry)}' must be written as index:value"
        if index == "qid":
            continue
        if not INDEX.fullmatch(index):
            return f"the feature index '{shown(index)}' is no whole number"
        if index.startswith("-"):
            return f"the feature index {shown(index)} is negative"
        digits = index.lstrip("+0") or "0"
        if len(digits) > len(str(most)) or int(digits) > most:
            limit = counted(most, "feature")
            return f"the feature index {shown(index)} is above the limit of {limit}"
        j = int(digits)
        if j <= before:
            return f"the feature index {j} comes after {before}; indices must ascend"
        if not _is_number(value):
            return f"the value of feature {j} is '{shown(value)}', which is no number"
        before = j
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
