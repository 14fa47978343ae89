"""The search on a quadratic: look at every neighbour of every support that is kept.

Neighbours differ in one feature (an insertion, a removal) or in two (an exchange, a pair that
enters). The swept tableau of a support gives the values of all of them at once. Tableaux are made
of a *working set* of features, where they are small. `widen` then looks at all features, and lets
those in that help.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

import numpy as np

from ellzero.core import Features, Iterate
from ellzero.objectives.beam import beam
from ellzero.objectives.quadratic import Quadratic
from ellzero.objectives.tableau import (
    UNSTABLE,
    UPDATES,
    Left,
    pair_changes,
    pivot,
    single_changes,
    swept,
)
from ellzero.search.levels import Held, Levels
from ellzero.supports import NONE, Mask, Matrix, Support, smallest

FEATURES_IN_WHOLE = 128
"""Up to this many features the working set is all of them."""

INSERTIONS_AROUND = 3
"""The best insertions of a support that join the working set with it."""

DIVERSE_BELOW = 4
"""Below this size as many single moves of a support are offered as are kept of a size; else two."""


NARROW = 16
"""Supports of each size in the first beam. Fewer save little time and miss much on wide data."""

WIDE, WIDEST = 256, 1024
"""Supports of each size in the first wide beam, and in the widest one at effort 1. On tables of 60
rows and 600 columns a width of 512 misses twice as much."""

NUMBERS_PER_SUPPORT = 1e9
"""Numbers in the data times the width of the widest beam at effort 1: it takes about a second."""

NUMBERS_IN_BEAM, MOST_NUMBERS_IN_BEAM = 1 << 22, 1 << 26
"""Features times the width of the widest beam at effort 1, and at any effort. A beam holds four
times as many numbers: 2 GB at most."""

HELD, WIDTH_PER_HELD, FEATURES_PER_HELD = 2, 40, 12
"""Supports of each size that are kept at least; and one for so much width of a beam, if there are
as many features for it: few features let few supports compete."""

PAIRED = 2
"""The best supports of each size of which pairs that enter together are looked at, too: these take
most of the time."""

AT_FLOOR = 100
"""A value within this many times the resolution of the floor cannot be improved."""

LEAST_ABOVE = 5
"""Sizes above the largest asked for that take part: what they find helps those below."""


class Descent(NamedTuple):
    """How to get at the tableau of a support: by moves from the tableau of another one."""

    parent: Matrix
    moves: tuple[int, ...]
    age: int
    """How many moves have been made since a tableau was made anew."""


class QuadraticSearch:
    """Settles levels on a quadratic. All values are in units of `f.unit` squared."""

    def __init__(self, f: Quadratic, levels: Levels):
        self.f, self.levels = f, levels
        self.use(NONE)

    @classmethod
    def begin(cls, f: Quadratic, largest: int) -> QuadraticSearch:
        """Begin a search for supports of up to this size."""
        top = min(len(f.features.choosable), largest + max(LEAST_ABOVE, ceil(largest / 8)))
        unit = f.unit**2
        floor = (f.floor + AT_FLOOR * f.resolution) / unit
        return cls(f, Levels(0, top, HELD, f.resolution / unit, floor))

    def phases(self, effort: float) -> Iterator[None]:
        """Look at a narrow beam and its neighbours, then at wider and wider ones.

        Their widths do not depend on the effort, so more effort does the same first.
        """
        n = len(self.f.features)
        widest = effort * min(NUMBERS_PER_SUPPORT / self.f.size, NUMBERS_IN_BEAM / n, WIDEST)
        widest = min(widest, MOST_NUMBERS_IN_BEAM / n)
        self.levels.offer(NONE, self.f.moments.constant)
        if effort > 0 and NUMBERS_PER_SUPPORT / self.f.size >= WIDE:
            self._keep_for(WIDE)
        self.forward(NARROW)
        yield from self.settle()
        width = WIDE
        while width <= widest:
            self._keep_for(width)
            self.forward(width)
            yield from self.settle()
            width *= 4 if width < WIDEST else 2

    def _keep_for(self, width: int) -> None:
        """Keep more supports of each size beside a wider beam."""
        most = len(self.f.features) // FEATURES_PER_HELD
        self.levels.breadth = max(min(width // WIDTH_PER_HELD, most), HELD)

    def offer(self, x: Iterate) -> None:
        """Offer a minimiser of f."""
        self.levels.offer(x.support, x.value / self.f.unit**2)

    def minimiser(self, x: Held) -> Iterate:
        """Return the minimiser of f over a support that is kept."""
        return self.f.minimize(x.S)

    def use(self, features: Support) -> None:
        """Let features into the working set. The supports that are kept are always in it."""
        free = self.f.features.choosable
        if len(free) <= FEATURES_IN_WHOLE:
            self.W = free
        else:
            kept = [x.S for x in self.levels]
            self.W = np.unique(np.concatenate([features, *kept])).astype(np.intp)
        m, T = self.f.moments, self.f.features.coordinates(self.W)
        c = m.target[T]
        self.M = np.block([[self.f.block(T, T), c[:, None]], [c, 2 * m.constant]])
        self.features = Features(self.f.features.sizes[self.W])
        for x in self.levels:
            x.memory = None  # a tableau of other features

    def forward(self, width: int) -> None:
        """Offer what a beam of this width finds."""
        near = [self.W]
        for found in beam(self.f, self.levels.top, width):
            near.append(found.ahead[:INSERTIONS_AROUND])
            for S, value in zip(found.S, found.values.tolist(), strict=True):
                if not value < self.levels.limit(len(S)):
                    break
                self.keep(np.sort(S), value)
        self.use(np.concatenate(near))

    def keep(self, S: Support, value: float, memory: Descent | None = None) -> None:
        """Offer a support. One at the floor would end the levels, so f itself is asked about it."""
        if value <= self.levels.floor:
            value = self.value_of(S)
        self.levels.offer(S, value, memory)

    def value_of(self, S: Support) -> float:
        return self.f.minimize(S).value / self.f.unit**2

    def settle(self) -> Iterator[None]:
        """Look at neighbours until none is better, first in the working set."""
        while True:
            for x in self.levels.take():
                self.explore(x)
            yield
            if len(self.W) == len(self.f.features.choosable) or not self.widen():
                return

    def widen(self) -> bool:
        """Offer what features outside the working set could do for the best supports."""
        for x in [x for x in self.levels.bests() if not x.was_widened]:
            x.was_widened = True
            left = Left.by(self.f, x.S)
            gains = np.where(self.f.features.outside(x.S), left.gains(), 0.0)
            for i in smallest(-gains, INSERTIONS_AROUND):
                if gains[i] > 0:
                    self.keep(np.sort(np.append(x.S, i)), float(left.value - gains[i]))
            i, j, value = left.best_exchange()
            if value < x.value:
                self.keep(np.sort(np.append(x.S[j != x.S], i)), value)
        if self.levels.fresh:
            self.use(self.W)
        return bool(self.levels.fresh)

    # one support and its neighbours

    def explore(self, x: Held) -> None:
        """Offer the neighbours of a support."""
        T, age = self._tableau(x)
        if T is None:
            return
        inside = np.zeros(len(self.W), dtype=bool)
        inside[np.searchsorted(self.W, x.S)] = True
        S, rest = np.flatnonzero(inside), np.flatnonzero(~inside)
        single = single_changes(T, self.features)
        is_paired = x in self.levels.kept[len(S)][:PAIRED]
        first = np.concatenate([S, rest]) if is_paired else S
        pair = pair_changes(T, self.features, first, rest)
        few = self.levels.breadth if len(S) < DIVERSE_BELOW else 2
        moves: list[tuple[tuple[int, ...], float]] = []
        for own in (rest, S):
            moves += [((p,), single[p]) for p in own[smallest(single[own], few)].tolist()]
        for own, part in ((S, pair[: len(S)]), (rest, pair[len(S) :])):
            if part.size:
                i, j = divmod(int(part.argmin()), len(rest))
                moves.append(((int(own[i]), int(rest[j])), part[i, j]))
        for move, change in moves:
            self._offer(x, T, age, inside, move, float(x.value + change))
        x.memory = None

    def _offer(
        self,
        x: Held,
        T: Matrix,
        age: int,
        inside: Mask,
        moves: tuple[int, ...],
        value: float,
    ) -> None:
        """Offer the support that some moves lead to."""
        k = len(x.S) + sum(-1 if inside[p] else 1 for p in moves)
        if not value < self.levels.limit(k):
            return
        after = inside.copy()
        after[list(moves)] ^= True
        S = self.W[after]
        if not self.levels.is_new(S):
            return
        pivots = np.abs(T.diagonal()[self.features.coordinates(np.array(moves))])
        if UNSTABLE < pivots.min() <= pivots.max() < 1 / UNSTABLE:
            self.keep(S, value, Descent(T, moves, age + len(moves)))
        else:
            self.levels.offer(S, self.value_of(S))

    def _tableau(self, x: Held) -> tuple[Matrix | None, int]:
        """Return the tableau of a support and its age; None where its features are dependent."""
        if x.memory is None or x.memory.age >= UPDATES:
            T, age = swept(self.M, self.features, np.searchsorted(self.W, x.S)), 0
        else:
            T, age = x.memory.parent.copy(), x.memory.age
            for p in x.memory.moves:
                pivot(T, self.features.coordinates(np.array([p])))
        if T is not None:
            x.value = float(T[-1, -1] / 2)
        return T, age
