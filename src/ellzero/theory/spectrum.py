"""Extreme eigenvalues of all s × s blocks of a matrix, as intervals that certainly contain them.

They are exact, up to rounding, where all blocks can be looked at; otherwise between two bounds,
each of them proven. An eigenvalue of a block of an n × n matrix H has a margin of 16 n ε ‖H‖,
ε = 2.2e-16, for the rounding of the eigenvalue solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb, inf
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh

from ellzero.objectives.moments.held import HeldMoments
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Matrix, Support, Vector

MAX_BLOCKS_TO_ENUMERATE = 20_000
"""Blocks of one size, up to which the eigenvalues of all are computed: about a second."""

MAX_CUBES_TO_ENUMERATE = 5e7
"""Sum of the cubes of their sizes, up to which they are: eigenvalues take time in proportion."""

EXACT = 1e-8
"""Relative distance of the ends of an interval, below which it is called exact."""

BLOCKS_AT_ONCE = 4096
"""Blocks in one call of the eigenvalue solver, which limits its memory."""


@dataclass(frozen=True)
class Interval:
    """A number known to lie between `lower` and `upper`, both included."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(f"lower: {self.lower} is not at most upper, {self.upper}.")

    @property
    def exact(self) -> bool:
        """Whether only rounding is unknown: the ends agree to eight digits."""
        if np.isinf(self.upper):
            return self.lower == self.upper
        return self.upper - self.lower <= EXACT * abs(self.upper)

    def __contains__(self, number: float) -> bool:
        return bool(self.lower <= number <= self.upper)

    def __truediv__(self, other: Interval) -> Interval:
        """Return the quotient of two numbers that are not negative. 0/0 can be anything."""
        least = self.lower / other.upper if other.upper else (inf if self.lower else 0.0)
        return Interval(least, self.upper / other.lower if other.lower else inf)

    def __str__(self) -> str:
        return f"{self.upper:.6g}" if self.exact else f"{self.lower:.6g} to {self.upper:.6g}"


class Spectrum(Protocol):
    """ρₛ⁺ and ρₛ⁻ of one quadratic form."""

    def rho_plus(self, s: int) -> Interval: ...

    def rho_minus(self, s: int) -> Interval: ...


def spectrum_of(f: Quadratic) -> Spectrum:
    """Return the spectrum of the Hessian of f in the features that can be chosen.

    These own one coordinate each.
    """
    free = f.features.choosable
    scale = f.scale[free]
    if not isinstance(f.moments, HeldMoments):
        return DiagonalOnly(f.moments.diagonal[free] * scale**2 + f.ridge[free])
    H = f.moments.matrix[np.ix_(free, free)] * scale * scale[:, None]
    return DenseSpectrum(H + np.diag(f.ridge[free]))


class DiagonalOnly:
    """A positive semidefinite form of which only the diagonal is known."""

    def __init__(self, diagonal: Vector):
        self.diagonal = np.sort(diagonal)

    def rho_plus(self, s: int) -> Interval:
        """Return the largest entry and the largest trace of a block."""
        return self._interval(self.diagonal[-1], self.diagonal[-s:].sum())

    def rho_minus(self, s: int) -> Interval:
        return self._interval(0.0, self.diagonal[0])

    def _interval(self, lower: float, upper: float) -> Interval:
        margin = 16 * len(self.diagonal) * float(np.finfo(float).eps)
        return Interval(float(lower) * (1 - margin), float(upper) * (1 + margin))


