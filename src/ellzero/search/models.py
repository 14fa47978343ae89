"""The search on any other f: its quadratic model proposes supports, f itself decides.

From a support, the model at its minimiser is searched over the sizes around. What looks good there
is refitted on f. Where f has no second derivatives, gradients and coefficients propose neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import inf, isnan

import numpy as np

from ellzero.core import Iterate, Move, Objective
from ellzero.methods.omp import omp_steps
from ellzero.objectives.quadratic import Quadratic
from ellzero.search.levels import Held, Levels
from ellzero.search.quadratic import AT_FLOOR, LEAST_ABOVE, QuadraticSearch
from ellzero.supports import NONE, Vector, smallest

STRIDE = 3
"""A sweep makes a model at every third size, and searches it over as many sizes up and down."""

REACH = 2
"""Otherwise a model is searched over sizes that differ by up to this many features."""

PROPOSALS = 2
"""Supports of each size that a model proposes, and one more below `DIVERSE_BELOW` features."""

DIVERSE_BELOW = 8
"""Below this size changes are large, models are least true, and refits cost little."""

CANDIDATES = 64
"""Features among which a model is searched: those that gain most by themselves."""

EXACT_BELOW = 3
"""Below this size all candidates are inserted on f itself, where f can afford that."""

NEIGHBOURS = 3
"""Insertions, removals and partners in exchanges that are proposed without a model."""

DOUBT = 2.0
"""By what factor a model may misjudge a change before anything is known of it."""

NUMBERS_PER_SUPPORT = 2.3e6
"""Numbers in the data over the supports of each size that are kept: a refit takes a millisecond."""

MOST_HELD = 8
"""Supports of each size that are kept at most."""


class ModelSearch:
    """Settles levels on any f. What is remembered of a support is its minimiser."""

    def __init__(self, f: Objective, levels: Levels):
        self.f, self.levels = f, levels

    @classmethod
    def begin(cls, f: Objective, largest: int) -> ModelSearch:
        """Begin a search for supports of up to this size."""
        breadth = (
            MOST_HELD if isnan(f.size) else int(np.clip(NUMBERS_PER_SUPPORT / f.size, 1, MOST_HELD))
        )
        above = max(LEAST_ABOVE, -(-largest // 8)) if breadth > 1 else STRIDE
        top = min(len(f.features.choosable), largest + above)
        return cls(f, Levels(0, top, breadth, f.resolution, f.floor + AT_FLOOR * f.resolution))

    def phases(self, effort: float) -> Iterator[None]:
        """Sweep over the sizes, then look at all that is kept where that is affordable.

        Each doubling of the effort keeps twice as many supports, and looks at them again.
        """
        levels = self.levels
        self.offer(self.f.minimize(NONE))
        for x in omp_steps(self.f, levels.top):  # so that the search is never worse
            self.offer(x)
            if len(x.support) >= levels.top:
                break
        yield from self.sweep()
        if levels.breadth > 1 and effort > 0:
            levels.renew()
            yield from self.settle()
        while effort >= 2:
            effort, levels.breadth = effort / 2, 2 * levels.breadth
            levels.renew()
            yield from self.settle()

    def offer(self, x: Iterate) -> None:
        """Offer a minimiser of f."""
        self.levels.offer(x.support, x.value, x)

    def minimiser(self, x: Held) -> Iterate:
        """Return the minimiser of f over a support that is kept."""
        return x.memory

    def sweep(self) -> Iterator[None]:
        """Go up and down over the sizes, with a model at every few of them."""
        levels = self.levels
        stride = STRIDE if self.f.features.all_single else 1  # else models reach one size away
        sizes = [*range(levels.bottom, levels.top, stride), levels.top]
        for k in [*sizes, *reversed(sizes)]:
            if k <= levels.top and levels.kept[k] and not levels.kept[k][0].was_widened:
                levels.kept[k][0].was_widened = True
                self._explore(levels.kept[k][0], STRIDE)
                yield

    def settle(self) -> Iterator[None]:
        for held in self.levels.take():
            self._explore(held, REACH)
            yield

    def _explore(self, held: Held, reach: int) -> None:
        """Offer what a model at a support proposes: its neighbours first, as it is truest there."""
        x = held.memory
        model = self.f.quadratic(x)
        if model is None:
            for move in self._guesses(x):
                S = move.of(x.support)
                if self.levels.bottom <= len(S) <= self.levels.top and self.levels.is_new(S):
                    self.offer(self.f.minimize(S, x))
            return
        if not self.f.features.all_single:
            self._refit(model, x, self._ranked(model, x))
            return
        search = self._search(model, x, reach)
        search.explore(next(search.levels.take()))
        self._refit(model, x, search.levels)
        for other in search.levels.take():
            search.explore(other)
        self._refit(model, x, search.levels)
        if len(x.support) < EXACT_BELOW and self.levels.breadth > 1:
            for i in search.W.tolist():
                S = np.union1d(x.support, [i])
                if self.levels.is_new(S):
                    self.offer(self.f.minimize(S, x))

    def _search(self, model: Quadratic, x: Iterate, reach: int) -> QuadraticSearch:
        """Begin a search of the model, from x, over the sizes around that of x."""
        k, unit = len(x.support), model.unit**2
        bottom, top = max(k - reach, min(k, 1)), min(k + reach, self.levels.top)
        proposals = PROPOSALS + (k < DIVERSE_BELOW)
        levels = Levels(bottom, top, proposals, model.resolution / unit)
        levels.offer(x.support, x.value / unit)
        search = QuadraticSearch(model, levels)
        search.use(smallest(model.neighbourhood(x).insertions(), CANDIDATES))
        return search

    def _ranked(self, model: Quadratic, x: Iterate) -> Levels:
        """Return the neighbours that are best on the model, where tableaux of blocks are dear."""
        k, unit, near = len(x.support), model.unit**2, model.neighbourhood(x)
        few = NEIGHBOURS + k
        levels = Levels(max(k - 1, 0), min(k + 1, self.levels.top), few, model.resolution)

        def propose(values: Vector, leaves: int = -1) -> None:
            for i in smallest(values, NEIGHBOURS).tolist():
                levels.offer(Move(i, leaves).of(x.support), float(values[i]) / unit)

        propose(near.insertions())
        for j, value in zip(x.support.tolist(), near.removals().tolist(), strict=True):
            levels.offer(Move(leaves=j).of(x.support), value / unit)
            values = near.moved(Move(leaves=j)).insertions()
            values[j] = inf
            propose(values, j)
        return levels

    def _refit(self, model: Quadratic, x: Iterate, proposed: Levels) -> None:
        """Refit on f what the model proposes, as long as it may be kept."""
        doubt, unit = DOUBT, model.unit**2
        for held in sorted(proposed, key=lambda held: abs(len(held.S) - len(x.support))):
            change = held.value * unit - x.value
            limit = self.levels.limit(len(held.S))
            hoped = x.value + (change * doubt if change < 0 else change / doubt)
            if not hoped < limit or not self.levels.is_new(held.S):
                continue
            y = self.f.minimize(held.S, model.minimize(held.S), limit)
            self.offer(y)
            if abs(change) > self.f.resolution:  # how far the model was off
                doubt = 1 + 2 * abs(1 - (y.value - x.value) / change)

    def _guesses(self, x: Iterate) -> list[Move]:
        """Return exchanges, insertions and removals that gradients and coefficients suggest."""
        features, S = self.f.features, x.support
        slopes = features.norms(self.f.gradient(x))
        enter = smallest(np.where(features.outside(S), -slopes, inf), NEIGHBOURS).tolist()
        leave = S[smallest(features.norms(x.coef, S), NEIGHBOURS)].tolist() if len(S) else []
        moves = [Move(i, j) for i, j in product(enter, leave)] + [Move(enters=i) for i in enter]
        return moves + [Move(leaves=j) for j in leave] * (len(S) > 1)
