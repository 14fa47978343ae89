"""Which feature could take the place of a chosen one, and at what loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ellzero.core import Iterate, Move, Objective
from ellzero.objectives.moments.statistics import Statistics
from ellzero.supports import Matrix, Support, smallest


class StandIn(NamedTuple):
    feature: int
    loss: float


def stand_ins(f: Objective, x: Iterate, count: int) -> list[list[StandIn]]:
    """Return, for every feature of x, the `count` that replace it best, with their losses.

    A quadratic f scores all exchanges exactly. Otherwise its quadratic model at x proposes, and f
    is minimised anew for what it proposes.
    """
    S = x.support
    model = f.quadratic(x) if count else None
    if model is None or not len(S):
        return [[] for _ in S]
    near, found = model.neighbourhood(x), []
    for j in S.tolist():
        values = near.moved(Move(leaves=j)).insertions()
        values[j] = np.inf
        pairs = []
        for i in smallest(values, count).tolist():
            refit = model is not f
            loss = f.minimize(Move(i, j).of(S), x).value if refit else float(values[i])
            pairs.append(StandIn(i, loss))
        found.append(sorted(pairs, key=lambda pair: pair.loss))
    return found


def correlations(X: Any, weight: Any, members: Support) -> Matrix:
    """Return the correlations of some columns of X; NaN where a column is constant."""
    stats = Statistics.from_arrays(X[:, members], np.zeros(X.shape[0]), weight)
    squares = stats.xx.diagonal()
    constant = squares <= 1e-20 * stats.weight * stats.mean**2
    norms = np.sqrt(np.where(constant, np.nan, squares))
    return stats.xx / norms / norms[:, None]
