"""Lower bounds for any convex f with a ridge.

Let f(x) = h(x) + ½ Σ λ_j x_j² with h convex and λ > 0. Then h(x) ≥ h(p) + ∇h(p)·(x − p) for every
p, and the minimum of the right side plus the ridge, over x with the features *in* and at most k of
the *free* ones, is

    bound(p) = h(p) − ∇h(p)·p − ½ Σ_in g_j²/λ_j − ½ (sum of the k largest g_j²/λ_j),   g = ∇h(p).

For the logistic loss this is the dual bound Σ H(α_i) − … at the probabilities α of the model p. As
in `perspective`, the best p solves the relaxation with weights u; here an accelerated proximal
gradient method finds it, with the same exact proximal step.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ellzero.certificates.perspective import OUT, Bounds, Counts, States, separable_bounds, weights
from ellzero.core import Objective
from ellzero.supports import magnitudes


class RidgeBound:
    """The relaxation of one f; needs a ridge on every feature that can be chosen."""

    def __init__(self, f: Objective):
        self.f = f
        self.choosable = f.choosable
        self.ridge = f.ridge[self.choosable]
        self.step = 1 / f.smoothness(f.n_features)

    def improve(
        self, p: NDArray[np.float64], states: States, k: Counts, steps: int, deadline: float
    ) -> NDArray[np.float64]:
        """A better p for one node: coefficients of the choosable features."""
        root, offset = np.sqrt(self.ridge), self.ridge * self.step
        x = before = np.where(self._rows(states[0] == OUT, p), 0.0, p)
        t = 1.0
        for _ in range(steps):
            if time.monotonic() > deadline:
                break
            faster = (1 + np.sqrt(1 + 4 * t * t)) / 2
            z = x + (t - 1) / faster * (x - before)
            a = z - self._slope(z)[1] * self.step
            u = weights((magnitudes(a) * root)[None], offset[None], states, k)[0]
            new = self._rows(u / (u + offset), p) * a
            restart = ((z - new) * (new - x)).sum() > 0
            before, x, t = x, new, 1.0 if restart else faster
        return x

    def bound(self, p: NDArray[np.float64], states: States, k: Counts) -> Bounds:
        value, g = self._slope(p)
        base = value - float((g * p).sum()) - self.f.resolution
        scores = magnitudes(g) ** 2 / self.ridge
        return separable_bounds(np.array([base]), scores[None], states, k)

    def _slope(self, p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """h and its gradient at p."""
        x = np.zeros(self.f.shape)
        x[self.choosable] = p
        point = self.f.at(x)
        g = self.f.gradient(point)[self.choosable] - self._rows(self.ridge, p) * p
        return point.value - 0.5 * float(self.ridge @ magnitudes(p) ** 2), g

    @staticmethod
    def _rows(v: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
        return v.reshape(len(v), *(1,) * (p.ndim - 1))
