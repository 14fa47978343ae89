"""Exhaustive Local Search (Algorithm 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ellzero.algorithms.start import starting_point
from ellzero.core import Objective, Status
from ellzero.driver import Steps, solver
from ellzero.supports import swapped, without


@solver()
def els(f: Objective, s: int, *, start: Any = "omp") -> Steps:
    """Exhaustive Local Search: swap the smallest coefficient for the feature that lowers f most.

    The inserted feature is the true argmin over all features of the re-minimised value.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point; see `ellzero.algorithms.start`.
    """
    x = starting_point(f, s, start)
    yield x
    insertion_values = f.successive_insertion_values()
    while s < f.n_choosable:
        S = x.support
        j = x.smallest
        rest = without(S, j)
        values = insertion_values(rest, x, below=x.value)
        values[j] = np.inf
        i = int(np.argmin(values))
        new = f.minimize(swapped(S, j, i), x)
        if new.value >= x.value - f.resolution:
            break
        x = new.noted(f"+{i} -{j}")
        yield x
    return Status.LOCAL_OPTIMUM
