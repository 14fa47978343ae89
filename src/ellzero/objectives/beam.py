"""A beam: forward selection that goes on with the best few supports of every size.

It is `Left.inserted` for a stack of supports. A list of single ones takes forty times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.linalg import DEPENDENT
from ellzero.objectives.quadratic import Quadratic
from ellzero.objectives.tableau import Left
from ellzero.supports import NONE, Matrix, Support, Vector, smallest

CHILDREN = 50
"""Insertions of one support that may be in the next beam at most. So several supports go on."""

DUPLICATES = 4
"""Insertions that are looked at for each support wanted: most are found from several supports."""

NUMBERS_AT_ONCE = 1 << 16
"""Features times supports that are updated at a time: half a megabyte, what a core's cache holds.
Supports that are updated together come from the same parents and share most of their features."""

LEAST_AT_ONCE = 16
"""Supports that are updated at a time at least. Each time may cost a pass over the data."""


class Supports(NamedTuple):
    """Supports of one size, best first."""

    S: Support  # a row for each, not sorted
    values: Vector  # in units of f.unit²
    ahead: Support
    """The features that would lower f most in the best support, best first."""


def beam(f: Quadratic, top: int, width: int) -> Iterator[Supports]:
    """Yield the best supports that forward selection finds, for sizes 1 to at most `top`.

    Parameters
    ----------
    width : int
        How many supports of each size go on.
    """
    return (_single_beam if f.features.all_single else _block_beam)(f, top, width)


@dataclass
class Stack:
    """Supports of one size, a row each, and what they leave of all features.

    With BᵀB = C_SS⁻¹, `roots` holds B, which keeps the digits of nearly dependent columns. `r` and
    `d` are the residuals and what is left of the columns, zero where a feature may not enter.
    """

    S: Support
    values: Vector
    roots: NDArray[np.float64]
    r: Matrix
    d: Matrix
    entering: Support
    """For each support, the features that gain most when they enter, in no order."""
    gains: Matrix
    """What these features gain."""

    @classmethod
    def of_nothing(cls, f: Quadratic, children: int) -> Stack:
        """Return the empty support alone."""
        r = f.moments.target[None]
        d = np.where(f.features.free, f.own_blocks[0][:, 0, 0], 0.0)[None]
        S, values = np.empty((1, 0), dtype=np.intp), np.array([f.moments.constant])
        return cls(S, values, np.empty((1, 0, 0)), r, d, *best_insertions(r, d, children))

    def inserted(self, f: Quadratic, parents: Support, p: Support, room: Matrix) -> Stack:
        """Return the supports that follow where features p enter some rows, the parents.

        Parameters
        ----------
        room : array of shape (2, at least len(p), n)
            Memory for r and d. Memory that is new each time takes as long as the products.
        """
        new = np.unique(p)
        f.products(new, np.empty((0, len(new))))  # rows that are made on demand, in one pass
        B = self.roots[parents]
        a = f.block(self.S[parents], p[:, None])
        w = (B.swapaxes(1, 2) @ (B @ a))[:, :, 0]
        S, own = np.column_stack([self.S[parents], p]), np.sqrt(self.d[parents, p])
        weights = np.column_stack([-w, np.ones(len(p))]) / own[:, None]
        t = self.r[parents, p] / own
        r, d = room[:, : len(p)]
        n, count = self.r.shape[1], self.entering.shape[1]
        entering, gains = np.empty((len(p), count), dtype=np.intp), np.empty((len(p), count))
        step = max(NUMBERS_AT_ONCE // n, LEAST_AT_ONCE)
        for begin in range(0, len(p), step):
            some = slice(begin, begin + step)
            q = f.products_each(S[some], weights[some])
            np.multiply(q, t[some, None], out=r[some])
            np.subtract(self.r[parents[some]], r[some], out=r[some])
            q *= q
            np.subtract(self.d[parents[some]], q, out=d[some])
            np.put_along_axis(d[some], S[some], 0.0, axis=1)
            entering[some], gains[some] = best_insertions(r[some], d[some], count)
        roots = np.pad(B, ((0, 0), (0, 1), (0, 1)))
        roots[:, -1] = weights
        return Stack(S, self.values[parents] - 0.5 * t * t, roots, r, d, entering, gains)


def best_insertions(r: Matrix, d: Matrix, count: int) -> tuple[Support, Matrix]:
    """Return for each row the features that gain most, in no order, and what they gain."""
    gains = r * r
    gains /= np.where(d > DEPENDENT, 2 * d, inf)
    at = np.argpartition(gains, gains.shape[1] - count, axis=1)[:, -count:]
    return at, np.take_along_axis(gains, at, axis=1)


def _single_beam(f: Quadratic, top: int, width: int) -> Iterator[Supports]:
    """Run a beam where every feature has one coordinate."""
    n, least = len(f.features), f.resolution / f.unit**2
    names = np.random.default_rng(0).integers(1 << 63, size=n)  # their sum names a support
    stack = Stack.of_nothing(f, min(CHILDREN, width, n))
    rooms = np.empty((2, 2, width, n))
    for k in range(top):
        after = np.where(stack.gains > least, stack.values[:, None] - stack.gains, inf)
        best = smallest(after.ravel(), DUPLICATES * width)
        parents, p = best // after.shape[1], stack.entering.ravel()[best]
        _, first = np.unique(names[stack.S[parents]].sum(axis=1) + names[p], return_index=True)
        first = np.sort(first)[:width]
        if not len(first):
            return
        first = first[np.argsort(parents[first], kind="stable")]
        stack = stack.inserted(f, parents[first], p[first], rooms[k % 2])
        order = np.argsort(stack.values, kind="stable")
        gain = stack.gains[order[0]]
        ahead = stack.entering[order[0], smallest(np.where(gain > least, -gain, inf), CHILDREN)]
        yield Supports(stack.S[order], stack.values[order], ahead)


def _block_beam(f: Quadratic, top: int, width: int) -> Iterator[Supports]:
    """Run a beam for features of any number of coordinates, one support after the other."""
    kept, least = [Left.by(f, NONE)], f.resolution / f.unit**2
    for _ in range(top):
        children: dict[frozenset[int], tuple[float, Left, int]] = {}
        for left in kept:
            gain = np.where(f.features.outside(left.S), left.gains(), 0.0)
            for i in smallest(np.where(gain > least, -gain, inf), width).tolist():
                name = frozenset((*left.S.tolist(), i))
                children.setdefault(name, (left.value - float(gain[i]), left, i))
        best = sorted(children.values(), key=lambda child: child[0])[:width]
        kept = [left.inserted(i) for _, left, i in best]
        if not kept:
            return
        values = np.array([left.value for left in kept])
        gain = np.where(f.features.outside(kept[0].S), kept[0].gains(), 0.0)
        ahead = smallest(np.where(gain > least, -gain, inf), CHILDREN)
        yield Supports(np.array([left.S for left in kept]), values, ahead)
