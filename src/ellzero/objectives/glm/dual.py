"""Lower bounds on minima of generalised linear models, from points of the dual problem.

With columns A, coefficients u and penalty ½ Σ penalty u², every q with Aᵀq = −penalty · z gives

    min over u  ≥  −Σ w ℓ*(q/w) − ½ Σ penalty z².

At a fit, the slopes of the losses are such a q up to the rounding of the fit. A Newton step Δ moves
them by D A Δ (D: second derivatives) and z by Δ, and keeps the equations. Leaving out a feature
makes its own equations void, so steps that change only these are allowed, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ellzero.objectives.glm.fit import penalised
from ellzero.objectives.glm.rows import Linear, RowSums
from ellzero.objectives.moments.held import inverse_gram
from ellzero.supports import Matrix, Support, Vector

INFEASIBLE = 1e-12
"""How far the equations of the dual may be from holding, relative to the weight of all rows."""

LENGTHS = (1.0, 0.5, 0.1)
"""Parts of a step that are tried. A whole step may lead to where there is no dual bound."""

LEAST_PIVOT = 1e-8
"""With smaller pivots on the unit-diagonal scale, an inverse has lost half of its digits."""


class Dual(NamedTuple):
    """Points of the dual problem near a fit."""

    rows: RowSums
    at: Linear
    """The coefficients of the fit."""
    penalty: Vector
    """On each coefficient."""
    lost: float
    """What rounding may change of a value."""

    def bounds(self, steps: Matrix, penalties: Matrix) -> Vector:
        """Return the bound that each step leads to. Steps and their penalties are rows."""
        losses = self.rows.duals(self.at, steps.reshape(len(steps), *self.at.B.shape))
        moved = self.at.B.ravel() + steps
        return -losses - 0.5 * (penalties * moved**2).sum(axis=1) - self.lost


def removal_bounds(
    rows: RowSums, at: Linear, penalty: Vector, asked: Support, weight: float, lost: float
) -> tuple[float, Vector]:
    """Bound min f over the features of a fit, and over them without the features asked for.

    Parameters
    ----------
    at : Linear
        The coefficients of the fit.
    penalty : vector
        The penalty on each column.
    asked : array of int
        Places in the support. Others have the bound that all features have.
    weight : float
        The weight of all rows.
    lost : float
        What rounding may change of a value.
    """
    K, n_columns = at.B.shape[1], len(at.B)
    u, each = at.B.ravel(), np.repeat(penalty, K)
    g, H = penalised(rows.loss(at.S), np.diag(penalty), K)(u)[1]()
    stable = stable_inverse(H)
    inverse = inverse_gram(H) if stable is None else stable
    newton = -inverse @ g
    left_over, tolerated = np.abs(g + H @ newton), INFEASIBLE * weight
    if not left_over.max(initial=0.0) <= tolerated:
        return -np.inf, np.full(len(at.S), -np.inf)
    reach = reach_of(rows.triangle(at.S), penalty, at.B, weight) if n_columns else np.empty(0)
    worst = np.maximum(left_over.reshape(-1, K).max(axis=1), rows.slope_rounding(at))
    dual = Dual(rows, at, each, lost + float(reach @ worst))
    here = float(dual.bounds(newton[None], each[None])[0])
    without = np.full(len(at.S), here)
    own = (n_columns - len(at.S) + asked)[:, None] * K + np.arange(K)
    removing = removing_steps(inverse, u + newton, own)
    hidden = _infeasibility(H, removing, own, reach, tolerated)
    without[asked] = _bounds_without(dual, here, newton, removing, own, hidden)
    return here, without


def _bounds_without(
    dual: Dual, here: float, newton: Vector, removing: Matrix, own: Support, hidden: Vector
) -> Vector:
    """Return bounds without each feature, whose equations are void; at least `here`.

    Parameters
    ----------
    newton, removing : vector, matrix
        The step to the minimum, and the steps that then take each feature out.
    own : array of int
        The coefficients of each feature.
    hidden : vector
        What equations that do not hold hide of each bound; inf where that is too much.
    """
    penalties = np.tile(dual.penalty, (len(own), 1))
    np.put_along_axis(penalties, own, 0.0, axis=1)
    bounds = np.full(len(own), here)
    for length in LENGTHS:
        weak = np.flatnonzero((bounds <= here) & np.isfinite(hidden))
        if len(weak):
            steps = newton + length * removing[weak]
            found = dual.bounds(steps, penalties[weak]) - hidden[weak]
            bounds[weak] = np.maximum(bounds[weak], found)
    return bounds


def removing_steps(inverse: Matrix, u: Vector, own: Support) -> Matrix:
    """Return the Newton steps that take the coefficients `own` (a row for each feature) to zero.

    A feature whose block cannot be inverted has no step: zeros.
    """
    steps = np.zeros((len(own), len(u)))
    for step, J in zip(steps, own, strict=True):
        block = stable_inverse(inverse[np.ix_(J, J)])
        if block is not None:
            step[:] = -inverse[:, J] @ (block @ u[J])
    return steps


def _infeasibility(
    H: Matrix, steps: Matrix, own: Support, reach: Vector, tolerated: float
) -> Vector:
    """Bound what the equations that steps should keep, and do not, hide; inf beyond tolerance."""
    others = np.abs(steps @ H)
    np.put_along_axis(others, own, 0.0, axis=1)
    hidden = others.reshape(len(steps), len(reach), own.shape[1]).max(axis=2) @ reach
    return np.where(others.max(axis=1, initial=0.0) <= tolerated, hidden, np.inf)


def reach_of(R: Matrix, penalty: Vector, B: Matrix, weight: float) -> Vector:
    """Bound how far each coefficient of a better model may be.

    That is what an equation of the dual that is off by one may hide of a bound. Predictions of a
    better model are taken to be at most ten times as large as those of B. Where columns are nearly
    dependent its coefficients may be larger by far.

    Parameters
    ----------
    R : matrix
        The triangle of the weighted columns.
    """
    whole = np.vstack([R, np.diag(np.sqrt(penalty))])
    norms = np.linalg.norm(whole, axis=0)
    norms[norms == 0] = 1.0
    lengths = np.linalg.svd(whole / norms, compute_uv=False)
    dependent = 4 * np.finfo(float).eps * np.sqrt(len(norms))
    least = float(lengths[lengths > dependent].min(initial=1.0))
    size = np.linalg.norm(R @ B) + np.sqrt(weight)
    return 10 * size / least / norms


def stable_inverse(A: NDArray[np.float64]) -> Matrix | None:
    """Return A⁻¹ where it is well determined on the unit-diagonal scale, otherwise None."""
    if not len(A):
        return A
    diagonal = A.diagonal()
    if diagonal.min() <= 0:
        return None
    scale = np.sqrt(diagonal)
    factor, info = lapack.dpotrf(A / scale / scale[:, None], lower=1)
    if info != 0 or (factor.diagonal() ** 2 < LEAST_PIVOT).any():
        return None
    return lapack.dpotrs(factor, np.eye(len(A)), lower=1)[0] / scale / scale[:, None]
