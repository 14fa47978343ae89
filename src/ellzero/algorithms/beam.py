"""A beam: forward selection that goes on with the best few supports of every size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ellzero.core import Matrix, Objective, Support, Vector, smallest
from ellzero.linalg import DEPENDENT

CHILDREN = 50
"""Of a support in the beam, only this many of the best insertions can be in the next one."""

AHEAD = 16
"""Moments may cost a pass over the data: ask for those of so many good features at once."""


def beam(f: Objective, top: int, width: int) -> Iterator[tuple[NDArray[np.intp], Vector, Support]]:
    """Supports (one per row) of sizes 1 … top and their values, best first, size by size.

    Of the tableau of a support S the beam holds only the last column r and the diagonal d. A
    feature p that enters changes them by its row of the tableau, q = M_p − aᵀM_S, a = C_SS⁻¹C_Sp.
    """
    n = f.n_features
    rows = MomentRows(f)
    keys = np.random.default_rng(0).integers(1 << 63, size=n, dtype=np.uint64)
    diagonal = f.moment_diagonal
    assert diagonal is not None
    r, d = f.moment_rows(np.array([n]))[:, :n], diagonal[None, :n]
    values = diagonal[n:] / 2
    supports, inverses = np.empty((1, 0), dtype=np.intp), np.empty((1, 0, 0))
    for k in range(top):
        gains = r * r / np.where(d > DEPENDENT, 2 * d, np.inf)
        gains[gains <= f.resolution] = 0.0
        ahead = smallest(-gains[0], AHEAD)
        parents, p = best_children(supports, values, gains, keys, width)
        if not len(p):
            return
        S, inverse = supports[parents], inverses[parents]
        rows.fetch(p, ahead)
        a = np.einsum("bij,bj->bi", inverse, rows.entries(S, p[:, None]))
        q = rows.combined(np.column_stack([S, p]), np.column_stack([-a, np.ones(len(p))]))
        left, reached = d[parents, p], r[parents, p]
        r = r[parents] - q * (reached / left)[:, None]
        d = d[parents] - q * q / left[:, None]
        d[np.arange(len(p)), p] = 0.0
        values = values[parents] - reached**2 / (2 * left)
        supports = np.column_stack([S, p])
        inverses = np.empty((len(p), k + 1, k + 1))
        border = a / left[:, None]
        inverses[:, :k, :k] = inverse + a[:, :, None] * border[:, None, :]
        inverses[:, :k, k] = inverses[:, k, :k] = -border
        inverses[:, k, k] = 1 / left
        yield supports, values, ahead


class MomentRows:
    """Rows of the moments of f, each asked for once where f holds them."""

    def __init__(self, f: Objective):
        self.f = f
        self.slot = np.full(f.n_features, -1)
        self._M = np.empty((0, f.n_features))
        self._used = 0

    def fetch(self, features: Support, ahead: Support) -> None:
        if not self.f.keeps_moments:
            return
        missing = np.unique(features[self.slot[features] < 0])
        if not len(missing):
            return
        more = np.setdiff1d(ahead[self.slot[ahead] < 0], missing, assume_unique=True)
        missing = np.append(missing, more)
        end = self._used + len(missing)
        if end > len(self._M):
            grown = np.empty((2 * end, self.f.n_features))
            grown[: self._used] = self._M[: self._used]
            self._M = grown
        self._M[self._used : end] = self.f.moment_rows(missing)[:, :-1]
        self.slot[missing] = np.arange(self._used, end)
        self._used = end

    def entries(self, rows: Support, columns: Support) -> Matrix:
        if self.f.keeps_moments:
            return self._M[self.slot[rows], columns]
        S, i = np.unique(rows, return_inverse=True)
        T, j = np.unique(columns, return_inverse=True)
        return self.f.moment_block(S, T)[i.reshape(rows.shape), j.reshape(columns.shape)]

    def combined(self, features: Support, A: Matrix) -> Matrix:
        """Σ_j A_bj M_j over the features j of row b."""
        held = self.f.keeps_moments
        used, column = np.unique(self.slot[features] if held else features, return_inverse=True)
        weights = np.zeros((len(A), len(used)))
        np.put_along_axis(weights, column.reshape(features.shape), A, axis=1)
        if not held:
            return self.f.moment_products(used, weights)
        if 2 * len(used) < self._used:
            return weights @ self._M[used]
        whole = np.zeros((len(A), self._used))
        whole[:, used] = weights
        return whole @ self._M[: self._used]


def best_children(
    supports: NDArray[np.intp], values: Vector, gains: Matrix, keys: NDArray[np.uint64], width: int
) -> tuple[Support, Support]:
    """Which supports go on with which feature, best first; every new support only once."""
    few = min(CHILDREN, width, gains.shape[1])
    entering = np.argpartition(-gains, few - 1, axis=1)[:, :few]
    gained = np.take_along_axis(gains, entering, axis=1)
    after = np.where(gained > 0, values[:, None] - gained, np.inf)
    names = keys[supports].sum(axis=1)[:, None] + keys[entering]  # the same for the same support
    order = np.argsort(after, axis=None, kind="stable")
    order = order[np.isfinite(after.ravel()[order])]
    _, first = np.unique(names.ravel()[order], return_index=True)
    order = order[np.sort(first)[:width]]
    return order // few, entering.ravel()[order]
