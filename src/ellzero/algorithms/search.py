"""ellzero's own search: the best support of every size, each level helping its neighbours.

A path holds the best support known of every size. From a support S the search looks at its
neighbours: every exchange (same size), every insertion (one more), every removal (one less). An
improvement at any level is followed up and down the path until no neighbour of any level is better;
then supports are shaken, as ARHT does, while the effort lasts.

Where f is quadratic its closed forms score all neighbours exactly. Otherwise they are scored on the
local quadratic model (or, without a Hessian, by gradients), and each step is checked on f itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import ceil
from typing import Any

import numpy as np

from ellzero.algorithms.arht import child, seed_of
from ellzero.algorithms.moves import (
    Neighbours,
    backward_chain,
    descend,
    forward_chain,
    shake,
)
from ellzero.core import Iterate, Objective

FULL_DESCENT = 128
"""Up to this many features the search also comes down from the model of all features."""


def search_steps(
    f: Objective, largest: int, *, effort: float = 1.0, random_state: Any = 0
) -> Generator[Iterate, None, dict[int, bool]]:
    """Yield every improvement at sizes 1 … `largest`; return which sizes are proven best.

    effort : 0 stops when no neighbour is better; 1 shakes every level once after that, and again
        as long as it helps (not where f can afford a breadth of one support only); larger numbers
        try that many times as often
    """
    levels = Levels(f, largest)
    yield from levels.first_pass()
    yield from levels.settle()
    seed, z, failures = seed_of(random_state), 0, 0
    patience = effort if f.breadth > 1 else effort - 1
    while failures < patience and levels.open:
        failures += 1
        for k in levels.open:
            shaken = shake(f, levels.best(k), child(seed, z))
            z += 1
            if levels.improves(shaken):
                failures = 0
            yield shaken
            yield from levels.settle()
    return levels.proven


class Levels:
    """The best few iterates of every size, and those whose neighbours are still to be seen."""

    def __init__(self, f: Objective, largest: int):
        self.f = f
        self.largest = largest
        self.top = min(f.n_choosable, largest + max(5, ceil(largest / 4)))
        self.kept: dict[int, list[Iterate]] = {}
        self.fresh: dict[int, list[Iterate]] = {}
        self.proven: dict[int, bool] = {}
        self.tried: set[bytes] = set()

    @property
    def open(self) -> list[int]:
        """The sizes asked for whose best is not proven."""
        return [k for k in range(1, self.largest + 1) if not self.proven.get(k)]

    def best(self, k: int) -> Iterate:
        return self.kept[k][0]

    def limit(self, k: int) -> float:
        """What a support of size k must stay below to be kept."""
        kept = self.kept.get(k, [])
        return np.inf if len(kept) < self.f.breadth else kept[-1].value

    def offer(self, x: Iterate) -> bool:
        """Keep x if it is among the best few of its size."""
        k = len(x.support)
        kept = self.kept.setdefault(k, [])
        known = any(np.array_equal(x.support, y.support) for y in kept)
        if k > self.top or known or x.value >= self.limit(k) - self.f.resolution:
            return False
        self.tried.add(x.support.tobytes())
        kept.append(x)
        kept.sort(key=lambda y: y.value)
        del kept[self.f.breadth :]
        self.fresh.setdefault(k, []).append(x)
        return True

    def improves(self, x: Iterate) -> bool:
        """Keep x if it may be kept; is it the best of its size?"""
        return self.offer(x) and self.best(len(x.support)) is x

    def first_pass(self) -> Iterator[Iterate]:
        """Sizes few enough to enumerate; greedily up; greedily down where all features fit."""
        for k in range(1, self.top + 1):
            x = self.f.best_subset(k)
            if x is not None:
                self.proven[k] = True
                yield from filter(self.improves, [x])
        x = self.f.minimize(np.empty(0, dtype=np.intp))
        self.offer(x)
        yield from filter(self.improves, forward_chain(self.f, x, self.top))
        if self.f.n_choosable <= FULL_DESCENT and self.f.quadratic_model(x) is self.f:
            yield from filter(self.improves, backward_chain(self.f, self.top))

    def settle(self) -> Iterator[Iterate]:
        """Sweep up and down over the levels with something new until none is left."""
        upwards = True
        while any(self.fresh.values()):
            for k in sorted(self.fresh, reverse=not upwards):
                waiting, self.fresh[k] = self.fresh.get(k, []), []
                for x in waiting:
                    if any(x is y for y in self.kept[k]):  # not displaced since
                        yield from self.look_around(x)
            upwards = not upwards

    def look_around(self, x: Iterate) -> Iterator[Iterate]:
        k = len(x.support)
        if not self.proven.get(k):
            better = descend(self.f, x, self.tried)
            if better is not x:
                self.kept[k] = [y for y in self.kept[k] if y is not x]
                yield from filter(self.improves, [better])
                return
        neighbours = Neighbours(self.f, x, self.tried)
        if k < self.top:
            yield from filter(self.improves, neighbours.larger(self.limit(k + 1)))
        if k + 2 <= self.top:
            yield from filter(self.improves, neighbours.larger_by_two(self.limit(k + 2)))
        if k > 1:
            yield from filter(self.improves, neighbours.smaller(self.limit(k - 1)))
