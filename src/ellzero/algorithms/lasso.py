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
from ellzero.silence import warning_filter
from ellzero.supports import NONE, Support, magnitudes

CLOSE = 0.8

Solve = Callable[[float, np.ndarray], np.ndarray]


@solver()
def lasso(f: Objective, s: int, *, refit: bool = True, tol: float = 1e-6) -> Steps:
    """LASSO: min f(x) + α‖x‖₁ with α found by binary search so that x has s non-zeros.

    Parameters
    ----------
    refit : whether the answer is re-minimised on the support found; the solution as it comes is the
        last but one of the trace (the last, without `refit`)
    tol : the search for α ends when the bracket is this narrow, relative to α
    """
    check_number("tol", tol, above=0)
    if f.per_feature:
        raise ValueError(
            "lasso: ‖x‖₁ selects single coefficients, but a feature of this objective owns "
            f"{f.per_feature[0]}; use another method."
        )
    solve = l1_solver(f)
    x = np.zeros(f.n_features)
    high = float(magnitudes(f.gradient(x)).max(initial=0.0))
    low, least = 0.0, 1e-12 * high
    best = f.at(x, "alpha=inf")
    yield best
    while len(best.support) < s and high - low > tol * high:
        alpha = np.sqrt(low * high) if low else high / 10
        x = solve(alpha, x)
        if np.count_nonzero(x) > s:
            low = alpha
            continue
        high = alpha
        if np.count_nonzero(x) >= len(best.support):
            best = f.at(x, f"alpha={alpha:.6g}")
            yield best
        if alpha < least:
            break
    if refit:
        yield f.minimize(best.support, best).noted("refit")
    return Status.COMPLETE if len(best.support) == s else Status.FEWER_FEATURES


def l1_solver(f: Objective) -> Solve:
    """A function (α, start) -> argmin f(x) + α‖x‖₁, by the best means that f allows."""
    model = f.quadratic_model(f.minimize(NONE))
    if model is None:
        return lambda alpha, x: _bounded(f, alpha, x)
    if model is f:
        return _coordinate_descent(f, np.arange(f.n_features))
    return lambda alpha, x: _proximal_newton(f, alpha, x)


def _coordinate_descent(f: Objective, S: Support) -> Solve:
    """For a quadratic f and an x that is zero outside S."""
    A, t = f.least_squares_form(S)

    def solve(alpha: float, x: np.ndarray) -> np.ndarray:
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


def _proximal_newton(f: Objective, alpha: float, x: np.ndarray) -> np.ndarray:
    """Minimise the quadratic model plus α‖x‖₁, step there, repeat.

    Only features that are in x or whose gradients come close to α take part in a step. All that
    could lower the value are among them, so where a step changes nothing x is optimal.
    """
    current = f.value(x) + alpha * np.abs(x).sum()
    for _ in range(50):
        here = f.point(x)
        S = np.flatnonzero((x != 0) | (np.abs(f.gradient(here)) >= CLOSE * alpha))
        if not len(S):
            break
        model = f.quadratic_model(here)
        assert model is not None
        target = _coordinate_descent(model, S)(alpha, x)
        length = 1.0
        while length > 1e-8:
            trial = target if length == 1.0 else x + length * (target - x)
            value = f.value(trial) + alpha * np.abs(trial).sum()
            if value <= current:
                break
            length /= 2
        converged = current - value <= max(1e-10 * abs(current), f.resolution)
        if value <= current:
            x, current = trial, value
        if converged:
            break
    return x


def _bounded(f: Objective, alpha: float, x: np.ndarray) -> np.ndarray:
    """x = u − v with u, v ≥ 0 makes the problem smooth; L-BFGS-B keeps exact zeros."""
    n = len(x)

    def split(z: np.ndarray) -> tuple[float, np.ndarray]:
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
