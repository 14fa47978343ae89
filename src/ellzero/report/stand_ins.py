"""Which feature could take the place of a chosen one, and at what loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ellzero.core import Iterate, Objective
from ellzero.objectives.statistics import Statistics
from ellzero.supports import Matrix, Support, smallest, swapped


class StandIn(NamedTuple):
    feature: int
    loss: float


def stand_ins(f: Objective, x: Iterate, count: int) -> list[list[StandIn]]:
    """For every feature of x the `count` that replace it best, with the loss after a refit.

    A quadratic f scores all exchanges exactly. Otherwise its quadratic model at x proposes, and f
    is minimised anew for what it proposes.
    """
    S = x.support
    model = f if count == 0 else f.quadratic_model(x)
    if count == 0 or model is None or not len(S):
        return [[] for _ in S]
    found = []
    scores = model.exchange_values(S)
    scores[:, S] = np.inf
    for j, values in zip(S.tolist(), scores, strict=True):
        best = smallest(values, count).tolist()
        losses = [
            float(values[i]) if model is f else f.minimize(swapped(S, j, i), x).value for i in best
        ]
        pairs = [StandIn(i, loss) for i, loss in zip(best, losses, strict=True)]
        found.append(sorted(pairs, key=lambda pair: pair.loss))
    return found


def correlations(X: Any, weight: Any, members: Support) -> Matrix:
    """Correlations of some columns of X; NaN where a column is constant."""
    stats = Statistics.from_arrays(X[:, members], np.zeros(X.shape[0]), weight)
    squares = stats.xx.diagonal()
    constant = squares <= 1e-20 * stats.weight * stats.mean**2
    norms = np.sqrt(np.where(constant, np.nan, squares))
    return stats.xx / norms / norms[:, None]
