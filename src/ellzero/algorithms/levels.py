"""The best few supports of every size."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ellzero.supports import Support


@dataclass(eq=False)
class Held:
    """A support that is kept, with what the search wants to remember of it."""

    support: Support
    value: float
    memory: Any = None
    displaced: bool = False
    checked: bool = False


class Levels:
    """The best few supports of sizes bottom … top; those not yet looked at are `fresh`.

    A support whose value is at the floor ends the levels: none is better, and no larger one.
    """

    def __init__(
        self, bottom: int, top: int, breadth: int, resolution: float, floor: float = -np.inf
    ):
        self.bottom, self.top = bottom, top
        self.breadth, self.resolution, self.floor = breadth, resolution, floor
        self.kept: dict[int, list[Held]] = {k: [] for k in range(bottom, top + 1)}
        self.fresh: list[Held] = []
        self._seen: set[bytes] = set()

    def copy(self) -> Levels:
        """Of settled levels; what is offered to the one is not offered to the other."""
        other = copy(self)
        other.kept = {k: [replace(x) for x in kept] for k, kept in self.kept.items()}
        other.fresh, other._seen = [], set(self._seen)
        return other

    def __iter__(self) -> Iterator[Held]:
        return (x for kept in self.kept.values() for x in kept)

    def bests(self) -> list[Held]:
        """The best of every size that has any."""
        return [kept[0] for k, kept in self.kept.items() if kept and k <= self.top]

    def limit(self, k: int) -> float:
        """What the value of a new support of this size must be less than, for it to be kept."""
        if not self.bottom <= k <= self.top:
            return float("-inf")
        kept = self.kept[k]
        return kept[-1].value - self.resolution if len(kept) >= self.breadth else float("inf")

    def is_new(self, support: Support) -> bool:
        return support.tobytes() not in self._seen

    def offer(self, support: Support, value: float, memory: Any = None) -> bool:
        """Keep a (sorted) support if it is new and among the best of its size."""
        k = len(support)
        if not (value < self.limit(k) and self.is_new(support)):
            return False
        self._seen.add(support.tobytes())
        kept = self.kept[k]
        kept.append(Held(support, value, memory))
        if value <= self.floor:
            self.top = k
        else:
            self.fresh.append(kept[-1])
        kept.sort(key=lambda x: x.value)
        for x in kept[self.breadth :]:
            x.displaced = True
        del kept[self.breadth :]
        return True

    def take_fresh(self, largest: int) -> list[Held]:
        """The fresh supports of up to so many features; they are fresh no more."""
        taken = [x for x in self.fresh if len(x.support) <= largest]
        self.fresh = [x for x in self.fresh if len(x.support) > largest]
        return [x for x in taken if not x.displaced and len(x.support) <= self.top]
