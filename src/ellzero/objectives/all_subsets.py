"""The best of all supports of one size, on the scale on which the Gram matrix has a unit diagonal.

Entries of that matrix are known to `eps` only, and where columns are nearly dependent that may be
all there is of a difference. So both rankings by moments also return the supports that may be
better than the one they put first; rows can tell.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from ellzero.linalg import DEPENDENT
from ellzero.supports import Matrix, Support, Vector

ENUMERABLE = 10_000
"""Up to this many supports of one size are simply all looked at, ..."""

ENUMERABLE_WORK = 1e8
"""... if the cubes of their sizes add up to no more than this; pairs have a closed form. Rows are
asked if the triangle of their columns takes no more, either."""

PAIRS_AT_ONCE = 64
"""Rows of the matrix of all pairs that are scored together."""

RESOLVED = 1e-12
"""Differences in value that are no larger do not count."""

Ranked = tuple[Support, Support]
"""The best support, and those that may be better, one in each row: itself, too, where the moments
do not tell its own value."""


def can_be_ranked(n: int, k: int) -> bool:
    n_supports = comb(n, k)
    return k == 2 or (n_supports <= ENUMERABLE and n_supports * k**3 <= ENUMERABLE_WORK)


def all_supports(features: Support, k: int) -> Support:
    return np.array(list(combinations(features.tolist(), k)), dtype=np.intp)


def best_of_all(
    C: Matrix, penalty: Vector, c: Vector, features: Support, eps: float, same: float, k: int
) -> Ranked:
    """The k features with which ½ xᵀ(C + diag penalty)x − cᵀx gets lowest.

    same : a column is a combination of others if they leave no more of it, in units of eps
    """
    subsets = all_supports(features, k)
    zero = C.diagonal() == 0  # such columns gain nothing
    A = C + np.diag(np.where(zero, 1.0, penalty))
    blocks, b = A[subsets[:, :, None], subsets[:, None, :]], c[subsets]
    w, Q = np.linalg.eigh(blocks)
    largest = w[:, -1:]
    kept = w > max(DEPENDENT, 100 * k * eps) * largest
    along = np.einsum("nij,ni->nj", Q, b)
    x = np.divide(along, w, out=np.zeros_like(w), where=kept)
    gain = 0.5 * np.einsum("nj,nj->n", along, x)
    size = np.abs(np.einsum("nij,nj->ni", Q, x)).sum(axis=1)
    doubt = 8 * eps * size * (1 + size)
    upper = gain + doubt
    upper[(~kept & (w > same * k * eps * largest)).any(axis=1)] = np.inf
    best = int((gain - doubt).argmax())
    if upper[best] < np.inf:
        upper[best] = -np.inf
    return subsets[best], subsets[upper > gain[best] - doubt[best] + RESOLVED]


def best_pair(
    C: Matrix, penalty: Vector, c: Vector, features: Support, eps: float, same: float
) -> Ranked:
    """The same for two features, in closed form and for many more of them.

    With r_i = c_i / √d_i and a the product of the two on the scale on which d = 1, both together
    gain half of r_j² + (r_i − a r_j)² / (1 − a²); dependent ones as much as the better of the two.
    """
    d = (C.diagonal() + penalty)[features]
    scale = np.where(d > DEPENDENT, 1 / np.sqrt(np.maximum(d, DEPENDENT)), 0.0)
    r = c[features] * scale
    squares = r * r
    least, best = -np.inf, features[:2]
    others, uppers = np.empty((0, 2), np.intp), np.empty(0)
    for begin in range(0, len(features), PAIRS_AT_ONCE):
        rest = slice(begin, None)  # pairs with those before have been looked at
        some = slice(begin, begin + PAIRS_AT_ONCE)
        a = C.take(features[some], 0).take(features[rest], 1)
        a *= scale[some, None]
        a *= scale[rest]
        left = 1 - a * a
        np.fill_diagonal(left, 1.0)
        near = left <= max(DEPENDENT, 200 * eps)
        unknown = near & (left > 2 * same * eps) if near.any() else near
        left[near] = 1.0
        a *= r[rest]
        gain = np.subtract(r[some, None], a, out=a)
        gain *= gain
        gain /= left
        gain += squares[rest]
        gain[near] = np.maximum(squares[some, None], squares[rest])[near]
        np.fill_diagonal(gain, -np.inf)
        i, j = divmod(int(np.argmax(gain)), gain.shape[1])
        doubt = 256 * eps / left[i, j]  # as coefficients are at most 1 / √left
        if gain[i, j] - doubt > least:
            least, best = gain[i, j] - doubt, features[begin + np.sort([i, j])]
        gain[unknown] = np.inf  # rows may tell such columns apart
        i, j = (gain > least - 256 * eps / left.min()).nonzero()
        others = np.concatenate([others, features[begin + np.column_stack([i, j])]])
        uppers = np.concatenate([uppers, gain[i, j] + 256 * eps / left[i, j]])
        better = (uppers > least + 2 * RESOLVED) & (others[:, 0] < others[:, 1])
        others, uppers = others[better], uppers[better]
        if len(others) > ENUMERABLE + 1:  # one of them may be the best
            break
    return best, others[(others != best).any(axis=1) | np.isinf(uppers)]
