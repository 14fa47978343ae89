"""The states that runs of ARHT visit, and what the algorithm asks of f at each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from ellzero.core import Iterate, Objective
from ellzero.methods.seeds import Draws
from ellzero.objectives.minimisers import minimize_each
from ellzero.supports import Mask, Support, Vector

STATES_AT_MOST = 100_000
"""States that are remembered before all are forgotten: 2 kB each, so 200 MB."""

Wanted: TypeAlias = tuple[Support, Mask, Iterate | None]
"""A support, which of its features are free, and a point near the minimiser."""


class State:
    """A support S, and the set U = [n] ∖ R of the features that were set free.

    Attributes
    ----------
    free : array of bool
        Which features of S are in U.
    x : Iterate, optional
        The minimiser of g_R over S. Its value is that of g_R. None if it is not known yet.
    fit : Iterate, optional
        The minimiser of f over S (line 12).
    swap : State, optional
        The state at S ∪ {i} ∖ {j} (lines 15 to 18). There is none if S has all features.
    """

    __slots__ = ("S", "U", "fit", "free", "freed", "n_free", "sums", "swap", "x")

    x: Iterate
    fit: Iterate

    def __init__(self, S: Support, U: frozenset[int], free: Mask):
        self.S, self.U, self.free = S, U, free
        self.n_free = int(np.count_nonzero(free))
        self.forget()

    def forget(self) -> None:
        """Forget what f said."""
        self.x = self.fit = None  # type: ignore[assignment]
        self.swap: State | None = None
        self.sums: Vector | None = None
        self.freed: dict[int, State] = {}

    @property
    def is_known(self) -> bool:
        return self.fit is not None

    def note(self, before: State | None) -> str:
        """Return the step from the state before, such as ``+3 -17`` or ``free 3``."""
        if before is None:
            return "start"
        for i in self.U - before.U:
            return f"free {i}"
        (i,), (j,) = np.setdiff1d(self.S, before.S), np.setdiff1d(before.S, self.S)
        return f"+{i} -{j}"


class States:
    """All states that the runs of one call have met. They often meet the same ones."""

    def __init__(self, f: Objective, rho: float):
        self.f, self.rho = f, rho
        self.known: dict[tuple[bytes, frozenset[int]], State] = {}
        self.minimisers: dict[tuple[bytes, bytes], Iterate] = {}
        self.drawn: dict[tuple[int, int], Draws] = {}

    def at(self, S: Support, U: frozenset[int], free: Mask) -> State:
        key = S.tobytes(), U
        if key not in self.known:
            self.known[key] = State(S, U, free)
        return self.known[key]

    def start(self, S: Support) -> State:
        """Return the state at S in which no feature is free."""
        return self.at(S, frozenset(), np.zeros(len(S), dtype=bool))

    def draws(self, seed: int, z: int) -> Iterator[float]:
        """Return the random numbers of restart z, from the first on."""
        return iter(self.drawn.setdefault((seed, z), Draws(seed, z)))

    def explore(self, states: Iterable[State]) -> None:
        """Ask f what lines 12 and 15 to 18 of Algorithm 5 need, for all of these states at once."""
        if len(self.known) > STATES_AT_MOST:
            for t in self.known.values():
                t.forget()
            self.known, self.minimisers = {}, {}
        new = [t for t in states if not t.is_known]
        bare = [t for t in new if t.x is None]
        for t, x in zip(bare, self._minimised([(t.S, t.free, None) for t in bare]), strict=True):
            t.x = x
        swaps = [t for t in new if len(t.S) < len(self.f.features.choosable)]
        entering = self.f.steepest([t.x for t in swaps]) if swaps else []  # ∇g = ∇f outside S
        wanted = [self._swapped(t, i) for t, i in zip(swaps, entering, strict=True)]
        found = self._minimised([(t.S, np.ones_like(t.free), t.x) for t in new] + wanted)
        for t, fit in zip(new, found, strict=False):
            t.fit = fit
        for t, (S, free, _), x in zip(swaps, wanted, found[len(new) :], strict=True):
            t.swap = self.at(S, t.U, free)
            t.swap.x = x

    def _swapped(self, t: State, i: int) -> Wanted:
        """Return S ∪ {i} ∖ {j}, with the smallest |x_j|."""
        S, free = t.S.copy(), t.free.copy()
        j = self.f.features.norms(t.x.coef, t.S).argmin()
        S[j], free[j] = i, i in t.U
        order = S.argsort()
        return S[order], free[order], t.x

    def freed(self, t: State, draw: float) -> State | None:
        """Return the state after an i in S ∩ R, drawn with probability ∝ x_i², has left R.

        Parameters
        ----------
        draw : float
            A random number from [0, 1).

        Returns
        -------
        State or None
            None if all x_i are zero.
        """
        if t.sums is None:
            weights = self.f.features.norms(t.x.coef, t.S) ** 2
            weights[t.free] = 0.0
            t.sums = weights.cumsum()
        total = t.sums[-1]
        if not total > 0:
            return None
        k = int(t.sums.searchsorted(draw * total, side="right"))
        k = min(k, int(t.sums.argmax()))  # rounding may lead past the last in R
        if k not in t.freed:
            free = t.free.copy()
            free[k] = True
            t.freed[k] = self.at(t.S, t.U | {int(t.S[k])}, free)
        return t.freed[k]

    def _minimised(self, wanted: list[Wanted]) -> list[Iterate]:
        """Return the minimisers over each S of f + ρ/2 ‖x_R‖², R being what is not free."""
        keys = [(S.tobytes(), free.tobytes()) for S, free, _ in wanted]
        new = {key: k for k, key in enumerate(keys) if key not in self.minimisers}
        if new:
            supports, free, near = zip(*(wanted[k] for k in new.values()), strict=True)
            ridges = [np.where(own, 0.0, self.rho) for own in free]
            found = minimize_each(self.f, supports, ridges, near)
            self.minimisers.update(zip(new, found, strict=True))
        return [self.minimisers[key] for key in keys]
