"""Lower bounds for any convex f with a ridge.

Let f(x) = h(x) + ½ Σ λ_j ‖x_j‖² with h convex and λ > 0. Then h(x) ≥ h(p) + ∇h(p)·(x − p) for
every p, and the minimum of the right side plus the ridge, over x with the features *in* and at most
k of the *free* ones, is

    bound(p) = h(p) − ∇h(p)·p − ½ Σ_in ‖g_j‖²/λ_j − ½ (sum of the k largest ‖g_j‖²/λ_j),

where g = ∇h(p) and g_j is the block of feature j. For the logistic loss this is the dual bound
Σ H(α_i) − … at the probabilities α of the model p. As in `perspective`, the best p solves the
relaxation with weights u; here an accelerated proximal gradient method finds it, with the same
exact proximal step.
"""

from __future__ import annotations

import time

import numpy as np

from ellzero.certificates.certifiable import ridge_of
from ellzero.certificates.perspective import OUT, Bounds, Counts, States, separable_bounds, weights
from ellzero.core import Objective
from ellzero.supports import Vector


class RidgeBound:
    """The relaxation of one f. A point p holds the coordinates of the features to choose from."""

    def __init__(self, f: Objective, ridge: Vector, smoothness: float):
        self.f, self.choosable = f, f.features.choosable
        self.coordinates = f.features.coordinates(self.choosable)
        self.ridge, self.step = ridge[self.choosable], 1 / smoothness

    @classmethod
    def of(cls, f: Objective) -> RidgeBound | None:
        """Make the relaxation of f; None without a ridge on all features, or a known smoothness."""
        ridge = ridge_of(f)
        if not ridge[f.features.choosable].min(initial=np.inf) > 0 or not len(f.features.choosable):
            return None
        smoothness = f.smoothness(len(f.features))
        return cls(f, ridge, smoothness) if 0 < smoothness < np.inf else None

    def improve(self, p: Vector, states: States, k: Counts, steps: int, deadline: float) -> Vector:
        """Return a better p for one node."""
        root, offset = np.sqrt(self.ridge), self.ridge * self.step
        x = before = np.where(self._spread(states[0] == OUT), 0.0, p)
        t = 1.0
        for _ in range(steps):
            if time.monotonic() > deadline:
                break
            faster = (1 + np.sqrt(1 + 4 * t * t)) / 2
            z = x + (t - 1) / faster * (x - before)
            a = z - self._slope(z)[1] * self.step
            u = weights((self._norms(a) * root)[None], offset[None], states, k)[0]
            new = self._spread(u / (u + offset)) * a
            restart = (z - new) @ (new - x) > 0
            before, x, t = x, new, 1.0 if restart else faster
        return x

    def bound(self, p: Vector, states: States, k: Counts) -> Bounds:
        """Return what p says of one node and of its children."""
        value, g = self._slope(p)
        base = value - float(g @ p) - self.f.resolution
        scores = self._norms(g) ** 2 / self.ridge
        return separable_bounds(np.array([base]), scores[None], states, k)

    def _slope(self, p: Vector) -> tuple[float, Vector]:
        """Return h and its gradient at p."""
        x = np.zeros(self.f.features.n_coordinates)
        x[self.coordinates] = p
        point = self.f.at(x)
        g = self.f.gradient(point)[self.coordinates] - self._spread(self.ridge) * p
        return point.value - 0.5 * float(self.ridge @ self._norms(p) ** 2), g

    def _norms(self, v: Vector) -> Vector:
        return self.f.features.norms(v, self.choosable)

    def _spread(self, each: Vector) -> Vector:
        """Repeat what belongs to a feature for each of its coordinates."""
        return self.f.features.per_coordinate(each, self.choosable)
