"""ellzero's own search: the best support of every size, each size helping its neighbours.

The search keeps the best few supports of every size. From each it looks at the neighbours: one
feature more, one less, one exchanged, or a pair more. What is better than what is kept at its own
size takes that place and is looked at in turn, until nothing new is found at any size.
"""

from __future__ import annotations

from math import inf
from typing import Any

from ellzero.core import Objective, Status
from ellzero.driver import Steps
from ellzero.objectives.quadratic import Quadratic
from ellzero.search.enumerate import Enumerated, by_fits, by_moments
from ellzero.search.models import ModelSearch
from ellzero.search.quadratic import QuadraticSearch


def auto_steps(
    f: Objective,
    largest: int,
    proven: dict[int, bool],
    *,
    effort: float = 1.0,
    random_state: Any = 0,
) -> Steps:
    """Yield every improvement at sizes 1 to `largest`. Note in `proven` which sizes are settled.

    Parameters
    ----------
    effort : float
        0 stops when no neighbour is better. 1 adds a wide beam where the data are small. Larger
        numbers make it wider. Twice the effort is never worse: it does the same first.
    """
    quadratic = f if isinstance(f, Quadratic) else None
    lowest: dict[int, float] = {}
    known: list[Enumerated] = []
    for k in range(1, largest + 1):
        found = by_fits(f, k) if quadratic is None else by_moments(quadratic, k)
        if found is not None:
            known.append(found)
            proven[k] = found.proven
            lowest[k] = -inf if found.proven else found.x.value  # moments may mislead the search
            yield found.x
    if all(proven.get(k) for k in range(1, largest + 1)):
        return Status.OPTIMAL
    search: QuadraticSearch | ModelSearch
    if quadratic is None:
        search = ModelSearch.begin(f, largest)
    else:
        search = QuadraticSearch.begin(quadratic, largest)
    for found in known:
        search.offer(found.x)
    for _ in search.phases(effort):
        for x in search.bests():
            k = len(x.support)
            if k <= largest and x.value < lowest.get(k, inf):
                lowest[k] = x.value
                yield x
    return Status.SEARCH_ENDED
