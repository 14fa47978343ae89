"""Columns whose rows are in partitions, for moments that are made on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ellzero.data.design import Design
from ellzero.distributed.passes import Parts
from ellzero.objectives.moments.columns import ProjectedColumns
from ellzero.supports import Matrix, Support, Vector

View = Callable[[Any], "tuple[Design, Vector] | None"]
"""Returns the columns of a part and the weights of its rows; None if no row has weight."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, means and centred squares of columns. They add up."""

    weight: float
    mean: Vector
    squares: Vector

    def __add__(self, other: Spread) -> Spread:
        weight = self.weight + other.weight
        share, shift = other.weight / weight, other.mean - self.mean
        return Spread(
            weight,
            self.mean + share * shift,
            self.squares + other.squares + self.weight * share * shift**2,
        )


class SpreadColumns(ProjectedColumns):
    """Several rows of C take one pass, which brings back as many rows of n numbers."""

    keeps_rows = True
    blocks_are_cheap = False

    def __init__(self, parts: Parts, view: View, centre: bool, F: Support, ridge: Vector):
        self.parts, self.view = parts, view
        found = parts.ask(_spread, view)
        self.mean, self.norms2 = found.mean, found.squares
        if not centre:
            self.norms2 = self.norms2 + found.weight * found.mean**2
            self.mean = np.zeros_like(found.mean)
        cross = parts.ask(_products, view, F, self.mean).T
        self.project(found.weight, cross[F], cross, F, ridge)

    def rows(self, S: Support) -> Matrix:
        return self.projected(self.parts.ask(_products, self.view, S, self.mean), S, slice(None))

    def products(self, S: Support, A: Matrix) -> Matrix:
        return A @ self.rows(S)

    def block(self, S: Support, T: Support) -> Matrix:
        return self.rows(S)[:, T]

    def factor(self) -> None:
        return None


def _spread(part: Any, view: View) -> Spread | None:
    seen = view(part)
    if seen is None:
        return None
    design, weight = seen
    return Spread(float(weight.sum()), *design.means_and_norms(weight, centre=True))


def _products(part: Any, view: View, S: Support, mean: Vector) -> Matrix | None:
    """Return the products of the columns S with all columns, centred and weighted."""
    seen = view(part)
    if seen is None:
        return None
    design, weight = seen
    return centred_products(design, mean, weight[:, None] * (design.columns(S) - mean[S])).T


def centred_products(design: Design, mean: Vector, V: Matrix) -> Matrix:
    """Return (X − mean)ᵀV."""
    return design.transposed_times(V) - np.multiply.outer(mean, V.sum(axis=0))
