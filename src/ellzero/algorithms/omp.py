"""Orthogonal Matching Pursuit (Algorithm 2)."""

from __future__ import annotations

import numpy as np

from ellzero.core import Objective, Status
from ellzero.driver import Steps, solver
from ellzero.supports import NONE


def omp_steps(f: Objective, s: int, S: np.ndarray | None = None) -> Steps:
    S = NONE if S is None else S
    x = f.minimize(S)
    yield x.noted("start")
    steepest = f.steepest_finder()
    while len(S) < s:
        i = steepest(x)
        S = np.append(S, i)
        x = f.minimize(S, x)
        yield x.noted(f"+{i}")
    return Status.COMPLETE


@solver()
def omp(f: Objective, s: int) -> Steps:
    """Orthogonal Matching Pursuit: s times, add the feature with the largest gradient and refit."""
    return omp_steps(f, s)
