"""The moments of a quadratic as its proofs need them, and how well they are known."""

from __future__ import annotations

import numpy as np

from ellzero.certificates.tolerances import DEPENDENT_BELOW, EPS, SMALLEST_SPLIT
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import NONE, Matrix, Support


def zero_features(f: Quadratic) -> Support:
    """Return the features that may be chosen and cannot change f: their columns are zero."""
    choosable = f.features.choosable
    return choosable[f.features.norms(f.moments.diagonal)[choosable] == 0]


def unit_moments_of(f: Quadratic, features: Support) -> Matrix:
    """Return [[C + penalty, c], [cᵀ, 2v]] for some features, scaled to a unit diagonal.

    The values that follow from it are those of f: the unit of f is in c and in v.
    """
    T = f.features.coordinates(features)
    M = np.empty((len(T) + 1, len(T) + 1))
    M[:-1, :-1] = f.block(T, T)
    M[:-1, -1] = M[-1, :-1] = f.moments.target[T] * f.unit
    M[-1, -1] = 2 * f.moments.constant * f.unit**2
    scale = np.append(np.sqrt(M.diagonal()[:-1]), 1.0)
    return M / scale / scale[:, None]


def least_clear_eigenvalue(f: Quadratic, moments: Matrix) -> tuple[float, bool]:
    """Return the least eigenvalue of the matrix that is not rounding, and whether others are."""
    n = len(moments) - 1
    if not n:
        return 1.0, False
    eigenvalues = np.linalg.eigvalsh(moments[:-1, :-1])
    clear = max(SMALLEST_SPLIT, DEPENDENT_BELOW * n * f.digits_lost)
    dependent = bool(eigenvalues[0] <= clear)
    return float(eigenvalues[eigenvalues > clear].min(initial=1.0)), dependent


def rounding_of_matrix(f: Quadratic, least: float, n: int) -> float:
    """Bound what an error in the last places of C may change of a minimum.

    ½ xᵀCx of a minimiser x is what x gains, which is no more than what all features together gain.

    Parameters
    ----------
    least : float
        The least eigenvalue of C.
    n : int
        How many columns of C are used together.
    """
    null = f.minimize(NONE).value
    lowest = f.floor if np.isfinite(f.floor) else f.minimize(f.features.choosable).value
    return 8 * EPS * n * f.digits_lost * 2 * max(null - lowest, 0.0) / least


def hides_features(f: Quadratic) -> bool:
    """Say whether rounding may hide a feature that matters behind the forced ones.

    An f that does not tell is taken to hide every zero column beside forced features.
    """
    answer = getattr(f, "forced_hide", None)
    if answer is not None:
        return bool(answer())
    return bool(len(f.features.forced) and len(zero_features(f)))
