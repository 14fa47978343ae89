"""What a support S leaves of a column: the only place that knows.

Everything is on the unit scale: f(z) = ½ zᵀCz − cᵀz + v, where C has a unit diagonal and a penalty
on top of it. A feature i outside S is left with a residual r_i and a block L_i of C. When it
enters, the minimum falls by ½ r_iᵀ L_i⁻¹ r_i. With H = C_SS⁻¹, the minimum rises by
½ z_jᵀ H_jj⁻¹ z_j when j leaves.

There are three forms. `Left` holds r and L of all features for one support. `beam.Stack` does the
same for a stack of supports. The *swept* tableau tells, for a few features, also what is left of
the products between them: it is [[C, c], [cᵀ, 2v]] after pivots on S. There the two formulas are
one, because L and −H take the same place on the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ellzero.core import Features
from ellzero.linalg import DEPENDENT, inverse_root, pseudo_inverse_root
from ellzero.supports import Matrix, Support, Vector

if TYPE_CHECKING:
    from ellzero.objectives.quadratic import Quadratic

UNCLEAR = 1e-8
"""A pair with a smaller determinant is not scored: rounding (1e-16 over it) would decide."""

UNSTABLE = 1e-5
"""After a pivot smaller than this, a tableau is made anew: its digits would be lost."""

UPDATES = 50
"""A tableau is made anew after this many updates, before their rounding adds up."""


def root_of_inverse(A: Matrix) -> tuple[Matrix, bool]:
    """Return B with BᵀB = A⁻¹, and True; for a singular A, of the pseudo-inverse, and False."""
    root = inverse_root(A)
    return (pseudo_inverse_root(A), False) if root is None else (root, True)


def gains(r: Matrix, L: NDArray[np.float64], least: float = DEPENDENT) -> Vector:
    """Return ½ r_iᵀ L_i⁻¹ r_i for every row of r, without directions of which nothing is left."""
    if r.shape[1] == 1:
        residual, left = r[:, 0], L[:, 0, 0]
        gain = np.zeros_like(residual)
        return np.divide(0.5 * residual * residual, left, out=gain, where=np.abs(left) > least)
    found, live = np.zeros(len(r)), r.any(axis=1)  # a model may know only a few features
    w, Q = np.linalg.eigh(L[live])
    along = np.einsum("ia,iab->ib", r[live], Q) ** 2
    found[live] = np.divide(along, 2 * w, out=np.zeros_like(along), where=np.abs(w) > least).sum(1)
    return found


# all features, one support


@dataclass(frozen=True, eq=False)
class Left:
    """What S leaves of all features. `z` minimises f over S; H is C_SS⁻¹."""

    f: Quadratic
    S: Support  # in the order of H, not sorted
    H: Matrix
    z: Vector
    value: float  # in units of f.unit²
    r: Vector
    L: list[NDArray[np.float64]]  # a stack of blocks for every block size, as in `Features.groups`
    regular: bool = True
    n_updates: int = 0

    @classmethod
    def by(cls, f: Quadratic, S: Support) -> Left:
        """Compute it for a support from the start."""
        T = f.features.coordinates(S)
        root, regular = root_of_inverse(f.block(T, T))
        Z, target = f.products(T, root), root @ f.moments.target[T]
        return cls(
            f,
            S,
            root.T @ root,
            root.T @ target,
            f.moments.constant - 0.5 * float(target @ target),
            f.moments.target - target @ Z,
            add_squares(f.features, f.own_blocks, Z, -1.0),
            regular,
        )

    def gains(self) -> Vector:
        """Return by how much each feature lowers f when it enters; 0 in S."""
        found = np.empty(len(self.f.features))
        for (members, at), L in zip(self.f.features.groups, self.L, strict=True):
            found[members] = gains(self.r[at], L)
        found[self.S] = 0.0
        return found

    def costs(self) -> Vector:
        """Return by how much each feature of S raises f when it leaves, in the order of S."""
        if self.f.features.all_single:
            return 0.5 * self.z**2 / self.H.diagonal()
        blocks = ((self.z[None, J], self.H[J, J][None]) for J in self.places())
        return np.array([gains(z, H)[0] for z, H in blocks])

    def best_exchange(self) -> tuple[int, int, float]:
        """Return the feature that enters, the one that leaves, and the value after."""
        if not len(self.S):
            return -1, -1, inf
        outside = self.f.features.outside(self.S)
        if self.regular and self.f.features.all_single:
            columns = np.flatnonzero(outside & self._can_pay())
            if not len(columns):
                return -1, -1, inf
            across = self.H @ self.f.block(self.S, columns)
            left, h = self.L[0][columns, 0, 0], self.H.diagonal()
            changes = joint_changes(across, -h, self.z, left, self.r[columns])
            j, i = divmod(int(changes.argmin()), len(columns))
            return int(columns[i]), int(self.S[j]), self.value + float(changes[j, i])
        best = -1, -1, inf
        for j in self.S.tolist():
            rest = self.removed(j)
            after = np.where(outside, rest.value - rest.gains(), inf)
            i = int(np.argmin(after))
            best = min(best, (i, j, float(after[i])), key=lambda move: move[2])
        return best

    def _can_pay(self) -> NDArray[np.bool_]:
        """Mark the features whose entrance may pay for an exit.

        In the most favourable case all of a column that lies in the span of S is due to the feature
        that leaves. The screen halves the time of a path on wide data.
        """
        own, L = self.f.own_blocks[0][:, 0, 0], self.L[0][:, 0, 0]
        spanned = np.sqrt(np.clip(own - L, 0.0, own))
        hurdle = np.sqrt(2 * self.costs().min()) * (np.sqrt(own) - spanned)
        return np.abs(self.r) >= (1 - 1e-9) * hurdle

    def places(self) -> list[slice]:
        """Return where in H each feature of S is."""
        sizes = self.f.features.sizes[self.S]
        ends = np.cumsum(sizes)
        return list(map(slice, (ends - sizes).tolist(), ends.tolist()))

    def removed(self, j: int) -> Left:
        """Return what S ∖ {j} leaves."""
        rest = self.S[j != self.S]
        J = self.places()[int(np.flatnonzero(j == self.S)[0])]
        h = self.H[J, J]
        root, regular = root_of_inverse(h)
        unstable = h.diagonal().max(initial=0.0) > 1 / UNSTABLE
        if not (self.regular and regular) or self.n_updates >= UPDATES or unstable:
            return Left.by(self.f, rest)
        T = self.f.features.coordinates(self.S)
        B = root @ self.H[J]
        t = root @ self.z[J]
        Z = self.f.products(T, B)
        keep = np.delete(np.arange(len(T)), J)
        return Left(
            self.f,
            rest,
            (self.H - B.T @ B)[np.ix_(keep, keep)],
            (self.z - B.T @ t)[keep],
            self.value + 0.5 * float(t @ t),
            self.r + t @ Z,
            add_squares(self.f.features, self.L, Z, 1.0),
            True,
            self.n_updates + 1,
        )

    def inserted(self, i: int) -> Left:
        """Return what S ∪ {i} leaves."""
        f, T = self.f, self.f.features.coordinates(self.S)
        own = f.features.coordinates(np.array([i]))
        w = self.H @ f.block(T, own)
        L = f.block(own, own) - f.block(own, T) @ w
        root, regular = root_of_inverse(L)
        unstable = L.diagonal().min(initial=1.0) < UNSTABLE
        if not (self.regular and regular) or self.n_updates >= UPDATES or unstable:
            return Left.by(f, np.append(self.S, i))
        B = np.concatenate([-root @ w.T, root], axis=1)
        t = root @ self.r[own]
        Z = f.products(np.concatenate([T, own]), B)
        H = B.T @ B
        H[: len(T), : len(T)] += self.H
        return Left(
            f,
            np.append(self.S, i),
            H,
            np.append(self.z, np.zeros(len(own))) + B.T @ t,
            self.value - 0.5 * float(t @ t),
            self.r - t @ Z,
            add_squares(f.features, self.L, Z, -1.0),
            True,
            self.n_updates + 1,
        )


def add_squares(
    features: Features, L: list[NDArray[np.float64]], Z: Matrix, sign: float
) -> list[NDArray[np.float64]]:
    """Return the blocks L_i + sign · Z_iᵀ Z_i."""
    if features.all_single:
        return [L[0] + sign * np.einsum("ki,ki->i", Z, Z)[:, None, None]]
    parts = [Z[:, at] for _, at in features.groups]
    return [A + sign * np.einsum("kia,kib->iab", P, P) for A, P in zip(L, parts, strict=True)]


# a few features: the swept tableau


def swept(M: Matrix, features: Features, S: Support) -> Matrix | None:
    """Return the tableau of S; None where its features are dependent.

    A feature whose own block is dependent does not count as such.
    """
    if not len(S):
        return M.copy()
    S = features.coordinates(S)
    rows = M.take(S, 0)
    root, regular = root_of_inverse(rows.take(S, 1))
    if not regular and features.all_single:
        return None
    Z = root @ rows
    T = M - Z.T @ Z  # with C_SS⁻¹ itself, nearly dependent columns would lose their digits
    W = root.T @ Z
    T[S], T[:, S] = W, W.T
    T[S[:, None], S] = -root.T @ root
    return T


def pivot(T: Matrix, at: Support) -> None:
    """Let the feature with these coordinates enter or leave, in place."""
    if len(at) == 1 and abs(T[at[0], at[0]]) > DEPENDENT:
        p = int(at[0])
        row = T[p].copy()
        d = row[p]
        add_outer(T, -1 / d, row, row)
        row /= abs(d)
        T[p] = T[:, p] = row
        T[p, p] = -1 / d
        return
    rows = T[at].copy()
    own = rows[:, at]
    w, Q = np.linalg.eigh(own)
    clear = np.abs(w) > DEPENDENT
    inverse = (Q[:, clear] / w[clear]) @ Q[:, clear].T
    T -= rows.T @ inverse @ rows
    T[at] = np.sign(np.trace(own)) * inverse @ rows
    T[:, at] = T[at].T
    T[np.ix_(at, at)] = -inverse


def single_changes(T: Matrix, features: Features) -> Vector:
    """Return how the minimum changes when each feature enters or leaves."""
    found = np.empty(len(features))
    for members, at in features.groups:
        found[members] = -gains(T[-1, at], T[at[:, :, None], at[:, None, :]])
    return found


def changes_of_each(T: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `single_changes` for a stack of tableaux, where every feature has one coordinate.

    Where rounding would decide, the change is inf.
    """
    d, r = T.diagonal(0, -2, -1)[..., :-1], T[..., -1, :-1]
    changes = np.full(d.shape, inf)
    return np.divide(-0.5 * r * r, d, out=changes, where=np.abs(d) > DEPENDENT)


