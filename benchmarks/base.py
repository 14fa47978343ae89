"""What a solver and a problem are. Only NumPy here: foreign environments import this too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

Task = Literal["least_squares", "logistic", "multinomial"]
Kind = Literal["ours", "ours-method", "peer", "yardstick"]
Supports = dict[int, np.ndarray]


@dataclass(frozen=True)
class Shape:
    """What a solver may ask before it says whether it can take the work on."""

    task: Task
    m: int
    n: int
    sparse: bool
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """One piece of work: data made by `make`, and the sizes of the path."""

    name: str
    task: Task
    sizes: tuple[int, ...]
    make: Callable[[], tuple[Any, np.ndarray]]
    note: str = ""
    family: Literal["time", "quality", "scaling"] = "time"
    quick: bool = False
    full: bool = True
    patience: float = 1.0  # how many times the limit of the run a pair may take
    missing: Callable[[], str] = lambda: ""  # why the data are not there, or ""


class Solver:
    """One way of doing the work. Subclass, and list an instance in the module's SOLVERS.

    `solve_path` is the whole of what is timed. It returns supports by size and may leave sizes
    out: the answer at s is then the best of the supports with at most s features.
    """

    name: str
    module: str = ""  # imported before the clock starts; ImportError = not installed
    package: str = ""  # the distribution whose version is recorded
    env: str = ""  # "okridge" runs in .venv-okridge; "" in the runner's own
    kind: Kind = "peer"
    retries: int = 0  # how often a crash (not an error) may be tried again
    note: str = ""  # how it is called, for the page

    def skip(self, shape: Shape) -> str:
        """Why this solver does not take the problem, or an empty string."""
        return ""

    def load(self) -> None:
        if self.module:
            import_module(self.module)

    def prepare(self, X: Any, y: np.ndarray, task: Task) -> tuple[Any, np.ndarray]:
        """Off the clock, for yardsticks that are one call on a prepared matrix."""
        return X, y

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        raise NotImplementedError

    def finish(
        self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Off the clock: supports the timed call computed but does not hand out."""
        yield from ()

    def info(self) -> dict[str, float]:
        """Numbers about the last run worth keeping, such as its count of steps."""
        return {}


def dense_only(shape: Shape) -> str:
    return "dense matrices only" if shape.sparse else ""


def least_squares_only(shape: Shape) -> str:
    return "" if shape.task == "least_squares" else "least squares only"


def unit_columns(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centred columns of unit norm, and centred y; a constant column becomes zero."""
    Z = X - X.mean(axis=0)
    scale = np.sqrt(np.einsum("ij,ij->j", Z, Z))
    Z /= np.where(scale > 0, scale, 1.0)
    return Z, y - y.mean()


def nonzero_path(coefs: np.ndarray) -> Supports:
    """Supports by size from coefficients, one column per step; the last of a size stays."""
    found = (np.flatnonzero(c) for c in coefs.T)
    return {len(S): S for S in found if len(S)}
