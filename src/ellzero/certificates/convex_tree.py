"""Branch and bound for any convex f, at many sizes at once.

A node is a set T of features that may be used, some of which must be. min f over T bounds every
model inside T from below, whatever its size, so one tree serves all sizes: a node is of interest at
those at which its bound is below the best value known. Its children leave out one feature each, and
keep the features that were left out before: the dearest first, whose branch ends at once. What
leaving out costs is bounded beforehand (`removal_bounds`), so most children are never fitted.

Where f has a ridge, the relaxation of `ridge_bound` bounds a node for each size by itself.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ellzero.certificates.certifiable import removal_bounds, rounding
from ellzero.certificates.nodes import Incumbent, cut
from ellzero.certificates.perspective import FREE, IN, OUT, Bounds
from ellzero.certificates.ridge_bound import RidgeBound
from ellzero.core import Iterate, Objective
from ellzero.supports import Vector

PROXIMAL_STEPS = 10
"""Steps of the relaxation in one round."""

ROOT_ROUNDS, NODE_ROUNDS = 10, 2
"""Rounds of the relaxation at the root, and at every other node."""

WORTHWHILE = 0.01
"""Rounds go on as long as the last one closed this share of the gap. Where all rounds at the root
close less, the relaxation is not used any more."""


@dataclass(order=True)
class Node:
    bound: float
    number: int
    states: NDArray[np.int8] = field(compare=False)  # of the choosable features
    sizes: set[int] = field(compare=False)  # at which a better model may be in here
    p: Vector | None = field(compare=False, default=None)
    above: Iterate | None = field(compare=False, default=None)  # the fit of the parent


class ConvexTree:
    """All models of the sizes of `best`, none of them seen yet.

    With `warm_starts`, each fit starts from that of the parent. A closed form needs none.
    """

    def __init__(
        self,
        f: Objective,
        best: dict[int, Incumbent],
        margin: float,
        gap: float,
        warm_starts: bool = True,
    ):
        self.f, self.best, self.warm_starts = f, best, warm_starts
        self.margin, self.gap = margin, gap
        self.choosable = f.features.choosable
        self.coordinates = f.features.coordinates(self.choosable)
        self.nodes = 0
        self.closed = dict.fromkeys(best, np.inf)
        self.if_in: dict[int, Vector] = {}
        self.if_out: dict[int, Vector] = {}
        self.root_bound = dict.fromkeys(best, -np.inf)
        self._numbers = count()
        self._open: list[Node] = []
        self.relaxation = RidgeBound.of(f)
        states = np.zeros(len(self.choosable), dtype=np.int8)
        self._push(Node(f.floor, next(self._numbers), states, set(best)))

    def cut(self, s: int) -> float:
        """Return the bound from which on a node is of no interest at this size."""
        return cut(self.best[s], self.hidden(s), self.gap)

    def hidden(self, s: int) -> float:
        """Return what rounding may hide of the best value known."""
        return self.margin + self.best[s].rounding

    def lower_bound(self, s: int) -> float:
        open_ = min((node.bound for node in self._open if s in node.sizes), default=np.inf)
        return min(max(open_, self.root_bound[s]), self.closed[s], self.best[s].value)

    @property
    def done(self) -> bool:
        return not self._open

    def exhausted(self, s: int) -> bool:
        return not any(s in node.sizes for node in self._open)

    def step(self, deadline: float = np.inf) -> None:
        """Look at the open node of least bound."""
        node = heapq.heappop(self._open)
        self._narrow(node)
        if not node.sizes:
            return
        self.nodes += 1
        usable = node.states != OUT
        T, free = self.choosable[usable], np.flatnonzero(node.states[usable] == FREE)
        x = self.f.minimize(T, node.above)
        here, without = removal_bounds(self.f, x, free)
        if node.above is not None and x.value - here > self.margin:  # the start led astray
            x = self.f.minimize(T)
            here, without = removal_bounds(self.f, x, free)
        node.bound = max(node.bound, here)
        self._settle(node, x)
        costs = dict(zip(x.support.tolist(), np.maximum(without, node.bound), strict=True))
        self._fix(node, x, costs, deadline)
        self._narrow(node)
        if node.sizes:
            for child in self._children(node, x, costs):
                self._push(child)

    def _settle(self, node: Node, x: Iterate) -> None:
        """Close the node at all sizes that allow for x, which is its best model there."""
        for s in [s for s in node.sizes if s >= len(x.support)]:
            if x.value < self.best[s].value - self.hidden(s):
                hidden = rounding(self.f, x) if self.best[s].rounding else 0.0
                self.best[s] = Incumbent(x.value, x.support, hidden)
            self.closed[s] = min(self.closed[s], node.bound)
            node.sizes.discard(s)

    def _narrow(self, node: Node) -> None:
        """Discard the sizes at which nothing better can be in the node."""
        for s in sorted(node.sizes):
            bound = max(node.bound, self.root_bound[s])
            if bound < self.cut(s):
                continue
            self.closed[s] = min(self.closed[s], bound)
            node.sizes.discard(s)

    def _fix(self, node: Node, x: Iterate, without: dict[int, float], deadline: float) -> None:
        """Improve the bound of a node that is of interest at one size, or of the root."""
        if self.nodes == 1:
            cost = np.array([without[j] for j in self.choosable.tolist()])
            self.if_out = dict.fromkeys(node.sizes, cost)
        if self.relaxation is None or (len(node.sizes) > 1 and self.nodes > 1):
            return
        p, helpful = x.x[self.coordinates] if node.p is None else node.p, False
        for s in sorted(node.sizes):
            if time.monotonic() > deadline:
                return
            p, found = self._relaxed(node, s, p, deadline)
            value = float(found.node[0])
            helpful |= value - node.bound > WORTHWHILE * (self.cut(s) - node.bound)
            if self.nodes == 1:
                self.if_in[s] = found.if_in[0]
                self.if_out[s] = np.maximum(self.if_out[s], found.if_out[0])
                self.root_bound[s] = value
            elif value > node.bound:
                node.bound = value
        node.p = p
        if self.nodes == 1 and not helpful:
            self.relaxation = None

    def _relaxed(self, node: Node, s: int, p: Vector, deadline: float) -> tuple[Vector, Bounds]:
        """Return a better p for one size, and what it says."""
        assert self.relaxation is not None
        states, k = node.states[None], np.array([s - int((node.states == IN).sum())])
        best = p, self.relaxation.bound(p, states, k)
        for _ in range(ROOT_ROUNDS if self.nodes == 1 else NODE_ROUNDS):
            p = self.relaxation.improve(p, states, k, PROXIMAL_STEPS, deadline)
            found, before = self.relaxation.bound(p, states, k), float(best[1].node[0])
            gain = float(found.node[0]) - before
            if gain > 0:
                best = p, found
            if gain <= WORTHWHILE * (self.cut(s) - before) or time.monotonic() > deadline:
                break
        return best

    def _children(self, node: Node, x: Iterate, without: dict[int, float]) -> Iterator[Node]:
        """Make the children, each without one free feature, the dearest first."""
        free = np.flatnonzero(node.states == FREE)
        bounds = np.array([without[j] for j in self.choosable[free].tolist()])
        states = node.states.copy()
        for place in np.argsort(-bounds, kind="stable"):
            room = int((states == IN).sum())
            sizes = {s for s in node.sizes if s >= room}
            if not sizes:
                return
            child = states.copy()
            child[free[place]] = OUT
            bound = max(float(bounds[place]), node.bound)
            above = x if self.warm_starts else None
            yield Node(bound, next(self._numbers), child, sizes, node.p, above)
            states[free[place]] = IN

    def _push(self, node: Node) -> None:
        self._narrow(node)
        if node.sizes:
            heapq.heappush(self._open, node)
