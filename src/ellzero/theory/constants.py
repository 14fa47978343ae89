"""The constants that the theorems speak of, as intervals that certainly contain them.

Section 2 of Axiotis and Sviridenko, "Sparse Convex Optimization via Adaptively Regularized Hard
Thresholding". What can be enumerated is exact up to rounding; everything else is a lower and an
upper bound, each of them proven. An eigenvalue of a block of an n × n matrix H has a margin of
16 n ε ‖H‖, ε = 2.2e-16, for the rounding of the eigenvalue solver. The function meant is f as it is
held: what rounding did to a Gram matrix when it was summed from data is not part of the margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb, inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.special import logit

from ellzero.checks import check_count, check_objective
from ellzero.core import Matrix, Objective, Support, Vector, magnitudes
from ellzero.objectives.glm import Logistic
from ellzero.objectives.gram import DenseGram
from ellzero.objectives.quadratic import Quadratic

ENUMERABLE = 20_000
"""Up to this many blocks of one size are all looked at,"""

ENUMERABLE_WORK = 5e7
"""if the cubes of their sizes add up to no more than this."""

AGREE = 1e-8
"""An interval is called exact when its ends agree to this relative accuracy."""

CHUNK = 4096
"""Blocks whose eigenvalues are computed together."""


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
        """Whether nothing but rounding is unknown: the ends agree to eight digits."""
        if np.isinf(self.upper):
            return self.lower == self.upper
        return self.upper - self.lower <= AGREE * abs(self.upper)

    def __contains__(self, number: float) -> bool:
        return bool(self.lower <= number <= self.upper)

    def __truediv__(self, other: Interval) -> Interval:
        """The quotient of two numbers that are not negative; 0/0 can be anything."""
        least = self.lower / other.upper if other.upper else (inf if self.lower else 0.0)
        return Interval(least, self.upper / other.lower if other.lower else inf)

    def __str__(self) -> str:
        return f"{self.upper:.6g}" if self.exact else f"{self.lower:.6g} to {self.upper:.6g}"


@dataclass(frozen=True, eq=False)
class Domain:
    """The points x with ‖x‖₂ ≤ `radius` and |xⱼ| ≤ `box` (one number, or one per feature).

    Strong convexity of the logistic loss fades with the size of its predictions, so its constants
    are those of a bounded set of points; the curvature of a quadratic is the same everywhere.
    """

    radius: float = inf
    box: ArrayLike = inf

    def __post_init__(self) -> None:
        smallest = np.min(np.asarray(self.box, dtype=float), initial=inf)
        if not (self.radius > 0 and smallest > 0):
            raise ValueError("radius, box: expected positive numbers.")

    def farthest(self, v: Vector) -> Vector:
        """The last point of the domain in the direction of v, or 0 where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(v != 0, np.asarray(self.box) / np.abs(v), inf)
            step = min(self.radius / np.linalg.norm(v), steps.min(initial=inf))
        return v * (step if np.isfinite(step) else 0.0)


EVERYWHERE = Domain()


# The definitions


