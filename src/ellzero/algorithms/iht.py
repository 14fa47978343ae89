"""Iterative Hard Thresholding (Algorithm 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ellzero.core import Objective, Status, Steps, check_number, magnitudes, solver


def hard_threshold(f: Objective, x: np.ndarray, s: int) -> np.ndarray:
    """H_s: all but the s entries of largest magnitude set to zero (the first of equals stay)."""
    order = np.argsort(-np.where(f.outside(np.empty(0, np.intp)), magnitudes(x), -1), kind="stable")
    kept = np.zeros_like(x)
    kept[order[:s]] = x[order[:s]]
    return kept


@solver(max_iter=10_000)
def iht(
    f: Objective,
    s: int,
    *,
    step: float | None = None,
    start: ArrayLike | None = None,
    tol: float = 1e-10,
) -> Steps:
    """Iterative Hard Thresholding: gradient steps, each cut to the s largest entries.

    step : step length η; by default 1/ρ, with ρ the certified smoothness at sparsity 2s, for which
        no step can raise f.
    start : a point x; zero by default, as in the pseudo-code.
    tol : the run has reached a fixed point when a step moves x by less than tol·‖x‖.
    """
    eta = 1.0 / (f.smoothness(min(2 * s, f.n_choosable)) or 1.0) if step is None else step
    check_number("step", eta, above=0)
    x = hard_threshold(f, _point(f, start), s)
    yield f.at(x, "start")
    while True:
        moved = hard_threshold(f, x - eta * f.gradient(x), s)
        if np.linalg.norm(moved - x) <= tol * np.linalg.norm(moved):
            return Status.FIXED_POINT
        x = moved
        yield f.at(x)


def _point(f: Objective, start: ArrayLike | None) -> np.ndarray:
    x = np.zeros(f.n_features) if start is None else np.asarray(start)
    if x.shape != (f.n_features,) or x.dtype.kind not in "fiu" or not np.isfinite(x).all():
        raise ValueError(f"start: expected {f.n_features} finite coefficients, got {start!r}.")
    return f.point(x).x
