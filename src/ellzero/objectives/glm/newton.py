"""Newton's method with backtracking, for the small smooth problems inside."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import lapack

from ellzero.supports import Matrix, Vector

MAX_STEPS = 100

LONGEST_STEP = 1e3
"""A step changes no coordinate by more than this many times 1 + the largest of them."""

HOPE = 2
"""What is left to gain is at most this many times what a step promises: it is half of the promise
on a quadratic, and all of it where a loss runs out like e^−u."""

SATURATED = 1e-250
"""With second derivatives below this all losses are saturated, and there is no Newton step."""

Derivatives: TypeAlias = Callable[[], tuple[Vector, Matrix]]
"""Gradient and Hessian at the point of a value."""

Look: TypeAlias = Callable[[Vector], tuple[float, Derivatives]]
"""A convex function: its value at a point, and its derivatives there on request."""


class Minimum(NamedTuple):
    u: Vector
    value: float
    step: Vector
    """The last Newton step. Where no minimiser exists it points along the escape."""
    converged: bool
    pivot: float = 1.0
    """The least pivot of the last Hessian on the unit-diagonal scale; 0 if it was damped."""


def newton(look: Look, u: Vector, tol: float, below: float = inf) -> Minimum:
    """Minimise a convex function until a step promises less than `tol`.

    The last step is still taken: near the minimum it squares the error. Stops early, at the point
    reached, where steps promise no value less than `below`.
    """
    value, derivatives = look(u)
    step, pivot = np.zeros_like(u), 1.0
    for _ in range(MAX_STEPS if len(u) else 0):
        g, H = derivatives()
        step, pivot = newton_step(g, H)
        promised = float(-g @ step)
        if not step.any() and np.abs(g) @ (1 + np.abs(u)) > tol:
            return Minimum(u, value, step, False, pivot)  # saturated, and far from the minimum
        if value - HOPE * promised >= below:
            return Minimum(u, value, step, True, pivot)
        longest, largest = LONGEST_STEP * (1 + np.abs(u).max()), np.abs(step).max()
        if largest > longest:
            step = step * (longest / largest)
            promised = float(-g @ step)
        length = 1.0
        while True:
            trial = u + length * step
            reached, derivatives_there = look(trial)
            if reached <= value - 1e-4 * length * promised + 1e-15 * abs(value):
                break
            length /= 2
            if length < 1e-10:
                return Minimum(u, value, step, promised <= 1e3 * tol, pivot)
        u, value, derivatives = trial, reached, derivatives_there
        if promised <= tol:
            return Minimum(u, value, step, True, pivot)
    return Minimum(u, value, step, not len(u), pivot)


def newton_step(g: Vector, H: Matrix) -> tuple[Vector, float]:
    """Return −H⁻¹g, and the least pivot of H on its unit-diagonal scale.

    H is damped just enough for an inverse to exist. Its least pivot then counts as zero.
    """
    diagonal = H.diagonal()
    top = diagonal.max(initial=0.0)
    if top < SATURATED:
        return np.zeros_like(g), 1.0
    scale = np.sqrt(np.maximum(diagonal, 1e-20 * top))
    unit, damping = H / scale / scale[:, None], 0.0
    while True:
        factor, info = lapack.dpotrf(unit + damping * np.eye(len(H)), lower=1)
        pivot = float(factor.diagonal().min()) ** 2
        if info == 0 and pivot > 1e-14:
            step = lapack.dpotrs(factor, -g / scale, lower=1)[0] / scale
            return step, 0.0 if damping else pivot
        damping = max(10 * damping, 1e-13)
