"""Minimisers of any f over many supports, and over all features."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ellzero.core import Iterate, Objective
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Support, Vector

MULTIPLICATIONS_FOR_A_BOUND = 2.7e10
"""What a lower bound may cost: as much as the moments of 3000 features, or about a second."""

NEWTON_STEPS = 13
"""Weighted Gram matrices that are made to minimise a loss that is not quadratic."""


def minimize_each(
    f: Objective,
    supports: Sequence[Support],
    ridges: Sequence[Vector],
    starts: Sequence[Iterate | None] | None = None,
) -> list[Iterate]:
    """Minimise f + ½ Σ d_j ‖x_j‖² over each of many supports.

    Parameters
    ----------
    f : Objective
    supports : sequence of arrays of int
        Sorted supports.
    ridges : sequence of arrays of float
        For each support the numbers d_j of its features.
    starts : sequence of Iterate or None, optional
        Points near the minimisers. An f without closed forms starts there.

    Returns
    -------
    list of Iterate
        The minimisers. Their values include the ridge.
    """
    if isinstance(f, Quadratic):
        return f.minimize_stack(supports, ridges)
    found = []
    for S, d, start in zip(supports, ridges, starts or [None] * len(supports), strict=True):
        each = np.zeros(len(f.features))
        each[S] = d
        found.append((f.ridged(each) if d.any() else f).minimize(S, start))
    return found


def lower_bound(f: Objective) -> float:
    """Return a number below which f never is: its minimum over all features, or its floor.

    The minimum is not asked for where it takes long. Neither is it where there are as many
    features as observations: then it is about as low as the floor.
    """
    n, n_coordinates = len(f.features), f.features.n_coordinates
    if isinstance(f, Quadratic):
        affordable, rounding = n_coordinates**3 <= MULTIPLICATIONS_FOR_A_BOUND, 0.0
    else:
        cost, rounding = NEWTON_STEPS * f.size * n, f.resolution
        affordable = cost <= MULTIPLICATIONS_FOR_A_BOUND and n_coordinates**2 < f.size
    if f.floor > -inf and not affordable:
        return f.floor
    return max(f.floor, f.minimize(f.features.choosable).value - rounding)
