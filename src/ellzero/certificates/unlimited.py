"""The bound that drops the limit on the number of features, for many nodes at once.

The minimum over all features that are not out is at most the minimum over any of them. It is read
off the tableau swept on these features, which also tells what it costs if one more goes out.
"""

from __future__ import annotations

import numpy as np

from ellzero.certificates.nodes import Nodes
from ellzero.certificates.tolerances import CERTAIN_COST, EPS, STALE_TABLEAU
from ellzero.core import Features
from ellzero.objectives.tableau import changes_of_each, pivot, swept
from ellzero.supports import Mask, Matrix, Support, Vector


class Unlimited:
    """The bound for nodes of one problem with moments [[C, c], [cᵀ, 2v]]."""

    def __init__(self, moments: Matrix, margin: float):
        self.moments, self.margin = moments, margin
        self.features = Features(len(moments) - 1)

    def tableau(self, S: Support) -> Matrix:
        T = swept(self.moments, self.features, S)
        assert T is not None, "the features of a tree are independent"
        return T

    def stack(self, nodes: Nodes) -> Matrix:
        """Return the tableaux of all features that are not out, made anew where they are stale."""
        T = np.stack(
            [
                self.tableau(np.flatnonzero(usable)) if known is None else known
                for known, usable in zip(nodes.tableaux, nodes.usable, strict=True)
            ]
        )
        lost = self._minima(nodes, T)[1]
        for i in np.flatnonzero(lost > STALE_TABLEAU * self.margin):
            T[i] = self.tableau(np.flatnonzero(nodes.usable[i]))
        return T

    def bounds(self, nodes: Nodes, T: Matrix) -> tuple[Vector, Matrix]:
        """Return bounds of the nodes, and of their children in which a feature goes out."""
        minima, _ = self._minima(nodes, T)
        return minima, minima[:, None] + exit_costs(T)

    def _minima(self, nodes: Nodes, T: Matrix) -> tuple[Vector, Vector]:
        """Return lower bounds of the minima, and what of them is lost to rounding.

        f is evaluated at the minimisers that the tableaux give. With g the gradient there, the
        minimum is ½ gᵀC⁻¹g below; evaluating f errs by a few units in the last place of its largest
        terms.
        """
        C, c = self.moments[:-1, :-1], self.moments[:-1, -1]
        x = np.where(nodes.usable, T[:, :-1, -1], 0.0)
        g = np.where(nodes.usable, c - x @ C, 0.0)
        lost = np.abs(np.einsum("bi,bij,bj->b", g, T[:, :-1, :-1], g))
        size = np.abs(x) @ np.abs(c) + np.einsum("bi,bi->b", np.abs(x) @ np.abs(C), np.abs(x))
        lost += 4 * EPS * size
        value = 0.5 * self.moments[-1, -1] - 0.5 * (x @ c + np.einsum("bi,bi->b", x, g))
        return value - lost, lost


def exit_costs(T: Matrix) -> Matrix:
    """Return at least what it costs that a feature goes out, for stacks of tableaux.

    The cost is 0 where it is unclear.
    """
    changes = changes_of_each(T)
    return np.where(np.isfinite(changes), CERTAIN_COST * changes, 0.0)


def without(T: Matrix, going: Mask) -> Matrix:
    """Return the stack of tableaux after the features that are marked have left, in place."""
    for node, j in np.argwhere(going):
        pivot(T[node], np.array([j]))
    return T
