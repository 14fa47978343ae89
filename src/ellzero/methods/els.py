"""Exhaustive Local Search (Algorithm 4)."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ellzero.core import Move, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.methods.start import starting_point


@solver()
def els(f: Objective, s: int, *, start: Any = "omp") -> Steps:
    """Exhaustive Local Search: swap the smallest coefficient for the feature that lowers f most.

    The feature that enters is the true argmin over all features of the re-minimised value.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point
        Where to begin; see `ellzero.methods.start`.
    """
    near = f.neighbourhood(starting_point(f, s, start))
    yield near.x.noted("start")
    while s < len(f.features.choosable):
        x, j = near.x, near.x.smallest
        rest = near.moved(Move(leaves=j))
        values = rest.insertions(below=x.value)
        values[j] = inf
        i = int(np.argmin(values))
        near = rest.moved(Move(enters=i))
        if near.x.value >= x.value - f.resolution:
            break
        yield near.x.noted(str(Move(i, j)))
    return Status.LOCAL_OPTIMUM
