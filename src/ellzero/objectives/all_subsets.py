"""The best support of a quadratic where all of one size can be looked at."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ellzero.linalg import DEPENDENT
from ellzero.supports import Matrix, Support, Vector

PAIRS_AT_ONCE = 32
"""Rows of the matrix of all pairs that are scored together."""


def best_of_all(C: Matrix, penalty: Vector, c: Vector, features: Support, k: int) -> Support:
    """The k features with which ½ xᵀ(C + diag penalty)x − cᵀx gets lowest."""
    subsets = np.array(list(combinations(features.tolist(), k)), dtype=np.intp)
    A = C + np.diag(penalty)
    blocks, b = A[subsets[:, :, None], subsets[:, None, :]], c[subsets]
    inverses = np.linalg.pinv(blocks, rcond=DEPENDENT, hermitian=True)
    return subsets[np.argmax(np.einsum("ni,nij,nj->n", b, inverses, b))]


def best_pair(C: Matrix, penalty: Vector, c: Vector, features: Support) -> Support:
    """The same for two features, in closed form and for many more of them.

    With r_i = c_i / √d_i and a the product of the two on the scale on which d = 1, both together
    gain half of r_j² + (r_i − a r_j)² / (1 − a²); dependent ones as much as the better of the two.
    """
    d = (C.diagonal() + penalty)[features]
    scale = np.where(d > DEPENDENT, 1 / np.sqrt(np.maximum(d, DEPENDENT)), 0.0)
    r = c[features] * scale
    squares = r * r
    best, found = -np.inf, features[:2]
    for begin in range(0, len(features), PAIRS_AT_ONCE):
        rest = slice(begin, None)  # pairs with those before have been looked at
        some = slice(begin, begin + PAIRS_AT_ONCE)
        a = C.take(features[some], 0).take(features[rest], 1)
        a *= scale[some, None]
        a *= scale[rest]
        left = 1 - a * a
        a *= r[rest]
        gain = np.subtract(r[some, None], a, out=a)
        gain *= gain
        dependent = left <= DEPENDENT
        left[dependent] = 1.0
        gain /= left
        gain += squares[rest]
        gain[dependent] = np.maximum(squares[some, None], squares[rest])[dependent]
        np.fill_diagonal(gain, -np.inf)
        i, j = divmod(int(np.argmax(gain)), gain.shape[1])
        if gain[i, j] > best:
            best, found = gain[i, j], features[[begin + i, begin + j]]
    return found
