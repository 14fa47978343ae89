"""Adaptively Regularized Hard Thresholding (Algorithms 5 and 6).

Each run of Algorithm 5 is a coroutine that yields the state it is in. All runs, of all sizes of a
path, go side by side. At states that are new they wait for one another, so that f answers for many
states at once.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from copy import copy
from functools import partial
from math import ceil, e, inf, log
from typing import Any, TypeAlias

from ellzero.checks import check_count, check_number, check_options
from ellzero.core import Iterate, Objective, Solution, Status
from ellzero.driver import Best, Callback, Steps, run, solver
from ellzero.methods.seeds import seed_of
from ellzero.methods.start import known_smoothness, starting_point
from ellzero.methods.states import State, States
from ellzero.objectives.minimisers import lower_bound
from ellzero.parallel import check_n_jobs, in_shares, workers
from ellzero.supports import NONE
from ellzero.threads import blas_threads

PRACTICAL_RUNS = 20
"""Runs for each target, in the paper's experiments."""

PRACTICAL_FACTOR = 1e-3
"""Share of the progress in line 19 of Algorithm 5 that the paper's experiments ask for."""


class Outcome:
    """The best x that a run visits, and the targets [low, high) with which it goes the same way."""

    def __init__(self, opt: float):
        self.opt, self.low, self.high = opt, -inf, inf
        self.best: Iterate = None  # type: ignore[assignment]

    def visit(self, x: Iterate) -> None:
        if self.best is None or x.value < self.best.value:
            self.best = x

    def target_is_at_least(self, value: float) -> bool:
        """Compare the target with a value. Targets on the other side of it leave the interval."""
        if self.opt >= value:
            self.low = max(self.low, value)
            return True
        self.high = min(self.high, value)
        return False


Run: TypeAlias = Generator[State, None, Outcome]
Waiting: TypeAlias = Generator[Iterate | None, None, Any]
"""The steps of one size. None says that they wait for f to answer."""


def core(
    states: States,
    at: State,
    s: int,
    opt: float,
    draws: Iterator[float],
    T: float,
    factor: float,
    half_stop: bool,
) -> Run:
    """Algorithm 5, ARHT_core, which returns the best x and not the last.

    Each state must be explored before the run goes on.

    Parameters
    ----------
    factor : float
        Share of the progress in line 19 that is asked for.
    half_stop : bool
        Whether to stop where progress is too small and half of the support is unregularised.
    """
    outcome, t = Outcome(opt), 0
    while True:
        yield at
        outcome.visit(at.fit)
        if outcome.target_is_at_least(at.fit.value) or at.swap is None or t >= T:  # lines 11 to 14
            break
        t += 1
        g, progress = at.x.value, at.x.value - at.swap.x.value
        is_progress = progress > states.f.resolution
        if is_progress and outcome.target_is_at_least(g - s / factor * progress):  # line 19
            at = at.swap  # lines 15 to 18
        elif half_stop and 2 * at.n_free >= s:
            break
        elif (freed := states.freed(at, next(draws))) is not None:
            at = freed  # lines 20 to 23
        else:
            break
    return outcome


