"""Checks of arguments: an error names the argument and says what is expected."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ellzero.core import Objective
from ellzero.supports import NONE, Support, Vector

MAX_LETTER_PAIRS = 4_000_000
"""Pairs of letters that the search for a name's closest match may compare: a fifth of a second."""

PAIRS_PER_NAME = 400
"""What a comparison of two names costs besides their letters, in pairs of letters."""


def check_objective(f: Any) -> None:
    if not isinstance(f, Objective):
        raise TypeError(
            f"f: expected an Objective such as LeastSquares(X, y), got {type(f).__name__}."
        )


def check_number(name: str, value: Any, above: float = -np.inf, *, or_equal: bool = False) -> None:
    """A finite number greater than `above`, or an error that names the argument."""
    numeric = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (numeric and np.isfinite(value) and (value > above or (or_equal and value == above))):
        limit = "" if above == -np.inf else f" {'of at least' if or_equal else 'above'} {above:g}"
        raise ValueError(f"{name}: expected a finite number{limit}, got {value!r}.")


def check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}.")


def check_options(method: str, options: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(
            f"{method}: no option {unknown[0]!r}; there are {sorted(known - {'f', 's'})}."
        )


def check_callback(callback: Any) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback: expected a function of an iterate, got {callback!r}.")


def check_sparsity(f: Objective, s: Any, name: str = "s") -> int:
    if isinstance(s, bool) or not isinstance(s, int | np.integer):
        raise TypeError(f"{name}: expected a whole number of features, got {s!r}.")
    free, F = len(f.features.choosable), len(f.features.forced)
    if not 1 <= s <= free:
        forced = f" ({len(f.features)} in all, {F} of them forced)" if F else ""
        raise ValueError(
            f"{name}: expected 1 to {free}, the number of features that can be chosen{forced}; "
            f"got {s}."
        )
    return int(s)


def check_ridge(ridge: Any, n: int) -> Vector:
    """Return one non-negative number for each feature, or raise an error."""
    try:
        d = np.asarray(ridge)
    except ValueError:
        d = np.empty(0, dtype=object)
    if d.dtype.kind not in "fiub":
        raise TypeError(f"ridge: expected a non-negative number, got {ridge!r}.")
    d = d.astype(np.float64)
    if d.shape not in ((), (n,)) or not np.isfinite(d).all() or (d < 0).any():
        raise ValueError(f"ridge: expected a non-negative number or {n} of them, got {ridge!r}.")
    return np.broadcast_to(d, (n,)).copy()


def as_support(members: Any, name: str, n_features: int) -> Support:
    """Distinct feature indices, sorted, or an error that names the argument."""
    S = np.asarray(members)
    if S.dtype == bool and S.shape == (n_features,):
        S = np.flatnonzero(S)
    if S.size == 0:
        return NONE
    if S.ndim != 1 or not np.issubdtype(S.dtype, np.integer):
        raise TypeError(f"{name}: expected feature indices (integers), got {members!r}.")
    if S.min() < 0 or S.max() >= n_features:
        raise ValueError(f"{name}: indices must be 0 to {n_features - 1}, got {S.tolist()}.")
    unique = np.unique(S)
    if len(unique) != len(S):
        raise ValueError(f"{name}: an index stands there twice: {S.tolist()}.")
    return unique.astype(np.intp)


def closest(name: str, known: Collection[str]) -> str | None:
    """Return the name that was probably meant; of very many names only the first are compared.

    >>> closest("Colour ", ["age", "colour"]), closest("color", ["age", "colour"])
    ('colour', 'colour')
    """
    wanted = name.strip().casefold()
    for other in known:
        if other.strip().casefold() == wanted:
            return other
    start = name[:100]
    close = difflib.get_close_matches(start, list(_comparable(start, known)), n=1)
    return close[0] if close else None


def _comparable(name: str, known: Collection[str]) -> Iterator[str]:
    """Yield names for as long as comparing them is cheap."""
    pairs = 0
    for other in known:
        pairs += PAIRS_PER_NAME + len(name) * len(other)
        if pairs > MAX_LETTER_PAIRS:
            return
        yield other
