"""What a support leaves of a quadratic; quickly where it differs little from the last support."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ellzero.core import Matrix, Support, Vector, at_once
from ellzero.linalg import inverse_root, pseudo_inverse_root
from ellzero.objectives.gram import Gram, product

WORN = 4096.0
"""What may have lost more units in the last place is made anew."""

WORTH = 16_000
"""An update has to spare so many numbers."""

LONG = 5_000
"""Rows of so many features are held, as it takes time to gather them."""


class Left(NamedTuple):
    """What a support leaves on the unit scale: inserting i lowers the value by r_i² / 2d_i."""

    value: float
    r: Vector  # residual, c − C_:,S x
    d: Vector  # of each column's squared norm


class HeldRows:
    """The rows of a Gram matrix that were last combined: gathered once, replaced one by one."""

    def __init__(self, gram: Gram):
        self.gram = gram
        self._slot: dict[int, int] = {}
        self._rows = np.empty((0, len(gram.diagonal)))

    def combined(self, S: Support, A: Matrix) -> Matrix:
        wanted = S.tolist()
        new = [j for j in wanted if j not in self._slot]
        if new:
            self._take(new, wanted)
        spread = np.zeros((len(A), len(self._rows)))
        spread[:, [self._slot[j] for j in wanted]] = A
        return product(spread, self._rows)

    def _take(self, new: list[int], wanted: list[int]) -> None:
        spare = list(self._slot.keys() - wanted)[: len(new)]
        if len(spare) < len(new):
            self._slot = {j: k for k, j in enumerate(wanted)}
            self._rows = self.gram.rows(np.array(wanted))
            return
        slots = [self._slot.pop(j) for j in spare]
        self._rows[slots] = self.gram.rows(np.array(new))
        self._slot.update(zip(new, slots, strict=True))


class Insertions:
    """What supports leave of ½ xᵀAx − cᵀx with A = C + diag(penalty), one after the other.

    With L the Cholesky factor of A_SS, R = L⁻¹C_S,: and t = L⁻¹c_S, a support S takes Rᵀt off c and
    the squares of R off the diagonal. Every feature has a row of R, which depends on the features
    before it: if what two supports share comes first, they differ by the rows of what leaves and
    enters.
    """

    def __init__(self, gram: Gram, penalty: Vector, c: Vector):
        self.gram, self.penalty, self.c = gram, penalty, c
        self._rows = HeldRows(gram) if gram.keeps and len(c) >= LONG else gram
        self._nothing = self._left = Left(0.0, c, gram.diagonal + penalty)
        self._features: list[int] = []  # that leave this
        self._lost = 0.0  # units in the last place, by updates

    def __call__(self, S: Support) -> Left:
        features = S.tolist()
        self._left = self._updated(features) or self._made(S)
        self._features = features
        return self._left

    def _made(self, S: Support) -> Left:
        A = self._block(S)
        B = inverse_root(A)
        if B is None:
            B = pseudo_inverse_root(A)
        self._lost = 0.0
        return self._moved(self._nothing, S, B, np.ones(len(B)))

    def _updated(self, features: list[int]) -> Left | None:
        """None where that is no less work or loses digits."""
        if len(features) * len(self.c) < WORTH:
            return None
        before, now = set(self._features), set(features)
        shared, gone, new = list(before & now), list(before - now), list(now - before)
        k, g = len(shared), len(gone)
        if (k - g) * len(self.c) < WORTH:
            return None
        T = np.array(gone + shared + new)
        A = self._block(T)
        B, D = inverse_root(A[g:, g:]), inverse_root(A[: g + k, : g + k][::-1, ::-1])
        if B is None or D is None:
            return None
        self._lost += float(np.vdot(D, D))  # tr A⁻¹: large where the others leave little of one
        if self._lost > WORN:
            return None
        rows = np.zeros((g + len(new), len(T)))
        rows[:g, : g + k] = D[k:, ::-1]
        rows[g:, g:] = B[k:]
        sign = np.ones(len(rows))
        sign[:g] = -1.0
        return self._moved(self._left, T, rows, sign)

    def _moved(self, left: Left, S: Support, B: Matrix, sign: Vector) -> Left:
        """With the rows of BC_S,: taken off, or put back where the sign is −1."""
        value, r, d = left
        t = B @ self.c[S]
        value -= 0.5 * float(sign @ (t * t))
        for part in at_once(len(B), len(d)):
            rows = self._rows.combined(S, B[part])
            r = r - (sign[part] * t[part]) @ rows
            d = d - sign[part] @ np.square(rows, out=rows)
        return Left(value, r, d)

    def _block(self, S: Support) -> Matrix:
        A = self.gram.block(S)
        A.flat[:: len(S) + 1] += self.penalty[S]
        return A
