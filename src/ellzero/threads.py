"""BLAS threads: products of large matrices gain from them, the small ones of a search lose."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
    settings = np.geterr()  # threads begin without those of the caller

    def task(part: slice) -> None:
        with np.errstate(**settings):
            work(part)

    with blas_threads(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(task, map(slice, cuts[:-1], cuts[1:])))