class Search:
    """Algorithm 6 at one size. The options are those of `arht`."""

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
        for name, number in (("rho", rho), ("epsilon", epsilon), ("lower", lower)):
            if number is not None:
                check_number(name, number, -inf if name == "lower" else 0.0)
        if n_runs is not None:
            check_count("n_runs", n_runs, 1)
        check_n_jobs(n_jobs)
        self.f, self.s, self.practical = f, s, setting == "practical"
        self.seed, self.n_given = seed_of(random_state), n_runs
        self.x0 = starting_point(f, s, start)
        self.rho = known_smoothness(f, 1 if self.practical else 2) if rho is None else rho
        self.B = lower_bound(f) if lower is None else lower
        self.span = f.minimize(NONE).value - self.B
        width = 1e-3 * (self.x0.value - self.B) if epsilon is None else epsilon
        self.epsilon = max(width, 10 * f.resolution)
        self.workers = (
            None if n_jobs in (None, 1) else workers(n_jobs, self.counts(self.epsilon)[0])
        )
        self.states = States(f, self.rho)
        self.outcomes: dict[int, list[Outcome]] = defaultdict(list)  # of every run, by number
        self.shown: set[tuple[int, float]] = set()  # which runs were steps: number and interval
        self.waiting: list[State] = []

    def counts(self, epsilon: float) -> tuple[int, float]:
        """Return how many runs ARHT_robust makes (line 5), and T, the iterations of each."""
        span = log(max(self.span / epsilon, e))
        n_runs, T = PRACTICAL_RUNS, inf
        if not self.practical:
            n_runs, T = ceil(5 * log(6 * len(self.f.features) * span)), ceil(2 * self.s * span)
        return self.n_given or n_runs, T

    def core(self, z: int, opt: float, epsilon: float) -> Run:
        """Begin run z (line 6)."""
        at, draws = self.states.start(self.x0.support), self.states.draws(self.seed, z)
        factor = PRACTICAL_FACTOR if self.practical else 1.0
        T = self.counts(epsilon)[1]
        return core(self.states, at, self.s, opt, draws, T, factor, half_stop=self.practical)

    def known(self, z: int, opt: float) -> Outcome | None:
        """Return what run z comes to, if it went the same way towards this or another target."""
        return next((one for one in self.outcomes[z] if one.low <= opt < one.high), None)

    def robust(self, opt: float, epsilon: float) -> Waiting:
        """Algorithm 6, ARHT_robust: many runs, up to the first that reaches the target.

        A run that went the same way towards another target is no step again.
        """
        n_runs, new = self.counts(epsilon)[0], []
        for z in range(n_runs):
            found = self.known(z, opt)
            if found is None:
                new.append(z)
            elif found.best.value <= opt:
                break
        live = {} if self.workers else {z: self.core(z, opt, epsilon) for z in new}
        if self.workers and new:
            for z, found in in_shares(partial(_share, self, opt, epsilon), new, self.workers):
                self.outcomes[z].append(found)
        self.go_on(live)
        for z in range(n_runs):  # lines 5 to 9; whoever takes the steps keeps the best
            while (found := self.known(z, opt)) is None:
                yield None
                self.go_on(live)
            if (z, found.low) not in self.shown:
                self.shown.add((z, found.low))
                yield found.best.noted(f"opt={opt:.6g} run {z}")
            if found.best.value <= opt:
                break

    def go_on(self, live: dict[int, Run]) -> None:
        """Let each run go on until it ends or waits, at a state that is not explored."""
        self.waiting = []
        for z, steps in list(live.items()):
            try:
                while (at := next(steps)).is_known:
                    pass
                self.waiting.append(at)
            except StopIteration as end:
                self.outcomes[z].append(end.value)
                del live[z]

    def lowest(self, max_iter: float = inf) -> Waiting:
        """Algorithm 6, ARHT: a binary search for the lowest target that is reached."""
        low, b, n_steps = self.B, self.x0, 0  # lines 17 to 20, with the start for b
        yield b
        while b.value - low > self.epsilon and low < (m := (low + b.value) / 2) < b.value:  # 21, 22
            x = b
            for found in self.robust(m, self.epsilon / 3):  # 23
                if found is not None:
                    if n_steps == max_iter:
                        return Status.MAX_ITER
                    n_steps += 1
                    x = (found if found.value < x.value else x).noted(found.note)
                yield found and x
            if x.value > m + self.epsilon / 3:  # 24, 25
                low = m
            if x.value < b.value - self.f.resolution:  # 27, 28, also where x misses m
                b = x
        return Status.SEARCH_ENDED

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker needs, which has states of its own."""
        return self.__dict__ | {"workers": None, "states": States(self.f, self.rho)}


def _share(search: Search, opt: float, epsilon: float, zs: list[int]) -> list[tuple[int, Outcome]]:
    """Make some of the runs, in a worker."""
    search = copy(search)
    search.outcomes = defaultdict(list)
    live = {z: search.core(z, opt, epsilon) for z in zs}
    with blas_threads(1):
        while live:
            search.go_on(live)
            search.states.explore(search.waiting)
    return [(z, search.outcomes[z][0]) for z in zs]


def arht_steps(
    f: Objective,
    starts: dict[int, Any],
    ended: dict[int, Status],
    max_iter: float = inf,
    **options: Any,
) -> Steps:
    """Run `arht` at several sizes side by side. Note in `ended` how each of them ends.

    The sizes share what does not depend on them: ρ, the lower bound, the seed and the states.
    """
    given = {name: value for name, value in options.items() if value is not None}
    shared: dict[str, Any] = {}
    searches: dict[int, Search] = {}
    for s, start in starts.items():
        search = searches[s] = Search(f, s, start=start, **(shared | given))
        shared = {"rho": search.rho or None, "lower": search.B, "random_state": search.seed}
        states = search.states = next(iter(searches.values())).states
    live = {s: search.lowest(max_iter) for s, search in searches.items()}
    with search.workers or nullcontext():
        while live:
            for s, steps in list(live.items()):
                try:
                    while (x := next(steps)) is not None:
                        yield x
                except StopIteration as end:
                    ended[s] = end.value
                    del live[s]
            states.explore(dict.fromkeys(t for s in live for t in searches[s].waiting))
    return Status.SEARCH_ENDED


def arht_path(
    f: Objective,
    starts: dict[int, Any],
    *,
    callback: Callback | None = None,
    max_iter: int | None = None,
    **options: Any,
) -> dict[int, Solution]:
    """Return the solutions of `arht` at several sizes, each from its own start.

    The callback ends all sizes. `max_iter` limits the runs at each size.
    """
    check_options("arht", options, set(inspect.signature(arht).parameters))
    if max_iter is not None:
        check_count("max_iter", max_iter, 0)
    best, ended = Best(f), dict.fromkeys(starts, Status.STOPPED)
    with blas_threads(1):
        steps = arht_steps(f, starts, ended, inf if max_iter is None else max_iter, **options)
        run(steps, lambda x: best.add(x, len(x.support)), callback)
        for s in starts.keys() - best.of.keys():
            best.add(starting_point(f, s, starts[s]), s)
        return {s: best.solution(s, ended[s], "arht") for s in starts}


@solver(options=Search)
def arht(f: Objective, s: int, **options: Any) -> Steps:
    """Adaptively Regularized Hard Thresholding: a search for the lowest reachable target value.

    A run is OMPR on f + ρ/2 ‖x_R‖². Where it is stuck, a feature drawn with probability ∝ x_i²
    leaves the regularised set R. The answer is the best support visited, so it is never worse than
    the start. The trace has one step for each run. A run that goes the same way towards several
    targets counts once.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point
        Where to begin; see `ellzero.methods.start`.
    setting : {"practical", "theoretical"}
        "practical" is the paper's experiments: 20 runs for each target, a progress factor of 1e-3,
        ρ = ρ₁⁺, and a run stops when half of its support is unregularised. "theoretical" has the
        numbers of runs and steps of the theorem, and ρ = ρ₂⁺.
    rho : float, optional
        Weight ρ of the regulariser. By default the certified ρ₁⁺ or ρ₂⁺ of f.
    epsilon : float, optional
        Width at which the search for the target ends. By default 1e-3·(f(start) − B).
    lower : float, optional
        The lower bound B on f. By default `ellzero.objectives.minimisers.lower_bound(f)`.
    n_runs : int, optional
        Runs for each target.
    random_state : None, int or generator
        Seed. Every run draws from a child of its own.
    n_jobs : int, optional
        How many groups of runs joblib makes at the same time, on any of its backends. It pays for
        many rows, and for losses that are not quadratic. Answers are the same up to rounding.
    """
    ended: dict[int, Status] = {}
    yield from arht_steps(f, {s: options.pop("start", "omp")}, ended, **options)
    return ended[s]


@solver(options=Search)
def arht_robust(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT_robust (Algorithm 6): runs of the core up to the first that reaches the value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search = Search(f, s, **options)
    for x in search.robust(opt, search.epsilon):
        if x is None:
            search.states.explore(search.waiting)
        else:
            yield x
            reached = x.value <= opt
    return Status.TARGET_REACHED if reached else Status.SEARCH_ENDED


@solver(options=Search)
def arht_core(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT's core routine (Algorithm 5): one run towards the target value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search, before = Search(f, s, **options), None
    for at in search.core(0, opt, search.epsilon):
        search.states.explore([at])
        yield at.fit.noted(at.note(before))
        before = at
    if at.fit.value <= opt:
        return Status.TARGET_REACHED
    return Status.SEARCH_ENDED if at.swap else Status.COMPLETE
