"""ellzero's own search: the best support of every size, each level helping its neighbours.

The search keeps the best few supports of every size. From each it looks at the neighbours: one
feature more, one less, one exchanged, or a pair more. What is better than what is kept at its own
size takes that place and is looked at in turn, until nothing new is found at any level; then
supports are shaken, as ARHT does, while the effort lasts.

Where f is quadratic, all neighbours are scored exactly (`quadratic_search`); otherwise a quadratic
model, or gradients, propose and f decides (`model_search`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain
from math import ceil
from typing import Any

import numpy as np

from ellzero.algorithms.exchange import exchange_steps
from ellzero.algorithms.levels import Levels
from ellzero.algorithms.model_search import STRIDE, ModelSearch
from ellzero.algorithms.omp import omp_steps
from ellzero.algorithms.quadratic_search import SMALL, QuadraticSearch
from ellzero.algorithms.seeds import child, seed_of
from ellzero.core import Iterate, Objective
from ellzero.supports import NONE

NARROW = 4
"""The width of the beam that comes first."""

MANY = 3000
"""Where there are more features than this, and the data are large, ..."""

ACTIVE, WIDER = 192, 6
"""... that beam looks at so few of them in every step, which lets it be wider."""

WORTHWHILE = 64
"""More beams come if they are at least this wide."""

NEGLIGIBLE = 100
"""A value that is so many times the resolution above the floor is at the floor."""

HELD = 2
"""How many supports of each size are kept on a quadratic."""


def search_steps(
    f: Objective, largest: int, *, effort: float = 1.0, random_state: Any = 0
) -> Generator[Iterate, None, dict[int, bool]]:
    """Yield every improvement at sizes 1 … `largest`; return which sizes are proven best.

    Parameters
    ----------
    effort : 0 stops when no neighbour is better; 1 adds wide beams where the data are small, and
        shakes supports until that has not helped for a while; larger numbers: wider and longer.
        Twice the effort is never worse: it does the same first
    """
    quadratic = f.moment_diagonal is not None
    affordable = quadratic or f.breadth > 1
    above = max(5, ceil(largest / 8)) if affordable else STRIDE
    top = min(f.n_choosable, largest + above)
    floor = f.floor + NEGLIGIBLE * f.resolution
    levels = Levels(0, top, HELD if quadratic else f.breadth, f.resolution, floor)
    proven = {}
    lowest: dict[int, float] = {}

    def improvements() -> Iterator[Iterate]:
        for x in levels.bests():
            k = len(x.support)
            if k <= largest and x.value < lowest.get(k, np.inf):
                lowest[k] = x.value
                yield x.memory if isinstance(x.memory, Iterate) else f.minimize(x.support)

    for k in range(1, top + 1):
        enumerated = f.best_subset(k)
        if enumerated is not None:
            x, proven[k] = enumerated
            lowest[k] = -np.inf if proven[k] else x.value  # moments may still mislead the search
            levels.offer(x.support, x.value, None if quadratic else x)
            if k <= largest:
                yield x
    phases = quadratic_phases if quadratic else model_phases
    for _ in phases(f, levels, proven, effort, seed_of(random_state)):
        yield from improvements()
    return proven


def quadratic_phases(
    f: Objective, levels: Levels, proven: dict[int, bool], effort: float, seed: Any
) -> Iterator[None]:
    search = QuadraticSearch(f, levels)
    empty = f.minimize(NONE)
    levels.offer(empty.support, empty.value)
    if f.n_features > MANY and f.breadth < WORTHWHILE and f.blocks_are_cheap:
        search.forward(WIDER, ACTIVE)
    else:
        search.forward(NARROW)
    if f.n_choosable <= SMALL:
        search.backward()
    yield from search.settle()
    begun = search.copy()
    (part, _), *wider = rounds_of(effort, f.breadth)
    # where data are large, supports differ clearly and shakes help less often
    yield from shakes(search, proven, part / 8, seed)
    exchanged = list(exchanges_from_omp(f, levels.top)) if wider else []
    for part, width in wider:
        other = begun.copy()
        for x in exchanged:
            other.levels.offer(x.support, x.value)
        other.forward(width)
        for _ in chain(other.settle(), shakes(other, proven, part / 2, seed)):
            search.learn_from(other)
            yield
        yield from search.settle()


def rounds_of(effort: float, breadth: int) -> Iterator[tuple[float, int]]:
    """Parts of the effort, each twice the one before, and how wide a beam they are worth, or 0."""
    width = round(effort * breadth)
    if width < WORTHWHILE:
        yield effort, 0
    else:
        yield from rounds_of(effort / 2, breadth)
        yield effort, width


def exchanges_from_omp(f: Objective, top: int) -> Iterator[Iterate]:
    """What the best exchanges lead to from OMP's supports."""
    lowest = np.inf
    for start in omp_steps(f, top):
        if not start.value < lowest - f.resolution:
            break  # nothing is left to be explained
        lowest = start.value
        *_, x = start, *exchange_steps(f, start)
        yield x


def model_phases(
    f: Objective, levels: Levels, proven: dict[int, bool], effort: float, seed: Any
) -> Iterator[None]:
    search = ModelSearch(f, levels)
    if f.is_sparse:  # models may be misled where gradients are not
        for x in omp_steps(f, levels.top):
            search.offer(x)
            if len(x.support) >= levels.top:
                break
    yield from search.sweep()
    # one sweep is all that large data can afford
    patience = effort if f.breadth > 1 else effort - 1
    if patience > 0:
        levels.fresh = levels.bests()
        yield from search.settle()
        yield from shakes(search, proven, patience / 2, seed)


def shakes(
    search: QuadraticSearch | ModelSearch, proven: dict[int, bool], patience: float, seed: Any
) -> Iterator[None]:
    """Shake supports of random sizes until this has not helped for a while: for `patience` times as
    many supports as were looked at before."""
    levels, patience = search.levels, patience * search.explored
    sizes = [len(x.support) for x in levels.bests() if len(x.support)]
    sizes = [k for k in sizes if not proven.get(k)]
    z, last_success = 0, search.explored
    while search.explored < last_success + patience:
        # a support at the floor needs no shake and ends the levels; one may turn up at any time
        sizes = [k for k in sizes if k <= levels.top and levels.kept[k][0].value > levels.floor]
        if not sizes:
            break
        rng = child(seed, z)
        z += 1
        if search.shake(int(rng.choice(sizes)), rng):
            last_success = search.explored
            yield from search.settle()
