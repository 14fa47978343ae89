"""Where a local search begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ellzero.algorithms.omp import omp_steps
from ellzero.checks import as_support
from ellzero.core import Iterate, Objective, Solution
from ellzero.supports import NONE


def starting_point(f: Objective, s: int, start: Any = "omp") -> Iterate:
    """The minimiser over a support of s features.

    Parameters
    ----------
    start : "omp" (the OMP solution, as in the paper's experiments), "first" (the first s features,
        as in the pseudo-code), feature indices, or a point x (also an Iterate or a Solution). A
        support smaller than s is completed by OMP steps.
    """
    S = _support(f, s, start)
    if len(S) > s:
        raise ValueError(f"start: has {len(S)} features, more than s = {s}.")
    if set(S.tolist()) & set(f.forced):
        raise ValueError(
            "start: contains a forced feature; those are in every model by themselves."
        )
    *_, x = omp_steps(f, s, S)
    return x.noted("start")


def _support(f: Objective, s: int, start: Any) -> np.ndarray:
    if isinstance(start, str):
        if start == "omp":
            return NONE
        if start == "first":
            return f.choosable[:s]
        raise ValueError(f"start: expected 'omp', 'first', a support or a point, got {start!r}.")
    if isinstance(start, Iterate | Solution):
        return np.array(start.support)
    array = np.asarray(start)
    if array.dtype.kind != "f" or not array.size:
        return as_support(start, "start", f.n_features)
    if array.shape != f.shape or not np.isfinite(array).all():
        wanted = " × ".join(map(str, f.shape))
        raise ValueError(
            f"start: a point has {wanted} finite coefficients, got shape {array.shape}; "
            "a support has whole numbers."
        )
    return f.point(array).support
