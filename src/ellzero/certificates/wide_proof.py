"""Proofs for a quadratic of many features, whose matrix is too large to be made.

The bound of `perspective` holds for every p, also for one that is zero but on a few features W;
with the ridge for its d, only products with the rows of W of the matrix are needed. So the
relaxation is solved on W, its bound is taken over all features, and those whose score is among the
s largest come into W, until none does: then it is the relaxation of the whole. Where the bounds
leave few features, `QuadraticProof` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ellzero.certificates.nodes import Incumbent, cut
from ellzero.certificates.perspective import Bounds, Perspective, separable_bounds
from ellzero.certificates.quadratic_proof import LARGEST_TREE, QuadraticProof
from ellzero.certificates.tolerances import EPS
from ellzero.certificates.unit_moments import unit_moments_of
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import NONE, Support, Vector, smallest

FEATURES_ADDED = 50
"""Features that come into W in one round: one pass over the data serves them all."""

MOST_ROUNDS = 40
"""Rounds after which W grows no more."""

ADMM_STEPS = 200


class WideProof:
    """Bounds for f at the sizes of `best`. It needs a ridge on every feature that can be chosen."""

    def __init__(self, f: Quadratic, best: dict[int, Incumbent], margin: float, gap: float):
        self.f, self.margin, self.gap = f, margin, gap
        self.d = split_by_ridge(f)
        self.features = np.intersect1d(f.features.choosable, np.flatnonzero(self.d > 0))
        self.known = {
            s: Incumbent(x.value, np.intersect1d(x.support, self.features)) for s, x in best.items()
        }
        self.root = dict.fromkeys(best, -np.inf)
        self.rest: QuadraticProof | None = None
        self.c = f.moments.target * f.unit
        self.v = f.moments.constant * f.unit**2
        first = smallest(-np.abs(self.c[self.features]), FEATURES_ADDED)
        near = [self.features[first], *(x.support for x in self.known.values())]
        self._working: Support = np.unique(np.concatenate(near))

    def steps(self, deadline: float) -> Iterator[None]:
        kept, outside = np.zeros(len(self.f.features), dtype=bool), {}
        for s in sorted(self.known, reverse=True):
            for bounds in self._relaxed(s, deadline):
                if bounds.node[0] > self.root[s]:
                    self.root[s] = float(bounds.node[0])
                    if_in = bounds.if_in[0]
                yield
            inside = if_in < self._cut(s)
            inside |= np.isin(self.features, self.known[s].support)
            kept[self.features[inside]] = True
            outside[s] = float(if_in[~inside].min(initial=np.inf))
        rest = np.flatnonzero(kept)
        if len(rest) <= LARGEST_TREE and not all(map(self.finished, self.known)):
            moments = unit_moments_of(self.f, rest)
            self.rest = QuadraticProof(moments, rest, self.known, self.margin, self.gap, outside)
            yield from self.rest.steps(deadline)

    def lower_bound(self, s: int) -> float:
        """Return the best bound at this size or a larger one, whose models include these."""
        root = max(bound for t, bound in self.root.items() if t >= s)
        bound = root if self.rest is None else max(root, self.rest.lower_bound(s))
        return min(bound, self.known[s].value)

    def best(self, s: int) -> Incumbent:
        return self.known[s] if self.rest is None else self.rest.best(s)

    def nodes(self, s: int) -> int:
        return 0 if self.rest is None else self.rest.nodes(s)

    def finished(self, s: int) -> bool:
        rest = self.rest is not None and self.rest.finished(s)
        return rest or self.lower_bound(s) >= self._cut(s)

    def proven(self, s: int) -> tuple[Support, Support]:
        """Return the features proven in and out; none while many features are left."""
        return (NONE, NONE) if self.rest is None else self.rest.proven(s)

    def _cut(self, s: int) -> float:
        return cut(self.known[s], self.margin, self.gap)

    def _relaxed(self, s: int, deadline: float) -> Iterator[Bounds]:
        """Yield bounds for all models of size s, from larger and larger W."""
        k = np.array([s])
        for _ in range(MOST_ROUNDS):
            W = self._working
            relaxation = Perspective(self.f.block(W, W), self.c[W], self.v, self.d[W])
            states = np.zeros((1, len(W)), dtype=np.int8)
            p = relaxation.tune(states, k, ADMM_STEPS // 4, deadline)
            p, _ = relaxation.improve(p, states, k, ADMM_STEPS, deadline)
            scores, base = self._scores(W, p[0] / relaxation.root, s)
            everywhere = np.zeros((1, len(self.features)), dtype=np.int8)
            yield separable_bounds(np.array([base]), scores[None], everywhere, k)
            place = smallest(-scores, s)[-1]
            missing = (scores >= scores[place]) & ~np.isin(self.features, W)
            if not missing.any():
                return
            new = self.features[smallest(np.where(missing, -scores, np.inf), FEATURES_ADDED)]
            self._working = np.union1d(W, new)

    def _scores(self, W: Support, x: Vector, s: int) -> tuple[Vector, float]:
        """Return r²/d of all features, and v − ½ xᵀQx less what rounding may make of both."""
        d = self.d[self.features]
        Qx = self.f.products(W, x[None])[0]
        Qx[W] -= self.d[W] * x
        r = (self.c - Qx)[self.features]
        length, top = np.abs(x).sum(), np.abs(r).max()
        error = length**2 + s * top * (np.abs(self.c).max() + length) / d.min()
        base = self.v - 0.5 * x @ Qx[W] - 4 * len(W) * EPS * error
        return r**2 / d, float(base)


def split_by_ridge(f: Quadratic) -> Vector:
    """Return what the ridge adds to the diagonal of each column; 0 for columns of zeros."""
    return np.where(f.moments.diagonal > 0, f.penalty, 0.0)
