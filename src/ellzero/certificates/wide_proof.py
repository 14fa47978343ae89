"""Proofs for a quadratic of many features, whose matrix is too large to be made.

The bound of `perspective` holds for every p, also for one that is zero but on a few features W;
with the ridge for its d, only the rows of W of the matrix are needed. So the relaxation is solved
on W, its bound is taken over all features, and those whose score is among the s largest come into
W, until none does: then it is the relaxation of the whole. Where the bounds leave few features,
`QuadraticProof` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ellzero.certificates.nodes import Incumbent
from ellzero.certificates.perspective import Bounds, Perspective, separable_bounds
from ellzero.certificates.quadratic_proof import LARGEST_TREE, QuadraticProof
from ellzero.core import Objective
from ellzero.supports import NONE, Support, Vector, smallest

ADDED = 50
"""So many features come into W at once ..."""

ROUNDS = 40
"""... and so many times at most."""

STEPS = 200


class WideProof:
    """Bounds for f at the sizes of `best`; needs a ridge on every feature that can be chosen."""

    def __init__(self, f: Objective, best: dict[int, Incumbent], margin: float, gap: float):
        self.f, self.margin, self.gap = f, margin, gap
        self.d = ridge_on_unit_scale(f)
        self.features = np.intersect1d(f.choosable, np.flatnonzero(self.d > 0))
        self.known = {
            s: Incumbent(x.value, np.intersect1d(x.support, self.features)) for s, x in best.items()
        }
        self.root = dict.fromkeys(best, -np.inf)
        self.rest: QuadraticProof | None = None
        first = -np.abs(f.moment_rows(np.array([f.n_features]))[0, self.features])
        near = [self.features[smallest(first, ADDED)], *(x.support for x in self.known.values())]
        self._working: Support = np.unique(np.concatenate(near))

    def steps(self, deadline: float) -> Iterator[None]:
        kept, outside = np.zeros(self.f.n_features, dtype=bool), {}
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
            rows = np.append(rest, self.f.n_features)
            moments = self.f.moment_block(rows, rows)
            self.rest = QuadraticProof(moments, rest, self.known, self.margin, self.gap, outside)
            yield from self.rest.steps(deadline)

    def lower_bound(self, s: int) -> float:
        """Models with fewer features are among those with more, so their bounds hold too."""
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
        """Only what is said once few features are left."""
        return (NONE, NONE) if self.rest is None else self.rest.proven(s)

    def _cut(self, s: int) -> float:
        value = self.known[s].value
        return value - max(self.margin, self.gap * abs(value))

    def _relaxed(self, s: int, deadline: float) -> Iterator[Bounds]:
        """Bounds for all models of size s, from larger and larger W."""
        k = np.array([s])
        for _ in range(ROUNDS):
            W, n = self._working, self.f.n_features
            rows = self.f.moment_rows(np.append(W, n))
            relaxation = Perspective(rows[:-1, W], rows[-1, W], rows[-1, -1] / 2, self.d[W])
            states = np.zeros((1, len(W)), dtype=np.int8)
            p = relaxation.tune(states, k, STEPS // 4, deadline)
            p, _ = relaxation.improve(p, states, k, STEPS, deadline)
            scores, base = self._scores(W, rows, p[0] / relaxation.root, s)
            everywhere = np.zeros((1, len(self.features)), dtype=np.int8)
            yield separable_bounds(np.array([base]), scores[None], everywhere, k)
            place = smallest(-scores, s)[-1]
            missing = (scores >= scores[place]) & ~np.isin(self.features, W)
            if not missing.any():
                return
            new = self.features[smallest(np.where(missing, -scores, np.inf), ADDED)]
            self._working = np.union1d(W, new)

    def _scores(self, W: Support, rows: Vector, x: Vector, s: int) -> tuple[Vector, float]:
        """r²/d of all features, and v − ½ xᵀQx less what rounding may make of both."""
        d = self.d[self.features]
        Qx = x @ rows[:-1, :-1]
        Qx[W] -= self.d[W] * x
        r = (rows[-1, :-1] - Qx)[self.features]
        length, top = np.abs(x).sum(), np.abs(r).max()
        error = length**2 + s * top * (np.abs(rows[-1, :-1]).max() + length) / d.min()
        base = rows[-1, -1] / 2 - 0.5 * x @ Qx[W] - 4 * len(W) * np.finfo(float).eps * error
        return r**2 / d, float(base)


def ridge_on_unit_scale(f: Objective) -> Vector:
    """What the ridge adds to the diagonal of the moments."""
    whole, bare = f.moment_diagonal, f.ridged(-f.ridge).moment_diagonal
    assert whole is not None
    assert bare is not None
    return (whole - bare)[:-1]
