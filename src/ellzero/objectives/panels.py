"""Columns in single precision, laid out for products of a few vectors with all of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.design import Design
from ellzero.supports import Matrix, Vector
from ellzero.threads import in_parts

PANEL = 64
"""So many columns lie together: as narrow a matrix BLAS multiplies as it is, without packing."""

SHELF_BYTES = 1 << 24
"""Panels are on shelves: memory in pieces of no more than about this size is kept when it is freed
(see `memory`)."""

Single = NDArray[np.float32]


def run_of(m: int) -> int:
    """So many of the m addends of a product are summed up in single precision, then their sums."""
    return max(128, int(4 * np.sqrt(m)))


def rounding_of(m: int) -> float:
    """A bound on the error of products of vectors of unit norm.

    Addends may well be equal (columns of zeros and ones), so that all errors have one sign.
    """
    run = run_of(m)
    return (run - (-m // run) + 8) * float(np.finfo(np.float32).eps) / 2


class Panels:
    """The columns of X less their means, times a factor for every column and every row.

    To read them takes half as long as to read X, and they are read in the order in which they lie:
    a few products take a third of the time that they take with X.
    """

    def __init__(self, design: Design, mean: Vector, factor: Vector, root: Vector, threads: int):
        self.threads = threads
        m, self.n_columns = design.shape
        n_panels = -(-self.n_columns // PANEL)
        n_shelves = -(-4 * m * PANEL * n_panels // SHELF_BYTES)
        n_shelves = min(-(-n_shelves // threads) * threads, n_panels)  # equally many for each
        cuts = np.linspace(0, n_panels, n_shelves + 1).astype(int).tolist()
        self._shelves = list(map(slice, cuts[:-1], cuts[1:]))
        self._runs = [slice(a, b) for a, b in pairwise([*range(0, m, run_of(m)), m])]
        weighted = bool((root != 1).any())

        def piece(columns: slice, run: slice, room: Single) -> Single:
            width = min(columns.stop, self.n_columns) - columns.start
            own = slice(columns.start, columns.start + width)
            panels = room.reshape(-1, run.stop - run.start, PANEL)
            panels[-1] = 0.0  # it may have fewer columns
            whole = width // PANEL
            for rows, block in design.row_blocks(columns=own, within=run):
                Z = block - mean[own]
                Z *= factor[own]
                if weighted:
                    Z *= root[rows, None]
                here = slice(rows.start - run.start, rows.stop - run.start)
                left, right = np.split(Z, [whole * PANEL], axis=1)
                panels[:whole, here] = left.reshape(len(Z), -1, PANEL).transpose(1, 0, 2)
                panels[whole:, here, : right.shape[1]] = right
            return panels

        def shelf(part: slice) -> list[Single]:
            (own,) = self._shelves[part]
            columns = slice(own.start * PANEL, own.stop * PANEL)
            row = (own.stop - own.start) * PANEL
            room = np.empty(m * row, dtype=np.float32)  # at once, for large pages
            return [
                piece(columns, run, room[run.start * row : run.stop * row]) for run in self._runs
            ]

        self._pieces = in_parts(shelf, n_shelves, n_shelves, threads)

    def products(self, V: Matrix) -> Single:
        """VZ for the columns Z and some vectors, the rows of V."""
        parts = [V[:, run].astype(np.float32) for run in self._runs]
        out = np.empty((self._shelves[-1].stop, len(V), PANEL), dtype=np.float32)

        def fill(part: slice) -> None:
            (own,), (pieces,) = self._shelves[part], self._pieces[part]
            sums = np.matmul(parts[0], pieces[0], out=out[own])
            more = np.empty_like(sums)
            for v, panels in zip(parts[1:], pieces[1:], strict=True):
                sums += np.matmul(v, panels, out=more)

        in_parts(fill, len(self._shelves), len(self._shelves), self.threads)
        return out.transpose(1, 0, 2).reshape(len(V), -1)[:, : self.n_columns]
