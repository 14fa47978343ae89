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

Single = NDArray[np.float32]


class Panels:
    """The columns of X less their means, times a factor each.

    To read them takes half as long as to read X, and they are read in the order in which they lie:
    a few products take a quarter of the time that they take with X.
    """

    def __init__(self, design: Design, mean: Vector, factor: Vector, threads: int):
        self.threads = threads
        m, self.n_columns = design.shape
        self._panels = np.empty((-(-self.n_columns // PANEL), m, PANEL), dtype=np.float32)
        self._panels[-1] = 0.0  # the last may have fewer columns

        def fill(part: slice) -> None:
            own = slice(part.start * PANEL, min(part.stop * PANEL, self.n_columns))
            whole = own.stop // PANEL
            for rows, block in design.row_blocks(columns=own):
                columns = block - mean[own]
                columns *= factor[own]
                split = (whole - part.start) * PANEL
                shape = len(block), -1, PANEL
                self._panels[part.start : whole, rows] = (
                    columns[:, :split].reshape(shape).transpose(1, 0, 2)
                )
                if whole < part.stop:
                    self._panels[whole, rows, : columns.shape[1] - split] = columns[:, split:]

        in_parts(fill, len(self._panels), min(threads, len(self._panels)), threads)

    def products(self, V: Matrix) -> Single:
        """VZ for the columns Z and some vectors, the rows of V."""
        V = V.astype(np.float32)
        panels, several = self._panels, max(SMALL_PRODUCT // self._panels[0].size, 1)
        out = np.empty((len(panels), len(V), PANEL), dtype=np.float32)

        def fill(part: slice) -> None:
            together = TOGETHER if len(V) > several else part.stop - part.start
            for begin in range(part.start, part.stop, together):
                some = slice(begin, min(begin + together, part.stop))
                for first in range(0, len(V), several):
                    few = slice(first, first + several)
                    np.matmul(V[few], panels[some], out=out[some, few])

        in_parts(fill, len(panels), min(self.threads, len(panels)), self.threads)
        return out.transpose(1, 0, 2).reshape(len(V), -1)[:, : self.n_columns]
