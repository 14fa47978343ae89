"""Warnings that a call does not want, without a change that other threads notice or that stays.

`warnings.catch_warnings` replaces the filters of the whole process. Where the blocks of two threads
overlap, the filters of one of them stay for ever.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal

_is_silent = ContextVar("_is_silent", default=False)


@contextmanager
def without_our_warnings() -> Iterator[None]:
    """Let solvers and estimators that this thread runs in the block issue no warnings."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def is_silent() -> bool:
    """Say whether a block of `without_our_warnings` is around."""
    return _is_silent.get()


@contextmanager
def warning_filter(
    action: Literal["ignore", "error"], category: type[Warning], module: str
) -> Iterator[None]:
    """Ignore warnings of another package, or raise them, while the block runs.

    The filter is for all threads, so the `module` to which warnings are attributed (a pattern for
    the start of its name) has to be narrow. It is put into the list of filters and taken out again.
    """
    entry: Any = (action, None, category, re.compile(module), 0)
    filters: Any = warnings.filters
    try:
        filters.insert(0, entry)
        yield
    finally:
        current: Any = warnings.filters  # perhaps a copy, by `catch_warnings` in another thread
        for found in [filters] if filters is current else [filters, current]:
            with suppress(ValueError):
                found.remove(entry)
