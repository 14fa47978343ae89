"""What is to be predicted: numbers or classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.cli.console import counted, shown
from ellzero.datasets.formats import pandas

TASKS = ("regression", "classification")


@dataclass(frozen=True, eq=False)
class Target:
    """The values to predict, and the task they make; `why` is how it was guessed, if it was."""

    name: str
    values: NDArray[Any]
    task: str
    why: str | None = None


def target_of(column: Any, name: str, task: str | None = None) -> Target:
    """The task is guessed where it is not given: text, or two values, make classes."""
    values = _values(column)
    is_text = values.dtype.kind not in "fiub"
    distinct = len(pandas().unique(values))
    why = None
    if task is None:
        task, why = _guess(is_text, distinct)
    if task == "classification":
        return Target(name, _whole(values), task, why)
    if is_text:
        raise ValueError(
            f"--task: the target '{shown(name)}' holds text such as '{shown(values[0])}'; "
            "use --task classification, or correct it."
        )
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        n = counted(int((~np.isfinite(numbers)).sum()), "infinite value")
        raise ValueError(f"--target: '{shown(name)}' has {n}; delete those rows.")
    return Target(name, numbers, task, why)


def _values(column: Any) -> NDArray[Any]:
    if column.dtype.kind in "fiub" and isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    kind = pandas().api.types
    if kind.is_bool_dtype(column):
        return column.to_numpy(bool)
    if kind.is_integer_dtype(column):
        return column.to_numpy(np.int64)
    if kind.is_numeric_dtype(column):
        return column.to_numpy(np.float64)
    return np.array([str(value) for value in column], dtype=object)


def _guess(is_text: bool, distinct: int) -> tuple[str, str]:
    if is_text:
        return "classification", f"is text, of {counted(distinct, 'different word')}"
    if distinct == 2:
        return "classification", "has two values"
    return "regression", f"has {counted(distinct, 'different number')}"


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    """Classes written as 0.0 and 1.0 are 0 and 1."""
    if values.dtype.kind == "f" and np.isfinite(values).all() and (values % 1 == 0).all():
        return values.astype(np.int64)
    return values
