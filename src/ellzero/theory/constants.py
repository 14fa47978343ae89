"""The constants that the theorems speak of, as intervals that certainly contain them.

Section 2 of Axiotis and Sviridenko, "Sparse Convex Optimization via Adaptively Regularized Hard
Thresholding". The function meant is f as it is held: what rounding did to a Gram matrix when it was
summed from data is in no margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from ellzero.checks import check_count, check_objective
from ellzero.core import Objective
from ellzero.objectives.glm.logistic import Logistic
from ellzero.objectives.glm.rows import LocalRows
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Vector
from ellzero.theory.spectrum import DenseSpectrum, Interval, Spectrum, spectrum_of


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
        """Return the last point of the domain in the direction of v, or 0 where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(v != 0, np.asarray(self.box) / np.abs(v), inf)
            step = min(self.radius / np.linalg.norm(v), steps.min(initial=inf))
        return v * (step if np.isfinite(step) else 0.0)


EVERYWHERE = Domain()

ROUNDING = 1e-12
"""Relative margin for rounding in the gradient of a quadratic."""

INTERCEPT_ROUNDING = 1e-6
"""The same for other losses, whose gradient depends on an intercept found by iteration."""


# The definitions


def rho_plus(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """Return ρₛ⁺, restricted smoothness (Definition 2.3).

    The least ρ with f(y) ≤ f(x) + ∇f(x)ᵀ(y − x) + ρ/2 ‖y − x‖² wherever x and y differ in at most s
    coordinates; for a quadratic the largest eigenvalue of any s × s block of its Hessian.

    >>> import ellzero as lz
    >>> rho_plus(lz.Quadratic([[2.0, 1.0], [1.0, 2.0]], [1.0, 0.0]), 2)
    Interval(lower=2.99999..., upper=3.00000...)
    """
    return Curvature(f, domain).rho_plus(s)


def rho_minus(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """Return ρₛ⁻, restricted strong convexity (Definition 2.3).

    The largest ρ ≥ 0 with f(y) ≥ f(x) + ∇f(x)ᵀ(y − x) + ρ/2 ‖y − x‖² wherever x and y differ in at
    most s coordinates; for a quadratic the least eigenvalue of any s × s block of its Hessian.
    """
    return Curvature(f, domain).rho_minus(s)


def kappa(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """Return κₛ = ρₛ⁺ / ρₛ⁻, the restricted condition number (Definition 2.3)."""
    return Curvature(f, domain).kappa(s)


def kappa_tilde(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """Return κ̃ₛ = ρ₂⁺ / ρₛ⁻ (Definition 2.3), which the theorems ask for. κ̃ₛ ≤ κₛ for s ≥ 2."""
    return Curvature(f, domain).kappa_tilde(s)


def rip(f: Objective, s: int, domain: Domain = EVERYWHERE) -> Interval:
    """Return δₛ = (κₛ − 1) / (κₛ + 1), the restricted isometry constant (Definition 2.5)."""
    return Curvature(f, domain).rip(s)


def zeta(f: Objective, x: ArrayLike, s: int) -> Interval:
    """Return ζₛ, the restricted gradient optimal constant of f at x (Definition 2.6).

    It is the Euclidean norm of the s largest entries of ∇f(x). The margin for rounding is a share
    of the sizes of ∇f(0) and of ∇f(x) − ∇f(0), which cancel in a quadratic's gradient: 1e-12, and
    1e-6 for other losses.
    """
    check_objective(f)
    check_count("s", s, 1)
    x = np.asarray(x, dtype=float)
    if not np.isfinite(x).all():
        raise ValueError("x: expected finite coefficients.")
    g, g0 = (f.gradient(point) for point in (x, np.zeros_like(x)))
    sizes = sum(_largest(f.features.norms(v), s) for v in (g0, g - g0))
    margin = (ROUNDING if isinstance(f, Quadratic) else INTERCEPT_ROUNDING) * sizes
    norm = _largest(f.features.norms(g), s)
    return Interval(max(norm - margin, 0.0), norm + margin)


def _largest(sizes: Vector, s: int) -> float:
    """Return the norm of the s largest entries."""
    return float(np.linalg.norm(np.sort(sizes)[::-1][:s]))


class Curvature:
    """All constants of f at all levels s. What they have in common is computed once.

    The Hessian H(x) at every x of the domain lies between `least` and `most`. Some H(x) are known:
    they are in `seen`. For a quadratic `least` and `most` are the same.
    """

    def __init__(self, f: Objective, domain: Domain = EVERYWHERE):
        check_objective(f)
        n = len(f.features)
        if np.shape(domain.box) not in ((), (n,)):
            raise ValueError(f"box: expected one number or {n}, got shape {np.shape(domain.box)}.")
        self.f, self.n = f, len(f.features.choosable)
        if isinstance(f, Quadratic) and f.features.all_single:
            self.least = self.most = spectrum_of(f)
            self.seen: list[Spectrum] = []
        elif isinstance(f, Logistic) and isinstance(f.rows, LocalRows):
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
        return _at_least_one(self.rho_plus(2) / self.rho_minus(s))

    def rip(self, s: int) -> Interval:
        kappa = self.kappa(s)
        return Interval(*(1 - 2 / (k + 1) for k in (kappa.lower, kappa.upper)))

    def _level(self, s: int) -> int:
        """Return s, or n where s is larger: no more than n features can differ."""
        check_count("s", s, 1)
        return min(s, self.n)


def _at_least_one(ratio: Interval) -> Interval:
    """Return a condition number, which is never less than 1."""
    return Interval(max(ratio.lower, 1.0), max(ratio.upper, 1.0))


# Other objectives


class RidgeOnly:
    """What is known of a convex f from its ridge alone."""

    def __init__(self, f: Objective):
        ridge = np.broadcast_to(getattr(f, "ridge", 0.0), len(f.features))
        self.ridge = float(ridge[f.features.choosable].min(initial=inf))

    def rho_plus(self, s: int) -> Interval:
        return Interval(self.ridge, inf)

    rho_minus = rho_plus


class SmoothnessOnly:
    """What is known of a convex f from its certified smoothness alone."""

    def __init__(self, f: Objective):
        self.f = f

    def rho_plus(self, s: int) -> Interval:
        return Interval(0.0, self.f.smoothness(s))

    def rho_minus(self, s: int) -> Interval:
        return Interval(0.0, self.f.smoothness(1))  # ρₛ⁻ ≤ ρ₁⁻ ≤ ρ₁⁺


def _logistic_spectra(f: Logistic, domain: Domain) -> tuple[Spectrum, Spectrum, list[Spectrum]]:
    """Return `least`, `most` and `seen` of `Curvature`.

    The second derivative of a loss falls with the size of the prediction.
    """

    rows = f.rows
    assert isinstance(rows, LocalRows)

    def curved(eta: Vector) -> Spectrum:
        second = f.family.taylor(eta[:, None], rows.target).second()[:, 0]
        return spectrum_of(f.curved(second)) if (rows.weight * second).any() else RidgeOnly(f)

    centre, reach = _predictions(f, domain)
    least, most = curved(np.abs(centre) + reach), curved(np.maximum(np.abs(centre) - reach, 0.0))
    seen = []
    forced = len(f.features.forced)
    if not forced:
        seen.append(curved(centre))  # at x = 0
    if not forced and not f.fit_intercept and isinstance(most, DenseSpectrum):
        x = domain.farthest(most.whole[1][:, -1])
        seen.append(curved(rows.design.columns(f.features.choosable) @ (x * f.scale)))
    return least, most, seen


def _predictions(f: Logistic, domain: Domain) -> tuple[Vector, Vector]:
    """Return the predictions at x = 0, and how far from there they can be in the domain.

    The intercept is the best one for each x. If all |(Xx)ₖ| ≤ t, then the intercept
    logit(mean of y) + t makes no prediction less than the mean of y, so the best intercept for x is
    not above that. Likewise below.
    """
    rows = f.rows
    assert isinstance(rows, LocalRows)
    design, weight, wrong = rows.design, rows.weight, rows.target[:, 0]
    m, n = design.shape
    mean = float(np.average(wrong < 0, weights=weight))  # −1 stands for the class 1
    if len(f.features.forced) or (f.fit_intercept and mean in (0.0, 1.0)):  # of any size
        return np.zeros(m), np.full(m, inf)
    box = np.broadcast_to(np.asarray(domain.box, dtype=float), (n,))
    squares, sums = np.zeros(m), np.zeros(m)
    for j in range(n):
        column = np.abs(design.columns(np.array([j]))[:, 0]) * f.scale[j]
        squares += column**2
        sums += np.where(column > 0, box[j], 0.0) * column
    norms = np.sqrt(squares)
    reach = np.minimum(np.where(norms > 0, domain.radius, 0.0) * norms, sums)
    if not f.fit_intercept:
        return np.zeros(m), reach
    return np.full(m, float(logit(mean))), reach + reach[weight > 0].max()
