"""BLAS threads: products of large matrices gain from them, the small ones of a search lose."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import RLock, Thread, get_ident
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


class _Limit:
    """A limit that is in force, with the numbers of threads that it found and made."""

    def __init__(self, number: int, is_budget: bool):
        self.number, self.is_budget, self.thread = number, is_budget, get_ident()
        self.before: list[int] = []  # of each BLAS library
        self.made: list[int] = []

    def begin(self) -> None:
        """Set the limit, or the lowest limit of another thread where that is lower."""
        with _lock:
            lowest = min([self.number, *(x.number for x in _limits if x.thread != self.thread)])
            self.before = [blas.num_threads for blas in _libraries()]
            self.made = list(self.before)
            _limits.append(self)
            for k, blas in enumerate(_libraries()):
                _set(k, blas, lowest)
                self.made[k] = blas.num_threads
            _leave_control()

    def end(self) -> None:
        """Restore the numbers from before; a limit that began later inherits them instead."""
        with _lock:
            if self not in _limits:  # in a child of a fork
                return
            for k, blas in enumerate(_libraries()):
                stack = _limits_of(k, self.thread)
                later = stack[stack.index(self) + 1 :]
                if later:
                    later[0].before[k] = self.before[k]
                else:
                    _restore(blas, self.before[k])
            _leave_control()
            _limits.remove(self)


_lock = RLock()
_limits: list[_Limit] = []
"""All limits in force, in the order in which they began, of all threads."""

_is_shared: dict[int, bool] = {}
"""Whether a BLAS library has one number of threads for the whole process (OpenBLAS, in general) or
one for each thread that calls it (MKL, OpenMP); known once a limit has changed the number."""


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _libraries() -> list[Any]:
    return _controller().lib_controllers


def _limits_of(k: int, thread: int) -> list[_Limit]:
    """Return the limits that have changed the number that this thread sees of library k."""
    return [one for one in _limits if _is_shared.get(k, True) or one.thread == thread]


def _set(k: int, blas: Any, number: int) -> None:
    """Set the number of threads of library k, and find out who else sees the change."""
    if k in _is_shared or blas.num_threads == number:
        blas.set_num_threads(number)
        return
    elsewhere = _seen_elsewhere(blas)
    blas.set_num_threads(number)
    if blas.num_threads == number:
        _is_shared[k] = _seen_elsewhere(blas) != elsewhere


def _restore(blas: Any, number: int) -> None:
    """Set the number of threads, also where another thread of the user's controls it."""
    blas.set_num_threads(number)
    if blas.num_threads != number and hasattr(blas, "clear_controlling_thread"):
        blas.clear_controlling_thread(force=True)
        blas.set_num_threads(number)


def _seen_elsewhere(blas: Any) -> int:
    """Return the number of BLAS threads that a new thread may use."""
    seen: list[int] = []
    thread = Thread(target=lambda: seen.append(blas.num_threads))
    thread.start()
    thread.join()
    return seen[0]


def _leave_control() -> None:
    """Let other threads set numbers of threads, too.

    From threadpoolctl 3.8 on, a thread that has set the number controls the library: what other
    threads set has no effect until that thread leaves its outermost block of limits.
    """
    with _controller().limit(limits=None):
        pass


@contextmanager
def blas_threads(limit: int | None, is_budget: bool = False) -> Iterator[None]:
    """Let BLAS use at most `limit` threads in this block; None changes nothing.

    Blocks of several threads may overlap in any order. Within one thread the innermost limit holds.
    Most BLAS libraries have one number of threads for the whole process: there the limit of one
    thread never exceeds the limit of another, and the block that ends last restores the number
    that the first block found.
    """
    if limit is None:
        yield
        return
    one = _Limit(limit, is_budget)
    try:
        one.begin()
        yield
    finally:
        try:
            one.end()
        except KeyboardInterrupt:
            one.end()
            raise


def thread_budget(limit: int) -> AbstractContextManager[None]:
    """Limit BLAS in this block, and the threads of objectives that this thread makes in it."""
    return blas_threads(limit, is_budget=True)


def current_blas_threads() -> int:
    """Return how many threads the user lets BLAS use, or the `thread_budget` of this thread.

    The temporary limits of `blas_threads`, in this thread or another, do not count.
    """
    with _lock:
        for one in reversed(_limits):
            if one.is_budget and one.thread == get_ident():
                return one.number
        return max((_number_of_user(k, blas) for k, blas in enumerate(_libraries())), default=1)


def _number_of_user(k: int, blas: Any) -> int:
    """Return the number that library k would have without the limits in force.

    A number that no limit has made is the user's, set within a block (in a callback, say).
    """
    number: int = blas.num_threads
    for one in reversed(_limits_of(k, get_ident())):
        if number != one.made[k]:
            break
        number = one.before[k]
    return number


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


def _begin_anew() -> None:
    """Restore the user's numbers in the child of a fork, where no block of another thread ends."""
    try:
        _helpers.cache_clear()
        if _limits:
            for k, blas in enumerate(_libraries()):
                stack = _limits_of(k, get_ident())
                if stack:
                    _restore(blas, stack[0].before[k])
            _leave_control()
            _limits.clear()
    finally:
        _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_anew
    )
