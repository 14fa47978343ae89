"""Orthogonal Matching Pursuit (Algorithm 2)."""

from __future__ import annotations

from ellzero.core import Move, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.supports import NONE, Support


def omp_steps(f: Objective, s: int, S: Support = NONE) -> Steps:
    """Run OMP from the support S on."""
    x = f.minimize(S)
    yield x.noted("start")
    while len(x.support) < s:
        (i,) = f.steepest([x])
        x = f.minimize(Move(i).of(x.support), x)
        yield x.noted(f"+{i}")
    return Status.COMPLETE


@solver()
def omp(f: Objective, s: int) -> Steps:
    """Orthogonal Matching Pursuit: s times, add the feature with the largest gradient and refit."""
    return omp_steps(f, s)
