"""BLAS threads: products of large matrices gain from them, the small ones of a search lose."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
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


def in_parts(work: Callable[[slice], Any], n: int, n_parts: int, threads: int) -> list[Any]:
    """What `work` makes of parts of range(n), in order, where threads share the parts.

    Each has one thread of BLAS: on narrow products they are up to a third faster than as many
    threads of BLAS, and when they are done they sleep, where those of BLAS spin for some time and
    take the processor from whatever is next. `work` may not come here again: it would wait for
    itself.
    """
    cuts = np.linspace(0, n, n_parts + 1).astype(int).tolist()
    parts = list(map(slice, cuts[:-1], cuts[1:]))
    threads = min(threads, n_parts)
    if threads == 1:
        return list(map(work, parts))
    settings = np.geterr()  # threads begin without those of the caller
    left, found = deque(range(n_parts)), [None] * n_parts

    def share() -> None:
        with np.errstate(**settings), suppress(IndexError):
            while True:
                k = left.popleft()
                found[k] = work(parts[k])

    with blas_threads(1):
        others = [_helpers(threads - 1).submit(share) for _ in range(1, threads)]
        try:
            share()
        finally:
            wait(others)
    for other in others:
        other.result()
    return found


@functools.cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """They stay, as starting them takes longer than many a product."""
    return ThreadPoolExecutor(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has none of the threads
