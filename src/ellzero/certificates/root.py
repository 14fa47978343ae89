"""The root of the tree: the best split that can be found, and what it fixes at once.

The relaxation's value is concave in d, with ½ x_j²(1/u_j − 1) for its slope in d_j. So from a
split at hand a step towards the one that is best for these slopes leads upwards (Frank and Wolfe).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ellzero.certificates.diagonal import certified, uniform, weighted
from ellzero.certificates.perspective import Bounds, Perspective
from ellzero.linalg import inverse_of
from ellzero.supports import Matrix, Vector

ADMM_STEPS = 200
"""ADMM steps at the root, where a better bound fixes features in the whole tree."""

SPLIT_SIZES = range(25, 301)
"""With fewer features a tree is quicker than a better split; with more a split takes too long."""

STEP_LENGTHS = (1.0, 0.5, 0.2)
"""Shares of the way to a better split that are tried."""

WORTHWHILE = 0.02
"""Splits are sought as long as the last one closed this share of what is missing."""

SPLITS_TRIED = 3
"""Splits of other sizes that a size tries first."""


@dataclass
class Root:
    """A split, its relaxation, and what that says of all models of one size."""

    d: Vector
    relaxation: Perspective
    p: Vector
    slopes: Vector
    bounds: Bounds

    @property
    def value(self) -> float:
        return float(self.bounds.node[0])


def root_of(relaxation: Perspective, d: Vector, s: int, deadline: float) -> Root:
    """Solve the relaxation of one split for all models of size s."""
    states, k = np.zeros((1, len(d)), dtype=np.int8), np.array([s])
    steps = ADMM_STEPS if len(d) in SPLIT_SIZES else ADMM_STEPS // 4
    p = relaxation.tune(states, k, steps // 4, deadline)
    p, u = relaxation.improve(p, states, k, steps, deadline)
    x2 = (p[0] / relaxation.root) ** 2
    slopes = np.where(u[0] > 0, 0.5 * x2 * (1 / np.maximum(u[0], 1e-12) - 1), 0.0)
    return Root(d, relaxation, p[0], slopes, relaxation.bound(p, states, k))


class Splits:
    """Splits of one matrix, shared by all sizes."""

    def __init__(self, C: Matrix, c: Vector, v: float):
        self.C, self.c, self.v = C, c, v
        even = uniform(C)
        self.lowest = 0.0 if even is None else float(even[0])
        self.known = [d for d in (even, self._by_inverse()) if d is not None]

    def _by_inverse(self) -> Vector | None:
        """Return 1/h, h the diagonal of C⁻¹, over the largest eigenvalue μ of the scaled C⁻¹.

        C⁻¹ ⪯ μ diag(h) is the same as C ⪰ diag(1/μh).
        """
        inverse = inverse_of(self.C) if self.lowest and len(self.C) < SPLIT_SIZES.stop else None
        if inverse is None:
            return None
        h = inverse.diagonal()
        scaled = inverse / np.sqrt(h) / np.sqrt(h)[:, None]
        return certified(self.C, 0.999 / (eigh(scaled, eigvals_only=True)[-1] * h))

    def best(self, s: int, enough: float, until: float, deadline: float) -> Root | None:
        """Return the best root found, or None if the deadline left time for none.

        Better splits are sought while the value of the root is not `enough`, `until` some time.
        """
        roots = [
            self._root(d, s, deadline)
            for tried, d in enumerate(self.known[-SPLITS_TRIED:])
            if not tried or time.monotonic() < deadline
        ]
        if not roots:
            return None
        best = max(roots, key=lambda root: root.value)
        while len(self.C) in SPLIT_SIZES and best.value < enough and time.monotonic() < until:
            better = self._ascended(best, s, deadline)
            if better is None or better.value - best.value < WORTHWHILE * (enough - best.value):
                best = better or best
                break
            best = better
        self.known.append(best.d)
        return best

    def _ascended(self, root: Root, s: int, deadline: float) -> Root | None:
        """Step towards the split that is best for the slopes of this root (Frank and Wolfe)."""
        w = root.slopes + 1e-3 * root.slopes.max()
        if not w.any():
            return None
        towards = weighted(self.C, w, np.full(len(w), self.lowest), 0.01 * self.lowest, deadline)
        if towards is None:
            return None
        for length in STEP_LENGTHS:
            if time.monotonic() > deadline:
                return None
            trial = self._root(root.d + length * (towards - root.d), s, deadline)
            if trial.value > root.value:
                return trial
        return None

    def _root(self, d: Vector, s: int, deadline: float) -> Root:
        return root_of(Perspective(self.C, self.c, self.v, d), d, s, deadline)
