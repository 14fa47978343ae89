"""The states that ARHT's runs visit, and what a step asks of f there, for many states at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.core import Iterate, Iterates, Objective
from ellzero.supports import Mask, Support, Vector, magnitudes

ROOM = 1 << 24
"""Records have so many bytes of room at first; what is not used takes no memory."""


class Table:
    """Records that are numbered in the order in which their keys are first met."""

    def __init__(self, *fields: tuple[Any, ...]):
        self._numbers: dict[Hashable, int] = {}
        kind = np.dtype(list(fields))
        self._records = np.empty(max(ROOM // kind.itemsize, 64), dtype=kind)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, field: str) -> Any:
        return self._records[field]

    def numbers(self, keys: Iterable[Hashable]) -> tuple[Support, Support]:
        """Of these keys, and for each new one, in the order of their numbers, where it is."""
        known, before = self._numbers, len(self._numbers)
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)
        if len(known) > len(self._records):
            grown = np.empty(2 * len(known), dtype=self._records.dtype)
            grown[:before] = self._records[:before]
            self._records = grown
        fresh = (numbers >= before).nonzero()[0]
        where = np.empty(len(known) - before, dtype=np.intp)
        where[numbers[fresh] - before] = fresh
        return numbers, where


class States:
    """A state is a support S and the set U = [n] ∖ R of the features that were set free.

    All is remembered: the same states recur between restarts and guesses. Supports are filled up
    to one length with −1. Where a feature outside S is in U, that matters only when it comes back,
    so minimisers have a table of their own.
    """

    def __init__(self, f: Objective, rho: float, s: int, like: Iterate):
        self.f, self.rho = f, rho
        self._steepest = f.successive_steepest()
        nuisance = [] if like.nuisance is None else [("nuisance", float, like.nuisance.shape)]
        self._has_nuisance = bool(nuisance)
        self.minimisers = Table(
            ("S", np.intp, (s,)),
            ("free", bool, (s,)),
            ("n_free", np.intp),
            ("coef", float, (s, *f.per_feature)),
            ("value", float),
            *nuisance,
        )
        self.states = Table(
            ("x", np.intp),  # argmin over S of g_R
            ("U", np.intp),
            ("fit", np.intp),  # argmin over S of f
            ("new", np.intp),  # the state at S ∪ {i} ∖ {j}
            ("progress", float),  # by how much the minimum of g_R is less there
            ("known", bool),  # are the last three?
        )
        self._sets: dict[frozenset[int], int] = {frozenset(): 0}
        self._members = [frozenset[int]()]

    def start(self, x: Iterate) -> int:
        """At the support of x, which minimises f there; all of it is regularised."""
        S = np.full((1, self.minimisers["S"].shape[1]), -1)
        S[0, : len(x.support)] = x.support
        coef = np.zeros((1, *self.minimisers["coef"].shape[1:]))
        coef[0, : len(x.support)] = x.coef
        nuisance = None if x.nuisance is None else x.nuisance[None]
        fit, new = self.minimisers.numbers(_rows(S, S >= 0))
        if len(new):
            found = Iterates(S, coef, np.array([x.value]), self.f.n_features, nuisance)
            self._store(fit, found, S >= 0)
        at = self._minimised(S, np.zeros_like(S, dtype=bool), fit)
        return int(self._numbered(at, np.zeros(1, dtype=np.intp))[0])

    def freed(self, states: Support, i: Support) -> Support:
        """The same supports, an i of each being set free."""
        _, first, same = np.unique(
            states * self.f.n_features + i, return_index=True, return_inverse=True
        )
        states, i = states[first], i[first]
        x, U = self.states["x"][states], self.states["U"][states].tolist()
        S = self.minimisers["S"][x]
        free = self.minimisers["free"][x] | (S == i[:, None])
        x = self._minimised(S, free, self.states["fit"][states])
        after = [self._with(u, k) for u, k in zip(U, i.tolist(), strict=True)]
        return self._numbered(x, np.array(after, dtype=np.intp))[same]

    def look(self, states: Support) -> Mask:
        """Find out what a step asks; false for states about which f is better asked later."""
        known = self.states["known"]
        new, place = np.unique(states[~known[states]], return_inverse=True)
        if len(new):
            ready = self.f.at_hand(self.minimisers["S"][self.states["x"][new]])
            n_later = np.count_nonzero(~ready[place])
            if 2 * n_later > len(states):  # a few take nearly as long as many
                ready[:] = True
            if ready.any():
                self._look(new[ready])
        return self.states["known"][states]

    def iterates(self, minimisers: Support) -> Iterates:
        t, k = self.minimisers, minimisers
        nuisance = t["nuisance"][k] if self._has_nuisance else None
        return Iterates(t["S"][k], t["coef"][k], t["value"][k], self.f.n_features, nuisance)

    def fits(self, states: ArrayLike) -> Iterates:
        """The minimisers of f over the supports of these."""
        return self.iterates(self.states["fit"][states])

    def sample(self, states: Support, draws: Vector) -> Support:
        """An i in S ∩ R with probability ∝ x_i², by search in partial sums; −1 if all are zero."""
        x = self.states["x"][states]
        weights = self._sizes(x) ** 2
        weights[self.minimisers["free"][x]] = 0.0
        sums = weights.cumsum(axis=1)
        total = sums[:, -1]
        k = (sums <= (draws * total)[:, None]).sum(axis=1)
        k = np.minimum(k, sums.argmax(axis=1))  # rounding may lead past the last in R
        return np.where(total > 0, self.minimisers["S"][x, k], -1)

    def change(self, before: int, after: int) -> str:
        """The step from one state to the next."""
        x, U = self.states["x"], self.states["U"]
        for i in self._members[U[after]] - self._members[U[before]]:
            return f"free {i}"
        old, new = (set(self.minimisers["S"][x[state]].tolist()) for state in (before, after))
        return " ".join([*(f"+{i}" for i in new - old), *(f"-{j}" for j in old - new)])

    def _look(self, states: Support) -> None:
        x, U = self.states["x"][states], self.states["U"][states]
        S = self.minimisers["S"][x]
        (swaps,) = ((S >= 0).sum(axis=1) < self.f.n_choosable).nonzero()
        T, T_free = self._swapped(x[swaps], U[swaps])
        found = self._minimised(
            np.concatenate([S, T]),
            np.concatenate([S >= 0, T_free]),
            np.concatenate([x, x[swaps]]),
        )
        there = x.copy()
        there[swaps] = found[len(x) :]
        new = self._numbered(there, U)
        value = self.minimisers["value"]
        self.states["fit"][states] = found[: len(x)]
        self.states["new"][states] = new
        self.states["progress"][states] = value[x] - value[there]
        self.states["known"][states] = True

    def _swapped(self, x: Support, U: Support) -> tuple[Support, Mask]:
        S, free = self.minimisers["S"][x], self.minimisers["free"][x]
        if not len(x):
            return S, free
        ins = self._steepest(self.iterates(x))  # outside S the gradients of g_R and f agree
        sizes = np.where(S >= 0, self._sizes(x), np.inf)
        out = np.arange(len(S)), sizes.argmin(axis=1)
        S[out] = ins
        free[out] = [i in self._members[u] for i, u in zip(ins.tolist(), U.tolist(), strict=True)]
        order = out[0][:, None], np.where(S >= 0, S, self.f.n_features).argsort(axis=1)
        return S[order], free[order]

    def _sizes(self, x: Support) -> NDArray[np.float64]:
        coef = self.minimisers["coef"][x]
        return magnitudes(coef.reshape(-1, *self.f.per_feature)).reshape(coef.shape[:2])

    def _minimised(self, S: Support, free: Mask, near: Support) -> Support:
        """The minimisers over each S of f + ρ/2 ‖x_R‖², R being what is not free."""
        numbers, new = self.minimisers.numbers(_rows(S, free))
        if len(new):
            ridges = np.where(free[new], 0.0, self.rho)
            found = self.f.minimize_each(S[new], ridges, self.iterates(near[new]))
            self._store(numbers[new], found, free[new])
        return numbers

    def _store(self, numbers: Support, found: Iterates, free: Mask) -> None:
        t = self.minimisers
        t["S"][numbers], t["free"][numbers] = found.support, free
        t["n_free"][numbers] = free.sum(axis=1)
        t["coef"][numbers], t["value"][numbers] = found.coef, found.value
        if found.nuisance is not None:
            t["nuisance"][numbers] = found.nuisance

    def _numbered(self, x: Support, U: Support) -> Support:
        numbers, new = self.states.numbers(zip(x.tolist(), U.tolist(), strict=True))
        self.states["x"][numbers[new]], self.states["U"][numbers[new]] = x[new], U[new]
        self.states["known"][numbers[new]] = False
        return numbers

    def _with(self, U: int, i: int) -> int:
        """U ∪ {i}."""
        members = self._members[U] | {i}
        number = self._sets.setdefault(members, len(self._sets))
        if number == len(self._members):
            self._members.append(members)
        return number


def _rows(S: Support, free: Mask) -> list[bytes]:
    """Each row as something to be looked up."""
    rows = np.ascontiguousarray(2 * S + free)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0].tolist()
