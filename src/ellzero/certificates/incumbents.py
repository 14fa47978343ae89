"""The models to certify, as f has them. A solution of another objective is refused."""

from __future__ import annotations

import numpy as np

from ellzero.certificates.certifiable import point_of, rounding
from ellzero.certificates.nodes import Incumbent
from ellzero.certificates.tolerances import (
    LEAST_MARGIN,
    ROUNDING_OF_NULL,
    SAME_VALUE,
    SMALLEST_VALUE,
)
from ellzero.core import Objective, Solution
from ellzero.supports import NONE


class OtherObjective(ValueError):
    """The solution to be certified is not one of f."""


def margin_without_features(f: Objective) -> float:
    """Return what rounding may change of the value of f without features."""
    null = f.minimize(NONE)
    return max(ROUNDING_OF_NULL * rounding(f, null), LEAST_MARGIN * abs(null.value))


def incumbent(f: Objective, found: Solution, margin: float) -> Incumbent:
    """Return a solution after a refit on its support.

    Raises `OtherObjective` if its value is neither that of f at its coefficients nor the minimum
    of f over its support.
    """
    if not np.isfinite(found.value):
        raise ValueError(f"solution: its value is {found.value}.")
    if found.n_features != len(f.features):
        raise ValueError(f"solution: has {found.n_features} features, f has {len(f.features)}.")
    x = f.minimize(found.support)
    least = min(x.value, f.refit(x).value)
    here = point_of(f, found)
    value = least if here is None else f.refit(here).value
    slack = SAME_VALUE * abs(found.value) + SMALLEST_VALUE + margin
    slack += ROUNDING_OF_NULL * rounding(f, x if here is None else here)
    unclear = rounding(f, x)  # a fit over near copies may end elsewhere each time
    is_least = abs(least - found.value) <= slack + (unclear if np.isfinite(unclear) else 0.0)
    if not (is_least or abs(value - found.value) <= slack):
        raise OtherObjective(
            f"solution: its value is {found.value:g}, but f is {value:g} at its coefficients; "
            "it is the solution of another objective (other data, weights or ridge)."
        )
    return Incumbent(least, found.support)
