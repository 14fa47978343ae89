"""Adaptively Regularized Hard Thresholding (Algorithms 5 and 6)."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import count
from math import ceil, log
from typing import Any, TypeAlias

import numpy as np

from ellzero.algorithms.seeds import child, seed_of
from ellzero.algorithms.start import starting_point
from ellzero.algorithms.states import Look, State, States, change, sample
from ellzero.checks import check_count, check_number
from ellzero.core import Iterate, Objective, Status
from ellzero.driver import Steps, solver
from ellzero.parallel import check_n_jobs, in_shares, workers
from ellzero.threads import blas_threads

PRACTICAL_RUNS = 20
PRACTICAL_FACTOR = 1e-3


Run: TypeAlias = Generator[State, Look, Status]


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


def core_run(
    states: States,
    x0: Iterate,
    opt: float,
    rng: np.random.Generator,
    window: Window,
    *,
    factor: float,
    half_stop: bool,
    n_steps: int | None,
) -> Run:
    """Algorithm 5: it says which state it is in, and is sent a look at it."""
    f, s = states.f, len(x0.support)
    state = states.start(x0)
    for _ in count() if n_steps is None else range(n_steps):
        fit, x, new, progress = yield state
        if not window.below(opt, fit.value):
            return Status.TARGET_REACHED
        if s == f.n_choosable:
            return Status.COMPLETE
        rounding = progress <= f.resolution
        if rounding or window.below(opt, x.value - s / factor * progress):  # line 19
            if half_stop and 2 * np.count_nonzero(state.free) >= s:
                return Status.SEARCH_ENDED
            i = sample(state, x, rng)
            if i is None:
                return Status.SEARCH_ENDED
            state = states.freed(state, i)
        else:
            state = new
    yield state
    return Status.SEARCH_ENDED


def steps_of(states: States, run: Run) -> Steps:
    """Of every state the minimiser of f over its support (line 12)."""
    state, note = next(run), "start"
    while True:
        (look,) = states.look([state])
        yield look.fit.noted(note)
        try:
            before, state = state, run.send(look)
        except StopIteration as end:
            return end.value
        note = change(before, state)


def abreast(states: States, runs: dict[int, Run]) -> Iterator[tuple[int, Iterate]]:
    """The best iterate of each run, as it ends.

    All runs take a step before one takes the next, so that f is asked about many states at once.
    """
    at = {z: next(run) for z, run in runs.items()}
    best: dict[int, Iterate] = {}
    while at:
        for z, look in zip(list(at), states.look(list(at.values())), strict=True):
            if z not in best or look.fit.value < best[z].value:
                best[z] = look.fit
            try:
                at[z] = runs[z].send(look)
            except StopIteration:
                del at[z]
                yield z, best[z]


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
        n_jobs: int | None = None,
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
        check_n_jobs(n_jobs)
        self.f, self.s = f, s
        self.practical = setting == "practical"
        self.seed = seed_of(random_state)
        self.x0 = starting_point(f, s, start)
        self.states = States(f, f.smoothness(2) if rho is None else rho)
        self.B = f.lower_bound() if lower is None else lower
        self.span = f.minimize(self.x0.support[:0]).value - self.B
        gap = self.x0.value - self.B
        self.epsilon = max(1e-3 * gap if epsilon is None else epsilon, 10 * f.resolution)
        self._n_runs = n_runs
        self._ended: dict[int, list[tuple[Window, Iterate]]] = {}
        self.workers = None if n_jobs in (None, 1) else workers(n_jobs, self.n_runs(self.epsilon))

    def log_span(self, epsilon: float) -> float:
        """log((f(0) − B) / ε), at least 1."""
        return log(max(self.span / epsilon, np.e))

    def n_runs(self, epsilon: float) -> int:
        if self._n_runs is not None:
            return self._n_runs
        if self.practical:
            return PRACTICAL_RUNS
        return ceil(5 * log(6 * self.f.n_features * self.log_span(epsilon)))

    def core(self, opt: float, epsilon: float, z: int, window: Window) -> Run:
        """Run z of Algorithm 5."""
        return core_run(
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
        n_runs = self.n_runs(epsilon)
        new = [z for z in range(n_runs) if self._known(z, opt) is None]
        ending = self.ending(opt, epsilon, new)
        for z in range(n_runs):
            while (x := self._known(z, opt)) is None:
                ended, window, best = next(ending)
                self._ended.setdefault(ended, []).append((window, best))
            yield x.noted(f"opt={opt:.6g} run {z}")
            if x.value <= opt:
                return Status.TARGET_REACHED
        return Status.SEARCH_ENDED

    def ending(
        self, opt: float, epsilon: float, zs: list[int]
    ) -> Iterator[tuple[int, Window, Iterate]]:
        """The window and the best iterate of each of these runs, as it ends."""
        if self.workers is not None:
            share = partial(_share, self.alone(), opt, epsilon)
            yield from in_shares(share, zs, self.workers)
            return
        windows = {z: Window() for z in zs}
        runs = {z: self.core(opt, epsilon, z, window) for z, window in windows.items()}
        for z, best in abreast(self.states, runs):
            yield z, windows[z], best

    def alone(self) -> Search:
        """The same without workers, and with a memory of its own."""
        other = copy.copy(self)
        other.f = self.f.apart()
        other.workers, other.states, other._ended = None, States(other.f, self.states.rho), {}
        return other

    def _known(self, z: int, opt: float) -> Iterate | None:
        """The best iterate of run z, if one towards another target has gone the same way."""
        for window, x in self._ended.get(z, []):
            if window.low <= opt < window.high:
                return x
        return None


def _share(
    search: Search, opt: float, epsilon: float, zs: list[int]
) -> list[tuple[int, Window, Iterate]]:
    own = search.alone()  # where workers are threads, all are handed the same search
    with blas_threads(search.f.blas_threads):
        return list(own.ending(opt, epsilon, zs))


@solver(options=Search)
def arht_core(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT's core routine (Algorithm 5): one run towards the target value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search = Search(f, s, **options)
    return steps_of(search.states, search.core(opt, search.epsilon, 0, Window()))


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
    n_jobs : how many groups of restarts joblib runs at the same time, on any of its backends; it
        pays where steps are dear (many rows, losses that are not quadratic). The answer is the
        same up to rounding: products of X with the points of a group depend on the group.
    """
    search = Search(f, s, **options)
    low, b, epsilon = search.B, search.x0, search.epsilon
    yield b
    with search.workers or nullcontext():
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
