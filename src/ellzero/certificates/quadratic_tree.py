"""Branch and bound for a quadratic under a limit on the number of features.

A node says of every feature that it is in, out, or free. Two bounds hold for all models of a node:

- *dropping the limit* (`unlimited`): the minimum over all features that are not out, read off a
  swept tableau; a feature that goes out costs x_j²/2h_j more, so each child's bound is known before
  it is made;
- *the perspective relaxation* (`perspective`), for every point p, hence for the parent's point too.

Both also bound the two children of every free feature. Where one child cannot hold anything
better than what is known, the feature is fixed in the other: safe screening, at every node. Where
two features or fewer are still to be chosen, or to be left out, one tableau gives the minimum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ellzero.certificates.nodes import Incumbent, Nodes, Open, cut
from ellzero.certificates.perspective import FREE, IN, OUT, Perspective
from ellzero.certificates.unlimited import Unlimited, without
from ellzero.core import Features
from ellzero.objectives.tableau import changes_of_each, pair_changes
from ellzero.supports import NONE, Mask, Matrix, Support, Vector

LARGEST_TABLEAU = 128
"""Features up to which nodes have tableaux. Of more, dropping the limit tells little."""

NUMBERS_AT_ONCE = 1 << 20
"""Numbers in the tableaux of the nodes that are looked at together: 8 MB, which a cache holds."""

BATCHES = 8, 512
"""The least and the largest number of nodes that are looked at together."""

CROWDED = 200_000
"""Open nodes from which on those that soon end go first, or memory would run out."""

ADMM_STEPS = 16
"""ADMM steps at each node, from the point of its parent."""


class QuadraticTree:
    """All models with at most s of the features of [[C, c], [cᵀ, 2v]], none of them seen yet."""

    def __init__(
        self,
        moments: Matrix,
        s: int,
        best: Incumbent,
        margin: float,
        gap: float,
        relaxation: Perspective | None,
    ):
        self.moments, self.s, self.best = moments, s, best
        self.margin, self.gap = margin, gap
        self.relaxation = relaxation
        self.n = len(moments) - 1
        self.unlimited = Unlimited(moments, margin)
        self.has_tableaux = self.n <= LARGEST_TABLEAU
        self.batch = int(np.clip(NUMBERS_AT_ONCE // (self.n + 1) ** 2, *BATCHES))
        self.nodes = 0
        self.closed = np.inf  # the least bound of a node that needs no further look
        self.open = Open(self.n)

    def plant(self, states: NDArray[np.int8], bound: float, p: Vector) -> None:
        """Create the root node."""
        self.open.push(Nodes(states[None], np.array([bound]), p[None], [None]))

    @property
    def cut(self) -> float:
        """A node whose bound is at least this need not be looked at."""
        return cut(self.best, self.margin, self.gap)

    @property
    def lower_bound(self) -> float:
        return min(self.closed, self.open.lowest, self.best.value)

    @property
    def done(self) -> bool:
        return not len(self.open) or self.open.lowest >= self.cut

    def step(self) -> None:
        """Look at the open nodes of least bound."""
        nodes = self.open.pop(self.batch, deepest=len(self.open) > CROWDED)
        self.nodes += len(nodes)
        nodes = nodes[self._unfinished(nodes)]
        if not len(nodes):
            return
        T = self.unlimited.stack(nodes) if self.has_tableaux else None
        nodes, if_in, if_out, u = self._bounded(nodes, T)
        nodes, going = self._fixed(nodes, if_in, if_out)
        alive = self._promising(nodes)
        alive[alive] = self._unfinished(nodes[alive])
        nodes, going, if_in, if_out = nodes[alive], going[alive], if_in[alive], if_out[alive]
        T = None if T is None else T[alive]
        j = self._branching(nodes, u[alive], if_out)
        each = np.arange(len(nodes))
        self._branch(nodes, T, going, j, IN, if_in[each, j])
        self._branch(nodes, T, going, j, OUT, if_out[each, j])

    # bounds

    def _bounded(self, nodes: Nodes, T: Matrix | None) -> tuple[Nodes, Matrix, Matrix, Matrix]:
        """Return the nodes with better bounds, bounds of both children of each free feature, and
        the weights of the relaxation."""
        bound, p, k = nodes.bound, nodes.p, nodes.to_add(self.s)
        u = np.full(nodes.states.shape, 0.5)
        if_out = np.full(nodes.states.shape, -np.inf)
        if_in = if_out
        if T is not None:
            minima, if_out = self.unlimited.bounds(nodes, T)
            bound = np.maximum(bound, minima)
        if self.relaxation is not None:
            p, u = self.relaxation.improve(p, nodes.states, k, ADMM_STEPS)
            found = self.relaxation.bound(p, nodes.states, k)
            bound = np.maximum(bound, found.node)
            if_in, if_out = found.if_in, np.maximum(if_out, found.if_out)
        free = nodes.free
        if_in = np.where(free, np.maximum(if_in, bound[:, None]), bound[:, None])
        if_out = np.where(free, np.maximum(if_out, bound[:, None]), bound[:, None])
        return replace(nodes, bound=bound, p=p), if_in, if_out, u

    def _fixed(self, nodes: Nodes, if_in: Matrix, if_out: Matrix) -> tuple[Nodes, Mask]:
        """Fix features of which one child needs no look, and mark those that go out."""
        must, must_not = nodes.free & (if_out >= self.cut), nodes.free & (if_in >= self.cut)
        self._close(if_out[must])
        self._close(if_in[must_not])
        hopeless = np.asarray((must & must_not).any(axis=1))
        states = np.where(must, IN, np.where(must_not, OUT, nodes.states)).astype(np.int8)
        bound = np.where(hopeless, np.maximum(nodes.bound, self.cut), nodes.bound)
        return replace(nodes, states=states, bound=bound), must_not & ~hopeless[:, None]

    def _promising(self, nodes: Nodes) -> Mask:
        """Mark the nodes that may hold a better model, and close the others."""
        possible = nodes.to_add(self.s) >= 0
        worse = nodes.bound >= self.cut
        self._close(nodes.bound[possible & worse])
        return possible & ~worse

    def _close(self, bounds: Vector) -> None:
        self.closed = min(self.closed, float(bounds.min(initial=np.inf)))

    # branching

    def _branching(self, nodes: Nodes, u: Matrix, if_out: Matrix) -> Support:
        """Choose the free feature of largest weight below one; of equals the dearest to leave."""
        cost = if_out - nodes.bound[:, None]
        dear = cost / (1e-300 + cost.max(axis=1, initial=0.0, keepdims=True))
        score = np.where(u < 1, u, 0.0) + 1e-6 * dear
        return np.argmax(np.where(nodes.free, score, -np.inf), axis=1)

    def _branch(
        self, nodes: Nodes, T: Matrix | None, going: Mask, j: Support, state: int, bound: Vector
    ) -> None:
        """Make the children in which feature j has this state; `going` go out in any case."""
        states, going = nodes.states.copy(), going.copy()
        each = np.arange(len(nodes))
        states[each, j] = state
        going[each, j] = state == OUT
        children = replace(nodes, states=states, bound=np.maximum(nodes.bound, bound))
        born = self._promising(children)
        children = children[born]
        if T is not None:
            children.tableaux = list(without(T[born], going[born]))
        self.open.push(children)

    # ends

    def _unfinished(self, nodes: Nodes) -> Mask:
        """Mark all nodes but those whose minimum has a closed form, and finish these."""
        k, free = nodes.to_add(self.s), nodes.free.sum(axis=1)
        ends = (k <= 2) | (free - k <= 2)
        for i in np.flatnonzero(ends):
            self._finish(nodes.states[i], int(k[i]))
        return ~ends

    def _finish(self, states: NDArray[np.int8], k: int) -> None:
        """Note the best model of a node to which two features can be added, or two must leave."""
        free = np.flatnonzero(states == FREE)
        adds = k <= 2
        count = min(k, len(free)) if adds else len(free) - k
        S = np.flatnonzero(states == IN if adds else states != OUT)
        T = self.unlimited.tableau(S)
        for change in best_changes(T, self.unlimited.features, free, max(count, 0)):
            self._note(np.setxor1d(S, change).astype(np.intp))

    def _note(self, S: Support) -> None:
        """Note a model that is the best of its node, or may be."""
        c = self.moments[S, -1]
        x = np.linalg.solve(self.moments[np.ix_(S, S)], c)
        value = 0.5 * float(self.moments[-1, -1] - c @ x)
        self._close(np.array([value - self.margin]))
        if value < self.best.value - self.margin:
            self.best = Incumbent(value, S)


def best_changes(T: Matrix, features: Features, free: Support, count: int) -> list[Support]:
    """Return which `count` ≤ 2 of the free features enter or leave best.

    Where rounding decides there are several answers.
    """
    if count == 0:
        return [NONE]
    if count == 1:
        single = changes_of_each(T)[free]
        unclear = free[np.isinf(single)][:, None]
        return [free[[int(np.argmin(single))]], *unclear]
    pairs = pair_changes(T, features, free, free)
    unclear = free[np.argwhere(np.triu(np.isinf(pairs), 1))]
    i, j = divmod(int(np.argmin(pairs)), len(pairs))
    return [free[[i, j]], *unclear]