class DenseSpectrum:
    """A positive semidefinite form ½ xᵀHx with a known matrix."""

    def __init__(self, H: Matrix):
        self.H, self.n = H, len(H)
        self._known: dict[int, tuple[float, float]] = {}
        self._bounds: dict[int, tuple[Interval, Interval]] = {}

    def rho_plus(self, s: int) -> Interval:
        return self._at(s)[1]

    def rho_minus(self, s: int) -> Interval:
        return self._at(s)[0]

    def _at(self, s: int) -> tuple[Interval, Interval]:
        """Return ρₛ⁻ and ρₛ⁺."""
        if s not in self._bounds:
            if self.can_enumerate(s):
                low, high = self.extremes(s)
                self._bounds[s] = self._interval(low, low), self._interval(high, high)
            else:
                self._bounds[s] = self._bounded(s)
        return self._bounds[s]

    def _interval(self, lower: float, upper: float) -> Interval:
        """Add the margin for rounding. H is positive semidefinite, so nothing is below zero."""
        return Interval(max(lower - self.margin, 0.0), max(upper, 0.0) + self.margin)

    @cached_property
    def margin(self) -> float:
        return 16 * self.n * float(np.finfo(float).eps) * float(self.whole[0][-1])

    @cached_property
    def whole(self) -> tuple[Vector, Matrix]:
        """Eigenvalues of H, ascending, and their vectors."""
        return eigh(self.H)

    def can_enumerate(self, k: int) -> bool:
        if k <= 2 or k == self.n:
            return True
        blocks = comb(self.n, k)
        return blocks <= MAX_BLOCKS_TO_ENUMERATE and blocks * k**3 <= MAX_CUBES_TO_ENUMERATE

    def extremes(self, k: int) -> tuple[float, float]:
        """Return the least and the largest eigenvalue of all k × k blocks, by enumeration."""
        if k not in self._known:
            ends: list[Any]
            if k == self.n:
                ends = [self.whole[0][[0, -1]]]
            elif k == 2:
                ends = [self._pairs()]
            else:
                ends = [np.linalg.eigvalsh(_blocks(self.H, S))[:, [0, -1]] for S in self._sets(k)]
            found = np.concatenate([part.ravel() for part in ends])
            self._known[k] = float(found.min()), float(found.max())
        return self._known[k]

    def _pairs(self) -> Vector:
        """Return the extreme eigenvalues of all 2 × 2 blocks, from the closed form."""
        d = self.H.diagonal()
        half_sum = (d[:, None] + d) / 2
        apart = np.hypot((d[:, None] - d) / 2, self.H)
        np.fill_diagonal(apart, 0.0)
        return np.array([(half_sum - apart).min(), (half_sum + apart).max()])

    def _sets(self, k: int) -> Iterator[Support]:
        subsets = combinations(range(self.n), k)
        while chunk := list(islice(subsets, BLOCKS_AT_ONCE)):
            yield np.array(chunk, dtype=np.intp)

    def _bounded(self, s: int) -> tuple[Interval, Interval]:
        """Take the best of several bounds on either side of each constant."""
        fewer = max(k for k in range(1, s) if self.can_enumerate(k))
        more = min(k for k in range(s + 1, self.n + 1) if self.can_enumerate(k))
        low_fewer, high_fewer = self.extremes(fewer)
        low_more, high_more = self.extremes(more)
        some = [np.linalg.eigvalsh(self.H[np.ix_(S, S)])[[0, -1]] for S in self._promising(s)]
        low_disk, high_disk = self._disks(s)
        low_mean, high_mean = self._averages(s, fewer)
        low = max(low_more, low_disk, low_mean), min(low_fewer, *(ends[0] for ends in some))
        high = max(high_fewer, *(ends[1] for ends in some)), min(high_more, high_disk, high_mean)
        return self._interval(*map(float, low)), self._interval(*map(float, high))

    def _disks(self, s: int) -> tuple[float, float]:
        """Return Gershgorin's bounds: diagonal entries, plus or minus s − 1 others of their row."""
        off = np.abs(self.H)
        np.fill_diagonal(off, 0.0)
        reach = -np.partition(-off, s - 2, axis=1)[:, : s - 1].sum(axis=1)
        d = self.H.diagonal()
        return (d - reach).min(), (d + reach).max()

    def _averages(self, s: int, k: int) -> tuple[float, float]:
        """Return bounds at level s that follow from level k, for 1 < k < s.

        xᵀHx of an s-sparse x, averaged over all its k-sparse parts, keeps the share k/s of the
        diagonal terms and k(k−1)/s(s−1) of the others. With t = (s − 1)/(k − 1) therefore
        ρₛ⁺ ≤ t ρₖ⁺ − (t − 1) min Hⱼⱼ  and  ρₛ⁻ ≥ t ρₖ⁻ − (t − 1) max Hⱼⱼ.
        """
        low, high = self.extremes(k)
        low, high = low - self.margin, high + self.margin  # t makes more of rounding
        d, t = self.H.diagonal(), (s - 1) / (k - 1)
        return t * low - (t - 1) * d.max(), t * high - (t - 1) * d.min()

    def _promising(self, s: int) -> Iterator[Support]:
        """Find supports that are likely to have extreme eigenvalues. Any support gives a bound."""
        values, vectors = self.whole
        for M, starts in (
            (self.H, vectors[:, ::-1]),
            (values[-1] * np.eye(self.n) - self.H, vectors),
        ):
            for v in starts.T[:3]:
                yield from _truncated_power(M, v, s)


def _blocks(H: Matrix, S: Support) -> Matrix:
    return H[S[:, :, None], S[:, None, :]]


def _truncated_power(M: Matrix, v: Vector, s: int, steps: int = 5) -> Iterator[Support]:
    """Find supports of ever larger xᵀMx / xᵀx: the s largest entries of Mx, again and again."""
    before: Support | None = None
    for _ in range(steps):
        S = np.sort(np.argpartition(-np.abs(v), s - 1)[:s])
        if before is not None and (S == before).all():
            return
        yield S
        leading = eigh(M[np.ix_(S, S)])[1][:, -1]  # LAPACK's search for one may find none
        v, before = M[:, S] @ leading, S
