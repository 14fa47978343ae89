"""Iterative Hard Thresholding (Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ellzero.checks import check_number
from ellzero.core import Iterate, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.methods.start import known_smoothness, starting_coordinates, starting_point
from ellzero.supports import Vector


def hard_threshold(f: Objective, x: Vector, s: int) -> Vector:
    """Return H_s(x): all but the s largest blocks set to zero. The first of equals stay."""
    sizes = np.where(f.features.free, f.features.norms(x), -1.0)
    T = f.features.coordinates(np.argsort(-sizes, kind="stable")[:s])
    kept = np.zeros_like(x)
    kept[T] = x[T]
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
    step : float, optional
        Step length η. By default 1/ρ, with ρ the smoothness of f at sparsity 2s: then no step can
        raise f.
    start : optional
        Zero by default, as in the pseudo-code. Otherwise a point, or what the other methods take.
    tol : float
        The run has reached a fixed point when a step moves x by less than tol·‖x‖.
    """
    n = len(f.features.choosable)
    eta = 1.0 / (known_smoothness(f, min(2 * s, n)) or 1.0) if step is None else step
    check_number("step", eta, above=0)
    check_number("tol", tol, above=0)
    x = f.at(hard_threshold(f, _first(f, s, start), s))
    yield x.noted("start")
    while True:
        new = hard_threshold(f, x.x - eta * f.gradient(x), s)
        if np.linalg.norm(new - x.x) <= tol * np.linalg.norm(new):
            return Status.FIXED_POINT
        x = f.at(new)
        yield x


def _first(f: Objective, s: int, start: Any) -> Vector:
    if start is None:
        return np.zeros(f.features.n_coordinates)
    is_point = not isinstance(start, str | Iterate) and np.asarray(start).dtype.kind == "f"
    if is_point and np.size(start):
        return starting_coordinates(f, np.asarray(start)).x
    return starting_point(f, s, start).x
