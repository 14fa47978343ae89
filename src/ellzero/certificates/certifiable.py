"""What a proof asks of f beside the contract, and cautious answers for an f that does not tell.

`Certifiable` lists the questions. An objective may answer any of them. The functions below ask it,
and where it has no answer they give one that cannot make a proof false, as long as `f.minimize`
returns minima: f is taken at its word.
"""

from __future__ import annotations

from math import inf
from typing import Any, Protocol

import numpy as np

from ellzero.core import Iterate, Objective, Solution
from ellzero.supports import Support, Vector


class Certifiable(Protocol):
    """What an objective may tell a proof about itself."""

    ridge: Vector
    """The ridge on each feature. With one on all of them a relaxation bounds f."""

    def rounding(self, x: Iterate) -> float:
        """Bound how far the value of a minimiser x may be from the minimum over its support."""

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        """Return lower bounds on min f over the support S of x, and over S without each feature.

        With `asked`, only the bounds at these places of S matter.
        """

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether f cannot be lower than at x, the rounding of the data aside."""

    def exact(self, free: Support | None = None, deadline: float = inf) -> Objective | None:
        """Return the same f from rows, which tell near copies apart, or None.

        Raises `TimeoutError` at the deadline.
        """


def rounding(f: Objective, x: Iterate) -> float:
    """Bound the rounding of a minimum; by default it is the resolution of f."""
    answer = _answer(f, "rounding")
    return f.resolution if answer is None else float(answer(x))


def removal_bounds(f: Objective, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
    """Bound f over the support of x and its subsets; by default all cost at least what x costs."""
    answer = _answer(f, "removal_bounds")
    if answer is not None:
        return answer(x, asked)
    here = x.value - rounding(f, x)
    return here, np.full(len(x.support), here)


def reaches_floor(f: Objective, x: Iterate) -> bool:
    """Say whether f is as low at x as it can be; by default the value of x decides."""
    answer = _answer(f, "reaches_floor")
    return x.value <= f.floor if answer is None else bool(answer(x))


def ridge_of(f: Objective) -> Vector:
    """Return the ridge on each feature; zero where f does not tell."""
    ridge = _answer(f, "ridge")
    return np.zeros(len(f.features)) if ridge is None else np.asarray(ridge, dtype=float)


def exact(f: Objective, deadline: float) -> Objective | None:
    """Return f from its rows; None where f has none."""
    answer = _answer(f, "exact")
    return None if answer is None else answer(None, deadline)


def point_of(f: Objective, found: Solution) -> Iterate | None:
    """Return the coefficients of a solution as a point of f; None where f does not take them."""
    try:
        return f.point(found.x)
    except ValueError:
        return None


def _answer(f: Objective, question: str) -> Any:
    return getattr(f, question, None)
