"""BLAS threads: products of large matrices gain from them, the small ones of a search lose."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

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
