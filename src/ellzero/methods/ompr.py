"""Orthogonal Matching Pursuit with Replacement (Algorithm 3)."""

from __future__ import annotations

from typing import Any

from ellzero.core import Move, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.methods.start import starting_point


@solver()
def ompr(f: Objective, s: int, *, start: Any = "omp") -> Steps:
    """OMP with Replacement: swap the smallest coefficient for the largest gradient while f falls.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point
        Where to begin; see `ellzero.methods.start`.
    """
    x = starting_point(f, s, start)
    yield x
    while s < len(f.features.choosable):
        (i,) = f.steepest([x])
        move = Move(enters=i, leaves=x.smallest)
        new = f.minimize(move.of(x.support), x)
        if new.value >= x.value - f.resolution:
            break
        x = new.noted(str(move))
        yield x
    return Status.LOCAL_OPTIMUM
