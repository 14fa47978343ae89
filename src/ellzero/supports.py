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


def magnitudes(v: NDArray[np.float64]) -> Vector:
    """|v_j| of every feature; the norm of its row where a feature owns several numbers."""
    if v.ndim == 1:
        return np.abs(v)
    largest = np.abs(v).max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares would overflow, or vanish
    return largest * np.linalg.norm(v / unit[:, None], axis=1)


def dense(S: Support, coef: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
    """The coefficients of all features, given those of S; the others are zero."""
    x = np.zeros((n_features, *coef.shape[1:]))
    x[S] = coef
    return x


def without(S: Support, j: int) -> Support:
    return S[j != S]


def swapped(S: Support, j: int, i: int) -> Support:
    """S ∖ {j} ∪ {i}."""
    return np.where(j == S, i, S)


def smallest(scores: NDArray[np.float64], count: int) -> Support:
    """Indices of the smallest finite scores, in order."""
    if count == 1 or len(scores) <= count:
        order = np.array([np.argmin(scores)]) if count == 1 else np.argsort(scores, kind="stable")
    else:
        part = np.argpartition(scores, count)[:count]
        order = part[np.argsort(scores[part], kind="stable")]
    return order[np.isfinite(scores[order])]


def union(S: Support, n_features: int) -> tuple[Support, Support]:
    """The features of supports of one size, one a row, sorted, and where in them each of S is."""
    place = np.full(n_features, -1)
    place[S] = 0
    features = np.flatnonzero(place == 0)
    place[features] = np.arange(len(features))
    return features, place[S]


def filled(S: Support) -> Support:
    """Supports that are filled up with −1, filled up with their first feature instead."""
    return np.where(S >= 0, S, S[:, :1])


def spread(S: Support, A: Matrix, n_features: int) -> tuple[Support, Matrix]:
    """The features of some supports, which may be filled up with −1, and for each support its
    numbers, the rows of A, by these features."""
    place = np.zeros(n_features + 1, dtype=np.intp)  # the last one is that of −1
    place[S] = 1
    place[-1] = 0
    features = place.nonzero()[0]
    place[features] = np.arange(len(features))
    place[-1] = len(features)
    out = np.zeros((len(S), len(features) + 1))
    out[np.arange(len(S))[:, None], place[S]] = A
    return features, out[:, :-1]


AT_ONCE = 1 << 23
"""So many numbers are made at a time where rows of all features could be many."""


def at_once(n_rows: int, width: int) -> list[slice]:
    """The rows in parts that are no larger than `AT_ONCE`."""
    step = max(AT_ONCE // max(width, 1), 1)
    return [slice(begin, begin + step) for begin in range(0, n_rows, step)]
