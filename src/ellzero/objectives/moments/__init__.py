"""Moments of a quadratic: what they answer, held whole or made on demand."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import NDArray

from ellzero.supports import Matrix, Support, Vector


class Moments(Protocol):
    """C, c and v of f(z) = ½ zᵀCz − cᵀz + v, where C has a unit diagonal.

    All arguments name coordinates. A penalty is not inside; it stays beside the moments, so that
    one set of moments serves f under every ridge.
    """

    diagonal: Vector
    """Ones, and zeros for columns of zeros."""
    target: Vector
    """c."""
    constant: float
    """v."""

    def block(self, S: Support, T: Support) -> NDArray:
        """Return C[S, T]. Stacks of S and T (a support in each row) give a stack of blocks."""

    def products(self, S: Support, A: Matrix) -> Matrix:
        """Return A · C[S, :]."""

    def factor(self) -> Matrix | None:
        """Return A with AᵀA = C that has fewer rows than columns, if there is one."""
