"""Newton's method with backtracking, for the small smooth problems inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import lapack

from ellzero.supports import Matrix, Vector

LONGEST = 1e3
"""A step changes no coordinate by more than this many times the largest of them."""


HOPE = 2
"""What is left to gain is at most this many times what an exact step promises: it is half of it on
a quadratic, and all of it where a loss runs out like e^−u."""


FAST = 30
"""The Hessian is kept while a step promises so many times less than the one before."""


KEPT = 1e-6
"""A step with a Hessian that was kept must promise so much less to be the last."""


Map: TypeAlias = Callable[[Vector], Vector]


class Minimum(NamedTuple):
    u: Vector
    value: float
    step: Vector  # the last Newton step; where no minimiser exists it points along the escape
    converged: bool
    pivot: float = 1.0  # the least pivot of the last Hessian, of unit diagonal; 0 if it was damped
    clear: bool = True  # False where columns may be dependent: then there may be lower values


def newton(
    value: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    hessian: Callable[[Vector], Matrix],
    u: Vector,
    tol: float,
    max_iter: int = 100,
    lower: Callable[[Vector, Vector], float] | None = None,
    below: float = np.inf,
    hoped: float = np.inf,
    expected: float = -np.inf,
) -> Minimum:
    """Minimise a convex function; stop once a step promises less than `tol`.

    That last step is still taken: near the minimum it squares the error. As long as steps shrink
    fast the Hessian is kept: it costs much more than a gradient. Where `lower`, a bound on the
    minimum made of a point and its step, shows that it is not less than `below`, the bound is
    the value reported; the first point is not asked. Where steps promise no value less than
    `hoped`, the point reached is reported as it is; the first one also where the minimum would be
    less than `hoped` only if `expected`, what a model says of it, were wrong by more than the value
    of the first point shows.
    """
    current = value(u)
    step = np.zeros_like(u)
    if current - abs(current - expected) >= hoped:
        return Minimum(u, current, step, True)
    solve: Map | None = None
    promised, pivot = np.inf, 1.0
    g = u_before = u
    for iteration in range(max_iter if len(u) else 0):
        g, g_before = gradient(u), g
        before, exact = promised, False
        if solve is not None:
            if lower is None:
                solve = updated(solve, u - u_before, g - g_before)
            step = solve(-g)
            promised = float(-g @ step)
        if solve is None or not 0 <= promised <= before / FAST:
            (solve, pivot), exact = solver_of(hessian(u)), True
            step = solve(-g)
            promised = float(-g @ step)
        if lower is not None and iteration and (bound := lower(u, step)) >= below:
            return Minimum(u, bound, step, True, pivot)
        if exact and current - HOPE * promised >= hoped:
            return Minimum(u, current, step, True, pivot)
        longest = LONGEST * (1 + np.abs(u).max())
        if np.abs(step).max() > longest:
            step *= longest / np.abs(step).max()
            promised = float(-g @ step)
        length = 1.0
        while True:
            trial = u + length * step
            reached = value(trial)
            if reached <= current - 1e-4 * length * promised + 1e-15 * abs(current):
                break
            length /= 2
            if length < 1e-10:
                return Minimum(u, current, step, bool(promised <= 1e3 * tol), pivot)
        u_before, u, current = u, trial, reached
        if promised <= (tol if exact else KEPT * tol):
            return Minimum(u, current, step, True, pivot)
    return Minimum(u, current, step, not len(u), pivot)


def newton_step(gradient: Vector, hessian: Matrix) -> Vector:
    """−H⁻¹g."""
    return solver_of(hessian)[0](-gradient)


def solver_of(hessian: Matrix) -> tuple[Map, float]:
    """Return the map b ↦ H⁻¹b, on the unit-diagonal scale of H, and the least pivot there.

    H is damped just enough for an inverse to exist; its least pivot then counts as zero.
    """
    diagonal = hessian.diagonal()
    top = diagonal.max()
    if top < 1e-250:  # all losses are saturated: nothing is left to gain
        return np.zeros_like, 1.0
    scale = np.sqrt(np.maximum(diagonal, 1e-20 * top))
    H = hessian / scale / scale[:, None]
    damping = 0.0
    while True:
        factor, info = lapack.dpotrf(H + damping * np.eye(len(H)), lower=1)
        least = float(factor.diagonal().min()) ** 2
        if info == 0 and least > 1e-14:
            least = 0.0 if damping else least

            def solve(b: Vector, factor: Matrix = factor) -> Vector:
                return lapack.dpotrs(factor, b / scale, lower=1)[0] / scale

            return solve, least
        damping = max(10 * damping, 1e-13)


def updated(solve: Map, moved: Vector, turned: Vector) -> Map:
    """A map H⁻¹ that knows how the gradient turned over the last step, by the rule of BFGS."""
    along = float(moved @ turned)
    if not along > 0:
        return solve

    def better(b: Vector) -> Vector:
        share = float(moved @ b) / along
        x = solve(b - share * turned)
        return x + (share - float(turned @ x) / along) * moved

    return better


def stable_inverse(A: Matrix) -> Matrix | None:
    """A⁻¹ where that is well determined on the unit-diagonal scale, otherwise None."""
    if not len(A):
        return A
    diagonal = A.diagonal()
    if diagonal.min() <= 0:
        return None
    scale = np.sqrt(diagonal)
    factor, info = lapack.dpotrf(A / scale / scale[:, None], lower=1)
    if info != 0 or (factor.diagonal() ** 2 < 1e-8).any():
        return None
    return lapack.dpotrs(factor, np.eye(len(A)), lower=1)[0] / scale / scale[:, None]
