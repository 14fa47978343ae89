"""Rows of a Gram matrix that no machine could hold, each asked of the partitions once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.distributed.passes import Parts
from ellzero.objectives.design import Design
from ellzero.objectives.gram import blocks_of
from ellzero.objectives.lazy_gram import LazyGram
from ellzero.supports import Matrix, Support, Vector, union

View = Callable[[Any], "tuple[Design, Vector] | None"]
"""Of a part, its columns and the weights of its rows; None if no row has weight."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Weight, means and centred squares of columns; they add up."""

    weight: float
    mean: Vector
    squares: Vector

    def __add__(self, other: Columns) -> Columns:
        weight = self.weight + other.weight
        share, shift = other.weight / weight, other.mean - self.mean
        return Columns(
            weight,
            self.mean + share * shift,
            self.squares + other.squares + self.weight * share * shift**2,
        )


class SpreadGram(LazyGram):
    """Several rows take one pass; what comes back are as many rows of n numbers."""

    def __init__(self, parts: Parts, view: View, centre: bool, F: Support, ridge: Vector):
        self.parts, self.view = parts, view
        columns = parts.ask(_columns, view)
        self.total = columns.weight
        self.mean, self.norms2 = columns.mean, columns.squares
        if not centre:
            self.norms2 = self.norms2 + columns.weight * columns.mean**2
            self.mean = np.zeros_like(columns.mean)
        cross = parts.ask(_products, view, F, self.mean).T
        self._project(columns.weight, cross[F], cross, F, ridge)

    def factor(self) -> None:
        return None

    def block(self, S: Support, T: Support | None = None) -> Matrix:
        """From rows: a pass that brings a few numbers takes as long as one that brings rows."""
        return self._held(S).block(S, S if T is None else T)

    def blocks(self, S: Support) -> NDArray[np.float64]:
        """From rows, too; those of others tell of a feature that has none."""
        missing = ~self._exact.has(S)
        first = np.take_along_axis(S, missing.argmax(axis=1)[:, None], axis=1)
        several = (missing & (first != S)).any(axis=1)
        kept = self._held(S[several].ravel())
        features, places = union(S, len(self.mean))
        held = kept.has(features)
        among = np.diag(self.diagonal[features])
        among[held] = kept.block(features[held], features)
        among[:, held] = among[held].T
        return blocks_of(among, places)

    def _new_rows(self, S: Support) -> Matrix:
        return self._projected(self.parts.ask(_products, self.view, S, self.mean), S)


def _columns(part: Any, view: View) -> Columns | None:
    seen = view(part)
    if seen is None:
        return None
    design, weight = seen
    return Columns(float(weight.sum()), *design.means_and_norms(weight, centre=True))


def _products(part: Any, view: View, S: Support, mean: Vector) -> Matrix | None:
    """Products of the columns S with all, centred and weighted."""
    seen = view(part)
    if seen is None:
        return None
    design, weight = seen
    return centred_products(design, mean, weight[:, None] * (design.columns(S) - mean[S])).T


def centred_products(design: Design, mean: Vector, V: Matrix) -> Matrix:
    """(X − mean)ᵀ V."""
    return design.transposed_times(V) - np.multiply.outer(mean, V.sum(axis=0))
