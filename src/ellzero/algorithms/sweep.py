"""The sweep operator: a quadratic as seen from a support, updated one feature at a time.

The moments [[C, c], [cᵀ, 2v]] describe f(x) = ½ xᵀCx − cᵀx + v. Swept on the features S they become
the *tableau* of S: −C_SS⁻¹ inside S, C_SS⁻¹C_SO across, and outside what S leaves of C; in the last
column the minimiser over S (inside) and its residual c − Cx (outside); in the corner
twice the minimum. So one formula tells how the minimum changes when a feature enters or leaves, and
one tells it for every pair of features: both enter, both leave, or one is exchanged for the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ellzero.linalg import DEPENDENT, inverse_root
from ellzero.supports import Matrix, Support, Vector

CLEAR = 1e-8
"""A pair is scored where its determinant is more than this; below, rounding would decide."""


def tableau(moments: Matrix, S: Support) -> Matrix | None:
    """The tableau of S from the start; None where the columns of S are dependent."""
    T = moments.copy()
    if not len(S):
        return T
    rows = moments[S]
    root = inverse_root(rows[:, S])
    if root is None:
        return None
    Z = root @ rows
    T -= Z.T @ Z  # C_SS⁻¹ itself would lose the digits of columns that are nearly dependent
    W = root.T @ Z
    T[S] = W
    T[:, S] = W.T
    T[S[:, None], S] = -root.T @ root
    return T


def pivot(T: Matrix, p: int) -> None:
    """Let a feature enter or leave, in place."""
    row = T[p].copy()
    d = row[p]
    add_outer(T, -1 / d, row, row)
    row /= abs(d)
    T[p] = T[:, p] = row
    T[p, p] = -1 / d


def single_changes(T: Matrix) -> NDArray[np.float64]:
    """How the minimum changes when a feature enters or leaves; inf where it may not.

    T may be a stack of tableaux.
    """
    d = T.diagonal(0, -2, -1)[..., :-1]
    r = T[..., -1, :-1]
    changes = np.full(d.shape, np.inf)
    return np.divide(-0.5 * r * r, d, out=changes, where=np.abs(d) > DEPENDENT)


def pair_changes(T: Matrix, first: Support, second: Support) -> Matrix:
    """How the minimum changes when a feature of each of two sets enters or leaves; inf where
    unclear."""
    d, r = T.diagonal(), T[-1]
    across = T.take(first, 0).take(second, 1)
    return joint_changes(across, d[first], r[first], d[second], r[second])


def joint_changes(a: Matrix, d: Vector, r: Vector, e: Vector, t: Vector) -> Matrix:
    """The changes (a_ij r_i t_j − ½ r_i² e_j − ½ d_i t_j²) / (d_i e_j − a_ij²).

    a : the part of the tableau across the two sets, which is overwritten
    d, r : its diagonal and its last column for the first set
    e, t : and for the second
    """
    change = np.zeros(a.shape)
    add_outer(change, -1.0, r, t)
    change *= a
    add_outer(change, 0.5, r * r, e)
    add_outer(change, 0.5, d, t * t)
    a *= a
    add_outer(a, -1.0, d, e)
    # Now a is the determinant times −1. Of an exchange that is what is left of the one, times h of
    # the other, and positive.
    unclear = (a > -CLEAR) & (a < DEPENDENT * np.abs(d).max(initial=1.0))
    a[unclear] = 1.0
    change /= a
    change[unclear] = np.inf
    return change


def add_outer(A: Matrix, weight: float, u: Vector, v: Vector) -> None:
    """A += weight · uvᵀ in place: BLAS takes a third of the time that NumPy takes to make uvᵀ."""
    assert A.flags.c_contiguous  # BLAS works in it
    if A.size:
        blas.dger(weight, v, u, a=A.T, overwrite_a=True)
