"""Moments of wide data: a row of C is made when it is first asked for, and kept."""

from __future__ import annotations

from threading import RLock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ellzero.supports import Matrix, Support, Vector

ROOM = 256
"""Rows that there is room for at first. Memory that is not written to is not taken."""


class Columns(Protocol):
    """Columns Z of unit norm, C = ZᵀMZ, where M takes out intercept and forced features."""

    diagonal: Vector
    keeps_rows: bool
    """False where rows are longer than the data, so that keeping them would outgrow the data."""
    blocks_are_cheap: bool
    """False where a block takes a pass over the data, as its rows do."""

    def rows(self, S: Support) -> Matrix:
        """Return C[S, :], from one pass over the data."""

    def products(self, S: Support, A: Matrix) -> Matrix:
        """Return A · C[S, :], from one pass over the data."""

    def block(self, S: Support, T: Support) -> Matrix:
        """Return C[S, T], from the columns S and T alone."""

    def factor(self) -> Matrix | None:
        """Return A with AᵀA = C that has fewer rows than columns, if there is one."""


class OnDemandMoments:
    """Moments made of columns. Threads may share them; what is kept is locked."""

    def __init__(self, columns: Columns, target: Vector, constant: float):
        self.columns, self.target, self.constant = columns, target, constant
        self.diagonal = columns.diagonal
        self._forget()

    def _forget(self) -> None:
        self._lock = RLock()
        self._slot = np.full(len(self.diagonal), -1)
        self._rows = np.empty((0, len(self.diagonal)))
        self._n_rows = 0

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, and the rows, which are soon made anew."""
        kept = ("_lock", "_slot", "_rows", "_n_rows")
        return {name: value for name, value in self.__dict__.items() if name not in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._forget()

    def block(self, S: Support, T: Support) -> NDArray[np.float64]:
        if not self.columns.keeps_rows:
            return self._blocks_without_rows(S, T)
        if S.ndim > 1 or not self.columns.blocks_are_cheap or (self._slot[S] >= 0).all():
            with self._lock:
                slots = self._held(S)
                return self._rows[slots[..., :, None], T[..., None, :]]
        return self._from_columns(S, T)

    def _from_columns(self, S: Support, T: Support) -> Matrix:
        block = self.columns.block(S, T)
        same = np.equal.outer(S, T)
        block[same] = np.broadcast_to(self.diagonal[T], same.shape)[same]
        return block

    def _blocks_without_rows(self, S: Support, T: Support) -> NDArray[np.float64]:
        """Make one block of all coordinates in the stacks, and cut the blocks out of it."""
        if S.ndim == 1:
            return self._from_columns(S, T)
        (s, s_place), (t, t_place) = (np.unique(A, return_inverse=True) for A in (S, T))
        whole = self._from_columns(s, t)
        return whole[s_place.reshape(S.shape)[..., :, None], t_place.reshape(T.shape)[..., None, :]]

    def products(self, S: Support, A: Matrix) -> Matrix:
        if not self.columns.keeps_rows:
            return self.columns.products(S, A)
        with self._lock:
            slots = self._held(S)
            return A @ self._rows[slots]

    def factor(self) -> Matrix | None:
        return self.columns.factor()

    def _held(self, S: Support) -> Support:
        """Return where the rows of S are. Rows that are missing are made, in one pass."""
        new = np.unique(S[self._slot[S] < 0])
        if len(new):
            begin, end = self._n_rows, self._n_rows + len(new)
            if end > len(self._rows):
                grown = np.empty((max(2 * end, ROOM), len(self.diagonal)))
                grown[:begin] = self._rows[:begin]
                self._rows = grown
            self._rows[begin:end] = self.columns.rows(new)
            self._rows[np.arange(begin, end), new] = self.diagonal[new]
            self._slot[new], self._n_rows = np.arange(begin, end), end
        return self._slot[S]
