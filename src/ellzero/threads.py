"""BLAS threads: products of large matrices gain from them, the small ones of a search lose."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


@functools.cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads(limit: int | None) -> AbstractContextManager[Any]:
    """A block in which BLAS uses at most so many threads; None changes nothing."""
    if limit is None:
        return nullcontext()
    return _threadpools().limit(limits=limit, user_api="blas")


def current_blas_threads() -> int:
    """How many threads BLAS may use now."""
    pools = _threadpools().info()
    return max((pool["num_threads"] for pool in pools if pool["user_api"] == "blas"), default=1)


def in_parts(work: Callable[[slice], None], n: int, threads: int) -> None:
    """Have threads work on parts of range(n), each with one thread of BLAS.

    On products with few columns they are up to a third faster than as many threads of BLAS.
    """
    if threads == 1:
        return work(slice(0, n))
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()
    first, *others = map(slice, cuts[:-1], cuts[1:])
    settings = np.geterr()  # threads begin without those of the caller

    def task(part: slice) -> None:
        with np.errstate(**settings):
            work(part)

    with blas_threads(1):
        tasks = [_helpers(threads - 1).submit(task, part) for part in others]
        try:
            work(first)
        finally:
            wait(tasks)
        for task_done in tasks:
            task_done.result()


@functools.cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """They stay, as starting them takes longer than many a product."""
    return ThreadPoolExecutor(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has none of the threads
