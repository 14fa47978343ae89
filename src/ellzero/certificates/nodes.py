"""Open nodes of a branch and bound: which features are in, free or out, and a bound for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ellzero.certificates.perspective import FREE, IN, OUT, States
from ellzero.supports import Mask, Matrix, Support, Vector

BYTES_OF_TABLEAUX = 1 << 28
"""Memory for the tableaux of open nodes. Further tableaux are made anew when they are needed."""

FIRST_SLOTS = 64
"""Nodes that there is room for at first."""


@dataclass
class Incumbent:
    """The best model known: its value, its support, and what rounding may hide of the value."""

    value: float
    support: Support
    rounding: float = 0.0


def cut(best: Incumbent, margin: float, gap: float) -> float:
    """Return the bound from which on a node cannot hold a model that matters."""
    return best.value - max(margin, gap * abs(best.value))


@dataclass
class Nodes:
    """Some nodes: a row of `states` and of `p`, a bound and perhaps a tableau for each."""

    states: States
    bound: Vector
    p: Matrix
    tableaux: list[Matrix | None]

    def __len__(self) -> int:
        return len(self.bound)

    def __getitem__(self, which: Mask) -> Nodes:
        kept = [self.tableaux[i] for i in np.flatnonzero(which)]
        return Nodes(self.states[which], self.bound[which], self.p[which], kept)

    @property
    def free(self) -> NDArray[np.bool_]:
        return self.states == FREE

    @property
    def usable(self) -> NDArray[np.bool_]:
        return self.states != OUT

    def to_add(self, s: int) -> NDArray[np.intp]:
        """Return how many free features each node may still choose."""
        return s - (self.states == IN).sum(axis=1)


class Open:
    """The nodes still to be looked at. It gives out those of least bound first."""

    def __init__(self, n: int):
        self.n = n
        self._bound = np.full(FIRST_SLOTS, np.inf)
        self._states = np.zeros((FIRST_SLOTS, n), dtype=np.int8)
        self._p = np.zeros((FIRST_SLOTS, n), dtype=np.float32)  # every p gives a bound
        self._tableaux: dict[int, Matrix] = {}
        self.count = 0

    def __len__(self) -> int:
        return self.count

    @property
    def lowest(self) -> float:
        return float(self._bound.min())

    def push(self, nodes: Nodes) -> None:
        vacant = np.flatnonzero(np.isinf(self._bound))[: len(nodes)]
        if len(vacant) < len(nodes):
            self._grow(len(nodes))
            vacant = np.flatnonzero(np.isinf(self._bound))[: len(nodes)]
        self._bound[vacant], self._states[vacant] = nodes.bound, nodes.states
        self._p[vacant] = nodes.p
        room = BYTES_OF_TABLEAUX // (8 * (self.n + 1) ** 2) - len(self._tableaux)
        for slot, T in zip(vacant.tolist(), nodes.tableaux[: max(room, 0)], strict=False):
            if T is not None:
                self._tableaux[slot] = T
        self.count += len(nodes)

    def pop(self, count: int, deepest: bool = False) -> Nodes:
        """Take out the nodes of least bound, or those of largest bound, whose children soon end."""
        keys = np.where(np.isinf(self._bound), np.inf, -self._bound) if deepest else self._bound
        count = min(count, self.count)
        slots = np.argpartition(keys, count - 1)[:count]
        tableaux = [self._tableaux.pop(slot, None) for slot in slots.tolist()]
        nodes = Nodes(
            self._states[slots], self._bound[slots], self._p[slots].astype(float), tableaux
        )
        self._bound[slots] = np.inf
        self.count -= count
        return nodes

    def _grow(self, more: int) -> None:
        extra = max(more, len(self._bound))
        self._bound = np.append(self._bound, np.full(extra, np.inf))
        self._states = np.append(self._states, np.zeros((extra, self.n), np.int8), axis=0)
        self._p = np.append(self._p, np.zeros((extra, self.n), np.float32), axis=0)
