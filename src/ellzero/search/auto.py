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
from ellzero.methods.seeds import seed_of
from ellzero.objectives.quadratic import Quadratic
from ellzero.search.enumerate import Enumerated, by_fits, by_moments
from ellzero.search.models import ModelSearch
from ellzero.search.quadratic import QuadraticSearch


def auto_steps(
    f: Objective,
    largest: int,
    proven: set[int],
    *,
    effort: float = 1.0,
    random_state: Any = 0,
) -> Steps:
    """Yield every improvement at sizes 0 to `largest`. All depends on `largest` alone.

    Parameters
    ----------
    proven : set of int
        The sizes at which the best of all supports is known are added to it.
    effort : float
        0 stops when no neighbour is better. 1 adds wide beams where the data are small. Larger
        numbers add wider ones. Twice the effort is never worse: it does the same first.
    random_state : None, int or generator
        A seed. Nothing is random at present.
    """
    seed_of(random_state)  # an error if it is none
    quadratic = f if isinstance(f, Quadratic) else None
    known: list[Enumerated] = []
    for k in range(1, largest + 1):
        found = by_fits(f, k) if quadratic is None else by_moments(quadratic, k)
        if found is not None:
            known.append(found)
            yield found.x
            if found.proven:
                proven.add(k)
    if len(proven) == largest:
        return Status.SEARCH_ENDED
    search: QuadraticSearch | ModelSearch
    if quadratic is None:
        search = ModelSearch.begin(f, largest)
    else:
        search = QuadraticSearch.begin(quadratic, largest)
    for found in known:
        search.offer(found.x)
    lowest = {len(x.S): x.value for x in search.levels.bests()}
    lowest |= dict.fromkeys(proven, -inf)  # moments may mislead the search
    for _ in search.phases(effort):
        for x in search.levels.bests():
            k = len(x.S)
            if k <= largest and x.value < lowest.get(k, inf):
                lowest[k] = x.value
                yield search.minimiser(x)
    return Status.SEARCH_ENDED
