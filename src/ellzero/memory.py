"""Memory that was freed, for arrays to come."""

from __future__ import annotations

import functools

import numpy as np

LARGEST_KEPT = (1 << 25) - (1 << 16)
"""Bytes: just below the largest block that malloc of glibc can be led to keep."""


@functools.cache
def keep_freed() -> None:
    """Let malloc of glibc keep what is freed; elsewhere, and where variables of the
    environment tell malloc what to keep (as in Dask's workers), this does nothing.

    By default it gives blocks of more than 128 kB back to the system, and it takes half a
    millisecond a MB to get them anew, as long as many a step takes that fills them. It
    keeps blocks up to the size of the largest that was ever freed (and twice as much in all): this
    is one, which nobody writes to and which thus takes no memory.
    """
    np.empty(LARGEST_KEPT, dtype=np.uint8)
