"""Exchange: best-improvement local search over all swaps."""

from __future__ import annotations

from typing import Any

from ellzero.algorithms.start import starting_point
from ellzero.core import Iterate, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.supports import swapped


def exchange_steps(f: Objective, x: Iterate) -> Steps:
    """From x, take the best of all (out, in) swaps until none lowers f."""
    while 0 < len(x.support) < f.n_choosable:
        S = x.support
        j, i, value = f.best_exchange(S, x)
        if value >= x.value - f.resolution:
            break
        new = f.minimize(swapped(S, j, i), x)
        if new.value >= x.value - f.resolution:
            break
        x = new.noted(f"+{i} -{j}")
        yield x
    return Status.LOCAL_OPTIMUM


@solver()
def exchange(f: Objective, s: int, *, start: Any = "omp") -> Steps:
    """Exchange: take the best of all s·(n − s) swaps until none lowers f.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point; see `ellzero.algorithms.start`.
    """
    x = starting_point(f, s, start)
    yield x
    return (yield from exchange_steps(f, x))
