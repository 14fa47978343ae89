"""The best of all supports of one size, and whether that is proven.

Entries of moments are known to a few units in the last place. Where columns are nearly dependent,
that may be all there is of a difference. So a ranking by moments also returns the supports that may
be better than the one it puts first, and rows decide between them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np

from ellzero.core import Iterate, Objective
from ellzero.linalg import DEPENDENT
from ellzero.objectives.exact_rows import best_of_rows
from ellzero.objectives.moments.held import HeldMoments
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Matrix, Support, Vector

MAX_SUPPORTS = 10_000
"""Supports of one size up to which all are looked at on a quadratic; pairs have a closed form."""

MAX_WORK = 1e8
"""The cubes of their sizes add up to no more than this: 0.1 s. So does the triangle of the rows."""

MAX_FITS, MAX_FIT_WORK = 500, 1_000_000
"""The same for fits of any f: supports, and supports times numbers of a fit."""

PAIRS_AT_ONCE = 64
"""Rows of the matrix of all pairs that are scored together."""

RESOLVED = 1e-12
"""Differences in value that are no larger do not count, on the scale on which v is ½."""

CLEAR = 1e-5
"""A value is known where rounding changes less than this part of it."""

COMBINATION = 4
"""A column is a combination of others where they leave less than this many units in the last place
of it, for moments whose rows are not known."""

Ranked: TypeAlias = tuple[Support, Support]
"""The best support, and those that may be better, one in each row: itself, too, where the moments
do not tell its own value."""


class Enumerated(NamedTuple):
    """The best support of one size, and whether that is proven: rounding may leave a doubt."""

    x: Iterate
    proven: bool


def by_fits(f: Objective, k: int) -> Enumerated | None:
    """Fit every support of size k; None where there are too many.

    A fit proves nothing where it did not converge, or where its columns are hardly told apart: f
    says so by a large `rounding`. An f that does not say is taken at its word.
    """
    n = len(f.features.choosable)
    count = comb(n, k)
    if count > MAX_FITS or not count * f.size / n * (k + 1) <= MAX_FIT_WORK:
        return None
    fits = [f.minimize(S) for S in all_supports(f.features.choosable, k)]
    best = min(fits, key=lambda x: x.value)
    rounding = getattr(f, "rounding", lambda x: f.resolution)
    return Enumerated(best, all(rounding(x) <= 1e3 * f.resolution for x in fits))


def by_moments(f: Quadratic, k: int) -> Enumerated | None:
    """Rank every support of size k by moments; None where there are too many.

    Where moments leave a doubt, the rows decide, as far as they are known and soon read.
    """
    n = len(f.features.choosable)
    few = comb(n, k) <= MAX_SUPPORTS and comb(n, k) * k**3 <= MAX_WORK
    if not (few or k == 2) or not f.features.all_single or not isinstance(f.moments, HeldMoments):
        return None
    rank = best_pair if k == 2 else partial(best_of_all, k=k)
    eps = float(np.finfo(float).eps) * f.digits_lost
    same = -np.inf if f.has_rows else COMBINATION
    moments = f.moments
    S, doubtful = rank(moments.matrix, f.penalty, moments.target, f.features.choosable, eps, same)
    x = f.minimize(S)
    # a nearly perfect fit is rounding of moments; an f without a floor is no sum of squares
    tells = f.floor == -np.inf or RESOLVED * f.unit**2 <= CLEAR * (x.value - f.floor)
    if not f.has_rows:
        return Enumerated(x, tells and not len(doubtful))
    if tells and not f.forced_hide():
        if not len(doubtful):
            return Enumerated(x, True)
        subsets = np.vstack([S, doubtful])
    elif few:
        subsets = all_supports(f.features.choosable, k)
    else:
        return None
    features = np.unique(subsets)
    if len(subsets) > MAX_SUPPORTS + 1 or f.size / len(f.features) * len(features) ** 2 > MAX_WORK:
        return None
    rows = f.exact(features)
    assert rows is not None
    S, value, proven = best_of_rows(rows, subsets)
    return Enumerated(replace(f.minimize(S), value=value), proven)


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
        if len(others) > MAX_SUPPORTS + 1:  # one of them may be the best
            break
    return best, others[(others != best).any(axis=1) | np.isinf(uppers)]
