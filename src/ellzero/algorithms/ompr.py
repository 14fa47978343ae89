"""Orthogonal Matching Pursuit with Replacement (Algorithm 3)."""

from __future__ import annotations

from typing import Any

from ellzero.algorithms.start import starting_point
from ellzero.core import Objective, Status
from ellzero.driver import Steps, solver
from ellzero.supports import swapped


@solver()
def ompr(f: Objective, s: int, *, start: Any = "omp") -> Steps:
    """OMP with Replacement: swap the smallest coefficient for the largest gradient while f falls.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point; see `ellzero.algorithms.start`.
    """
    x = starting_point(f, s, start)
    yield x
    steepest = f.steepest_finder()
    while s < f.n_choosable:
        S = x.support
        i = steepest(x)
        j = x.smallest
        new = f.minimize(swapped(S, j, i), x)
        if new.value >= x.value - f.resolution:
            break
        x = new.noted(f"+{i} -{j}")
        yield x
    return Status.LOCAL_OPTIMUM
