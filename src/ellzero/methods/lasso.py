"""LASSO, tuned to a number of non-zeros."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize as scipy_minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from ellzero.checks import check_number
from ellzero.core import Objective, Status
from ellzero.driver import Steps, solver
from ellzero.objectives.quadratic import Quadratic
from ellzero.silence import warning_filter
from ellzero.supports import NONE, Support, Vector

CLOSE = 0.8
"""Share of α from which on a gradient entry lets its feature take part in a Newton step."""

LEAST_ALPHA = 1e-12
"""Share of the largest α below which the penalty is rounding beside the gradient."""

NEWTON_STEPS = 50
"""Limit of Newton steps for one α. From a neighbouring α, a handful are enough."""

SHORTEST_STEP = 1e-8
"""Share of a Newton step below which the line search gives up: f is then flat up to rounding."""

SAME_VALUE = 1e-10
"""Relative gain of a Newton step below which the last step is taken to have converged."""

Solve = Callable[[float, Vector], Vector]
"""A function of α and a start that returns argmin f(x) + α‖x‖₁."""


@solver()
def lasso(f: Objective, s: int, *, refit: bool = True, tol: float = 1e-6) -> Steps:
    """LASSO: min f(x) + α‖x‖₁, with α found by binary search so that x has s non-zeros.

    Parameters
    ----------
    refit : bool
        Whether to minimise f over the support found. The solution as it comes is the last but one
        of the trace (the last, without `refit`).
    tol : float
        The search for α ends when the bracket is this narrow, relative to the largest α.
    """
    check_number("tol", tol, above=0)
    if not f.features.all_single:
        raise ValueError(
            "lasso: ‖x‖₁ selects single coefficients, but features of this objective own "
            "several; use another method."
        )
    solve = l1_solver(f)
    x = np.zeros(f.features.n_coordinates)
    high = float(np.abs(f.gradient(x)).max(initial=0.0))
    low, least = 0.0, LEAST_ALPHA * high
    best = f.at(x).noted("alpha=inf")
    yield best
    while len(best.support) < s and high - low > tol * high:
        alpha = np.sqrt(low * high) if low else high / 10
        x = solve(alpha, x)
        if np.count_nonzero(x) > s:
            low = alpha
            continue
        high = alpha
        if np.count_nonzero(x) >= len(best.support):
            best = f.at(x).noted(f"alpha={alpha:.6g}")
            yield best
        if alpha < least:
            break
    if refit:
        yield f.minimize(best.support, best).noted("refit")
    return Status.COMPLETE if len(best.support) == s else Status.FEWER_FEATURES


def l1_solver(f: Objective) -> Solve:
    """Return the best solver that f allows."""
    model = f.quadratic(f.minimize(NONE))
    if model is None:
        return lambda alpha, x: _bounded(f, alpha, x)
    if model is f:
        return coordinate_descent(model, np.arange(len(f.features)))
    return lambda alpha, x: _proximal_newton(f, alpha, x)


def coordinate_descent(f: Quadratic, S: Support) -> Solve:
    """Return a solver for a quadratic f and x that are zero outside S."""
    A, t = f.least_squares_form(S)

    def solve(alpha: float, x: Vector) -> Vector:
        model = Lasso(
            alpha / len(t),
            fit_intercept=False,
            warm_start=True,
            max_iter=100_000,
            tol=1e-8,
            random_state=0,  # the default draws from NumPy's global generator
        )
        model.coef_ = x[S]
        found = np.zeros_like(x)
        with warning_filter("ignore", ConvergenceWarning, r"sklearn\.linear_model\."):
            found[S] = model.fit(A, t).coef_
        return found

    return solve


def _proximal_newton(f: Objective, alpha: float, x: Vector) -> Vector:
    """Minimise the quadratic model plus α‖x‖₁, step there, repeat.

    Only features that are in x or whose gradients come close to α take part in a step. All that
    could lower the value are among them, so where a step changes nothing x is optimal.
    """
    here = f.at(x)
    current = here.value + alpha * np.abs(x).sum()
    for _ in range(NEWTON_STEPS):
        S = np.flatnonzero((x != 0) | (np.abs(f.gradient(here)) >= CLOSE * alpha))
        model = f.quadratic(here) if len(S) else None
        if model is None:
            break
        target = coordinate_descent(model, S)(alpha, x)
        length = 1.0
        while length > SHORTEST_STEP:
            trial = target if length == 1.0 else x + length * (target - x)
            there = f.at(trial)
            value = there.value + alpha * np.abs(trial).sum()
            if value <= current:
                break
            length /= 2
        converged = current - value <= max(SAME_VALUE * abs(current), f.resolution)
        if value <= current:
            x, here, current = trial, there, value
        if converged:
            break
    return x


def _bounded(f: Objective, alpha: float, x: Vector) -> Vector:
    """Minimise over x = u − v with u, v ≥ 0, which is smooth. L-BFGS-B keeps exact zeros."""
    n = len(x)

    def split(z: Vector) -> tuple[float, Vector]:
        x = z[:n] - z[n:]
        g = f.gradient(x)
        return f.value(x) + alpha * z.sum(), np.concatenate([g, -g]) + alpha

    z0 = np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)])
    options = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-14, "gtol": 1e-10}
    found = scipy_minimize(
        split, z0, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options
    )
    x = found.x[:n] - found.x[n:]
    x[np.abs(x) <= 1e-9 * np.abs(x).max(initial=0.0)] = 0.0
    return x
