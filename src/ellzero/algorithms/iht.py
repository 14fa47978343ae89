"""Iterative Hard Thresholding (Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ellzero.algorithms.start import starting_point
from ellzero.checks import check_number
from ellzero.core import Objective, Status
from ellzero.driver import Steps, solver
from ellzero.supports import magnitudes


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
    start: Any = None,
    tol: float = 1e-10,
) -> Steps:
    """Iterative Hard Thresholding: gradient steps, each cut to the s largest entries.

    Parameters
    ----------
    step : step length η; by default 1/ρ, with ρ the certified smoothness at sparsity 2s, for which
        no step can raise f.
    start : zero by default, as in the pseudo-code; or a point x, or what the other algorithms take.
    tol : the run has reached a fixed point when a step moves x by less than tol·‖x‖.
    """
    eta = 1.0 / (f.smoothness(min(2 * s, f.n_choosable)) or 1.0) if step is None else step
    check_number("step", eta, above=0)
    check_number("tol", tol, above=0)
    x = hard_threshold(f, _point(f, s, start), s)
    yield f.at(x, "start")
    while True:
        moved = hard_threshold(f, x - eta * f.gradient(x), s)
        if np.linalg.norm(moved - x) <= tol * np.linalg.norm(moved):
            return Status.FIXED_POINT
        x = moved
        yield f.at(x)


def _point(f: Objective, s: int, start: Any) -> np.ndarray:
    if start is None:
        return np.zeros(f.shape)
    x = np.asarray(start) if not isinstance(start, str) else np.empty(0)
    if x.dtype.kind == "f" and x.shape == f.shape and np.isfinite(x).all():
        return f.point(x).x
    return starting_point(f, s, start).x
