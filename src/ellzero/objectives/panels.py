"""Columns in single precision, laid out for products of a few vectors with all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.design import Design
from ellzero.objectives.products import SMALL_PRODUCT
from ellzero.supports import Matrix, Vector
from ellzero.threads import in_parts

PANEL = 64
"""So many columns lie together: as narrow a matrix BLAS multiplies as it is, without packing."""

TOGETHER = 4
"""Panels, of which several products are made at a time while they are in the cache."""

SHELF_BYTES = 1 << 24
"""Panels are on shelves: memory in pieces of this size is kept when it is freed (see `memory`)."""

Single = NDArray[np.float32]


class Panels:
    """The columns of X less their means, times a factor each.

    To read them takes half as long as to read X, and they are read in the order in which they lie:
    a few products take a third of the time that they take with X.
    """

    def __init__(self, design: Design, mean: Vector, factor: Vector, threads: int):
        self.threads = threads
        m, self.n_columns = design.shape
        n_panels = -(-self.n_columns // PANEL)
        n_shelves = -(-4 * m * PANEL * n_panels // SHELF_BYTES)
        n_shelves = min(-(-n_shelves // threads) * threads, n_panels)  # equally many for each
        cuts = np.linspace(0, n_panels, n_shelves + 1).astype(int).tolist()
        self._shelves = list(map(slice, cuts[:-1], cuts[1:]))
        self._panels = [
            np.empty((own.stop - own.start, m, PANEL), dtype=np.float32) for own in self._shelves
        ]

        def fill(part: slice) -> None:
            for own, panels in zip(self._shelves[part], self._panels[part], strict=True):
                columns = slice(own.start * PANEL, min(own.stop * PANEL, self.n_columns))
                width = columns.stop - columns.start
                whole, rest = divmod(width, PANEL)
                for rows, block in design.row_blocks(columns=columns):
                    Z = block - mean[columns]
                    Z *= factor[columns]
                    left, right = Z[:, : width - rest], Z[:, width - rest :]
                    panels[:whole, rows] = left.reshape(len(Z), -1, PANEL).transpose(1, 0, 2)
                    panels[whole:, rows, :rest] = right
                panels[whole:, :, rest:] = 0.0

        in_parts(fill, n_shelves, n_shelves, threads)

    def products(self, V: Matrix) -> Single:
        """VZ for the columns Z and some vectors, the rows of V."""
        V = V.astype(np.float32)
        several = max(SMALL_PRODUCT // (V.shape[1] * PANEL), 1)
        out = np.empty((self._shelves[-1].stop, len(V), PANEL), dtype=np.float32)

        def fill(part: slice) -> None:
            for own, panels in zip(self._shelves[part], self._panels[part], strict=True):
                made = out[own]
                together = TOGETHER if len(V) > several else len(panels)
                for begin in range(0, len(panels), together):
                    some = slice(begin, begin + together)
                    for first in range(0, len(V), several):
                        few = slice(first, first + several)
                        np.matmul(V[few], panels[some], out=made[some, few])

        in_parts(fill, len(self._shelves), len(self._shelves), self.threads)
        return out.transpose(1, 0, 2).reshape(len(V), -1)[:, : self.n_columns]
