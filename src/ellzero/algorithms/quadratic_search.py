"""The search on a quadratic: look at every neighbour of every support that is kept.

Neighbours differ in one feature (insertion, removal) or in two (exchange, pair insertion); the
tableau of a support gives the values of all of them at once. The search runs on a working set of
features, where tableaux are small; `widen` then looks at all features and lets in those that help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.algorithms.beam import beam
from ellzero.algorithms.levels import Held, Levels
from ellzero.algorithms.outside import Outside
from ellzero.algorithms.sweep import (
    pair_changes,
    pivot,
    single_changes,
    tableau,
)
from ellzero.core import Objective
from ellzero.supports import NONE, Matrix, Support, smallest

SMALL = 128
"""Up to this many features the working set is all of them."""

AROUND = 3
"""Of each support in the working set so many of the best insertions are in it too."""

BATCH = 1 << 16
"""Numbers in a stack of tableaux, which should stay in the processor's cache."""

DIVERSE = 4
"""Below this size as many neighbours of a support are pursued as are kept of a size."""

RENEW = 50
"""After this many pivots a tableau is made anew, so that rounding cannot add up ..."""

UNSTABLE = 1e-5
"""... and after a pivot as small as this, or as large as its inverse."""

REFILL = 20
"""A shaken support draws among this many of the best insertions."""


class Descent(NamedTuple):
    """How to get at a tableau: by pivots from another one; `age` counts those since it was new."""

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
                self.levels.offer(np.sort(S), float(value))
        self.use(np.concatenate(near))

    def backward(self) -> None:
        """Offer what backward elimination finds."""
        S = np.arange(len(self.W))
        T = tableau(self.moments, S)
        while T is not None and len(S) > max(self.levels.bottom, 1):
            j = int(np.argmin(single_changes(T[None])[0, S]))
            pivot(T[None], S[j : j + 1])
            S = np.delete(S, j)
            self.levels.offer(self.W[S], float(T[-1, -1] / 2))

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
        size, front = max(BATCH // self.moments.size, 1), self.levels.bottom
        while self.levels.fresh:
            waiting = self.levels.take_fresh(front)
            for begin in range(0, len(waiting), size):
                self.explore(waiting[begin : begin + size])
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

    def explore(self, batch: list[Held]) -> None:
        """Offer the neighbours of some supports."""
        batch, T = self._tableaux(batch)
        if not batch:
            return
        self.explored += len(batch)
        inside = self._inside(x.support for x in batch)
        single, pair = single_changes(T), pair_changes(T)
        members = inside[:, :, None] + inside[:, None, :]
        entered, exchanged = (best_pairs(pair, members == count, inside) for count in (0, 1))
        singles = [np.where(inside == kind, single, np.inf) for kind in (0, 1)]
        firsts = [changes.argsort(axis=1).tolist() for changes in singles]
        for a, x in enumerate(batch):
            x.value = float(T[a, -1, -1] / 2)
            few = self.levels.breadth if len(x.support) < self.diverse else 2
            for grown, changes, first in zip((1, -1), singles, firsts, strict=True):
                for p in first[a][:few]:
                    self._offer(x, T[a], inside[a], (p,), grown, float(changes[a, p]))
            for grown, move in ((0, exchanged[a]), (2, entered[a])):
                self._offer(x, T[a], inside[a], move, grown, float(pair[(a, *move)]))

    def _offer(
        self,
        x: Held,
        T: Matrix,
        inside: NDArray[np.int8],
        move: tuple[int, ...],
        grown: int,
        change: float,
    ) -> None:
        """Offer the support that a move leads to, which has so many features more."""
        if not x.value + change < self.levels.limit(len(x.support) + grown):
            return
        after = inside.copy()
        for p in move:
            after[p] ^= 1
        S = self.W[after.nonzero()[0]]
        if not self.levels.is_new(S):
            return
        pivots = [abs(T[p, p]) for p in move]
        stable = UNSTABLE < min(pivots) and max(pivots) < 1 / UNSTABLE
        age = x.memory.age + len(move) if stable else RENEW
        self.levels.offer(S, x.value + change, Descent(T, move, age))

    def _tableaux(self, batch: list[Held]) -> tuple[list[Held], Matrix]:
        """The tableaux of those supports of the batch that have one."""
        usable, stack = [], []
        for x in batch:
            if x.memory is None or x.memory.age >= RENEW:
                T = tableau(self.moments, self.local(x.support))
                x.memory = Descent(self.moments, (), 0)
            else:
                T = x.memory.parent
            if T is not None:
                usable.append(x)
                stack.append(T)
        out = np.array(stack)
        for step in (0, 1):
            some = [a for a, x in enumerate(usable) if len(x.memory.pivots) > step]
            if some:
                part = out[some]
                pivot(part, np.array([usable[a].memory.pivots[step] for a in some]))
                out[some] = part
        return usable, out

    def _inside(self, supports: Iterable[Support]) -> NDArray[np.int8]:
        rows = []
        for S in supports:
            rows.append(np.zeros(len(self.W), dtype=np.int8))
            rows[-1][self.local(S)] = 1
        return np.array(rows)

    # ways out of a local optimum

    def shake(self, k: int, rng: np.random.Generator) -> bool:
        """Move the best support of size k to one nearby, exchange from there, and offer the result.

        Is it kept?
        """
        S = self.local(self.levels.kept[k][0].support)
        S = (self._unregularised if rng.random() < 0.5 else self._rebuilt)(S, rng)
        T = tableau(self.moments, S)
        if T is None:
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
        inside = np.zeros(len(self.W), dtype=bool)
        inside[order[n_out:]] = True
        T = tableau(self.moments, inside.nonzero()[0])
        if T is None:
            return S
        for left in reversed(range(n_out)):
            changes = np.where(inside, np.inf, single_changes(T[None])[0])
            good = smallest(changes, REFILL if left else 1)
            if not len(good):
                return S
            i = good[int(len(good) * rng.random() ** 2)]
            pivot(T[None], np.array([i]))
            inside[i] = True
        return np.flatnonzero(inside)

    def _exchanged(self, T: Matrix, S: Support) -> tuple[Support, Matrix]:
        """The best exchange again and again; T is the tableau of S."""
        inside = np.zeros((1, len(self.W)), dtype=np.int8)
        inside[0, S] = 1
        while True:
            self.explored += 1
            pair = pair_changes(T[None])
            [(j, i)] = best_pairs(pair, inside[:, :, None] != inside[:, None, :], inside)
            if not pair[0, j, i] < -self.levels.resolution:
                return np.flatnonzero(inside[0]), T
            for p in (j, i):
                pivot(T[None], np.array([p]))
                inside[0, p] ^= 1


def best_pairs(
    changes: Matrix, of_kind: NDArray[np.bool_], inside: NDArray[np.int8]
) -> list[tuple[int, int]]:
    """Of each support the best pair of a kind; if one of the two is inside, it comes first."""
    n = changes.shape[-1]
    flat = np.where(of_kind, changes, np.inf).reshape(len(changes), -1).argmin(axis=1)
    pairs = (divmod(c, n) for c in flat.tolist())
    return [(i, j) if row[i] else (j, i) for (i, j), row in zip(pairs, inside, strict=True)]
