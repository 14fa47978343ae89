"""Proofs for a quadratic at several sizes: one root and one tree for each, splits shared by all.

What the root shows to be out is left out of the problem: the matrix of what remains has a larger
least eigenvalue, hence a better split, which may show more to be out; until nothing changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ellzero.certificates.nodes import Incumbent, cut
from ellzero.certificates.quadratic_tree import LARGEST_TABLEAU, QuadraticTree
from ellzero.certificates.root import Root, Splits
from ellzero.certificates.unlimited import Unlimited, exit_costs
from ellzero.supports import NONE, Mask, Matrix, Support, Vector

LARGEST_TREE = 1000
"""Features up to which a tree branches. With more left, there is only the bound of the root."""

ROOT_SHARE = 0.1
"""The share of the time that goes into better splits; a tree gains more from the rest."""

SECONDS_AT_A_TIME = 0.1
"""The least time that one size is worked on before the next."""


class Level:
    """What is known of one size."""

    def __init__(self, s: int, features: Support, best: Incumbent):
        self.s, self.features, self.best = s, features, best
        self.bound = -np.inf
        self.outside = np.inf  # a bound for all models with a feature that is left out
        self.must: Support = NONE
        self.must_not: Support = NONE
        self.tree: QuadraticTree | None = None
        self.finished = False

    @property
    def lower_bound(self) -> float:
        inside = self.bound if self.tree is None else max(self.bound, self.tree.lower_bound)
        return min(inside, self.outside, self.best.value)


class QuadraticProof:
    """Bounds for f given by its moments, at the sizes of `best`."""

    def __init__(
        self,
        moments: Matrix,
        features: Support,
        best: dict[int, Incumbent],
        margin: float,
        gap: float,
        outside: dict[int, float] | None = None,
    ):
        """Take the moments of `features`.

        Parameters
        ----------
        outside : dict, optional
            For each size, a bound on all models with a feature that is not among `features`.
        """
        self.moments, self.features = moments, features
        self.margin, self.gap = margin, gap
        every = np.arange(len(features))
        self.levels = {
            s: Level(s, every, Incumbent(known.value, np.searchsorted(features, known.support)))
            for s, known in best.items()
        }
        for s, bound in (outside or {}).items():
            self.levels[s].outside = bound
        self.splits = Splits(*_parts(moments, every))

    def steps(self, deadline: float) -> Iterator[None]:
        """Work until all is proven. Pauses now and then, so that the caller can end it."""
        begin = time.monotonic()
        sizes = sorted(self.levels, reverse=True)
        share = ROOT_SHARE * (deadline - begin) / len(sizes)
        for s in sizes:
            self._take_root(self.levels[s], time.monotonic() + share, deadline)
            yield
        waiting = [self.levels[s] for s in sizes if not self.levels[s].finished]
        while waiting:
            for place, level in enumerate(list(waiting)):
                now = time.monotonic()
                until = now + max((deadline - now) / (len(waiting) - place), SECONDS_AT_A_TIME)
                yield from self._climb(level, until)
            waiting = [level for level in waiting if not level.finished]

    def lower_bound(self, s: int) -> float:
        """Return the best bound at this size or a larger one, whose models include these."""
        return max(level.lower_bound for t, level in self.levels.items() if t >= s)

    def best(self, s: int) -> Incumbent:
        best = self.levels[s].best
        return Incumbent(best.value, self.features[best.support])

    def nodes(self, s: int) -> int:
        tree = self.levels[s].tree
        return 0 if tree is None else tree.nodes

    def finished(self, s: int) -> bool:
        level = self.levels[s]
        exhausted = level.tree is not None and level.tree.done
        return exhausted or self.lower_bound(s) >= self._cut(level)

    def proven(self, s: int) -> tuple[Support, Support]:
        """Return the features of every model as good as the best known, and those of none."""
        level = self.levels[s]
        return self.features[level.must], self.features[level.must_not]

    def _cut(self, level: Level) -> float:
        return cut(level.best, self.margin, self.gap)

    def _take_root(self, level: Level, until: float, deadline: float) -> None:
        """Bound all models of one size, and leave out what cannot be in a better one."""
        splits = self.splits
        while True:
            root = splits.best(level.s, self._cut(level), until, deadline)
            if root is None:
                break
            level.bound = max(level.bound, root.value)
            kept = self._screened(level, root, splits)
            late = time.monotonic() > deadline
            if kept.all() or level.bound >= self._cut(level) or late:
                break
            level.features = level.features[kept]
            splits = Splits(*_parts(self.moments, level.features))
        level.finished = level.bound >= self._cut(level) or len(level.features) > LARGEST_TREE
        if not level.finished:
            self._plant(level, root)

    def _screened(self, level: Level, root: Root, splits: Splits) -> Mask:
        """Mark the features that are kept, and note those that are proven to be in or out."""
        if_in, if_out = root.bounds.if_in[0], root.bounds.if_out[0]
        if len(splits.C) <= LARGEST_TABLEAU:
            moments = _moments(self.moments, level.features)
            T = Unlimited(moments, self.margin).tableau(np.arange(len(splits.C)))
            if_out = np.maximum(if_out, 0.5 * T[-1, -1] + exit_costs(T[None])[0])
        certain = level.best.value + self.margin
        if level.outside > certain:  # what was left out is in no such model
            level.must = np.union1d(level.must, level.features[if_out > certain])
            level.must_not = np.union1d(level.must_not, level.features[if_in > certain])
        kept = if_in < self._cut(level)
        kept |= np.isin(level.features, level.best.support)
        level.outside = min(level.outside, float(if_in[~kept].min(initial=np.inf)))
        return kept

    def _plant(self, level: Level, root: Root | None) -> None:
        """Create the tree of a size, over the features that are left."""
        place = {int(j): i for i, j in enumerate(level.features)}
        support = np.array([place[int(j)] for j in level.best.support], dtype=np.intp)
        best = Incumbent(level.best.value, support)
        n = len(level.features)
        relaxation = None if root is None else root.relaxation
        level.tree = QuadraticTree(
            _moments(self.moments, level.features), level.s, best, self.margin, self.gap, relaxation
        )
        p = np.zeros(n) if root is None else root.p
        level.tree.plant(np.zeros(n, dtype=np.int8), level.bound, p)

    def _climb(self, level: Level, until: float) -> Iterator[None]:
        """Look at nodes of one size for some time."""
        tree = level.tree
        assert tree is not None
        while not tree.done and time.monotonic() < until:
            tree.step()
            if tree.best.value < level.best.value:
                level.best = Incumbent(tree.best.value, level.features[tree.best.support])
            yield
        level.finished = tree.done


def _moments(moments: Matrix, features: Support) -> Matrix:
    part = np.append(features, len(moments) - 1)
    return moments[np.ix_(part, part)]


def _parts(moments: Matrix, features: Support) -> tuple[Matrix, Vector, float]:
    M = _moments(moments, features)
    return M[:-1, :-1], M[:-1, -1], 0.5 * float(M[-1, -1])
