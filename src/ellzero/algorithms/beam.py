"""A beam: forward selection that goes on with the best few supports of every size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.core import Objective
from ellzero.linalg import DEPENDENT
from ellzero.supports import NONE, Matrix, Support, Vector, at_once, smallest, spread, union

CHILDREN = 50
"""Of a support in the beam, only this many of the best insertions can be in the next one (and no
more than the beam is wide, as all of them are different)."""

AHEAD = 24
"""Moments may cost a pass over the data: so many good features are named that may be next."""

STRIDE = 3
"""Features that are not active are looked at after so many steps: one pass makes the rows."""


ROUGH = 1e-4
"""Where less than this is left of a column, it is not told roughly how much."""


class Step(NamedTuple):
    """Features that entered, one for each support: how they change r and d of all others."""

    weights: Matrix  # of the rows M_S in q, the row of the feature in the tableau
    reached: Vector  # r of the feature itself
    left: Vector  # d of the feature itself

    def of(self, chosen: Support) -> Step:
        return Step(*(part[chosen] for part in self))

    def update(self, r: Matrix, d: Matrix, q: Matrix) -> None:
        r -= q * (self.reached / self.left)[:, None]
        q *= q
        q /= self.left[:, None]
        d -= q


def beam(
    f: Objective, top: int, width: int, n_active: int | None = None
) -> Iterator[tuple[Support, Vector, Support]]:
    """Supports (one per row) of sizes 1 … top and their values, best first, size by size.

    Where rows of the moments cost a pass over the data, let only so many features be active: those
    that gained most when all were last looked at.

    Of the tableau of a support S the beam holds only the last column r and the diagonal d. A
    feature p that enters changes them by its row of the tableau, q = M_p − aᵀM_S, a = C_SS⁻¹C_Sp.
    The inverse is held as its root B, BᵀB = C_SS⁻¹, which keeps the digits of columns that are
    nearly dependent.
    """
    n = f.n_features
    keys = np.random.default_rng(0).integers(1 << 63, size=n, dtype=np.uint64)
    diagonal = f.moment_diagonal
    assert diagonal is not None
    r, d = f.moment_rows(np.array([n]))[:, :n], diagonal[None, :n]
    values = diagonal[n:] / 2
    supports, roots = np.empty((1, 0), dtype=np.intp), np.empty((1, 0, 0))
    active, ahead = np.arange(n), NONE
    everywhere = None if n_active is None else Everywhere(f, r, d, n_active)
    for k in range(top):
        gains = gains_of(f, r, d)
        if everywhere is not None and (k % STRIDE == 0 or not gains.any()):
            active = everywhere.most_promising(supports, ahead)
            r, d = left_of(f, supports, roots, active)
            gains = gains_of(f, r, d)
        children = min(width, CHILDREN)
        foremost = largest(gains, max(children, AHEAD))
        ahead = foremost[0, :AHEAD]
        ahead = active[ahead[gains[0, ahead] > 0]]
        foremost = foremost[:, :children]
        names = keys[supports].sum(axis=1)[:, None] + keys[active[foremost]]
        parents, p = best_children(values, gains, foremost, names, width)
        if not len(p):
            return
        S, root, entered = supports[parents], roots[parents], active[p]
        a = np.einsum("bji,bj->bi", root, np.einsum("bij,bj->bi", root, entries(f, S, entered)))
        supports = np.concatenate([S, entered[:, None]], axis=1)
        weights = np.concatenate([-a, np.ones((len(p), 1))], axis=1)
        left, reached = d[parents, p], r[parents, p]
        step = Step(weights, reached, left)
        r, d = r[parents], d[parents]
        if everywhere is None:
            step.update(r, d, combined(f, supports, weights, ahead=ahead))
        else:
            step.update(r, d, combined(f, supports, weights, active))
            everywhere.note(parents, step)
        d[np.arange(len(p)), p] = 0.0
        values = values[parents] - reached**2 / (2 * left)
        roots = np.zeros((len(p), k + 1, k + 1))
        roots[:, :k, :k] = root
        roots[:, k] = weights / np.sqrt(left)[:, None]
        yield supports, values, ahead


class Everywhere:
    """r and d of all features, roughly and some steps behind."""

    def __init__(self, f: Objective, r: Matrix, d: Matrix, n_active: int):
        self.f, self.r, self.d, self.n_active = f, r, d, n_active
        self._origin = np.zeros(len(r), dtype=np.intp)  # of each support, its row of r and d
        self._steps: list[Step] = []

    def note(self, parents: Support, step: Step) -> None:
        """A step to be taken later."""
        self._origin = self._origin[parents]
        self._steps = [*(earlier.of(parents) for earlier in self._steps), step]

    def most_promising(self, supports: Support, ahead: Support) -> Support:
        """Take all steps; the features that gain most now."""
        self.r, self.d = self.r[self._origin], self.d[self._origin]
        new = np.unique(supports[:, supports.shape[1] - len(self._steps) :])
        ahead = np.append(new, ahead[~np.isin(ahead, new)])
        k = supports.shape[1]
        for some in at_once(len(self._steps), self.r.size):
            steps = self._steps[some]
            A = [np.pad(t.weights, ((0, 0), (0, k - t.weights.shape[1]))) for t in steps]
            S = np.tile(supports, (len(steps), 1))
            features, weights = spread(S, np.concatenate(A), self.f.n_features)
            rows, _ = self.f.rough_moment_products(features, weights, ahead)
            for step, q in zip(steps, np.split(rows, len(steps)), strict=True):
                step.update(self.r, self.d, q)
        self._origin, self._steps = np.arange(len(supports)), []
        self.d[self._origin[:, None], supports] = 0.0
        outside = self.d != 0
        gains = gains_of(self.f, self.r, np.where(outside, np.maximum(self.d, ROUGH), 0.0))
        return np.sort(smallest(-gains.max(axis=0), self.n_active))


def left_of(
    f: Objective, supports: Support, roots: Matrix, columns: Support
) -> tuple[Matrix, Matrix]:
    """r and d of some features, from the roots of the inverse moments of the supports."""
    features, places = union(supports, f.n_features)
    M = f.moment_block(np.append(features, f.n_features), columns)
    diagonal = f.moment_diagonal
    assert diagonal is not None
    Z = roots @ M[places]
    target = roots @ f.moment_block(features, np.array([f.n_features]))[places]
    r = M[-1] - np.einsum("bk,bkc->bc", target[:, :, 0], Z)
    d = diagonal[columns] - np.einsum("bkc,bkc->bc", Z, Z)
    d[(supports[:, :, None] == columns).any(axis=1)] = 0.0
    return r, d


def gains_of(f: Objective, r: Matrix, d: Matrix) -> Matrix:
    """By how much each feature lowers the value of each support when it enters."""
    gains = r * r
    gains /= np.where(d > DEPENDENT, 2 * d, np.inf)
    gains[gains <= f.resolution] = 0.0
    return gains


def entries(f: Objective, S: Support, p: Support) -> Matrix:
    """M[j, p_b] for the features j of row b of S."""
    rows, places = union(S, f.n_features)
    return f.moment_block(rows, p)[places, np.arange(len(p))[:, None]]


def combined(
    f: Objective, S: Support, A: Matrix, columns: Support | None = None, ahead: Support = NONE
) -> Matrix:
    """Σ_j A_bj M_j over the features j of row b of S; of some columns only, or of all features."""
    rows, weights = spread(S, A, f.n_features)
    if columns is None:
        return f.moment_products(rows, weights, ahead)
    return weights @ f.moment_block(rows, columns)


def largest(scores: Matrix, count: int) -> Support:
    """Of each row, where its largest numbers are, in order."""
    rows, least = np.arange(len(scores))[:, None], max(scores.shape[1] - count, 0)
    some = np.argpartition(scores, least, axis=1)[:, least:]
    return some[rows, np.argsort(-scores[rows, some], axis=1)]


def best_children(
    values: Vector, gains: Matrix, entering: Support, names: NDArray[np.uint64], width: int
) -> tuple[Support, Support]:
    """Which supports go on with which feature, best first; every new support only once.

    names : of the supports that would follow; the same for the same support
    """
    gained = gains[np.arange(len(gains))[:, None], entering]
    after = np.where(gained > 0, values[:, None] - gained, np.inf)
    order = np.argsort(after, axis=None, kind="stable")
    order = order[np.isfinite(after.ravel()[order])]
    first: dict[int, int] = {}
    for child, name in zip(order.tolist(), names.ravel()[order].tolist(), strict=True):
        first.setdefault(name, child)
        if len(first) == width:
            break
    chosen = np.fromiter(first.values(), dtype=np.intp)
    return chosen // entering.shape[1], entering.ravel()[chosen]
