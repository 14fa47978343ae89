"""The best few supports of every size: what a search keeps, and what it has yet to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any

from ellzero.supports import Support


@dataclass(eq=False)
class Held:
    """A support that is kept. `memory` is what the search needs to look at its neighbours."""

    S: Support
    value: float
    memory: Any = None
    is_displaced: bool = False
    was_widened: bool = False
    """Whether features outside the working set have been tried on it."""


class Levels:
    """The best few supports of sizes `bottom` to `top`. Supports not yet looked at are fresh.

    A support whose value is at the floor lowers `top` to its size: no larger one can be better.

    Parameters
    ----------
    breadth : int
        How many supports of each size are kept.
    resolution : float
        By how much a value must be lower to count as lower.
    floor : float
        A value of at most this cannot be improved.
    """

    def __init__(self, bottom: int, top: int, breadth: int, resolution: float, floor: float = -inf):
        self.bottom, self.top, self.breadth = bottom, top, breadth
        self.resolution, self.floor = resolution, floor
        self.kept: dict[int, list[Held]] = {k: [] for k in range(bottom, top + 1)}
        self.fresh: list[tuple[int, int, Held]] = []  # a heap, by size and age
        self._n_fresh = 0
        self._seen: set[bytes] = set()

    def __iter__(self) -> Iterator[Held]:
        return (x for kept in self.kept.values() for x in kept)

    def bests(self) -> list[Held]:
        """Return the best support of every size up to `top`."""
        return [kept[0] for k, kept in self.kept.items() if kept and k <= self.top]

    def limit(self, k: int) -> float:
        """Return the number below which a value must be for a new support of size k to be kept."""
        if not self.bottom <= k <= self.top:
            return -inf
        kept = self.kept[k]
        return kept[-1].value - self.resolution if len(kept) >= self.breadth else inf

    def is_new(self, S: Support) -> bool:
        """Say whether this support was never kept."""
        return S.tobytes() not in self._seen

    def offer(self, S: Support, value: float, memory: Any = None) -> bool:
        """Keep a sorted support if it is new and among the best of its size. Say whether it is."""
        k = len(S)
        if not (value < self.limit(k) and self.is_new(S)):
            return False
        self._seen.add(S.tobytes())
        new = Held(S, value, memory)
        kept = sorted([*self.kept[k], new], key=lambda x: x.value)
        for x in kept[self.breadth :]:
            x.is_displaced, x.memory = True, None
        self.kept[k] = kept[: self.breadth]
        if value <= self.floor:
            self.top = k
        else:
            self._make_fresh(new)
        return True

    def take(self) -> Iterator[Held]:
        """Take the fresh supports that are still kept, small ones first.

        What a small support leads to may displace larger ones, which are then not looked at.
        """
        while self.fresh:
            x = heappop(self.fresh)[-1]
            if not x.is_displaced and len(x.S) <= self.top:
                yield x

    def renew(self) -> None:
        """Make the best supports fresh again, and no others."""
        self.fresh = []
        for x in self.bests():
            self._make_fresh(x)

    def _make_fresh(self, x: Held) -> None:
        self._n_fresh += 1
        heappush(self.fresh, (len(x.S), self._n_fresh, x))
