"""Where a local search begins."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ellzero.checks import as_support
from ellzero.core import Iterate, Objective, Solution
from ellzero.methods.omp import omp_steps
from ellzero.supports import NONE, Support


def starting_point(f: Objective, s: int, start: Any = "omp") -> Iterate:
    """Return the minimiser over a support of s features.

    Parameters
    ----------
    start : "omp", "first", array of int, array of float, Iterate or Solution
        "omp" is the OMP solution, as in the paper's experiments; "first" are the first s features,
        as in the pseudo-code. Otherwise feature indices or a point. A support that is smaller than
        s is completed by OMP steps.
    """
    S = _support(f, s, start)
    if len(S) > s:
        raise ValueError(f"start: has {len(S)} features, more than s = {s}.")
    if not f.features.free[S].all():
        raise ValueError(
            "start: contains a forced feature. Leave it out; forced features are in every model."
        )
    *_, x = omp_steps(f, s, S)
    return x.noted("start")


def _support(f: Objective, s: int, start: Any) -> Support:
    if isinstance(start, str):
        if start == "omp":
            return NONE
        if start == "first":
            return f.features.choosable[:s]
        raise ValueError(f"start: expected 'omp', 'first', a support or a point, got {start!r}.")
    if isinstance(start, Iterate | Solution):
        return np.array(start.support)
    array = np.asarray(start)
    if array.dtype.kind != "f" or not array.size:
        return as_support(start, "start", len(f.features))
    point = starting_coordinates(f, array)
    if array.ndim == 1:
        return point.support
    return np.flatnonzero(array.any(axis=1) & f.features.free)  # a row for each feature


def starting_coordinates(f: Objective, start: Any) -> Iterate:
    """Return a point that is given by its coefficients, or raise an error that names `start`."""
    if not np.isfinite(start).all():
        raise ValueError("start: a point has finite coefficients; a support has whole numbers.")
    try:
        return f.point(start)
    except ValueError as error:
        reason = str(error).removeprefix("x: ").removesuffix(".")
        raise ValueError(f"start: {reason}. A support has whole numbers.") from None


def known_smoothness(f: Objective, k: int) -> float:
    """Return the smoothness of f at sparsity k, or raise an error that says what to set instead."""
    found = f.smoothness(k)
    if found == inf:
        raise ValueError(
            "smoothness: unknown for this objective; give from_callables(..., smoothness=L) with "
            "an upper bound on its curvature, or pass iht's step or arht's rho yourself."
        )
    return found
