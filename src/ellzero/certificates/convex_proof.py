"""Proofs for any convex f, also for quadratics of dependent columns: one tree for all sizes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ellzero.certificates.convex_tree import ConvexTree
from ellzero.certificates.nodes import Incumbent
from ellzero.core import Objective
from ellzero.supports import Support


class ConvexProof:
    """Bounds for any f at the sizes of `best`, by one tree."""

    def __init__(
        self,
        f: Objective,
        best: dict[int, Incumbent],
        margin: float,
        gap: float,
        warm_starts: bool = True,
    ):
        self.tree = ConvexTree(f, best, margin, gap, warm_starts)

    def steps(self, deadline: float) -> Iterator[None]:
        while not self.tree.done:
            self.tree.step(deadline)
            yield

    def lower_bound(self, s: int) -> float:
        """Return the best bound at this size or a larger one, whose models include these."""
        return max(self.tree.lower_bound(t) for t in self.tree.best if t >= s)

    def best(self, s: int) -> Incumbent:
        return self.tree.best[s]

    def nodes(self, s: int) -> int:
        return self.tree.nodes

    def finished(self, s: int) -> bool:
        return self.tree.exhausted(s) or self.lower_bound(s) >= self.tree.cut(s)

    def proven(self, s: int) -> tuple[Support, Support]:
        """Return the features of every model as good as the best known, and those of none."""
        certain, tree = self.tree.best[s].value + self.tree.hidden(s), self.tree
        nothing = np.full(len(tree.choosable), -np.inf)
        must = tree.if_out.get(s, nothing) > certain
        must_not = tree.if_in.get(s, nothing) > certain
        return tree.choosable[must], tree.choosable[must_not]
