"""Sums over rows of products of columns, weighted by second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.data.design import BLOCK_BYTES, SHARED_FROM
from ellzero.supports import Matrix, Vector
from ellzero.threads import in_parts

FEWEST_ROWS = 8
"""Rows for each column in a part that a thread takes: sums of parts stay small beside the parts."""


def weighted_square(A: Any, weight: Vector, threads: int = 1) -> Matrix:
    """Return Aᵀ diag(weight) A. Threads can share the rows of a large dense A."""
    if sparse.issparse(A):
        B = A.tocsr(copy=True)
        B.data *= np.repeat(weight, np.diff(B.indptr))
        return (A.T @ B).toarray()
    root = np.sqrt(weight)[:, None]
    m, n = A.shape
    n_parts = max(min(-(-A.nbytes // BLOCK_BYTES), m // max(FEWEST_ROWS * n, 1)), 1)
    if threads == 1 or A.size < SHARED_FROM or n_parts == 1:
        B = A * root
        return B.T @ B

    def square(part: slice) -> Matrix:
        B = A[part] * root[part]
        return B.T @ B

    return np.sum(in_parts(square, m, n_parts, threads), axis=0)


def curved_square(A: Any, D: Matrix, forms: NDArray[np.float64], threads: int = 1) -> Matrix:
    """Return Σ_k A_ki A_kj Σ_r D_kr forms[r]_ab in row (i, a) and column (j, b).

    Parameters
    ----------
    A : matrix of shape (m, n)
    D : matrix of shape (m, R)
        Non-negative weights.
    forms : array of shape (R, K, K)
    """
    n, (R, K, _) = A.shape[1], forms.shape
    if R == 1:
        return np.kron(weighted_square(A, D[:, 0], threads), forms[0])
    if n * n > R or sparse.issparse(A):
        G = np.array([weighted_square(A, weight, threads).ravel() for weight in D.T])
    else:  # few columns, many outputs: one product of all pairs of columns with all weights
        G = D.T @ (A[:, :, None] * A[:, None, :]).reshape(len(A), n * n)
    H = (G.T @ forms.reshape(R, K * K)).reshape(n, n, K, K)
    return np.ascontiguousarray(H.transpose(0, 2, 1, 3)).reshape(n * K, n * K)
