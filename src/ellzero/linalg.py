"""Small positive matrices on the unit-diagonal scale, and when their columns are dependent."""

from __future__ import annotations

from scipy.linalg import lapack

from ellzero.core import Matrix

DEPENDENT = 1e-11
"""A column of unit norm is dependent on others when less than this is left of its squared norm."""


def cholesky(A: Matrix) -> Matrix | None:
    """The lower Cholesky factor, or None if A is singular to working precision."""
    if not len(A):
        return A
    factor, info = lapack.dpotrf(A, lower=1)
    if info != 0 or (factor.diagonal() ** 2 <= DEPENDENT * A.diagonal()).any():
        return None
    return factor


def inverse_of(A: Matrix) -> Matrix | None:
    """A⁻¹, or None if A is singular to working precision."""
    factor = cholesky(A)
    if factor is None or not len(A):
        return factor
    root = lapack.dtrtri(factor, lower=1)[0]
    return root.T @ root
