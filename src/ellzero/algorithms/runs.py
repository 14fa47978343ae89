"""Runs of Algorithm 5, ARHT's core: all of them take a step at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.algorithms.seeds import child
from ellzero.algorithms.states import States
from ellzero.core import Iterate, Mask, Support, Vector

RUN = np.dtype(
    [
        ("search", np.intp),  # for whom
        ("z", np.intp),
        ("s", np.intp),
        ("opt", float),
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


ENDED = ["search", "z", "opt", "best", "value", "low", "high"]


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
        self._ended: dict[tuple[int, int], list[Ended]] = {}

    def begin(self, run: dict[str, Any], seed: int, wanted: list[tuple[float, int]]) -> None:
        """Runs that are alike but for their targets and the numbers of their restarts."""
        new = np.zeros(len(wanted), dtype=RUN)
        new["low"], new["high"], new["value"] = -np.inf, np.inf, np.inf
        for name, number in run.items():
            new[name] = number
        new["opt"], new["z"] = [opt for opt, _ in wanted], [z for _, z in wanted]
        new["stream"] = [self._streams.number(seed, z) for _, z in wanted]
        self.live = both(self.live, new)

    def drop(self, search: int) -> None:
        self.live = self.live[self.live["search"] != search]

    def known(self, search: int, z: int, opt: float) -> Iterate | None:
        """The best iterate of run z, if one towards any target went as this one would."""
        for low, high, best in self._ended.get((search, z), ()):
            if low <= opt < high:
                return best
        return None

    def unknown(self, search: int, n_runs: int, opt: float) -> list[int]:
        """The runs to begin, none of which is after one that is known to reach opt."""
        here = (self.live["search"] == search) & (self.live["opt"] == opt)
        begun, zs = set(self.live["z"][here].tolist()), []
        for z in range(n_runs):
            x = self.known(search, z, opt)
            if x is not None and x.value <= opt:
                break
            if x is None and z not in begun:
                zs.append(z)
        return zs

    def note(self, search: int, z: int, ended: Ended) -> None:
        self._ended.setdefault((search, z), []).append(ended)

    def last(self, search: int, z: int) -> Ended | None:
        """Of run z what is known, if it has ended."""
        ended = self._ended.get((search, z))
        return ended[-1] if ended else None

    def advance(self) -> None:
        """Steps until a run has ended; before that there is nothing new for a search."""
        while not self.step():
            pass

    def step(self) -> bool:
        """Lines 11 to 23 of Algorithm 5 for all runs, save where f is better asked later.

        Has a run ended?
        """
        if not len(self.live):
            raise RuntimeError("a run is waited for that is not there")
        t = self.states
        ready = t.look(self.live["at"])
        waiting, runs = self.live[~ready], self.live[ready]
        at, s = runs["at"].copy(), runs["s"]
        x, progress = t.states["x"][at], t.states["progress"][at]
        fit, g = t.minimisers["value"][t.states["fit"][at]], t.minimisers["value"][x]
        self._keep_best(runs, fit)
        goes_on = _below(runs, fit, np.ones(len(runs), dtype=bool))  # line 12
        goes_on &= (s < t.f.n_choosable) & (runs["steps"] > 0)
        stuck = progress <= t.f.resolution
        stuck |= _below(runs, g - s / self.factor * progress, goes_on & ~stuck)  # line 19
        if self.half_stop:
            goes_on &= ~stuck | (2 * t.minimisers["n_free"][x] < s)
        i = np.full(len(runs), -1)
        asked = (goes_on & stuck).nonzero()[0]
        i[asked] = self._sampled(runs[asked])
        goes_on &= ~stuck | (i >= 0)
        runs["drawn"] += stuck
        runs["steps"] -= 1
        free, swap = goes_on & stuck, goes_on & ~stuck
        runs["at"][swap] = t.states["new"][at[swap]]
        runs["at"][free] = t.freed(at[free], i[free])
        self.live = both(waiting, runs[goes_on])
        self._end(runs[~goes_on])
        return len(self.live) < len(ready)

    def _sampled(self, runs: NDArray[Any]) -> Support:
        """What each sets free; runs towards several targets go together for a while."""
        streams, drawn = runs["stream"], runs["drawn"]
        same = (runs["at"] * (streams.max(initial=0) + 1) + streams) * (drawn.max(initial=0) + 1)
        _, first, back = np.unique(same + drawn, return_index=True, return_inverse=True)
        draws = self._streams[streams[first], drawn[first]]
        return self.states.sample(runs["at"][first], draws)[back]

    def _keep_best(self, runs: NDArray[Any], fit: Vector) -> None:
        better = fit < runs["value"]
        runs["value"][better] = fit[better]
        runs["best"][better] = runs["at"][better]

    def _end(self, runs: NDArray[Any]) -> None:
        for search, z, opt, best, value, low, high in runs[ENDED].tolist():
            if self.known(search, z, opt) is None:
                self.note(search, z, Ended(low, high, self.states.fit(best)))
            if value <= opt:  # later restarts are not asked for, nor are higher targets
                live = self.live
                later = (live["opt"] > opt) | ((live["opt"] == opt) & (live["z"] > z))
                self.live = live[~later | (live["search"] != search)]


def both(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """`np.concatenate`, which for records takes as long as a step does."""
    together = np.empty(len(first) + len(second), dtype=RUN)
    together[: len(first)], together[len(first) :] = first, second
    return together


def _below(runs: NDArray[Any], threshold: Vector, asked: Mask) -> Mask:
    """Whether opt < threshold, noting that the course of the run hangs on it if that was asked."""
    below = runs["opt"] < threshold
    high, low = asked & below, asked & ~below
    runs["high"][high] = np.minimum(runs["high"], threshold)[high]
    runs["low"][low] = np.maximum(runs["low"], threshold)[low]
    return below & asked
