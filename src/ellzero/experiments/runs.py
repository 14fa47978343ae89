"""Computing what is missing: jobs, one or more processes, every result saved when it is made."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from time import process_time

import ellzero as lz
from ellzero.datasets.registry import ENTRIES
from ellzero.experiments import store
from ellzero.experiments.figures import METHODS, REFITTED, Settings
from ellzero.experiments.problems import Folder, Problem
from ellzero.experiments.store import Result
from ellzero.silence import without_our_warnings
from ellzero.threads import thread_budget

TOGETHER = ("OMP", "ellzero")
"""Methods that give all sparsities in one run."""

COSTS = {"OMP": 1, "OMPR": 2, "ellzero": 5, "ELS": 10, "LASSO": 20, "ARHT": 40}
"""About how the times of methods compare, for the bar."""

ROWS_OF_A_GRAM_MATRIX = 1000
"""Least squares takes about as long as a logistic loss of so many rows, however many it has."""


@dataclass(frozen=True)
class Job:
    """One run of a method on a data set."""

    dataset: str
    method: str
    sparsities: tuple[int, ...]
    fingerprint: str
    settings: Settings
    data_home: Folder = None

    @property
    def cost(self) -> int:
        """About how long it takes, in some unit."""
        rows, features = ENTRIES[self.dataset].paper_shape
        if ENTRIES[self.dataset].task == "regression":
            rows = ROWS_OF_A_GRAM_MATRIX
        rows = min(rows, self.settings.rows or rows)
        return COSTS[self.method] * sum(self.sparsities) * rows * features

    @property
    def keys(self) -> list[tuple[str, str, int, str]]:
        """The results it makes."""
        methods = ("LASSO", REFITTED) if self.method == "LASSO" else (self.method,)
        return [(self.dataset, m, s, self.fingerprint) for m in methods for s in self.sparsities]


def jobs(
    name: str, prints: Mapping[str, str], settings: Settings, data_home: Folder
) -> Iterator[Job]:
    """All there is to do on a data set: quick methods first, and of each the long runs first."""
    sparsities = settings.sparsities(name)[::-1]
    for method in sorted(METHODS, key=lambda method: COSTS[method]):
        parts = [tuple(sparsities)] if method in TOGETHER else [(s,) for s in sparsities]
        for part in parts:
            yield Job(name, method, part, prints[method], settings, data_home)


def compute(job: Job) -> list[Result]:
    """Run a job in this process."""
    with thread_budget(1), without_our_warnings():  # the status says it
        problem = _problem(job.dataset, job.settings, job.data_home)
        start = process_time()
        found = list(_solutions(problem, job.method, job.sparsities))
        seconds = process_time() - start
    return [
        Result(
            dataset=job.dataset,
            method=method,
            sparsity=s,
            loss=loss,
            features=tuple(problem.features[solution.support]),
            status=solution.status.name,
            rows=problem.rows,
            seconds=seconds,
            fingerprint=job.fingerprint,
        )
        for method, s, loss, solution in found
    ]


@lru_cache(maxsize=1)
def _problem(name: str, settings: Settings, data_home: Folder) -> Problem:
    return Problem(name, settings, data_home)


def _solutions(
    problem: Problem, method: str, sparsities: Sequence[int]
) -> Iterator[tuple[str, int, float, lz.Solution]]:
    """(curve, sparsity, loss, solution); a sparsity counts one more than the solver's."""
    f, options = problem.f, METHODS[method]
    if method in TOGETHER:
        name = "omp" if method == "OMP" else "auto"
        path = lz.path(f, [s - 1 for s in sparsities], name, **options)
        for k, found in path.items():
            yield method, k + 1, found.value, found
        return
    for s in sparsities:
        if method == "LASSO":
            found = lz.lasso(f, s - 1, **options)
            yield "LASSO", s, found.trace[-2].value, found  # the last of the trace is the refit
            yield REFITTED, s, found.value, found
            continue
        if method == "ARHT":
            found = lz.arht(f, s - 1, start=problem.greedy[s - 1], lower=problem.lower, **options)
        else:
            local_search = lz.ompr if method == "OMPR" else lz.els
            found = local_search(f, s - 1, start=problem.greedy[s - 1], **options)
        yield method, s, found.value, found


def complete(file: Path, work: Sequence[Job], n_jobs: int, advance: Callable[[int], None]) -> None:
    """Do the jobs, in `n_jobs` processes, and save what each makes when it is done."""
    try:
        with _mapped(n_jobs) as run:
            for job, results in run(work):
                store.append(file, results)
                advance(job.cost)
    finally:
        _problem.cache_clear()  # the files may be others next time


@contextmanager
def _mapped(n_jobs: int) -> Iterator[Callable[[Sequence[Job]], Iterator[tuple[Job, list[Result]]]]]:
    if n_jobs == 1:
        yield lambda work: ((job, compute(job)) for job in work)
        return
    pool = ProcessPoolExecutor(n_jobs, get_context("spawn"), initializer=_end_with_parent)

    def run(work: Sequence[Job]) -> Iterator[tuple[Job, list[Result]]]:
        waiting = {pool.submit(compute, job): job for job in work}
        for done in as_completed(waiting):
            yield waiting[done], done.result()

    try:
        yield run
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """A worker does not outlive a run that is killed."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
