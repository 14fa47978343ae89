"""Runs of Algorithm 5, ARHT's core: all of them take a step at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.algorithms.seeds import child
from ellzero.algorithms.states import States
from ellzero.core import Iterate
from ellzero.supports import Mask, Support, Vector

TARGETS = 12
"""A run may go towards so many targets at once."""

RUN = np.dtype(
    [
        ("search", np.intp),  # for whom
        ("z", np.intp),
        ("s", np.intp),
        ("targets", float, (TARGETS,)),  # towards all of which it goes the same way, so far; or NaN
        ("lowest", float),  # of them
        ("highest", float),
        ("at", np.intp),  # the state it is in
        ("best", np.intp),  # the state with the least f that it was in
        ("value", float),  # which is this
        ("low", float),  # for targets in [low, high) it would have gone exactly as it did
        ("high", float),
        ("steps", float),  # left
        ("stream", np.intp),  # of random numbers, and how many were drawn
        ("drawn", np.intp),
    ]
)


ENDED = ["search", "z", "lowest", "value", "low", "high"]


class Ended(NamedTuple):
    low: float
    high: float
    best: Iterate


class Streams:
    """Random numbers of restarts, drawn ahead; each stream is that of `child`."""

    def __init__(self) -> None:
        self._generators: dict[tuple[int, int], tuple[int, np.random.Generator]] = {}
        self._numbers = np.empty((0, 32))

    def number(self, seed: int, z: int) -> int:
        if (seed, z) not in self._generators:
            rng = child(seed, z)
            self._generators[seed, z] = len(self._numbers), rng
            self._numbers = np.vstack([self._numbers, rng.random(self._numbers.shape[1])])
        return self._generators[seed, z][0]

    def __getitem__(self, at: tuple[Support, Support]) -> Vector:
        streams, positions = at
        while positions.max(initial=0) >= self._numbers.shape[1]:
            more = [rng.random(self._numbers.shape[1]) for _, rng in self._generators.values()]
            self._numbers = np.hstack([self._numbers, more])
        return self._numbers[streams, positions]


class Runs:
    """Runs towards the targets of several searches, and what is known of those that ended."""

    def __init__(self, states: States, factor: float, half_stop: bool):
        self.states, self.factor, self.half_stop = states, factor, half_stop
        self.live = np.empty(0, dtype=RUN)
        self._streams = Streams()
        self._ended: dict[int, dict[int, list[Ended]]] = defaultdict(dict)  # by search and z

    def begin(self, run: dict[str, Any], seed: int, wanted: dict[int, list[float]]) -> None:
        """Runs that are alike but for the numbers of their restarts, each with its targets."""
        new = np.zeros(len(wanted), dtype=RUN)
        new["low"], new["high"], new["value"] = -np.inf, np.inf, np.inf
        for name, number in run.items():
            new[name] = number
        new["z"], new["targets"] = list(wanted), np.nan
        for own, targets in zip(new["targets"], wanted.values(), strict=True):
            own[: len(targets)] = targets
        bound(new)
        new["stream"] = [self._streams.number(seed, z) for z in wanted]
        self.live = both(self.live, new)

    def drop(self, search: int) -> None:
        self.live = self.live[self.live["search"] != search]

    def known(self, search: int, z: int, opt: float) -> Ended | None:
        """What is known of run z, if one towards any target went as this one would."""
        for ended in self._ended[search].get(z, ()):
            if ended.low <= opt < ended.high:
                return ended
        return None

    def unknown(self, search: int, n_runs: int, opt: float) -> list[int]:
        """The runs to begin, none of which is after one that is known to reach opt."""
        zs = []
        for z in range(n_runs):
            run = self.known(search, z, opt)
            if run is None:
                zs.append(z)
            elif run.best.value <= opt:
                break
        if not zs:
            return zs
        own = (self.live["search"] == search) & (self.live["targets"] == opt).any(axis=1)
        begun = set(self.live["z"][own].tolist())
        return [z for z in zs if z not in begun]

    def note(self, search: int, z: int, ended: Ended) -> None:
        self._ended[search].setdefault(z, []).append(ended)

    def last(self, search: int, z: int) -> Ended | None:
        """Of run z what is known, if it has ended."""
        ended = self._ended[search].get(z)
        return ended[-1] if ended else None

    def advance(self) -> list[int]:
        """Steps until a run has ended; for these searches there is news."""
        while not (searches := self.step()):
            pass
        return searches

    def step(self) -> list[int]:
        """Lines 11 to 23 of Algorithm 5 for all runs, save where f is better asked later.

        Which searches had a run that ended?
        """
        if not len(self.live):
            raise RuntimeError("a run is waited for that is not there")
        t = self.states
        ready = t.look(self.live["at"])
        waiting, runs = self.live[~ready], self.live[ready]
        fit = t.minimisers["value"][t.states["fit"][runs["at"]]]
        self._keep_best(runs, fit)
        runs, _, goes_on = parted(runs, fit, np.ones(len(runs), dtype=bool))  # line 12
        at, s = runs["at"], runs["s"]
        goes_on &= (s < t.f.n_choosable) & (runs["steps"] > 0)
        x, progress = t.states["x"][at], t.states["progress"][at]
        stuck = progress <= t.f.resolution
        g = t.minimisers["value"][x]
        asked = goes_on & ~stuck
        runs, before, below = parted(runs, g - s / self.factor * progress, asked)  # line 19
        at, s = runs["at"].copy(), runs["s"]
        x, goes_on, stuck = x[before], goes_on[before], stuck[before] | below
        if self.half_stop:
            goes_on &= ~stuck | (2 * t.minimisers["n_free"][x] < s)
        i = np.full(len(runs), -1)
        drawing = (goes_on & stuck).nonzero()[0]
        draws = self._streams[runs["stream"][drawing], runs["drawn"][drawing]]
        i[drawing] = t.sample(at[drawing], draws)
        goes_on &= ~stuck | (i >= 0)
        runs["drawn"] += stuck
        runs["steps"] -= 1
        free, swap = goes_on & stuck, goes_on & ~stuck
        runs["at"][swap] = t.states["new"][at[swap]]
        runs["at"][free] = t.freed(at[free], i[free])
        self.live, ended = both(waiting, runs[goes_on]), runs[~goes_on]
        self._end(ended)
        return sorted(set(ended["search"].tolist()))

    def _keep_best(self, runs: NDArray[Any], fit: Vector) -> None:
        better = fit < runs["value"]
        runs["value"][better] = fit[better]
        runs["best"][better] = runs["at"][better]

    def _end(self, runs: NDArray[Any]) -> None:
        fits = self.states.fits(runs["best"])
        for k, (search, z, opt, value, low, high) in enumerate(runs[ENDED].tolist()):
            if self.known(search, z, opt) is None:
                self.note(search, z, Ended(low, high, fits[k]))
            if value <= opt:  # later restarts are not asked for, nor are higher targets
                (own,) = (self.live["search"] == search).nonzero()
                others = self.live[own]
                later = (others["z"] > z)[:, None]
                in_vain = (others["targets"] > opt) | ((others["targets"] == opt) & later)
                others["targets"][in_vain] = np.nan
                bound(others)
                self.live[own] = others
                self.live = self.live[~np.isnan(self.live["lowest"])]


def bound(runs: NDArray[Any]) -> None:
    """Note the lowest and the highest target of each run, NaN where it has none."""
    runs["lowest"] = np.fmin.reduce(runs["targets"], axis=1)
    runs["highest"] = np.fmax.reduce(runs["targets"], axis=1)


def both(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """`np.concatenate`, which for records takes as long as a step does."""
    together = np.empty(len(first) + len(second), dtype=RUN)
    together[: len(first)], together[len(first) :] = first, second
    return together


def parted(
    runs: NDArray[Any], threshold: Vector, asked: Mask
) -> tuple[NDArray[Any], Support, Mask]:
    """Where it is asked, a run becomes two if only some of its targets are below a threshold.

    Also which run each was before, and whether it was asked and its targets are below.
    """
    is_below = runs["lowest"] < threshold
    forks = (asked & is_below & (runs["highest"] >= threshold)).nonzero()[0]
    before = np.append(np.arange(len(runs)), forks)
    if len(forks):
        first, second = runs[forks], runs[forks]
        above = first["targets"] >= threshold[forks, None]
        first["targets"][above] = np.nan
        second["targets"][~above] = np.nan
        bound(first)
        bound(second)
        runs[forks] = first
        runs, is_below = both(runs, second), np.append(is_below, np.zeros(len(forks), dtype=bool))
    threshold, asked = threshold[before], asked[before]
    high, low = asked & is_below, asked & ~is_below
    runs["high"][high] = np.minimum(runs["high"], threshold)[high]
    runs["low"][low] = np.maximum(runs["low"], threshold)[low]
    return runs, before, high
