"""A pass over the data: one question to all partitions, the answers added up in a tree."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import Any

FAN_IN = 8
"""So many answers are added up in one task."""


def dask_or_error() -> ModuleType:
    try:
        import dask
    except ImportError as error:
        raise ImportError("ellzero.distributed needs Dask: pip install 'ellzero[dask]'") from error
    return dask


class Parts:
    """One delayed object per partition. They stay where they are; only answers travel."""

    def __init__(self, delayed: list[Any]):
        self.delayed = delayed

    def map(self, function: Callable[..., Any], *args: Any) -> Parts:
        """function(part, *args) of every part, computed once and kept on the workers."""
        dask = dask_or_error()
        return Parts(list(dask.persist(*self._each(function, args))))

    def ask(
        self,
        function: Callable[..., Any],
        *args: Any,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """The sum of function(part, *args) over all parts; parts that answer None have no say.

        The order of the sum is that of the partitions: results repeat to the last digit.
        """
        return computed(self.total(function, *args, merge=merge))

    def total(
        self,
        function: Callable[..., Any],
        *args: Any,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """That sum, not yet computed: a task per part and the tree."""
        dask = dask_or_error()
        answers = self._each(function, args)
        together = dask.delayed(merged, pure=False, traverse=False)
        while len(answers) > 1:
            groups = [answers[i : i + FAN_IN] for i in range(0, len(answers), FAN_IN)]
            answers = [together(merge or add, *group) for group in groups]
        return answers[0]

    def _each(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        dask = dask_or_error()
        shared = dask.delayed(args, traverse=False)  # travels once, not with every task
        call = dask.delayed(applied, pure=False, traverse=False)
        return [call(function, part, shared) for part in self.delayed]


def applied(function: Callable[..., Any], part: Any, args: tuple[Any, ...]) -> Any:
    return function(part, *args)


def merged(merge: Callable[[Any, Any], Any], *answers: Any) -> Any:
    given = [answer for answer in answers if answer is not None]
    return reduce(merge, given) if given else None


def add(a: Any, b: Any) -> Any:
    """a + b; of tuples, entry by entry, where None adds nothing."""
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    if a is None or b is None:
        return b if a is None else a
    return a + b


def computed(total: Any) -> Any:
    """The result, by the active client or by Dask's own threads."""
    dask = dask_or_error()
    lost = _errors_of_lost_workers()
    try:
        return dask.compute(total)[0]
    except MemoryError as error:
        raise MemoryError(
            "a worker ran out of memory; make partitions smaller (X.rechunk, df.repartition), "
            "run fewer threads per worker, or add workers."
        ) from error
    except lost as error:
        raise RuntimeError(
            f"the cluster lost the work ({error}). Workers were killed, most often because they "
            "ran out of memory: make partitions smaller (X.rechunk, df.repartition), run fewer "
            "threads per worker or add workers, and fit again."
        ) from error


def _errors_of_lost_workers() -> tuple[type[BaseException], ...]:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return ()
    return distributed.KilledWorker, distributed.CancelledError
