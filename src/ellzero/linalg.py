"""Small positive matrices on the unit-diagonal scale, and when their columns are dependent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack

from ellzero.supports import Matrix, Vector

DEPENDENT = 1e-11
"""A column of unit norm is dependent on others when less than this is left of its squared norm."""

SUSPICIOUS = 1e-3
"""Where those before leave less than this of two columns, all others may leave far less of one."""


def cholesky(A: Matrix) -> Matrix | None:
    """The lower Cholesky factor, or None if A is singular to working precision."""
    if not len(A):
        return A
    factor, info = lapack.dpotrf(A, lower=1)
    if info != 0 or not are_independent(factor, A.diagonal()):
        return None
    return factor


def are_independent(factor: Matrix, diagonal: Vector) -> bool:
    """Do all other columns leave enough of each? The factor tells what those before it leave."""
    left = factor.diagonal() ** 2 / diagonal
    if left.min() > SUSPICIOUS:
        return True
    if np.count_nonzero(left < SUSPICIOUS) > 1:
        B = np.tril(lapack.dtrtri(factor, lower=1)[0])
        left = 1 / (np.einsum("ij,ij->j", B, B) * diagonal)
    return bool(left.min() > DEPENDENT)


def solve_each(A: Matrix, c: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """A[k]⁻¹c[k] for every k, and whether A[k] is regular.

    What is above the diagonals is used, and lost.
    """
    assert A.flags.c_contiguous  # LAPACK works in it
    diagonals, x = A.diagonal(0, 1, 2).copy(), c[:, :, None].copy()
    failed = [
        lapack.dposv(factor, b, 1, 1, 1)[2]  # lower, overwrite_a, overwrite_b: names take time
        for factor, b in zip(A.transpose(0, 2, 1), x, strict=True)
    ]
    regular = np.equal(failed, 0)
    suspicious = A.diagonal(0, 1, 2) ** 2 < SUSPICIOUS * diagonals
    for k in np.flatnonzero(suspicious.any(axis=1)):
        regular[k] = regular[k] and are_independent(A[k].T, diagonals[k])
    A.reshape(len(A), -1)[:, :: A.shape[1] + 1] = diagonals
    return x[:, :, 0], regular


def inverse_root(A: Matrix) -> Matrix | None:
    """The lower triangular B with BᵀB = A⁻¹, or None if A is singular to working precision."""
    factor = cholesky(A)
    if factor is None or not len(A):
        return factor
    return lapack.dtrtri(factor, lower=1)[0]


def inverse_of(A: Matrix) -> Matrix | None:
    """A⁻¹, or None if A is singular to working precision."""
    B = inverse_root(A)
    return None if B is None else B.T @ B


def pseudo_inverse_root(A: Matrix) -> Matrix:
    """B with BᵀB the pseudo-inverse, taken on the unit scale, which a large ridge may have left."""
    scale = np.sqrt(np.maximum(A.diagonal(), 1.0))
    w, Q = eigh(A / scale / scale[:, None])
    keep = w > DEPENDENT * max(w.max(initial=0.0), 1e-300)
    return (Q[:, keep] / scale[:, None] / np.sqrt(w[keep])).T


def pseudo_inverse(A: Matrix) -> Matrix:
    B = pseudo_inverse_root(A)
    return B.T @ B


def independent(left: Matrix) -> Matrix:
    """inf instead of what is left of a dependent column, so that inserting it gains nothing."""
    return np.where(left > DEPENDENT, left, np.inf)
