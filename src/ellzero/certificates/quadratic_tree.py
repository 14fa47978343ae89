"""Branch and bound for a quadratic under a limit on the number of features.

A node says of every feature that it is in, out, or free. Two bounds hold for all models of a node:

- *dropping the limit*: the minimum over all features that are not out, read off a swept tableau; a
  feature that goes out costs x_j²/2h_j more, so each child's bound is known before it is made;
- *the perspective relaxation* (`perspective`), for every point p, hence for the parent's point too.

Both also bound the two children of every free feature. Where one child cannot hold anything
better than what is known, the feature is fixed in the other: safe screening, at every node. Where
two features or fewer are still to be chosen, or to be left out, one tableau gives the minimum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ellzero.algorithms.sweep import pair_changes, pivot, single_changes, tableau
from ellzero.certificates.nodes import Incumbent, Nodes, Open
from ellzero.certificates.perspective import FREE, IN, OUT, Perspective
from ellzero.supports import NONE, Matrix, Support, Vector

LARGEST_TABLEAU = 128
"""With more features than this, nodes have no tableaux: dropping the limit tells little there."""

BATCH = 1 << 20  # numbers in the tableaux of the nodes that are looked at together

CROWDED = 200_000
"""With more open nodes than this, those that soon end go first."""

STEPS = 16
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
        self.has_tableaux = self.n <= LARGEST_TABLEAU
        self.batch = int(np.clip(BATCH // (self.n + 1) ** 2, 8, 512))
        self.nodes = 0
        self.closed = np.inf  # the least bound of a node that needs no further look
        self.open = Open(self.n)

    def plant(self, states: NDArray[np.int8], bound: float, p: Vector) -> None:
        """The root."""
        self.open.push(Nodes(states[None], np.array([bound]), p[None], [None]))

    @property
    def cut(self) -> float:
        """A node whose bound is at least this need not be looked at."""
        return self.best.value - max(self.margin, self.gap * abs(self.best.value))

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
        T = self._stack(nodes) if self.has_tableaux else None
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

    def _stack(self, nodes: Nodes) -> Matrix:
        """The tableaux of all features that are not out; made anew where they have lost digits."""
        T = np.stack(
            [
                self._tableau(usable) if known is None else known
                for known, usable in zip(nodes.tableaux, nodes.usable, strict=True)
            ]
        )
        lost = self._dropped(nodes, T)[1]
        for i in np.flatnonzero(lost > 0.01 * self.margin):
            T[i] = self._tableau(nodes.usable[i])
        return T

    def _dropped(self, nodes: Nodes, T: Matrix) -> tuple[Vector, Vector]:
        """f at the minimisers that the tableaux give, less what they and rounding may hide.

        With g the gradient there, the minimum is ½ gᵀC⁻¹g below; evaluating f errs by a few units
        in the last place of its largest terms.
        """
        C, c = self.moments[:-1, :-1], self.moments[:-1, -1]
        x = np.where(nodes.usable, T[:, :-1, -1], 0.0)
        g = np.where(nodes.usable, c - x @ C, 0.0)
        lost = np.abs(np.einsum("bi,bij,bj->b", g, T[:, :-1, :-1], g))
        size = np.abs(x) @ np.abs(c) + np.einsum("bi,bi->b", np.abs(x) @ np.abs(C), np.abs(x))
        lost += 4 * np.finfo(float).eps * size
        return 0.5 * self.moments[-1, -1] - 0.5 * (x @ c + np.einsum("bi,bi->b", x, g)) - lost, lost

    def _tableau(self, usable: NDArray[np.bool_]) -> Matrix:
        T = tableau(self.moments, np.flatnonzero(usable))
        assert T is not None, "the features of a tree are independent"
        return T

    def _bounded(self, nodes: Nodes, T: Matrix | None) -> tuple[Nodes, Matrix, Matrix, Matrix]:
        """Better bounds for the nodes, and for both children of each free feature."""
        bound, p, k = nodes.bound, nodes.p, nodes.to_add(self.s)
        u = np.full(nodes.states.shape, 0.5)
        if_out = np.full(nodes.states.shape, -np.inf)
        if_in = if_out
        if T is not None:
            dropped, _ = self._dropped(nodes, T)
            bound = np.maximum(bound, dropped)
            if_out = dropped[:, None] + removal_costs(T)
        if self.relaxation is not None:
            p, u = self.relaxation.improve(p, nodes.states, k, STEPS)
            found = self.relaxation.bound(p, nodes.states, k)
            bound = np.maximum(bound, found.node)
            if_in, if_out = found.if_in, np.maximum(if_out, found.if_out)
        free = nodes.free
        if_in = np.where(free, np.maximum(if_in, bound[:, None]), bound[:, None])
        if_out = np.where(free, np.maximum(if_out, bound[:, None]), bound[:, None])
        return replace(nodes, bound=bound, p=p), if_in, if_out, u

    def _fixed(
        self, nodes: Nodes, if_in: Matrix, if_out: Matrix
    ) -> tuple[Nodes, NDArray[np.bool_]]:
        """Fix features of which one child needs no look; and which features go out."""
        must, must_not = nodes.free & (if_out >= self.cut), nodes.free & (if_in >= self.cut)
        self._close(if_out[must])
        self._close(if_in[must_not])
        hopeless = np.asarray((must & must_not).any(axis=1))
        states = np.where(must, IN, np.where(must_not, OUT, nodes.states)).astype(np.int8)
        bound = np.where(hopeless, np.maximum(nodes.bound, self.cut), nodes.bound)
        return replace(nodes, states=states, bound=bound), must_not & ~hopeless[:, None]

    def _promising(self, nodes: Nodes) -> NDArray[np.bool_]:
        """The nodes that may hold a better model; the others are closed."""
        possible = nodes.to_add(self.s) >= 0
        worse = nodes.bound >= self.cut
        self._close(nodes.bound[possible & worse])
        return possible & ~worse

    def _close(self, bounds: Vector) -> None:
        self.closed = min(self.closed, float(bounds.min(initial=np.inf)))

    # branching

    def _branching(self, nodes: Nodes, u: Matrix, if_out: Matrix) -> Support:
        """The free feature of largest weight below one; where weights tell nothing, the dearest."""
        cost = if_out - nodes.bound[:, None]
        dear = cost / (1e-300 + cost.max(axis=1, initial=0.0, keepdims=True))
        score = np.where(u < 1, u, 0.0) + 1e-6 * dear
        return np.argmax(np.where(nodes.free, score, -np.inf), axis=1)

    def _branch(
        self,
        nodes: Nodes,
        T: Matrix | None,
        going: NDArray[np.bool_],
        j: Support,
        state: int,
        bound: Vector,
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
            children.tableaux = list(_without(T[born], going[born]))
        self.open.push(children)

    # ends

    def _unfinished(self, nodes: Nodes) -> NDArray[np.bool_]:
        """All nodes but those whose minimum can be written down, which is done."""
        k, free = nodes.to_add(self.s), nodes.free.sum(axis=1)
        ends = (k <= 2) | (free - k <= 2)
        for i in np.flatnonzero(ends):
            self._finish(nodes.states[i], int(k[i]))
        return ~ends

    def _finish(self, states: NDArray[np.int8], k: int) -> None:
        """The best model of a node to which two features can be added, or two must leave."""
        free = np.flatnonzero(states == FREE)
        adds = k <= 2
        count = min(k, len(free)) if adds else len(free) - k
        S = np.flatnonzero(states == IN if adds else states != OUT)
        T = tableau(self.moments, S)
        assert T is not None, "the features of a tree are independent"
        part = np.append(free, self.n)
        for change in best_changes(T[np.ix_(part, part)], max(count, 0)):
            self._note(np.setxor1d(S, free[change]).astype(np.intp))

    def _note(self, S: Support) -> None:
        """A model that is the best of its node, or may be."""
        c = self.moments[S, -1]
        x = np.linalg.solve(self.moments[np.ix_(S, S)], c)
        value = 0.5 * float(self.moments[-1, -1] - c @ x)
        self._close(np.array([value - self.margin]))
        if value < self.best.value - self.margin:
            self.best = Incumbent(value, S)


def removal_costs(T: Matrix) -> Matrix:
    """At least what leaving out a feature costs, for stacks of tableaux; 0 where it is unclear."""
    changes = single_changes(T)
    return np.where(np.isfinite(changes), (1 - 1e-6) * changes, 0.0)


def best_changes(T: Matrix, count: int) -> list[Support]:
    """Which `count` ≤ 2 features enter or leave best; several answers where rounding decides."""
    if count == 0:
        return [NONE]
    single = single_changes(T)
    if count == 1:
        unclear = np.flatnonzero(np.isinf(single))[:, None]
        return [np.array([int(np.argmin(single))]), *unclear]
    every = np.arange(len(single))
    pairs = pair_changes(T, every, every)
    unclear = np.argwhere(np.triu(np.isinf(pairs), 1))
    np.fill_diagonal(pairs, np.inf)
    i, j = divmod(int(np.argmin(pairs)), len(pairs))
    return [np.array([i, j]), *unclear]


def _without(T: Matrix, going: NDArray[np.bool_]) -> Matrix:
    """The stack of tableaux after these features leave."""
    for node, j in zip(*going.nonzero(), strict=True):
        pivot(T[node], j)
    return T
