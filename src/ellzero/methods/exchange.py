"""Exchange: local search over all swaps."""

from __future__ import annotations

from typing import Any

from ellzero.core import Neighbourhood, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.methods.start import starting_point


def exchange_steps(f: Objective, near: Neighbourhood) -> Steps:
    """Take the best of all swaps until none lowers f."""
    while 0 < len(near.x.support) < len(f.features.choosable):
        value, move = near.x.value, near.best_exchange()
        if move.value >= value - f.resolution:
            break
        near = near.moved(move)
        if near.x.value >= value - f.resolution:
            break
        yield near.x.noted(str(move))
    return Status.LOCAL_OPTIMUM


@solver()
def exchange(f: Objective, s: int, *, start: Any = "omp") -> Steps:
    """Exchange: take the best of all s·(n − s) swaps until none lowers f.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point
        Where to begin; see `ellzero.methods.start`.
    """
    x = starting_point(f, s, start)
    yield x
    return (yield from exchange_steps(f, f.neighbourhood(x)))
