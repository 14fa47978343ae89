"""The sweep operator: a quadratic as seen from a support, updated one feature at a time.

The moments [[C, c], [cᵀ, 2v]] describe f(x) = ½ xᵀCx − cᵀx + v. Swept on the features S they become
the *tableau* of S: −C_SS⁻¹ inside S, C_SS⁻¹C_SO across, and outside what S leaves of C; in the last
column the minimiser over S (inside) and its residual c − Cx (outside); in the corner
twice the minimum. So one formula tells how the minimum changes when a feature enters or leaves, and
one tells it for every pair of features: both enter, both leave, or one is exchanged for the other.

All functions take a stack of tableaux, one per support.
"""

from __future__ import annotations

import numpy as np

from ellzero.linalg import DEPENDENT, inverse_of
from ellzero.supports import Matrix, Support

CLEAR = 1e-8
"""A pair is scored where its determinant is more than this; below, rounding would decide."""


def tableau(moments: Matrix, S: Support) -> Matrix | None:
    """The tableau of S from the start; None where the columns of S are dependent."""
    T = moments.copy()
    if not len(S):
        return T
    rows = moments[S]
    inverse = inverse_of(rows[:, S])
    if inverse is None:
        return None
    W = inverse @ rows
    T -= rows.T @ W
    T[S] = W
    T[:, S] = W.T
    T[S[:, None], S] = -inverse
    return T


def pivot(T: Matrix, features: Support) -> None:
    """Let one feature of each support enter or leave, in place."""
    each = np.arange(len(T))
    row = T[each, features]
    d = row[each, features]
    T -= products((row, row / d[:, None]))
    row /= np.abs(d)[:, None]
    T[each, features] = row
    T[each, :, features] = row
    T[each, features, features] = -1 / d


def single_changes(T: Matrix) -> Matrix:
    """How the minimum changes when a feature enters or leaves; inf where it may not."""
    d = np.einsum("lii->li", T)[:, :-1]
    r = T[:, :-1, -1]
    allowed = np.abs(d) > DEPENDENT
    return np.where(allowed, -0.5 * r * r / np.where(allowed, d, 1.0), np.inf)


def pair_changes(T: Matrix) -> Matrix:
    """How the minimum changes when two features enter, leave or trade places; inf where unclear."""
    a = T[:, :-1, :-1].copy()
    r = T[:, :-1, -1]
    d = np.einsum("lii->li", a).copy()
    half = 0.5 * r * r
    change = products((r, r))
    change *= a
    change -= products((half, d), (d, half))
    a *= a
    determinant = products((d, d))
    determinant -= a
    # an exchange has a negative determinant: what is left of the one, times h of the other
    lowest = -DEPENDENT * np.abs(d).max(axis=1)[:, None, None]
    unclear = (determinant < CLEAR) & (determinant > lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        change /= determinant
    change[unclear] = np.inf
    return change


def products(*pairs: tuple[Matrix, Matrix]) -> Matrix:
    """Σ u_i v_j over one or two pairs u, v, for each of a stack of them.

    BLAS makes what is of rank two in a third of the time that NumPy takes for rank one.
    """
    left, right = np.zeros((2, 2, *pairs[0][0].shape))
    for k, (u, v) in enumerate(pairs):
        left[k], right[k] = u, v
    return np.matmul(left.transpose(1, 2, 0), right.transpose(1, 0, 2))
