"""The target: what is to be predicted, numbers or classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.cli.columns import fault, n_too_large
from ellzero.data.io.columns import as_numbers, as_words, is_number, pandas
from ellzero.wording import counted, shown

TASKS = ("regression", "classification")


@dataclass(frozen=True, eq=False)
class Target:
    """The values to predict, and the task they make; `why` is how it was guessed, if it was."""

    name: str
    values: NDArray[Any]
    task: str
    why: str | None = None

    @property
    def loss(self) -> str:
        """Say in words what the loss of a model is."""
        if self.task == "regression":
            return "half the sum of squared errors"
        return "the sum of log-losses"

    @property
    def fold_error(self) -> str:
        """Say in words what is averaged over the rows of a fold."""
        return "mean squared error" if self.task == "regression" else "mean log-loss"


def target_of(column: Any, name: str, task: str | None = None) -> Target:
    """Check a column as the target, and guess the task if none is given.

    Text, or two values, make classes.
    """
    is_text = not is_number(column)
    if is_text and task != "classification":
        _refuse_text(column, name, task)
    values = as_words(column).to_numpy() if is_text else _numbers(column)
    distinct = len(pandas().unique(values))
    if distinct < 2:
        raise ValueError(
            f"--target: '{shown(name)}' is '{shown(values[0])}' in all rows, so there is nothing "
            "to explain; choose another column."
        )
    if not is_text and n_too_large(values):
        raise ValueError(
            f"--target: '{shown(name)}' has infinite or very large values; delete those rows."
        )
    why = None
    if task is None:
        task, why = _guess(is_text, distinct)
    if is_text or task == "regression":
        return Target(name, values, task, why)
    if distinct > max(2, len(values) / 2):
        rows = counted(len(values), "row")
        raise ValueError(
            f"--task: the target '{shown(name)}' has {distinct} different numbers in {rows}, too "
            "many for classes; say --task regression."
        )
    return Target(name, _classes(values), task, why)


def _refuse_text(column: Any, name: str, task: str | None) -> None:
    odd = fault(column, n_words=2)
    if odd is None and task == "regression":
        odd = f"holds text such as '{shown(column.iloc[0])}'"
    if odd is not None:
        raise ValueError(
            f"--target: '{shown(name)}' {odd}; say --task classification if they are classes."
        )


def _numbers(column: Any) -> NDArray[Any]:
    if pandas().api.types.is_bool_dtype(column):
        return column.to_numpy(bool)
    if pandas().api.types.is_signed_integer_dtype(column):
        return column.to_numpy(np.int64)
    return as_numbers(column)


def _guess(is_text: bool, distinct: int) -> tuple[str, str]:
    if is_text:
        return "classification", f"is text, of {counted(distinct, 'different word')}"
    if distinct == 2:
        return "classification", "has two values"
    return "regression", f"has {counted(distinct, 'different number')}"


def _classes(values: NDArray[Any]) -> NDArray[Any]:
    """Return the classes that numbers stand for: 0.0 is 0, and fractions are words."""
    if values.dtype.kind != "f":
        return values
    if (values % 1 == 0).all() and abs(values).max() < 2**53:
        return values.astype(np.int64)
    return np.array([str(value) for value in values.tolist()], dtype=object)
