"""A pass over the data: one question to all partitions, the answers added up in a tree."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, reduce
from types import ModuleType
from typing import Any
from uuid import uuid4

FAN_IN = 8
"""So many answers are added up in one task."""

SMALL = 1 << 14
"""Arguments of so few bytes go with every task; to fetch them from another worker takes longer."""


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

    @cached_property
    def _graph(self) -> dict[Any, Any]:
        from dask.highlevelgraph import HighLevelGraph

        return dict(HighLevelGraph.merge(*(part.dask for part in self.delayed)))

    def map(self, function: Callable[..., Any], *args: Any) -> Parts:
        """function(part, *args) of every part, computed once and kept on the workers."""
        dask = dask_or_error()
        shared = dask.delayed(args, traverse=False)
        call = dask.delayed(applied, pure=False, traverse=False)
        calls = [call(function, part, shared) for part in self.delayed]
        with errors_explained():
            return Parts(list(dask.persist(*calls)))

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
        """That sum, not yet computed: a task per part, the tree, and one for large arguments.

        It is written as a plain graph: a pass is made often, and a delayed call costs the client
        a millisecond for every task.
        """
        from dask.core import quote
        from dask.delayed import Delayed

        name = f"ellzero-{function.__name__.strip('_')}-{uuid4().hex}"
        tasks: dict[str, Any] = {}
        keys, shared = [], quote(args)
        if n_bytes(args) > SMALL:  # they travel once, not with every task
            shared = f"{name}-arguments"
            tasks[shared] = quote(args)
        for i, part in enumerate(self.delayed):
            keys.append(f"{name}-{i}")
            tasks[keys[-1]] = (applied, function, part.key, shared)
        level = 0
        while len(keys) > 1 or not level:
            level += 1
            groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
            keys = [f"{name}-level{level}-{i}" for i in range(len(groups))]
            for key, group in zip(keys, groups, strict=True):
                tasks[key] = (merged, merge or add, group)
        return Delayed(keys[0], {**self._graph, **tasks})


def n_bytes(args: Any) -> int:
    """How much travels with these arguments."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(args, protocol=5, buffer_callback=arrays.append)
    return len(rest) + sum(array.raw().nbytes for array in arrays)


def applied(function: Callable[..., Any], part: Any, args: tuple[Any, ...]) -> Any:
    return function(part, *args)


def merged(merge: Callable[[Any, Any], Any], answers: list[Any]) -> Any:
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
    with errors_explained():
        return dask_or_error().compute(total)[0]


@contextmanager
def errors_explained() -> Iterator[None]:
    """What to do where the cluster, and not the data, is at fault."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            "a worker ran out of memory; make partitions smaller (X.rechunk, df.repartition), "
            "run fewer threads per worker, or add workers."
        ) from error
    except _errors_of_lost_workers() as error:
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
