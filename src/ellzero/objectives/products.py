"""Products of narrow matrices, in parts that BLAS multiplies as they are, without packing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.objectives.design import BLOCK_BYTES, SHARED_FROM
from ellzero.supports import Matrix, Vector
from ellzero.threads import in_parts

SMALL_PRODUCT, NARROW = 990_000, 16
"""Factors of products of fewer multiplications and rows are not worth being packed."""

FEWEST_ROWS = 8
"""For each column, in a part of the rows: what is made of the parts shall be small beside them."""

FEW_COLUMNS = 36
"""Up to so many, the product of columns with themselves takes up to half the time in parts."""


def product(A: Matrix, rows: Matrix) -> Matrix:
    """A · rows; what is narrow goes in parts that BLAS multiplies as they are, without packing."""
    n = rows.shape[1]
    width = SMALL_PRODUCT // max(A.size, 1)
    if not 1 < len(A) <= NARROW or not NARROW <= width < n:
        return A @ rows
    out = np.empty((len(A), n))
    for begin in range(0, n, width):
        part = slice(begin, begin + width)
        np.matmul(A, rows[:, part], out=out[:, part])
    return out


def weighted_square(A: Any, weight: Vector, threads: int = 1) -> NDArray[np.float64]:
    """Aᵀ diag(weight) A; threads can share the rows of a large dense A.

    Parts of the rows have the precision of a dense A, and their sum is double.
    """
    if sparse.issparse(A):
        B = A.copy()
        B.data *= np.repeat(weight, np.diff(B.indptr))
        return (A.T @ B).toarray()
    m, n = A.shape
    weight = weight.astype(A.dtype, copy=False)
    square = _narrow_square if n <= FEW_COLUMNS else _square
    n_parts = max(min(-(-A.nbytes // BLOCK_BYTES), m // max(FEWEST_ROWS * n, 1)), 1)
    threads = threads if A.size >= SHARED_FROM else 1
    parts = in_parts(lambda part: square(A[part], weight[part]), m, n_parts, threads)
    total = parts[0].astype(np.float64, copy=False)
    for part in parts[1:]:
        total += part
    return total


def _square(A: NDArray[np.float64], weight: Vector) -> NDArray[np.float64]:
    B = A * np.sqrt(weight)[:, None]
    return B.T @ B


def _narrow_square(A: NDArray[np.float64], weight: Vector) -> NDArray[np.float64]:
    m, n = A.shape
    rows = SMALL_PRODUCT // max(n * n, 1)
    whole = m - m % rows
    stacked = n, whole // rows, rows
    left, right, rest = A[:whole].T, A[:whole].T * weight[:whole], A[whole:]
    parts = left.reshape(stacked).transpose(1, 0, 2) @ right.reshape(stacked).transpose(1, 2, 0)
    return parts.sum(axis=0) + (rest.T * weight[whole:]) @ rest
