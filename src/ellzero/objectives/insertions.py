"""What a support leaves of a quadratic; quickly where it differs little from the last support."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger

from ellzero.linalg import DEPENDENT, inverse_root, pseudo_inverse_root
from ellzero.objectives.gram import Gram
from ellzero.objectives.products import product
from ellzero.supports import Matrix, Support, Vector, at_once

WORN = 4096.0
"""What may have lost more units in the last place is made anew."""

WORTH = 8_000
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
    the squares of R off the diagonal. A feature that comes last has the row h / √h_j of L⁻¹, h
    being its row of A_SS⁻¹: if it is swapped for another, no other row changes.
    """

    def __init__(self, gram: Gram, penalty: Vector, c: Vector):
        self.gram, self.penalty, self.c = gram, penalty, c
        self._rows = HeldRows(gram) if gram.keeps and len(c) >= LONG else gram
        self._nothing = self._left = Left(0.0, c, gram.diagonal + penalty)
        self._S: list[int] = []  # leaves this; in the order of the inverse
        self._inverse: Matrix | None = None  # of A_SS, if it is regular and worth it
        self._lost = 0.0  # units in the last place, by updates

    def __call__(self, S: Support) -> Left:
        self._left = self._swapped(S.tolist()) or self._made(S)
        return self._left

    def _made(self, S: Support) -> Left:
        A = self.gram.block(S)
        A.flat[:: len(S) + 1] += self.penalty[S]
        B = inverse_root(A)
        self._S, self._lost = S.tolist(), 0.0
        self._inverse = None if B is None or S.size * len(self.c) < WORTH else B.T @ B
        if B is None:
            B = pseudo_inverse_root(A)
        return self._moved(self._nothing, S, B, np.ones(len(B)))

    def _swapped(self, features: list[int]) -> Left | None:
        """From the last support, if one feature is another now.

        None where that is no less work or loses digits, too.
        """
        H, old = self._inverse, self._S
        if H is None or len(features) != len(old):
            return None
        gone, new = set(old).difference(features), set(features).difference(old)
        if len(new) != 1:
            return None
        self._inverse = None  # the new one is made in its place
        p, i = old.index(gone.pop()), new.pop()
        T = np.array([*old, i])
        trace, h = H.trace(), H[p].copy()
        a = self.gram.block(T[-1:], T[:-1])[0]
        K = dger(-1 / h[p], h, h, a=H.T, overwrite_a=1)  # of those that stay; the other is zero
        K[p] = K[:, p] = 0.0
        w = K @ a
        norm = self.gram.diagonal[i] + self.penalty[i]
        left = norm - a @ w
        self._lost += trace + 1 / max(left, DEPENDENT)  # large where others leave little of one
        if left <= DEPENDENT * norm or self._lost > WORN:
            return None
        rows = np.zeros((2, len(T)))
        rows[0, :-1] = h / sqrt(h[p])
        rows[1, :-1], rows[1, -1] = w / -sqrt(left), 1 / sqrt(left)
        w[p] = -1.0
        self._inverse = dger(1 / left, w, w, a=K, overwrite_a=1).T
        self._S = [*old[:p], i, *old[p + 1 :]]
        return self._moved(self._left, T, rows, np.array([-1.0, 1.0]))

    def _moved(self, left: Left, S: Support, B: Matrix, sign: Vector) -> Left:
        """With the rows of BC_S,: taken off, or put back where the sign is −1."""
        value, r, d = left
        t = B @ self.c[S]
        signed = sign * t
        value -= 0.5 * float(signed @ t)
        for part in at_once(len(B), len(d)):
            rows = self._rows.combined(S, B[part])
            r = r - signed[part] @ rows
            d = d - sign[part] @ np.square(rows, out=rows)
        return Left(value, r, d)
