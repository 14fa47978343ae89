"""A beam: forward selection that goes on with the best few supports of every size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ellzero.core import Matrix, Objective, Support, Vector, union
from ellzero.linalg import DEPENDENT

CHILDREN = 50
"""Of a support in the beam, only this many of the best insertions can be in the next one."""

AHEAD = 24
"""Moments may cost a pass over the data: so many good features are named that may be next."""


def beam(f: Objective, top: int, width: int) -> Iterator[tuple[Support, Vector, Support]]:
    """Supports (one per row) of sizes 1 … top and their values, best first, size by size.

    Of the tableau of a support S the beam holds only the last column r and the diagonal d. A
    feature p that enters changes them by its row of the tableau, q = M_p − aᵀM_S, a = C_SS⁻¹C_Sp.
    """
    n = f.n_features
    keys = np.random.default_rng(0).integers(1 << 63, size=n, dtype=np.uint64)
    diagonal = f.moment_diagonal
    assert diagonal is not None
    r, d = f.moment_rows(np.array([n]))[:, :n], diagonal[None, :n]
    values = diagonal[n:] / 2
    supports, inverses = np.empty((1, 0), dtype=np.intp), np.empty((1, 0, 0))
    for k in range(top):
        gains = r * r
        gains /= np.where(d > DEPENDENT, 2 * d, np.inf)
        gains[gains <= f.resolution] = 0.0
        foremost = largest(gains, max(CHILDREN, AHEAD))
        ahead = foremost[0, :AHEAD]
        ahead = ahead[gains[0, ahead] > 0]
        parents, p = best_children(supports, values, gains, foremost[:, :CHILDREN], keys, width)
        if not len(p):
            return
        S, inverse = supports[parents], inverses[parents]
        a = np.einsum("bij,bj->bi", inverse, entries(f, S, p))
        supports = np.concatenate([S, p[:, None]], axis=1)
        q = combined(f, supports, np.concatenate([-a, np.ones((len(p), 1))], axis=1), ahead)
        left, reached = d[parents, p], r[parents, p]
        r, d = r[parents], d[parents]
        r -= q * (reached / left)[:, None]
        q *= q
        q /= left[:, None]
        d -= q
        d[np.arange(len(p)), p] = 0.0
        values = values[parents] - reached**2 / (2 * left)
        inverses = np.empty((len(p), k + 1, k + 1))
        border = a / left[:, None]
        inverses[:, :k, :k] = inverse + a[:, :, None] * border[:, None, :]
        inverses[:, :k, k] = inverses[:, k, :k] = -border
        inverses[:, k, k] = 1 / left
        yield supports, values, ahead


def entries(f: Objective, S: Support, p: Support) -> Matrix:
    """M[j, p_b] for the features j of row b of S."""
    rows, places = union(S, f.n_features)
    return f.moment_block(rows, p)[places, np.arange(len(p))[:, None]]


def combined(f: Objective, S: Support, A: Matrix, ahead: Support) -> Matrix:
    """Σ_j A_bj M_j over the features j of row b of S."""
    rows, places = union(S, f.n_features)
    weights = np.zeros((len(A), len(rows)))
    weights[np.arange(len(A))[:, None], places] = A
    return f.moment_products(rows, weights, ahead)


def largest(scores: Matrix, count: int) -> Support:
    """Of each row, where its largest numbers are, in order."""
    rows, least = np.arange(len(scores))[:, None], max(scores.shape[1] - count, 0)
    some = np.argpartition(scores, least, axis=1)[:, least:]
    return some[rows, np.argsort(-scores[rows, some], axis=1)]


def best_children(
    supports: Support,
    values: Vector,
    gains: Matrix,
    entering: Support,
    keys: NDArray[np.uint64],
    width: int,
) -> tuple[Support, Support]:
    """Which supports go on with which feature, best first; every new support only once."""
    gained = gains[np.arange(len(gains))[:, None], entering]
    after = np.where(gained > 0, values[:, None] - gained, np.inf)
    names = keys[supports].sum(axis=1)[:, None] + keys[entering]  # the same for the same support
    order = np.argsort(after, axis=None, kind="stable")
    order = order[np.isfinite(after.ravel()[order])]
    _, first = np.unique(names.ravel()[order], return_index=True)
    order = order[np.sort(first)[:width]]
    return order // entering.shape[1], entering.ravel()[order]
