"""The split C = Q + diag(d) that the perspective relaxation lives on.

With Q positive semidefinite, ½ xᵀCx = ½ xᵀQx + ½ Σ d_j x_j², and the second part is one that knows
about sparsity: the larger d, the better the bound. Every d with C − diag(d) ⪰ 0 is allowed. The
least eigenvalue in every place is one; the best one for given weights w maximises wᵀd, a
semidefinite program, solved here with a log-det barrier. Whatever comes out is checked by an
eigenvalue and lowered until the check holds with a margin above rounding, so it need not be exact.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import eigvalsh, lapack

from ellzero.certificates.tolerances import EPS, SMALLEST_SPLIT
from ellzero.supports import Matrix, Vector

BARRIERS = 10.0 ** -np.arange(1, 7)
"""Weights μ of the barrier, in units of wᵀd over the number of features."""

NEWTON_STEPS = 8
"""Newton steps for each barrier; more seldom follow."""


def certified(C: Matrix, d: Vector) -> Vector | None:
    """Lower d until C − diag(d) ⪰ 0 for certain; return None where nothing positive is left."""
    rounding = 8 * len(C) * EPS * (np.abs(C).sum(axis=0).max() + d.max())
    lowest = eigvalsh(C - np.diag(d), subset_by_index=[0, 0])[0]
    d = d - max(rounding - lowest, 0.0)
    return d if d.min() > SMALLEST_SPLIT else None


def uniform(C: Matrix) -> Vector | None:
    """Return the least eigenvalue of C in every place, or None where it is too small."""
    lowest = eigvalsh(C, subset_by_index=[0, 0])[0]
    return certified(C, np.full(len(C), lowest)) if lowest > SMALLEST_SPLIT else None


def weighted(
    C: Matrix, w: Vector, start: Vector, floor: float, deadline: float = np.inf
) -> Vector | None:
    """Return a d that nearly maximises wᵀd subject to C − diag(d) ⪰ 0 and d ≥ floor.

    Newton's method on wᵀd + μ log det(C − diag d) + μ Σ log(d − floor), for smaller and smaller μ.
    `start` must leave C − diag(start) positive definite. At the deadline it ends with what it has.
    """
    d = np.maximum(0.9 * start, 1.01 * floor)
    w = w / max(w.sum(), 1e-300)
    scale = float(w @ start)
    for mu in BARRIERS * scale / len(C):
        for _ in range(NEWTON_STEPS):
            if time.monotonic() > deadline:
                return certified(C, d)
            M = _inverse(C - np.diag(d))
            if M is None:  # rounding says that d is at the end of what is allowed
                return certified(C, d)
            slack = 1 / (d - floor)
            gradient = w - mu * M.diagonal() + mu * slack
            _, step, failed = lapack.dposv(mu * (M * M + np.diag(slack**2)), gradient)
            if failed:
                return certified(C, d)
            length = _longest(C, d, step, floor)
            d = d + length * step
            if gradient @ step < 0.1 * mu:
                break
    return certified(C, d)


def _longest(C: Matrix, d: Vector, step: Vector, floor: float) -> float:
    """Return the longest step, halved until C − diag(d) stays positive definite."""
    length = 1.0
    while length > 1e-8:
        trial = d + length * step
        if trial.min() > floor and lapack.dpotrf(C - np.diag(trial), lower=1)[1] == 0:
            return 0.9 * length if length < 1 else 1.0
        length /= 2
    return 0.0


def _inverse(A: Matrix) -> Matrix | None:
    factor, info = lapack.dpotrf(A, lower=1)
    return None if info else lapack.dpotrs(factor, np.eye(len(A)), lower=1)[0]
