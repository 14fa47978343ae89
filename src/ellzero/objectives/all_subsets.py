"""The best support of a quadratic where all of one size can be looked at."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ellzero.core import Matrix, Support, Vector
from ellzero.linalg import DEPENDENT, independent

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
    """The same for two features, in closed form and for many more of them."""
    d = (C.diagonal() + penalty)[features]
    c = c[features]
    best, found = -np.inf, features[:2]
    for begin in range(0, len(features), PAIRS_AT_ONCE):
        rest = slice(begin, None)  # pairs with those before have been looked at
        a = np.arange(begin, min(begin + PAIRS_AT_ONCE, len(features)))
        between = C[features[a, None], features[rest]]
        gain = _pair_gain(c[a, None], c[rest], d[a, None], d[rest], between)
        gain[a - begin, a - begin] = -np.inf
        i, j = np.unravel_index(np.argmax(gain), gain.shape)
        if gain[i, j] > best:
            best, found = gain[i, j], features[[begin + i, begin + j]]
    return found


def _pair_gain(r: Any, q: Any, d: Any, e: Any, between: Any) -> Vector:
    """How much two columns lower f: residuals r and q, what is left d and e, and their product."""
    determinant = d * e - between**2
    dependent = (determinant <= DEPENDENT * np.maximum(d * e, DEPENDENT)) | (d * e <= DEPENDENT)
    safe = np.where(dependent, 1.0, determinant)
    together = (r * r * e - 2 * r * q * between + q * q * d) / safe
    alone = np.maximum(r * r / independent(d), q * q / independent(e))
    return 0.5 * np.where(dependent, alone, together)
