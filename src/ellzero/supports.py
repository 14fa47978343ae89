"""Supports, sorted arrays of features, and what is often asked about them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Support: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
NONE: Support = np.empty(0, dtype=np.intp)
"""No features."""


def dense(S: Support, coef: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
    """Return the coefficients of all features, given those of S. The others are zero."""
    x = np.zeros((n_features, *coef.shape[1:]))
    x[S] = coef
    return x


def smallest(scores: NDArray[np.float64], count: int) -> Support:
    """Return the indices of the smallest finite scores, in order."""
    if not len(scores):
        return NONE
    if count == 1 or len(scores) <= count:
        order = np.array([np.argmin(scores)]) if count == 1 else np.argsort(scores, kind="stable")
    else:
        part = np.argpartition(scores, count)[:count]
        order = part[np.argsort(scores[part], kind="stable")]
    return order[np.isfinite(scores[order])]


NUMBERS_AT_ONCE = 1 << 23
"""Numbers that are made at a time where rows may be many: 64 MB."""


def at_once(n_rows: int, width: int) -> list[slice]:
    """Divide rows of this width into parts of no more than `NUMBERS_AT_ONCE` numbers."""
    step = max(NUMBERS_AT_ONCE // max(width, 1), 1)
    return [slice(begin, begin + step) for begin in range(0, n_rows, step)]
