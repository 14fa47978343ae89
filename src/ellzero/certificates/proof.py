"""What every proof can be asked while it works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ellzero.certificates.nodes import Incumbent
from ellzero.supports import Support


class Proof(Protocol):
    """Bounds on all models of several sizes, improved step by step."""

    def steps(self, deadline: float) -> Iterator[None]:
        """Work until all is proven. Pauses now and then, so that the caller can end it."""

    def lower_bound(self, s: int) -> float:
        """Return a number that no model with at most s features is below, up to the margin."""

    def best(self, s: int) -> Incumbent:
        """Return the best model of s features that is known."""

    def nodes(self, s: int) -> int:
        """Count the nodes of the tree that were looked at."""

    def finished(self, s: int) -> bool:
        """Say whether no further step can improve the bound, or none needs to."""

    def proven(self, s: int) -> tuple[Support, Support]:
        """Return the features of every model as good as the best known, and those of none."""
