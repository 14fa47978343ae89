"""Branch and bound for any convex f, at many sizes at once.

A node is a set T of features that may be used, some of which must be. min f over T bounds every
model inside T from below, whatever its size, so one tree serves all sizes: a node is of interest at
those at which its bound is below the best value known. Its children leave out one feature each, and
keep those that were left out before: the dearest first, whose branch ends at once. What leaving
out costs is bounded beforehand (`Objective.removal_bounds`), so most children are never fitted.

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

from ellzero.certificates.nodes import Incumbent
from ellzero.certificates.perspective import FREE, IN, OUT
from ellzero.certificates.ridge_bound import RidgeBound
from ellzero.core import Iterate, Objective, Vector

ROOT_STEPS, NODE_STEPS = 100, 20
"""Proximal steps of the relaxation at the root and at other nodes."""


@dataclass(order=True)
class Node:
    bound: float
    number: int
    states: NDArray[np.int8] = field(compare=False)  # of the choosable features
    sizes: set[int] = field(compare=False)  # at which a better model may be in here
    p: NDArray[np.float64] | None = field(compare=False, default=None)


def _has_smoothness(f: Objective) -> bool:
    try:
        return f.smoothness(f.n_features) > 0
    except ValueError:
        return False


class ConvexTree:
    """All models of the sizes of `best`, none of them seen yet."""

    def __init__(self, f: Objective, best: dict[int, Incumbent], margin: float, gap: float):
        self.f, self.best = f, best
        self.margin, self.gap = margin, gap
        self.choosable = f.choosable
        self.nodes = 0
        self.closed = dict.fromkeys(best, np.inf)
        self.if_in: dict[int, Vector] = {}
        self.if_out: dict[int, Vector] = {}
        self.root_bound = dict.fromkeys(best, -np.inf)
        self._numbers = count()
        self._open: list[Node] = []
        has_ridge = bool(len(self.choosable)) and f.ridge[self.choosable].min() > 0
        self.relaxation = RidgeBound(f) if has_ridge and _has_smoothness(f) else None
        states = np.zeros(len(self.choosable), dtype=np.int8)
        self._push(Node(f.floor, next(self._numbers), states, set(best)))

    def cut(self, s: int) -> float:
        value = self.best[s].value
        return value - max(self.margin, self.gap * abs(value))

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
        T = self.choosable[node.states != OUT]
        x = self.f.minimize(T)  # a diverged fit of the parent would lead astray
        here, without = self.f.removal_bounds(x)
        node.bound = max(node.bound, here)
        self._settle(node, x)
        costs = dict(zip(x.support.tolist(), np.maximum(without, node.bound), strict=True))
        self._fix(node, costs, deadline)
        self._narrow(node)
        if node.sizes:
            for child in self._children(node, costs):
                self._push(child)

    def _settle(self, node: Node, x: Iterate) -> None:
        """x is the best model of the node at all sizes that allow for it."""
        for s in [s for s in node.sizes if s >= len(x.support)]:
            if x.value < self.best[s].value - self.margin:
                self.best[s] = Incumbent(x.value, x.support)
            self.closed[s] = min(self.closed[s], node.bound)
            node.sizes.discard(s)

    def _narrow(self, node: Node) -> None:
        """Leave out the sizes at which nothing better can be in the node."""
        for s in sorted(node.sizes):
            bound = max(node.bound, self.root_bound[s])
            if bound < self.cut(s):
                continue
            self.closed[s] = min(self.closed[s], bound)
            node.sizes.discard(s)

    def _fix(self, node: Node, without: dict[int, float], deadline: float) -> None:
        """What the relaxation says of a node that is of interest at one size, and of the root."""
        if self.nodes == 1:
            cost = np.array([without[j] for j in self.choosable.tolist()])
            self.if_out = dict.fromkeys(node.sizes, cost)
        if self.relaxation is None or (len(node.sizes) > 1 and self.nodes > 1):
            return
        p = np.zeros((len(self.choosable), *self.f.per_feature)) if node.p is None else node.p
        for s in sorted(node.sizes):
            if time.monotonic() > deadline:
                break
            k = np.array([s - int((node.states == IN).sum())])
            steps = ROOT_STEPS if node.p is None else NODE_STEPS
            p = self.relaxation.improve(p, node.states[None], k, steps, deadline)
            found = self.relaxation.bound(p, node.states[None], k)
            if self.nodes == 1:
                self.if_in[s] = found.if_in[0]
                self.if_out[s] = np.maximum(self.if_out[s], found.if_out[0])
                self.root_bound[s] = float(found.node[0])
            elif float(found.node[0]) > node.bound:
                node.bound = float(found.node[0])
        node.p = p

    def _children(self, node: Node, without: dict[int, float]) -> Iterator[Node]:
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
            yield Node(bound, next(self._numbers), child, sizes, node.p)
            states[free[place]] = IN

    def _push(self, node: Node) -> None:
        self._narrow(node)
        if node.sizes:
            heapq.heappush(self._open, node)
