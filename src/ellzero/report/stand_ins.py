"""Which feature could take the place of a chosen one, and at what loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ellzero.core import Iterate, Objective, Support, magnitudes, smallest, swapped
from ellzero.objectives.design import Design


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


class Correlations:
    """Correlations of pairs of columns, each computed once."""

    def __init__(self, X: Any, weight: Any):
        self.design, self.weight = Design(X), weight
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, i: int, j: int) -> float | None:
        """None where a column is constant."""
        pair = min(i, j), max(i, j)
        if pair not in self._known:
            self._known[pair] = self._computed(np.array(pair))
        known = self._known[pair]
        return known if np.isfinite(known) else None

    def _computed(self, pair: Support) -> float:
        columns = self.design.columns(pair).copy()
        columns -= np.average(columns, axis=0, weights=self.weight)
        norms = magnitudes((columns if self.weight is None else self._weighted(columns)).T)
        if not norms.all():
            return np.nan
        a, b = (columns / norms).T
        return float(a @ (b if self.weight is None else self.weight * b))

    def _weighted(self, columns: Any) -> Any:
        return np.sqrt(self.weight)[:, None] * columns
