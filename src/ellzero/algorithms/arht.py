"""Adaptively Regularized Hard Thresholding (Algorithms 5 and 6)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from math import ceil, inf, log
from typing import Any

import numpy as np

from ellzero.algorithms.runs import TARGETS, Ended, Runs
from ellzero.algorithms.seeds import seed_of
from ellzero.algorithms.start import starting_point
from ellzero.algorithms.states import States
from ellzero.checks import check_count, check_number, check_options
from ellzero.core import Iterate, Objective, Solution, Status
from ellzero.driver import Callback, Steps, WaitingSteps, run_abreast, solver
from ellzero.parallel import check_n_jobs, in_shares, workers
from ellzero.threads import blas_threads

PRACTICAL_RUNS = 20
PRACTICAL_FACTOR = 1e-3


def check_setting(setting: str) -> None:
    if setting not in ("practical", "theoretical"):
        raise ValueError(f"setting: expected 'practical' or 'theoretical', got {setting!r}.")


def weight_of(f: Objective, setting: str) -> float:
    """ρ₂⁺ as in the theorem, or ρ₁⁺: 1 for least squares on columns of unit norm, as in the
    experiments of the paper."""
    return f.smoothness(1 if setting == "practical" else 2)


def same_at_all_sizes(f: Objective, options: dict[str, Any]) -> dict[str, Any]:
    """The options with those of them resolved that take time and do not depend on s."""
    setting = options.get("setting", "practical")
    check_setting(setting)
    resolved: dict[str, Callable[[], float | None]] = {
        "random_state": lambda: seed_of(None),  # sizes may share the streams of their restarts
        "rho": lambda: weight_of(f, setting) or None,  # a user may not set it to zero
        "lower": f.lower_bound,
    }
    missing = {name: make() for name, make in resolved.items() if options.get(name) is None}
    return options | missing


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
        check_setting(setting)
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
        self.rho = weight_of(f, setting) if rho is None else rho
        self.B = f.lower_bound() if lower is None else lower
        self.span = f.minimize(self.x0.support[:0]).value - self.B
        gap = self.x0.value - self.B
        self.epsilon = max(1e-3 * gap if epsilon is None else epsilon, 10 * f.resolution)
        self._n_runs = n_runs
        self.workers = None if n_jobs in (None, 1) else workers(n_jobs, self.n_runs(self.epsilon))
        self.name = 0
        self.told: set[tuple[int, float]] = set()  # runs, by number and lowest target

    @cached_property
    def runs(self) -> Runs:
        return self.runs_of(self.f, self.s)

    def runs_of(self, f: Objective, largest: int) -> Runs:
        """For searches with these parameters and supports of up to this size."""
        states = States(f, self.rho, largest, like=self.x0)
        return Runs(states, PRACTICAL_FACTOR if self.practical else 1.0, half_stop=self.practical)

    def attach(self, runs: Runs, name: int) -> None:
        """Let these make the runs, beside those of searches with other names."""
        self.runs, self.name = runs, name

    def log_span(self, epsilon: float) -> float:
        """log((f(0) − B) / ε), at least 1."""
        return log(max(self.span / epsilon, np.e))

    def n_runs(self, epsilon: float) -> int:
        if self._n_runs is not None:
            return self._n_runs
        if self.practical:
            return PRACTICAL_RUNS
        return ceil(5 * log(6 * self.f.n_features * self.log_span(epsilon)))

    def begin(self, runs: Runs, epsilon: float, wanted: dict[int, list[float]]) -> None:
        """Restarts towards some targets each."""
        run = {
            "search": self.name,
            "s": self.s,
            "at": runs.states.start(self.x0),
            "steps": inf if self.practical else ceil(2 * self.s * self.log_span(epsilon)),
        }
        runs.begin(run, self.seed, wanted)

    def robust(
        self,
        opt: float,
        epsilon: float,
        ahead: Sequence[float] = (),
        best: Iterate | None = None,
    ) -> WaitingSteps:
        """Algorithm 6, ARHT_robust: the best iterate of every run, or of all so far.

        A run that went the same way towards an earlier target tells nothing, and is no step.

        ahead : targets that may be next, towards which the runs go along as far as they agree
        best : so far
        """
        note = f"opt={opt:.6g} run "
        self._begin_unknown(opt, epsilon, ahead)
        for z in range(self.n_runs(epsilon)):
            while (run := self.runs.known(self.name, z, opt)) is None:
                yield None
            x = run.best
            if best is not None:
                best = x if x.value < best.value else best
            if (z, run.low) not in self.told:
                self.told.add((z, run.low))
                yield (best or x).noted(note + str(z))
            if x.value <= opt:
                return Status.TARGET_REACHED
        return Status.SEARCH_ENDED

    def _begin_unknown(self, opt: float, epsilon: float, ahead: Sequence[float]) -> None:
        unknown = partial(self.runs.unknown, self.name, self.n_runs(epsilon))
        zs = unknown(opt)
        if not zs:
            return
        if self.workers is None:
            self.runs.drop(self.name)
            wanted: dict[int, list[float]] = {}
            for target in (opt, *ahead):
                for z in unknown(target):
                    wanted.setdefault(z, []).append(target)
            self.begin(self.runs, epsilon, wanted)
            return
        for z, ended in in_shares(partial(_share, self, opt, epsilon), zs, self.workers):
            self.runs.note(self.name, z, ended)

    def ahead(self, low: float, high: float) -> list[float]:
        """The guesses that follow if none is reached."""
        targets: list[float] = []
        while high - low > self.epsilon and len(targets) < TARGETS - 1:
            low = (low + high) / 2
            targets.append(low)
        return targets

    def lowest(self) -> WaitingSteps:
        """Algorithm 6, ARHT: a binary search for the lowest target that is reached."""
        low, b, epsilon = self.B, self.x0, self.epsilon
        yield b
        try:
            while b.value - low > epsilon:
                m = (low + b.value) / 2
                x = b
                for run in self.robust(m, epsilon / 3, self.ahead(m, b.value), b):
                    x = run or x
                    yield run
                if x.value < b.value - self.f.resolution:
                    b = x
                if x.value > m + epsilon / 3:
                    low = m
        finally:
            self.runs.drop(self.name)  # those of other sizes may go on
        return Status.SEARCH_ENDED

    def __getstate__(self) -> dict[str, Any]:
        """For a worker, which has a memory and workers of its own."""
        state = self.__dict__ | {"workers": None}
        state.pop("runs", None)
        return state


def _share(search: Search, opt: float, epsilon: float, zs: list[int]) -> list[tuple[int, Ended]]:
    f = search.f.apart()
    runs = search.runs_of(f, search.s)
    search.begin(runs, epsilon, {z: [opt] for z in zs})
    with blas_threads(f.blas_threads):
        while len(runs.live):
            runs.step()
    return [(z, ended) for z in zs if (ended := runs.last(search.name, z))]


def stepping(runs: Runs, steps: WaitingSteps) -> Steps:
    """The iterates; where they are waited for, all runs go on."""
    while True:
        try:
            x = next(steps)
        except StopIteration as end:
            return end.value
        if x is None:
            runs.advance()
        else:
            yield x


@solver(options=Search)
def arht_core(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT's core routine (Algorithm 5): one run towards the target value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search = Search(f, s, **options)
    runs, states, note = search.runs, search.runs.states, "start"
    search.begin(runs, search.epsilon, {0: [opt]})
    while True:
        at = runs.live["at"][0]
        runs.step()
        x = states.fits([at])[0]
        yield x.noted(note)
        if not len(runs.live):
            break
        note = states.change(at, runs.live["at"][0])
    if x.value <= opt:
        return Status.TARGET_REACHED
    return Status.COMPLETE if s == f.n_choosable else Status.SEARCH_ENDED


@solver(options=Search)
def arht_robust(f: Objective, s: int, opt: float, **options: Any) -> Steps:
    """ARHT_robust (Algorithm 6): repeated runs of the core towards the target value `opt`.

    The options are those of `arht`.
    """
    check_number("opt", opt)
    search = Search(f, s, **options)
    return stepping(search.runs, search.robust(opt, search.epsilon))


@solver(options=Search)
def arht(f: Objective, s: int, **options: Any) -> Steps:
    """Adaptively Regularized Hard Thresholding: a search for the lowest reachable target value.

    OMPR on f + ρ/2 ‖x_R‖²; where it is stuck, an element drawn with probability ∝ x_i² leaves the
    regularised set R. The answer is the best support visited, so never worse than the start. The
    trace has a step for every run; one that goes the same way towards several guesses counts once.

    Parameters
    ----------
    start : "omp", "first", feature indices or a point; see `ellzero.algorithms.start`
    setting : "practical" (the paper's experiments: 20 runs per guess, progress factor 1e-3, a run
        stops when half the support is unregularised, ρ = ρ₁⁺) or "theoretical" (the numbers of runs
        and steps of the theorem, ρ = ρ₂⁺)
    rho : weight ρ of the regulariser; by default the certified ρ₁⁺ or ρ₂⁺ of f, by the setting
    epsilon : width at which the search for the target ends; by default 1e-3·(f(start) − B)
    lower : the lower bound B on f; by default ``f.lower_bound()``
    n_runs : restarts for each guess of the target
    random_state : seed; every restart draws from a child of its own
    n_jobs : how many groups of restarts joblib runs at the same time, on any of its backends; it
        pays where steps are dear (many rows, losses that are not quadratic). The answer is the
        same up to rounding: products of X with the points of a group depend on the group.
    """
    search = Search(f, s, **options)
    with search.workers or nullcontext():
        return (yield from stepping(search.runs, search.lowest()))


def arht_path(
    f: Objective,
    starts: dict[int, Any],
    *,
    callback: Callback | None = None,
    max_iter: int | None = None,
    **options: Any,
) -> dict[int, Solution]:
    """`arht` at several sizes, each from its own start; the runs of all sizes go side by side."""
    check_options("arht", options, set(inspect.signature(arht).parameters))
    if max_iter is not None:
        check_count("max_iter", max_iter, 0)
    searches = {s: Search(f, s, **(options | {"start": x})) for s, x in starts.items()}
    runs = searches[max(searches)].runs
    for s, search in searches.items():
        search.attach(runs, name=s)
    steps = {s: search.lowest() for s, search in searches.items()}
    return run_abreast(f, steps, runs.advance, callback, max_iter, "arht")
