"""The search on any other f: its quadratic model proposes supports, f itself decides.

From a support the model at its minimiser is searched over the sizes around; what looks good there
is refitted on f. Where features own several coefficients the model only ranks the neighbours, and
where f has no Hessian gradients and coefficients propose them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ellzero.algorithms.levels import Levels
from ellzero.algorithms.quadratic_search import QuadraticSearch
from ellzero.core import Iterate, Objective
from ellzero.supports import NONE, Support, magnitudes, smallest, swapped

STRIDE = 3
"""A sweep makes a model at every so many sizes, and searches it over as many up and down."""

REACH = 2
"""Otherwise a model is searched over sizes that differ by up to this many features."""

PROPOSALS = 2
"""So many supports of each size are proposed, and one more below `DIVERSE` features ..."""

DIVERSE = 8
"""... where a change is large, a model is least true, and a refit costs little."""

CANDIDATES = 64
"""The model is searched among this many of the best insertions."""

NEIGHBOURS = 3
"""A support without a model to search has so many insertions, removals and exchanges proposed."""

EXACT_BELOW = 3
"""Below this size all candidates are inserted on f itself, where f can afford that."""

DOUBT = 2.0
"""By what factor a model may misjudge a change before anything is known of it."""


class ModelSearch:
    """Settles `levels` on any f; what is remembered of a support is its iterate."""

    def __init__(self, f: Objective, levels: Levels):
        self.f, self.levels = f, levels
        self.explored = 0
        empty = f.minimize(NONE)
        self.offer(empty)
        self.has_tableaux = is_searchable(f.quadratic_model(empty))

    def offer(self, x: Iterate) -> bool:
        return self.levels.offer(x.support, x.value, x)

    def sweep(self) -> Iterator[None]:
        """Up and down over the sizes, with a model at every few of them."""
        levels = self.levels
        stride = STRIDE if self.has_tableaux else 1  # neighbours are one size away
        sizes = [*range(levels.bottom, levels.top, stride), levels.top]
        for k in [*sizes, *reversed(sizes)]:
            if k > levels.top or not levels.kept[k] or levels.kept[k][0].checked:
                continue
            levels.kept[k][0].checked = True
            self._explore(levels.kept[k][0].memory, STRIDE)
            yield
        levels.fresh.clear()

    def settle(self) -> Iterator[None]:
        """Small supports go first: what they lead to may displace larger ones."""
        front = self.levels.bottom
        while self.levels.fresh:
            for held in self.levels.take_fresh(front):
                if not held.displaced:
                    self._explore(held.memory, REACH)
                    yield
            front += 1

    def shake(self, k: int, rng: np.random.Generator) -> bool:
        """Shake the best support of size k on its model; is the result kept?"""
        self.explored += 1
        x = self.levels.kept[k][0].memory
        model = self.f.quadratic_model(x) if self.has_tableaux else None
        if model is None:
            return False
        search = self._search_of(model, x, 0)
        return search.shake(k, rng) and self._check(model, x, search.levels)

    def _explore(self, x: Iterate, reach: int) -> None:
        self.explored += 1
        model = self.f.quadratic_model(x)
        if model is None:
            for S in neighbours(self.f, x):
                if self.levels.is_new(S):
                    self.offer(self.f.minimize(S, x))
            return
        if self.has_tableaux:
            search = self._search_of(model, x, reach)
            found = search.levels
            for held in found.take_fresh(len(x.support)):
                search.explore(held)
            self._check(model, x, found)  # of its neighbours, before the model is less true
            search.settle_here()
        else:
            found = ranked_neighbours(model, x, self.levels.top)
        self._check(model, x, found)
        if len(x.support) < EXACT_BELOW and self.levels.breadth > 1:
            for i in smallest(model.insertion_values(x.support), CANDIDATES):
                S = np.sort(np.append(x.support, i))
                if self.levels.is_new(S):
                    self.offer(self.f.minimize(S, x))

    def _search_of(self, model: Objective, x: Iterate, reach: int) -> QuadraticSearch:
        """A search of the model, from x, over the sizes around that of x."""
        k = len(x.support)
        bottom, top = min(k, max(k - reach, 1)), min(k + reach, self.levels.top)
        proposals = PROPOSALS + (k < DIVERSE)
        found = Levels(bottom, top, proposals, model.resolution)
        found.offer(x.support, x.value)
        search = QuadraticSearch(model, found, DIVERSE)
        search.use(model.promising_insertions(x.support, CANDIDATES))
        return search

    def _check(self, model: Objective, x: Iterate, found: Levels) -> bool:
        """Refit on f what the model proposes; is any of it kept?"""
        doubt, kept = DOUBT, False
        for held in sorted(found, key=lambda held: abs(len(held.support) - len(x.support))):
            S, change = held.support, held.value - x.value
            limit = self.levels.limit(len(S))
            hoped = x.value + (change * doubt if change < 0 else change / doubt)
            if not hoped < limit or not self.levels.is_new(S):
                continue
            start = model.minimize(S)
            # what the model got wrong bounds what is still to be gained, but for higher orders,
            # which count where a feature owns much
            expected = start.value if self.has_tableaux else -np.inf
            y = self.f.minimize_below(S, start, limit, expected)
            if y is None:
                continue
            kept |= self.offer(y)
            if abs(change) > self.f.resolution:
                doubt = 1 + 2 * abs(1 - (y.value - x.value) / change)
        return kept


def is_searchable(model: Objective | None) -> bool:
    """Does the model have the moments from which tableaux are made?"""
    return model is not None and model.moment_diagonal is not None


def ranked_neighbours(model: Objective, x: Iterate, top: int) -> Levels:
    """The exchanges, insertions and removals that are best on a model."""
    S, k = x.support, len(x.support)
    found = Levels(max(k - 1, 0), min(k + 1, top), NEIGHBOURS, model.resolution)
    if k < top:
        values = model.insertion_values(S)
        for i in smallest(values, NEIGHBOURS):
            found.offer(np.sort(np.append(S, i)), float(values[i]))
    if k > 1:
        values = model.removal_values(S)
        for j in smallest(values, NEIGHBOURS):
            found.offer(np.delete(S, j), float(values[j]))
    values = model.exchange_values(S)
    values[:, S] = np.inf
    for swap in smallest(values.ravel(), NEIGHBOURS):
        j, i = divmod(int(swap), model.n_features)
        found.offer(np.sort(swapped(S, int(S[j]), i)), float(values[j, i]))
    return found


def neighbours(f: Objective, x: Iterate) -> list[Support]:
    """Exchanges, insertions and removals that gradients and coefficients suggest."""
    S = x.support
    ins = smallest(np.where(f.outside(S), -magnitudes(f.gradient(x)), np.inf), NEIGHBOURS)
    outs = S[smallest(magnitudes(x.coef), NEIGHBOURS)] if len(S) else S
    found = [swapped(S, j, i) for i, j in product(ins, outs)]
    found += [np.append(S, i) for i in ins]
    if len(S) > 1:
        found += [S[j != S] for j in outs]
    return [np.sort(T) for T in found]