def pair_changes(T: Matrix, features: Features, first: Support, second: Support) -> Matrix:
    """Return how the minimum changes when one feature of each set enters or leaves; inf where
    rounding would decide."""
    if features.all_single:
        d, r = T.diagonal(), T[-1]
        found = joint_changes(
            T.take(first, 0).take(second, 1), d[first], r[first], d[second], r[second]
        )
    else:
        found = np.empty((len(first), len(second)))
        sizes = features.sizes[first], features.sizes[second]
        for one, two in product(np.unique(sizes[0]), np.unique(sizes[1])):
            a, b = np.flatnonzero(sizes[0] == one), np.flatnonzero(sizes[1] == two)
            starts = features.starts[first[a]][:, None], features.starts[second[b]][:, None]
            at = np.concatenate(
                [
                    np.repeat(starts[0] + np.arange(one), len(b), axis=0),
                    np.tile(starts[1] + np.arange(two), (len(a), 1)),
                ],
                axis=1,
            )
            pairs = gains(T[-1, at], T[at[:, :, None], at[:, None, :]], UNCLEAR)
            found[np.ix_(a, b)] = -pairs.reshape(len(a), -1)
    found[np.equal.outer(first, second)] = inf
    return found


def joint_changes(a: Matrix, d: Vector, r: Vector, e: Vector, t: Vector) -> Matrix:
    """Return (a_ij r_i t_j − ½ r_i² e_j − ½ d_i t_j²) / (d_i e_j − a_ij²).

    Parameters
    ----------
    a : matrix
        The part of the tableau across two sets of features. It is overwritten.
    d, r : vectors
        The diagonal and the last column of the tableau for the first set.
    e, t : vectors
        The same for the second set.

    Returns
    -------
    matrix
        The changes of the minimum; inf where rounding would decide.
    """
    change = np.zeros(a.shape)
    add_outer(change, -1.0, r, t)
    change *= a
    add_outer(change, 0.5, r * r, e)
    add_outer(change, 0.5, d, t * t)
    a *= a
    add_outer(a, -1.0, d, e)
    # Now a is the determinant times −1. It is positive for an exchange.
    unclear = (a > -UNCLEAR) & (a < DEPENDENT * np.maximum(np.abs(d), 1.0)[:, None])
    a[unclear] = 1.0
    change /= a
    change[unclear] = inf
    return change


def add_outer(A: Matrix, weight: float, u: Vector, v: Vector) -> None:
    """Add weight · uvᵀ to A in place, in a third of the time that NumPy takes to make uvᵀ."""
    if A.size and A.flags.c_contiguous:
        blas.dger(weight, v, u, a=A.T, overwrite_a=True)
    else:
        A += weight * np.multiply.outer(u, v)
