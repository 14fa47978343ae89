"""The search on a quadratic: look at every neighbour of every support that is kept.

Neighbours differ in one feature (insertion, removal) or in two (exchange, pair insertion); the
tableau of a support gives the values of all of them at once. The search runs on a working set of
features, where tableaux are small; `widen` then looks at all features and lets in those that help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ellzero.algorithms.beam import beam
from ellzero.algorithms.levels import Held, Levels
from ellzero.algorithms.outside import Outside
from ellzero.algorithms.sweep import pair_changes, pivot, single_changes, tableau
from ellzero.core import Objective
from ellzero.supports import NONE, Mask, Matrix, Support, smallest

SMALL = 128
"""Up to this many features the working set is all of them."""

AROUND = 3
"""Of each support in the working set so many of the best insertions are in it too."""

DIVERSE = 4
"""Below this size as many neighbours of a support are pursued as are kept of a size."""

RENEW = 50
"""After this many pivots a tableau is made anew, so that rounding cannot add up ..."""

UNSTABLE = 1e-5
"""... and after a pivot as small as this, or as large as its inverse, where f itself is asked."""

REFILL = 20
"""A shaken support draws among this many of the best insertions."""


class Descent(NamedTuple):
    """How to get at a tableau: by pivots from another one; `age` counts those since it was new.

    This is what a support remembers until its neighbours are looked at.
    """

    parent: Matrix
    pivots: tuple[int, ...]
    age: int


class QuadraticSearch:
    """Settles `levels` on a quadratic f."""

    def __init__(self, f: Objective, levels: Levels, diverse: int = DIVERSE):
        self.f, self.levels, self.diverse = f, levels, diverse
        self.explored = 0
        self.use(NONE)

    def use(self, features: Iterable[int]) -> None:
        """Let features into the working set; the kept supports are always in it."""
        if self.f.n_features <= SMALL:
            self.W = self.f.choosable
        else:
            kept = [x.support for x in self.levels]
            self.W = np.unique(np.concatenate([*kept, np.asarray(features, dtype=np.intp)]))
        rows = np.append(self.W, self.f.n_features)
        self.moments = self.f.moment_block(rows, rows)
        for x in self.levels:
            x.memory = None  # tableaux of other features

    def copy(self) -> QuadraticSearch:
        """A search that goes on from the same (settled) levels, on its own."""
        other = copy(self)
        other.levels = self.levels.copy()
        return other

    def learn_from(self, other: QuadraticSearch) -> None:
        """Offer what another search holds."""
        for x in other.levels:
            self.keep(x.support, x.value)
        if self.levels.fresh:
            self.use(self.W)

    def local(self, S: Support) -> Support:
        """Where features are in the working set."""
        return np.searchsorted(self.W, S)

    def forward(self, width: int, n_active: int | None = None) -> None:
        """Offer what a beam of this width finds."""
        near = [self.W]
        for supports, values, ahead in beam(self.f, self.levels.top, width, n_active):
            near.append(ahead[:AROUND])
            for S, value in zip(supports, values, strict=True):
                if not value < self.levels.limit(len(S)):
                    break
                self.keep(np.sort(S), float(value))
        self.use(np.concatenate(near))

    def keep(self, S: Support, value: float, memory: Any = None) -> None:
        """Offer a support; one at the floor would end the levels, so f itself is asked about it."""
        if value <= self.levels.floor:
            value = self.f.minimize(S).value
        self.levels.offer(S, value, memory)

    def backward(self) -> None:
        """Offer what backward elimination finds."""
        S = np.arange(len(self.W))
        T = tableau(self.moments, S)
        while T is not None and len(S) > max(self.levels.bottom, 1):
            j = int(np.argmin(single_changes(T)[S]))
            pivot(T, int(S[j]))
            S = np.delete(S, j)
            self.keep(self.W[S], float(T[-1, -1] / 2))

    def settle(self) -> Iterator[None]:
        """Look at neighbours until none is better, first among the working set."""
        while True:
            self.settle_here()
            yield
            if len(self.W) >= self.f.n_choosable or not self.widen():
                return

    def settle_here(self) -> None:
        """Look at neighbours among the working set; small supports first, as what they lead to may
        displace larger ones."""
        front = self.levels.bottom
        while self.levels.fresh:
            for x in self.levels.take_fresh(front):
                self.explore(x)
            front += 1

    def widen(self) -> bool:
        """Offer what features outside could do for the best supports; is any of it kept?"""
        new = [x for x in self.levels.bests() if not x.checked]
        for x in new:
            x.checked = True
        Outside(self.f, self.levels, self.W, self.moments).offer(new)
        if self.levels.fresh:
            self.use(self.W)
        return bool(self.levels.fresh)

    # one support and its neighbours

    def explore(self, x: Held) -> None:
        """Offer the neighbours of a support."""
        T = self._tableau(x)
        if T is None:
            return
        self.explored += 1
        x.value = float(T[-1, -1] / 2)
        S = self.local(x.support)
        inside = self._inside(S)
        rest = (~inside).nonzero()[0]
        single, pair = single_changes(T), pair_changes(T, np.concatenate([S, rest]), rest)
        pair[len(S) :].ravel()[:: len(rest) + 1] = np.inf  # a feature twice
        few = self.levels.breadth if len(S) < self.diverse else 2
        for grown, features in ((1, rest), (-1, S)):
            changes = single[features]
            for c in changes.argsort()[:few].tolist():
                if not self._offer(x, T, inside, (features[c],), grown, changes[c]):
                    break
        for grown, features, changes in ((0, S, pair[: len(S)]), (2, rest, pair[len(S) :])):
            if changes.size:
                i, j = divmod(int(changes.argmin()), len(rest))
                self._offer(x, T, inside, (features[i], rest[j]), grown, changes[i, j])
        x.memory = None

    def _offer(
        self, x: Held, T: Matrix, inside: Mask, move: tuple[int, ...], grown: int, change: float
    ) -> bool:
        """Offer the support that a move leads to, which has so many features more; false if it is
        not better than what is kept."""
        value = float(x.value + change)
        if not value < self.levels.limit(len(x.support) + grown):
            return False
        after = inside.copy()
        for p in move:
            after[p] = not after[p]
        S = self.W[after.nonzero()[0]]
        if self.levels.is_new(S):
            pivots = [abs(T[p, p]) for p in move]
            if UNSTABLE < min(pivots) and max(pivots) < 1 / UNSTABLE:
                self.keep(S, value, Descent(T, move, x.memory.age + len(move)))
            else:
                self.levels.offer(S, self.f.minimize(S).value)
        return True

    def _tableau(self, x: Held) -> Matrix | None:
        """Of a support; None where its features are dependent."""
        if x.memory is None or x.memory.age >= RENEW:
            x.memory = Descent(self.moments, (), 0)
            return tableau(self.moments, self.local(x.support))
        T = x.memory.parent.copy()
        for p in x.memory.pivots:
            pivot(T, p)
        return T

    def _inside(self, S: Support) -> Mask:
        inside = np.zeros(len(self.W), dtype=bool)
        inside[S] = True
        return inside

    # ways out of a local optimum

    def shake(self, k: int, rng: np.random.Generator) -> bool:
        """Move the best support of size k to one nearby, exchange from there, and offer the result.

        Is it kept?
        """
        S = self.local(self.levels.kept[k][0].support)
        S = (self._unregularised if rng.random() < 0.5 else self._rebuilt)(S, rng)
        T = tableau(self.moments, S)
        if T is None:
            self.explored += 1  # or shakes would not end
            return False
        S, T = self._exchanged(T, S)
        return self.levels.offer(self.W[S], float(T[-1, -1] / 2))

    def _unregularised(self, S: Support, rng: np.random.Generator) -> Support:
        """ARHT's way out: regularise all but a random part of S, and exchange.

        The features left free are drawn with probability proportional to x_i².
        """
        T = tableau(self.moments, S)
        if T is None:
            return S
        keys = rng.exponential(size=len(S)) / np.maximum(T[S, -1] ** 2, 1e-300)
        ridge = np.full(len(self.W), 10 ** rng.uniform(-3, 0))
        ridge[S[np.argsort(keys)[: len(S) // 2]]] = 0.0
        moments = self.moments.copy()
        np.einsum("ii->i", moments)[:-1] += ridge  # a view of the diagonal
        regularised = tableau(moments, S)
        return S if regularised is None else self._exchanged(regularised, S)[0]

    def _rebuilt(self, S: Support, rng: np.random.Generator) -> Support:
        """Take out a random part of S; refill it with good features, the last with the best."""
        order, n_out = rng.permutation(S), int(rng.integers(1, len(S) // 2 + 2))
        inside = self._inside(order[n_out:])
        T = tableau(self.moments, inside.nonzero()[0])
        if T is None:
            return S
        for left in reversed(range(n_out)):
            changes = np.where(inside, np.inf, single_changes(T))
            good = smallest(changes, REFILL if left else 1)
            if not len(good):
                return S
            i = int(good[int(len(good) * rng.random() ** 2)])
            pivot(T, i)
            inside[i] = True
        return np.flatnonzero(inside)

    def _exchanged(self, T: Matrix, S: Support) -> tuple[Support, Matrix]:
        """The best exchange again and again; T is the tableau of S."""
        inside = self._inside(S)
        while True:
            self.explored += 1
            S, rest = inside.nonzero()[0], (~inside).nonzero()[0]
            changes = pair_changes(T, S, rest)
            if not changes.min(initial=np.inf) < -self.levels.resolution:
                return S, T
            j, i = divmod(int(changes.argmin()), len(rest))
            for p in (S[j], rest[i]):
                pivot(T, p)
                inside[p] = not inside[p]
