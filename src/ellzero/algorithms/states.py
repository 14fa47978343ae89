"""The states that ARHT's runs visit, and what a step asks of f there, for many states at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.core import Iterate, Objective, Support, magnitudes


@dataclass(eq=False, slots=True)
class State:
    """Where a run is: at a support S, having set the features U = [n] ∖ R free."""

    S: Support
    U: frozenset[int]
    free: NDArray[np.bool_]  # which of S are in U
    near: Iterate  # where to begin when f is minimised step by step


class Look(NamedTuple):
    """What a step of Algorithm 5 looks at."""

    fit: Iterate  # argmin over S of f
    x: Iterate  # argmin over S of g_R
    new: State  # at S ∪ {i} ∖ {j}
    progress: float  # by how much the minimum of g_R is less there


class States:
    """All is remembered: the same states recur between restarts and guesses."""

    def __init__(self, f: Objective, rho: float):
        self.f, self.rho = f, rho
        self._states: dict[tuple[bytes, frozenset[int]], State] = {}
        self._looks: dict[State, Look] = {}
        self._minimisers: dict[State, Iterate] = {}  # of g_R
        self._fits: dict[bytes, Iterate] = {}  # of f, by support

    def start(self, x: Iterate) -> State:
        """At the support of x, all of it regularised."""
        return self._at(x.support, frozenset(), np.zeros(len(x.support), dtype=bool), x)

    def freed(self, state: State, i: int) -> State:
        """The same support, i being set free."""
        fit = self._looks[state].fit
        return self._at(state.S, state.U | {i}, state.free | (state.S == i), fit)

    def look(self, states: list[State]) -> list[Look]:
        new = [state for state in dict.fromkeys(states) if state not in self._looks]
        if new:
            self._looks.update(zip(new, self._look(new), strict=True))
        return [self._looks[state] for state in states]

    def _at(self, S: Support, U: frozenset[int], free: NDArray[np.bool_], near: Iterate) -> State:
        key = S.tobytes(), U
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = State(S, U, free, near)
        return state

    def _look(self, states: list[State]) -> list[Look]:
        self._minimise({}, states)
        xs = [self._minimisers[state] for state in states]
        complete = len(states[0].S) == self.f.n_choosable
        new = states if complete else self._swapped(states, xs)
        keys = [state.S.tobytes() for state in states]
        self._minimise(dict(zip(keys, states, strict=True)), new)
        return [
            Look(self._fits[key], x, there, x.value - self._minimisers[there].value)
            for key, x, there in zip(keys, xs, new, strict=True)
        ]

    def _swapped(self, states: list[State], xs: list[Iterate]) -> list[State]:
        S = np.array([state.S for state in states])
        free = np.array([state.free for state in states])
        sizes = magnitudes(np.concatenate([x.coef for x in xs])).reshape(S.shape)
        ins = self.f.steepest(xs)  # outside S, x is zero and the gradients of g_R and f agree
        out = np.arange(len(S)), sizes.argmin(axis=1)
        S[out] = ins
        free[out] = [i in state.U for i, state in zip(ins, states, strict=True)]
        order = out[0][:, None], S.argsort(axis=1)
        return [
            self._at(T, state.U, T_free, x)
            for T, T_free, state, x in zip(S[order], free[order], states, xs, strict=True)
        ]

    def _minimise(self, by_support: dict[bytes, State], states: list[State]) -> None:
        """f over the supports of the first, g_R over those of the others, where not yet done."""
        fitted = {key: state for key, state in by_support.items() if key not in self._fits}
        new = [state for state in dict.fromkeys(states) if state not in self._minimisers]
        asked = [*fitted.values(), *new]
        if not asked:
            return
        ridges = np.where([state.free for state in asked], 0.0, self.rho)
        ridges[: len(fitted)] = 0.0
        supports = np.array([state.S for state in asked])
        starts = [self._minimisers.get(state, state.near) for state in asked]
        found = self.f.minimize_each(supports, ridges, starts)
        self._fits.update(zip(fitted, found[: len(fitted)], strict=True))
        self._minimisers.update(zip(new, found[len(fitted) :], strict=True))


def sample(state: State, x: Iterate, rng: np.random.Generator) -> int | None:
    """An i in S ∩ R with probability proportional to x_i², by binary search in partial sums."""
    weights = magnitudes(x.coef) ** 2
    weights[state.free] = 0.0
    sums = weights.cumsum()
    draw, total = rng.random(), sums[-1]
    if total == 0:
        return None
    k = sums.searchsorted(draw * total, side="right")
    return int(state.S[min(k, sums.argmax())])  # rounding may lead past the last in R


def change(before: State, after: State) -> str:
    """The step from one state to the next."""
    for i in after.U - before.U:
        return f"free {i}"
    old, new = set(before.S.tolist()), set(after.S.tolist())
    return " ".join([*(f"+{i}" for i in new - old), *(f"-{j}" for j in old - new)])
