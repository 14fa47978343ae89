"""The perspective relaxation: lower bounds on sparse quadratics, for many nodes at once.

Let f(x) = ½ xᵀCx − cᵀx + v and C = Q + diag(d) with Q ⪰ 0 and d > 0. For every p,
½ xᵀQx ≥ pᵀQx − ½ pᵀQp, so with r = c − Qp

    f(x) ≥ v − ½ pᵀQp − rᵀx + ½ Σ d_j x_j².

The right side is separable. Its minimum over all x that use the features *in*, none of those *out*,
and at most k of those *free* is

    bound(p) = v − ½ pᵀQp − ½ Σ_in r_j²/d_j − ½ (sum of the k largest r_j²/d_j among the free).

It holds for every p whatever. The best p is the minimiser of the relaxation in which each x_j has a
weight u_j in [0, 1], Σ u ≤ k, and costs ½ d_j x_j²/u_j. ADMM finds it: all nodes share the matrix
of its linear systems, and its proximal step is exact.

Inside, features are scaled such that d = 1.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ellzero.certificates.tolerances import EPS
from ellzero.supports import Matrix, Vector

States = NDArray[np.int8]
"""One row per node; a feature is in, free, or out."""

Counts = NDArray[np.intp]

IN, FREE, OUT = 1, 0, -1

RATES = 4.0 ** np.arange(-4, 4)
"""Step sizes of ADMM that are tried, in units of √(the largest eigenvalue of Q)."""

OVER_RELAXATION = 1.6
"""ADMM goes this far towards its linear solve; 1.5 to 1.8 is usual, and quicker than 1."""


class Bounds(NamedTuple):
    """Bounds of nodes, and of their children in which a free feature is in or out."""

    node: Vector
    if_in: Matrix
    if_out: Matrix


class Perspective:
    """The perspective relaxation for one split."""

    def __init__(self, C: Matrix, c: Vector, v: float, d: Vector):
        self.root = np.sqrt(d)
        self.Q = C / self.root / self.root[:, None] - np.eye(len(d))
        self.c = c / self.root
        self.v = v
        eigen, self.basis = eigh(self.Q)
        self.eigen = np.maximum(eigen, 0.0)
        self.rate = float(np.sqrt(max(self.eigen.max(), 1e-6)))

    def tune(self, states: States, k: Counts, steps: int, deadline: float = np.inf) -> Matrix:
        """Choose the step size with the best bound at one node, and return the p it leads to."""
        rates = self.rate * RATES
        many, ks = np.repeat(states, len(rates), axis=0), np.repeat(k, len(rates))
        p, _ = self.improve(np.zeros(many.shape), many, ks, steps, deadline, rates[:, None])
        best = int(np.argmax(self.bound(p, many, ks).node))
        self.rate = float(rates[best])
        return p[[best]]

    def improve(
        self,
        p: Matrix,
        states: States,
        k: Counts,
        steps: int,
        deadline: float = np.inf,
        rate: Any = None,
    ) -> tuple[Matrix, Matrix]:
        """Return a better p for every node, and the weights u that go with it."""
        rho = self.rate if rate is None else rate
        inner = 1 / (self.eigen + rho) - 1 / rho
        z = np.where(states == OUT, 0.0, p)
        y = (self.c - z @ self.Q) / rho
        u = np.zeros_like(z)
        for _ in range(steps):
            if time.monotonic() > deadline:
                break
            b = self.c + rho * (z - y)
            w = b / rho + ((b @ self.basis) * inner) @ self.basis.T
            y += OVER_RELAXATION * w - (OVER_RELAXATION - 1) * z
            u = weights(np.abs(y), 1 / rho, states, k)
            z = y * (rho * u / (1 + rho * u))
            y -= z
        return z, u

    def bound(self, p: Matrix, states: States, k: Counts) -> Bounds:
        """Return what p says of every node and of its children, less rounding."""
        Qp = p @ self.Q
        r = self.c - Qp
        norm, left = np.linalg.norm(p, axis=1), np.linalg.norm(r, axis=1)
        size = self.eigen.max() * norm * (norm + left) + np.linalg.norm(self.c) * left
        base = self.v - 0.5 * np.einsum("bi,bi->b", p, Qp) - 4 * EPS * size
        return separable_bounds(base, r**2, states, k)


def separable_bounds(base: Vector, scores: Matrix, states: States, k: Counts) -> Bounds:
    """Return base − ½ Σ_in score − ½ (sum of the k largest scores among the free), by node.

    In the bounds of the children, a feature that must be in replaces the k-th largest score, and a
    feature that must be out leaves its place to the next score.
    """
    free = states == FREE
    ordered = -np.sort(np.where(free, -scores, 0.0), axis=1)
    ordered = np.pad(ordered, ((0, 0), (1, 1)))  # in place i is the i-th largest
    rows, k = np.arange(len(base)), np.minimum(k, scores.shape[1])
    top = np.cumsum(ordered, axis=1)[rows, k]
    bound = base - 0.5 * (np.where(states == IN, scores, 0.0).sum(axis=1) + top)
    last, following = ordered[rows, k][:, None], ordered[rows, k + 1][:, None]
    last[k == 0] = np.inf  # no place is left
    if_in = np.where(free, 0.5 * np.maximum(last - scores, 0.0), 0.0)
    if_out = np.where(free, 0.5 * np.maximum(scores - following, 0.0), 0.0)
    return Bounds(bound, bound[:, None] + if_in, bound[:, None] + if_out)


def weights(a: Matrix, offset: Matrix | float, states: States, k: Counts) -> Matrix:
    """Return u_j = clip(t a_j − offset, 0, 1) with the t for which the free u_j add up to k.

    Each row is a node. The sum is piecewise linear in t; sorting where the pieces begin and end
    finds the piece. Where all free features have room, and for features that are in, u = 1.
    """
    free = states == FREE
    top = np.where(free, a, 0.0).max(axis=1, keepdims=True)
    a = np.maximum(a / np.where(top > 0, top, 1.0), 1e-9)
    ends = np.concatenate([offset / a, (1 + offset) / a], axis=1)
    slopes = np.concatenate([a, -a], axis=1)
    ignored = np.concatenate([~free, ~free], axis=1)
    ends[ignored], slopes[ignored] = 0.0, 0.0
    order = np.argsort(ends, axis=1)
    rows = np.arange(len(a))[:, None]
    ends = ends[rows, order]
    slope = np.maximum(np.cumsum(slopes[rows, order], axis=1), 0.0)
    total = np.cumsum(slope[:, :-1] * np.diff(ends, axis=1), axis=1)
    piece = (total < k[:, None]).sum(axis=1)[:, None]
    before = np.where(piece > 0, total[rows, piece - 1], 0.0)
    with np.errstate(over="ignore"):  # where all have room, t may be what it likes
        t = ends[rows, piece] + (k[:, None] - before) / np.maximum(slope[rows, piece], 1e-300)
        u = np.clip(a * t - offset, 0.0, 1.0)
    whole = (states == IN) | (free & (free.sum(axis=1) <= k)[:, None])
    return np.where(whole, 1.0, np.where(free, u, 0.0))
