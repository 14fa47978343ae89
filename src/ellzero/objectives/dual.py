"""Lower bounds on minima of generalised linear models, from points of the dual problem.

With columns A, unknowns u and penalty ½ Σ penalty u², every q with Aᵀq = −penalty · z gives

    min over u  ≥  −Σ w loss*(q/w) − ½ Σ penalty z².

At a fit, the slopes of the losses are such a q up to the rounding of the fit. A Newton step Δ moves
them by D A Δ (D: second derivatives) and z by Δ, and keeps the equations; leaving out column j
makes the j-th equation void, so steps that only change that one are allowed too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ellzero.core import Iterate
from ellzero.objectives.design import dense
from ellzero.objectives.gram import gram_inverse, scaled_ridge
from ellzero.objectives.newton import stable_inverse
from ellzero.supports import Matrix, Support, Vector

if TYPE_CHECKING:
    from ellzero.objectives.glm import GeneralizedLinear

BOUND_BLOCK = 1 << 22  # numbers in a block of columns when candidates are bounded

INFEASIBLE = 1e-12
"""How far the equations of the dual may be from holding, relative to the weight of all rows."""

LENGTHS = (1.0, 0.5, 0.1)
"""How much of the step is taken; less where all of it leaves the domain of the conjugate."""


def removal_bounds(f: GeneralizedLinear, x: Iterate, asked: Support) -> tuple[float, Vector]:
    """Bounds on min f over the support S of x, and over it without S[j], for the j asked for."""
    S, first = x.support, f.N.shape[1]
    A = dense(f._with_nuisance(S))
    assert x.nuisance is not None
    u = np.concatenate([x.nuisance, x.coef * f.scale[S]])
    penalty = f._penalty(S)
    q, D = f._slopes(x)
    H = (A.T * D) @ A + np.diag(penalty)
    stable = stable_inverse(H)
    inverse = gram_inverse(H) if stable is None else stable
    slope = A.T @ q + penalty * u
    newton = -inverse @ slope
    left_over = np.abs(slope + H @ newton)
    tolerated = INFEASIBLE * f.total_weight
    if not left_over.max(initial=0.0) <= tolerated:
        return f.floor, np.full(len(S), f.floor)
    reach = reach_of(A, penalty, u[:, None], stable is not None)
    left_over = np.maximum(left_over, rounding_of(A, q[:, None]))
    lost = f.resolution + reach @ left_over
    left = first + asked
    h = inverse.diagonal()[left]  # zero for a column of zeros, which costs nothing
    removing = -inverse[:, left] * np.divide((u + newton)[left], h, np.zeros_like(h), where=h > 0)
    others = H @ removing
    others[left, np.arange(len(left))] = 0.0
    solved = np.abs(others).max(axis=0, initial=0.0) <= tolerated
    removing[:, ~solved] = 0.0  # a dependent column costs nothing
    lost_without = reach @ np.where(solved, np.abs(others), 0.0)
    penalties = np.repeat(penalty[:, None], len(left), axis=1)
    penalties[left, np.arange(len(left))] = 0.0

    def dual(steps: Matrix, penalties: Matrix) -> Vector:
        live = f.weight > 0
        w, y = f.weight[live, None], f.y[live, None]
        moved = (q[:, None] + D[:, None] * (A @ steps))[live]
        value = -(w * f.loss.conjugate(moved / w, y)).sum(axis=0)
        value -= 0.5 * (penalties * (u[:, None] + steps) ** 2).sum(axis=0)
        return np.where(value - lost > f.floor, value - lost, f.floor)

    here = dual(newton[:, None], penalty[:, None])[0]
    bounds = np.full(len(left), f.floor)
    for length in LENGTHS:
        weak = np.flatnonzero(bounds <= here)
        if len(weak):
            steps = newton[:, None] + length * removing[:, weak]
            found = dual(steps, penalties[:, weak]) - lost_without[weak]
            bounds[weak] = np.maximum(bounds[weak], found)
    without = np.full(len(S), here)
    without[asked] = np.maximum(bounds, here)
    return float(here), without


def reach_of(A: Matrix, penalty: Vector, rows: Matrix, independent: bool) -> Vector:
    """Bound how far each coefficient of a better model may be: what an equation of the dual that
    is off by one may hide of a bound.

    Predictions of a better model are taken to be at most ten times as large as these. Where columns
    are nearly dependent its coefficients may be larger by far.
    """
    whole = np.vstack([A, np.diag(np.sqrt(penalty))])
    norms = np.linalg.norm(whole, axis=0)
    norms[norms == 0] = 1.0
    unit = whole / norms
    if independent:
        least = float(np.sqrt(np.linalg.eigvalsh(unit.T @ unit)[:1].min(initial=1.0)))
    else:
        lengths = np.linalg.svd(unit, compute_uv=False)
        dependent = 4 * np.finfo(float).eps * np.sqrt(len(norms))
        least = float(lengths[lengths > dependent].min(initial=1.0))
    size = np.linalg.norm(A @ rows) + np.sqrt(len(A))
    return 10 * size / least / norms


def rounding_of(A: Matrix, q: Matrix) -> Vector:
    """Bound the rounding of the equations of the dual."""
    return np.finfo(float).eps * (np.abs(A).T @ np.abs(q)).max(axis=1)


def insertion_bounds(f: GeneralizedLinear, base: Iterate) -> Vector:
    """For every i a lower bound on min f over S ∪ {i}.

    One Newton step in the coordinates of S and i moves the slopes q of the losses by δ·D·v,
    which is feasible for the dual problem
        max −Σ w loss*(q/w) − ½ Σ ridge x²   with   Aᵀq = −ridge·x;
    any feasible point of it bounds the minimum from below. Where the step leaves the domain of
    the conjugate the bound is −inf.
    """
    S = base.support
    A = np.column_stack([f.N, f.design.columns(S)])
    u = np.concatenate([base.nuisance, base.coef * f.scale[S]])
    ridge = scaled_ridge(f.ridge, f.scale)
    penalty = f._penalty(S)
    q, D = f._slopes(base)
    H = (A.T * D) @ A + np.diag(penalty)
    candidates = np.flatnonzero(f.outside(S))
    bounds = np.full(f.n_features, np.inf)
    bounds[candidates] = -np.inf
    inverse = stable_inverse(H)
    if inverse is None:
        return bounds
    width = max(BOUND_BLOCK // len(q), 1)
    live = f.weight > 0
    w, y = f.weight[live, None], f.y[live, None]
    for begin in range(0, len(candidates), width):
        block = candidates[begin : begin + width]
        X = f.design.columns(block)
        DX = D[:, None] * X
        beta = inverse @ (A.T @ DX)
        V = X - A @ beta
        d = np.einsum("ki,ki->i", DX, V) + ridge[block]
        whole = np.einsum("ki,ki->i", DX, X) + ridge[block]
        clear = d > 1e-8 * whole  # of a nearly dependent column nothing is known
        delta = np.divide(-(X.T @ q), d, out=np.zeros(len(block)), where=clear)
        moved = q[live, None] + (D[:, None] * V * delta)[live]
        dual = -(w * f.loss.conjugate(moved / w, y)).sum(axis=0)
        dual -= 0.5 * penalty @ (u[:, None] - beta * delta) ** 2
        dual -= 0.5 * ridge[block] * delta**2 + f.resolution
        bounds[block] = np.where(clear, dual, -np.inf)
    return bounds