def rho_plus(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """ρₛ⁺, restricted smoothness (Definition 2.3).

    The least ρ with f(y) ≤ f(x) + ∇f(x)ᵀ(y − x) + ρ/2 ‖y − x‖² wherever x and y differ in at most s
    coordinates; for a quadratic the largest eigenvalue of any s × s block of its Hessian.

    >>> import ellzero as lz
    >>> rho_plus(lz.Quadratic([[2.0, 1.0], [1.0, 2.0]], [1.0, 0.0]), 2)
    Interval(lower=2.99999..., upper=3.00000...)
    """
    return Curvature(f, domain).rho_plus(s)


def rho_minus(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """ρₛ⁻, restricted strong convexity (Definition 2.3).

    The largest ρ ≥ 0 with f(y) ≥ f(x) + ∇f(x)ᵀ(y − x) + ρ/2 ‖y − x‖² wherever x and y differ in at
    most s coordinates; for a quadratic the least eigenvalue of any s × s block of its Hessian.
    """
    return Curvature(f, domain).rho_minus(s)


def kappa(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """κₛ = ρₛ⁺ / ρₛ⁻, the restricted condition number (Definition 2.3)."""
    return Curvature(f, domain).kappa(s)


def kappa_tilde(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """κ̃ₛ = ρ₂⁺ / ρₛ⁻ (Definition 2.3), at most κₛ for s ≥ 2; it is what the theorems ask for."""
    return Curvature(f, domain).kappa_tilde(s)


def rip(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """δₛ = (κₛ − 1) / (κₛ + 1), the restricted isometry constant (Definition 2.5)."""
    return Curvature(f, domain).rip(s)


def zeta(f: Objective, x: ArrayLike, s: int) -> Interval:
    """ζₛ, the restricted gradient optimal constant of f at x (Definition 2.6).

    The Euclidean norm of the s largest entries of ∇f(x). The margin is 1e-12 of the sizes of ∇f(0)
    and of ∇f(x) − ∇f(0), which cancel in a quadratic's gradient.
    """
    check_objective(f)
    check_count("s", s, 1)
    g, g0 = (f.gradient(point) for point in (np.asarray(x, dtype=float), np.zeros_like(x, float)))
    margin = 1e-12 * (_largest(g0, s) + _largest(g - g0, s))
    norm = _largest(g, s)
    return Interval(max(norm - margin, 0.0), norm + margin)


def _largest(g: Vector, s: int) -> float:
    """The norm of the s largest entries."""
    return float(np.linalg.norm(np.sort(magnitudes(g))[::-1][:s]))


class Spectrum(Protocol):
    """ρₛ⁺ and ρₛ⁻ of one quadratic form."""

    def rho_plus(self, s: int) -> Interval: ...

    def rho_minus(self, s: int) -> Interval: ...


class Curvature:
    """All constants of f at all levels s; the work they have in common is done once.

    Known of the Hessian H(x) at every x of the domain is `least` ≤ H(x) ≤ `most`, and some H(x) are
    `seen`. For a quadratic the three are the same.
    """

    def __init__(self, f: Objective, domain: Domain = EVERYWHERE):
        check_objective(f)
        self.f, self.n = f, f.n_choosable
        if isinstance(f, Quadratic):
            self.least = self.most = spectrum_of(f)
            self.seen: list[Spectrum] = []
        elif isinstance(f, Logistic):
            self.least, self.most, self.seen = _logistic_spectra(f, domain)
        else:
            self.least, self.most, self.seen = RidgeOnly(f), SmoothnessOnly(f), []

    def rho_plus(self, s: int) -> Interval:
        s = self._level(s)
        lower = max(spectrum.rho_plus(s).lower for spectrum in [self.least, *self.seen])
        return Interval(lower, max(self.most.rho_plus(s).upper, lower))

    def rho_minus(self, s: int) -> Interval:
        s = self._level(s)
        upper = min(spectrum.rho_minus(s).upper for spectrum in [self.most, *self.seen])
        return Interval(min(self.least.rho_minus(s).lower, upper), upper)

    def kappa(self, s: int) -> Interval:
        return _at_least_one(self.rho_plus(s) / self.rho_minus(s))

    def kappa_tilde(self, s: int) -> Interval:
        ratio = self.rho_plus(2) / self.rho_minus(s)
        return _at_least_one(ratio)

    def rip(self, s: int) -> Interval:
        kappa = self.kappa(s)
        return Interval(*(1 - 2 / (k + 1) for k in (kappa.lower, kappa.upper)))

    def _level(self, s: int) -> int:
        """No more than n coordinates can differ."""
        check_count("s", s, 1)
        return min(s, self.n)


def _at_least_one(ratio: Interval) -> Interval:
    return Interval(max(ratio.lower, 1.0), max(ratio.upper, 1.0))


# Quadratic forms


def spectrum_of(f: Quadratic) -> Spectrum:
    """Of the Hessian of f in the features that can be chosen."""
    free = f.choosable
    scale = f.scale[free]
    if not isinstance(f.gram, DenseGram):
        return DiagonalOnly(f.gram.diagonal[free] * scale**2 + f.ridge[free])
    H = f.gram.matrix[np.ix_(free, free)] * scale * scale[:, None]
    return DenseSpectrum(H + np.diag(f.ridge[free]))


class DiagonalOnly:
    """A positive semidefinite form of which only the diagonal is at hand."""

    def __init__(self, diagonal: Vector):
        self.diagonal = np.sort(diagonal)

    def rho_plus(self, s: int) -> Interval:
        """Between the largest entry and the largest trace of a block."""
        return self._interval(self.diagonal[-1], self.diagonal[-s:].sum())

    def rho_minus(self, s: int) -> Interval:
        return self._interval(0.0, self.diagonal[0])

    def _interval(self, lower: float, upper: float) -> Interval:
        margin = 16 * len(self.diagonal) * float(np.finfo(float).eps)
        return Interval(float(lower) * (1 - margin), float(upper) * (1 + margin))


class DenseSpectrum:
    """A positive semidefinite form ½ xᵀHx whose matrix is at hand."""

    def __init__(self, H: Matrix):
        self.H, self.n = H, len(H)
        self._known: dict[int, tuple[float, float]] = {}
        self._bounds: dict[int, tuple[Interval, Interval]] = {}

    def rho_plus(self, s: int) -> Interval:
        return self._at(s)[1]

    def rho_minus(self, s: int) -> Interval:
        return self._at(s)[0]

    def _at(self, s: int) -> tuple[Interval, Interval]:
        """ρₛ⁻ and ρₛ⁺."""
        if s not in self._bounds:
            if self.can_enumerate(s):
                low, high = self.extremes(s)
                self._bounds[s] = self._interval(low, low), self._interval(high, high)
            else:
                self._bounds[s] = self._bounded(s)
        return self._bounds[s]

    def _interval(self, lower: float, upper: float) -> Interval:
        """With the margin for rounding; H is positive semidefinite."""
        return Interval(max(lower - self.margin, 0.0), max(upper, 0.0) + self.margin)

    @cached_property
    def margin(self) -> float:
        return 16 * self.n * float(np.finfo(float).eps) * float(self.whole[0][-1])

    @cached_property
    def whole(self) -> tuple[Vector, Matrix]:
        """All eigenvalues of H, ascending, and their vectors."""
        return eigh(self.H)

    def can_enumerate(self, k: int) -> bool:
        if k <= 2 or k == self.n:
            return True
        blocks = comb(self.n, k)
        return blocks <= ENUMERABLE and blocks * k**3 <= ENUMERABLE_WORK

    def extremes(self, k: int) -> tuple[float, float]:
        """The least and the largest eigenvalue of all k × k blocks, each of them looked at."""
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
        """Closed forms for k = 2."""
        d = self.H.diagonal()
        half_sum = (d[:, None] + d) / 2
        apart = np.hypot((d[:, None] - d) / 2, self.H)
        np.fill_diagonal(apart, 0.0)
        return np.array([(half_sum - apart).min(), (half_sum + apart).max()])

    def _sets(self, k: int) -> Iterator[Support]:
        subsets = combinations(range(self.n), k)
        while chunk := list(islice(subsets, CHUNK)):
            yield np.array(chunk, dtype=np.intp)

    def _bounded(self, s: int) -> tuple[Interval, Interval]:
        """For each constant the best of several bounds on either side."""
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
        """Gershgorin: eigenvalues of a block are within s − 1 other entries of a diagonal one."""
        off = np.abs(self.H)
        np.fill_diagonal(off, 0.0)
        reach = -np.partition(-off, s - 2, axis=1)[:, : s - 1].sum(axis=1)
        d = self.H.diagonal()
        return (d - reach).min(), (d + reach).max()

    def _averages(self, s: int, k: int) -> tuple[float, float]:
        """From level 1 < k < s to level s.

        xᵀHx of an s-sparse x, averaged over all its k-sparse parts, keeps the share k/s of the
        diagonal terms and k(k−1)/s(s−1) of the others. With t = (s − 1)/(k − 1) therefore
        ρₛ⁺ ≤ t ρₖ⁺ − (t − 1) min Hⱼⱼ  and  ρₛ⁻ ≥ t ρₖ⁻ − (t − 1) max Hⱼⱼ.
        """
        low, high = self.extremes(k)
        d, t = self.H.diagonal(), (s - 1) / (k - 1)
        return t * low - (t - 1) * d.max(), t * high - (t - 1) * d.min()

    def _promising(self, s: int) -> Iterator[Support]:
        """Supports on which eigenvalues are likely to be extreme: any support gives a bound."""
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
    """Supports of ever larger xᵀMx / xᵀx: the s largest entries of Mx, again and again."""
    before: Support | None = None
    for _ in range(steps):
        S = np.sort(np.argpartition(-np.abs(v), s - 1)[:s])
        if before is not None and (S == before).all():
            return
        yield S
        leading = eigh(M[np.ix_(S, S)], subset_by_index=[s - 1, s - 1])[1][:, 0]
        v, before = M[:, S] @ leading, S


# Other objectives


class RidgeOnly:
    """A convex f of which only its ridge is known to be strongly convex."""

    def __init__(self, f: Objective):
        self.ridge = float(f.ridge[f.choosable].min(initial=inf))

    def rho_plus(self, s: int) -> Interval:
        return Interval(self.ridge, inf)

    rho_minus = rho_plus


class SmoothnessOnly:
    """A convex f of which only the certified smoothness is known."""

    def __init__(self, f: Objective):
        self.f = f

    def rho_plus(self, s: int) -> Interval:
        return Interval(0.0, self.f.smoothness(s))

    def rho_minus(self, s: int) -> Interval:
        return Interval(0.0, self.f.smoothness(1))  # ρₛ⁻ ≤ ρ₁⁻ ≤ ρ₁⁺


def _logistic_spectra(f: Logistic, domain: Domain) -> tuple[Spectrum, Spectrum, list[Spectrum]]:
    """Second derivatives of the losses lie between those at the largest predictions and ¼."""
    m, mean = len(f.y), float(np.average(f.y, weights=f.weight))
    reach = _largest_predictions(f, domain)
    least = f.loss.derivatives(reach, np.zeros(m))[1]
    most = spectrum_of(f.curved(np.full(m, f.loss.curvature)))
    seen: list[Spectrum] = []
    if not f.forced:  # at x = 0 the best intercept is the logit of the mean
        seen.append(
            spectrum_of(f.curved(np.full(m, mean * (1 - mean) if f.fit_intercept else 0.25)))
        )
    if not f.forced and not f.fit_intercept and isinstance(most, DenseSpectrum):
        x = domain.farthest(most.whole[1][:, -1])
        eta = f.design.columns(f.choosable) @ (x * f.scale)
        seen.append(spectrum_of(f.curved(f.loss.derivatives(eta, np.zeros(m))[1])))
    flat = not (f.weight * least).any()
    return RidgeOnly(f) if flat else spectrum_of(f.curved(least)), most, seen


def _largest_predictions(f: Logistic, domain: Domain) -> Vector:
    """For every row a bound on |(Xx)ₖ + a| over the domain, a being the best intercept for x.

    If all |(Xx)ₖ| ≤ t, then a = logit(mean of y) + t makes no prediction less than the mean of y,
    so the best intercept is not above that; likewise below.
    """
    if f.forced:  # their coefficients may be of any size
        return np.full(len(f.y), inf)
    box = np.broadcast_to(np.asarray(domain.box, dtype=float), (f.n_features,))
    squares, sums = np.zeros(len(f.y)), np.zeros(len(f.y))
    for j in range(f.n_features):
        column = np.abs(f.design.columns(np.array([j]))[:, 0]) * f.scale[j]
        squares += column**2
        sums += np.where(column > 0, box[j], 0.0) * column
    norms = np.sqrt(squares)
    reach = np.minimum(np.where(norms > 0, domain.radius, 0.0) * norms, sums)
    if f.fit_intercept:
        live = f.weight > 0
        mean = np.average(f.y, weights=f.weight)
        reach = reach + reach[live].max() + abs(logit(mean))
    return reach
