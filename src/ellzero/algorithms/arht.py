"""Adaptively Regularized Hard Thresholding (Algorithms 5 and 6)."""

from __future__ import annotations

from itertools import count
from math import ceil, log
from typing import Any

import numpy as np

from ellzero.algorithms.start import starting_point
from ellzero.checks import check_count, check_number
from ellzero.core import Iterate, Objective, Status, magnitudes, swapped
from ellzero.driver import Steps, solver

PRACTICAL_RUNS = 20
PRACTICAL_FACTOR = 1e-3


class States:
    """What ARHT asks of f, remembered: the same (S, R) recur between restarts and guesses.

    The minimiser of g_R over S depends on R only through U = S ∖ R, the unregularised part of S.
    """

    def __init__(self, f: Objective, rho: float):
        self.f, self.rho = f, rho
        self._objectives: dict[frozenset[int], Objective] = {}
        self._minimisers: dict[tuple[bytes, frozenset[int] | None], Iterate] = {}
        self._swaps: dict[tuple[bytes, frozenset[int]], Iterate] = {}

    def minimiser(self, S: np.ndarray, U: frozenset[int] | None, x0: Iterate | None) -> Iterate:
        """argmin over S of g_R, or of f itself where U is None."""
        key = S.tobytes(), None if U is None else U.intersection(S.tolist())
        if key not in self._minimisers:
            g = self.f if U is None else self._regularised(U)
            self._minimisers[key] = g.minimize(S, x0)
        return self._minimisers[key]

    def swap(self, S: np.ndarray, U: frozenset[int], x: Iterate) -> Iterate:
        """Lines 15 to 18: the minimiser of g_R over S ∪ {i} ∖ {j}."""
        key = S.tobytes(), U
        if key not in self._swaps:
            # outside S, x is zero and the gradients of g_R and f are the same
            i = self.f.largest_outside(S, magnitudes(self.f.gradient(x)))
            j = x.smallest
            T = np.sort(swapped(S, j, i))
            self._swaps[key] = self.minimiser(T, U, x).noted(f"+{i} -{j}")
        return self._swaps[key]

    def _regularised(self, U: frozenset[int]) -> Objective:
        if U not in self._objectives:
            d = np.full(self.f.n_features, self.rho)
            d[list(U)] = 0.0
            self._objectives[U] = self.f.ridged(d)
        return self._objectives[U]


class Window:
    """The targets [low, high) for which a run would have gone exactly as it did."""

    def __init__(self) -> None:
        self.low, self.high = -np.inf, np.inf

    def below(self, opt: float, threshold: float) -> bool:
        """Whether opt < threshold, noting that the run's course hung on it."""
        if opt < threshold:
            self.high = min(self.high, threshold)
        else:
            self.low = max(self.low, threshold)
        return opt < threshold


def core_steps(
    states: States,
    x0: Iterate,
    opt: float,
    rng: np.random.Generator,
    window: Window,
    *,
    factor: float,
    half_stop: bool,
    n_steps: int | None,
) -> Steps:
    """Algorithm 5. Each iterate is the minimiser of f over the support reached (line 12)."""
    S, s = x0.support, len(x0.support)
    U: frozenset[int] = frozenset()  # [n] ∖ R
    note = "start"
    for _ in count() if n_steps is None else range(n_steps):
        fit = states.minimiser(S, None, x0)
        yield fit.noted(note)
        if not window.below(opt, fit.value):
            return Status.TARGET_REACHED
        if s == states.f.n_choosable:
            return Status.COMPLETE
        x = states.minimiser(S, U, fit)
        new = states.swap(S, U, x)
        progress = x.value - new.value
        rounding = progress <= states.f.resolution
        if rounding or window.below(opt, x.value - s / factor * progress):  # line 19
            if half_stop and 2 * len(U.intersection(S.tolist())) >= s:
                return Status.SEARCH_ENDED
            i = sample(x, U, rng)
            if i is None:
                return Status.SEARCH_ENDED
            U = U | {i}
            note = f"free {i}"
        else:
            S, note = new.support, new.note
    yield states.minimiser(S, None, x0).noted(note)
    return Status.SEARCH_ENDED


def sample(x: Iterate, U: frozenset[int], rng: np.random.Generator) -> int | None:
    """An i in R with probability proportional to x_i², by binary search in partial sums."""
    regularised = [k for k, i in enumerate(x.support.tolist()) if i not in U]
    sums = np.cumsum(magnitudes(x.coef[regularised]) ** 2)
    draw = rng.random()
    if not len(sums) or sums[-1] == 0:
        return None
    k = min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1)
    return int(x.support[regularised[k]])


def seed_of(random_state: Any) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    try:
        return np.random.SeedSequence(random_state).entropy  # type: ignore[return-value]
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state: expected None, a non-negative integer or a generator, got "
            f"{random_state!r}."
        ) from None


