"""Tasks dealt over joblib's workers, on any of its backends."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pickle import PicklingError
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from ellzero.silence import without_our_warnings

Task = TypeVar("Task")
Result = TypeVar("Result")


_start_method = Lock()
"""Held while `new_parallel` restores the start method."""


def check_n_jobs(n_jobs: Any) -> None:
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(
            f"n_jobs: expected None or a whole number other than 0 (-1: all cores), got {n_jobs!r}."
        )


def workers(n_jobs: int | None, n_tasks: int) -> Parallel:
    """For `in_shares`, no more of them than tasks; in a ``with`` block they stay for several calls.

    Large arrays are not copied for every worker: processes map them.
    """
    n_jobs = min(effective_n_jobs(n_jobs), n_tasks)
    return new_parallel(n_jobs, mmap_mode="c")  # objectives write to what they remember


def new_parallel(n_jobs: int | None, **options: Any) -> Parallel:
    """Make joblib's Parallel, but let the user set the start method of processes afterwards.

    joblib asks for the default method, and the first who asks fixes it for the whole process. Where
    several workers then run as threads, joblib fixes the method again.
    """
    with _start_method:
        before: str | None = multiprocessing.get_start_method(allow_none=True)
        parallel = Parallel(n_jobs=n_jobs, **options)
        if before is None:
            multiprocessing.set_start_method(None, force=True)
    return parallel


def in_shares(
    share: Callable[[list[Task]], Iterable[Result]], tasks: list[Task], parallel: Parallel
) -> Iterator[Result]:
    """What `share` makes of the tasks, which are dealt to the workers in turn."""
    n = min(parallel.n_jobs, len(tasks))
    try:
        shares = parallel(delayed(_done)(share, tasks[k::n]) for k in range(n))
    except PicklingError as error:
        raise TypeError(
            "n_jobs: f cannot be sent to other processes; leave n_jobs out, or run under "
            "joblib.parallel_config('threading')."
        ) from error
    return chain.from_iterable(shares)


def _done(share: Callable[[list[Task]], Iterable[Result]], tasks: list[Task]) -> list[Result]:
    """Do the tasks in a worker, without warnings: the caller warns, once."""
    with without_our_warnings():
        return list(share(tasks))