def child(seed: int, z: int) -> np.random.Generator:
    """The random numbers of restart z, whatever the order in which restarts are made."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(z,)))


class Search:
    """The parameters that Algorithms 5 and 6 share, resolved for one f and s."""

    def __init__(
        self,
        f: Objective,
        s: int,
        *,
        start: Any = "omp",
        setting: str = "practical",
        rho: float | None = None,
        epsilon: float | None = None,
        lower: float | None = None,
        n_runs: int | None = None,
        random_state: Any = None,
    ):
        if setting not in ("practical", "theoretical"):
            raise ValueError(f"setting: expected 'practical' or 'theoretical', got {setting!r}.")
        for name, number, above in (
            ("rho", rho, 0.0),
            ("epsilon", epsilon, 0.0),
            ("lower", lower, -np.inf),
        ):
            if number is not None:
                check_number(name, number, above)
        if n_runs is not None:
            check_count("n_runs", n_runs, 1)
        self.n, self.s = f.n_features, s
        self.practical = setting == "practical"
        self.seed = seed_of(random_state)
        self.x0 = starting_point(f, s, start)
        self.states = States(f, f.smoothness(2) if rho is None else rho)
        self.B = f.lower_bound() if lower is None else lower
        self.span = f.minimize(self.x0.support[:0]).value - self.B
        gap = self.x0.value - self.B
        self.epsilon = max(1e-3 * gap if epsilon is None else epsilon, 10 * f.resolution)
        self._n_runs = n_runs
        self._runs: dict[int, list[tuple[Window, Iterate]]] = {}

    def log_span(self, epsilon: float) -> float:
        """log((f(0) − B) / ε), at least 1."""
        return log(max(self.span / epsilon, np.e))

    def n_runs(self, epsilon: float) -> int:
        if self._n_runs is not None:
            return self._n_runs
        if self.practical:
            return PRACTICAL_RUNS
        return ceil(5 * log(6 * self.n * self.log_span(epsilon)))

    def core(self, opt: float, epsilon: float, z: int, window: Window) -> Steps:
        """Run z of Algorithm 5."""
        return core_steps(
            self.states,
            self.x0,
            opt,
            child(self.seed, z),
            window,
            factor=PRACTICAL_FACTOR if self.practical else 1.0,
            half_stop=self.practical,
            n_steps=None if self.practical else ceil(2 * self.s * self.log_span(epsilon)),
        )

    def robust(self, opt: float, epsilon: float) -> Steps:
        """Algorithm 6, ARHT_robust: the best iterate of every run."""
        for z in range(self.n_runs(epsilon)):
            x = self.best_of_run(z, opt, epsilon)
            yield x.noted(f"opt={opt:.6g} run {z}")
            if x.value <= opt:
                return Status.TARGET_REACHED
        return Status.SEARCH_ENDED

    def best_of_run(self, z: int, opt: float, epsilon: float) -> Iterate:
        runs = self._runs.setdefault(z, [])
        for window, x in runs:
            if window.low <= opt < window.high:
                return x
        window = Window()
        x = min(self.core(opt, epsilon, z, window), key=lambda x: x.value)
        runs.append((window, x))
        return x


@solver(options=Search)
def arht_core(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT's core routine (Algorithm 5): one run towards the target value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search = Search(f, s, **options)
    return search.core(opt, search.epsilon, 0, Window())


@solver(options=Search)
def arht_robust(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT_robust (Algorithm 6): repeated runs of the core towards the target value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search = Search(f, s, **options)
    return search.robust(opt, search.epsilon)


@solver(options=Search)
def arht(f: Objective, s: int, **options: Any) -> Steps:
    """Adaptively Regularized Hard Thresholding: a search for the lowest reachable target value.

    OMPR on f + ρ/2 ‖x_R‖²; where it is stuck, an element drawn with probability ∝ x_i² leaves the
    regularised set R. The answer is the best support visited, so never worse than the start.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point; see `ellzero.algorithms.start`
    setting : "practical" (20 runs per guess, progress factor 1e-3, a run stops when half the
        support is unregularised) or "theoretical" (the numbers of runs and steps of the theorem)
    rho : weight ρ of the regulariser; by default the certified ρ₂⁺ of f
    epsilon : width at which the search for the target ends; by default 1e-3·(f(start) − B)
    lower : the lower bound B on f; by default ``f.lower_bound()``
    n_runs : restarts for each guess of the target
    random_state : seed; every restart draws from a child of its own
    """
    search = Search(f, s, **options)
    low, b, epsilon = search.B, search.x0, search.epsilon
    yield b
    while b.value - low > epsilon:
        m = (low + b.value) / 2
        x = b
        for run in search.robust(m, epsilon / 3):
            x = min(x, run, key=lambda x: x.value)
            yield x.noted(run.note)
        if x.value < b.value - f.resolution:
            b = x
        if x.value > m + epsilon / 3:
            low = m
    return Status.SEARCH_ENDED
