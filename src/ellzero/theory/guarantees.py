"""What the theorems promise for a user's own data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ellzero.checks import check_number, check_objective, check_sparsity
from ellzero.core import Objective
from ellzero.objectives.minimisers import lower_bound
from ellzero.supports import NONE
from ellzero.theory import bounds
from ellzero.theory.constants import EVERYWHERE, Curvature, Domain
from ellzero.theory.spectrum import Interval

Enough = Callable[[int, float], float]
"""How many features a theorem asks for, given s* and a condition number."""

Kappa = Callable[[int], Interval]
"""That condition number, which depends on s*."""


@dataclass(frozen=True)
class Promise:
    """A theorem applied: f(x) ≤ f(x*) + ε + factor · (f(x*) − f(x̄*)).

    It holds for every x* with at most `s_star` non-zeros. x̄* is the best point with s + s*.

    Attributes
    ----------
    s_star : int
        What is proven, from the certified bounds on the constants. Zero promises nothing.
    at_best : int
        What `s_star` would be if the constants were the best that the bounds leave possible.
    probability : float
        The promise holds with at least this probability.
    iterations : int, optional
        An upper bound on the iterations, where the theorem has one.
    """

    method: str
    theorem: str
    s_star: int
    at_best: int
    factor: float = 0.0
    probability: float = 1.0
    iterations: int | None = None

    def __str__(self) -> str:
        unsure = f" (at best {self.at_best})" if self.at_best > self.s_star else ""
        proven = f"s* = {self.s_star}" if self.s_star else "nothing"
        words = [f"{self.method:<5} {proven + unsure:<20} {self.theorem:<22}"]
        if self.s_star:
            words.append("f(x) <= f(x*) + eps")
            if self.factor:
                words.append(f"+ {self.factor:.3g} (f(x*) - f(xbar*))")
            if self.probability < 1:
                words.append(f"with probability {self.probability:.3g}")
        return " ".join(words).rstrip()


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What is proven of solutions with s features; its repr says it in words."""

    s: int
    n: int
    epsilon: float
    kappa_tilde: Interval  # at level s + 1, the least that any theorem asks for
    domain: Domain
    promises: tuple[Promise, ...]

    def __getitem__(self, method: str) -> Promise:
        """Return the first promise of a method: ``guarantee["arht"].s_star``."""
        for promise in self.promises:
            if promise.method == method:
                return promise
        raise KeyError(method)

    def __repr__(self) -> str:
        inside = "" if self.domain is EVERYWHERE else f" as long as all points are in {self.domain}"
        return "\n".join(
            [
                f"Proven for s = {self.s} of {self.n} features, eps = {self.epsilon:.4g}, against "
                f"every x* with at most s* non-zeros{inside}",
                *(f"  {promise}" for promise in self.promises),
                f"  kappa~ is {self.kappa_tilde} for s* = 1",
            ]
        )


def guarantee(
    f: Objective, s: int, *, epsilon: float | None = None, domain: Domain = EVERYWHERE
) -> Guarantee:
    """Return what the paper promises of solutions of f with s features, and against which x*.

    Parameters
    ----------
    f : Objective
    s : int
        Features in a solution.
    epsilon : float, optional
        The accuracy. By default 1e-3 (f(0) − min f).
    domain : Domain
        For the logistic loss, a set in which all points that matter are assumed to lie.

    Returns
    -------
    Guarantee

    Examples
    --------
    >>> import numpy as np, ellzero as lz
    >>> f = lz.Quadratic(np.diag(np.linspace(1, 1.2, 50)), np.arange(50.0))
    >>> lz.theory.guarantee(f, 40)
    Proven for s = 40 of 50 features, eps = 17.57, against every x* with at most s* non-zeros
      arht  s* = 1               Theorem 3.1            f(x) <= f(x*) + eps with probability 0.98
      ompr  s* = 27              Theorem 4.2, case 1    f(x) <= f(x*) + eps
      ompr  s* = 40              Theorem 4.2, case 2    f(x) <= f(x*) + eps + 3 (f(x*) - f(xbar*))
      omp   s* = 4               Shalev-Shwartz et al.  f(x) <= f(x*) + eps
      iht   nothing              Jain et al.
      kappa~ is 1.2 for s* = 1
    """
    check_objective(f)
    s = check_sparsity(f, s)
    curvature = Curvature(f, domain)
    span = max(f.minimize(NONE).value - lower_bound(f), 0.0)
    epsilon = epsilon if epsilon is not None else 1e-3 * span or 1.0
    check_number("epsilon", epsilon, above=0.0)
    n = curvature.n

    def kappa_tilde(s_star: int) -> Interval:
        return curvature.kappa_tilde(s + s_star)

    def for_iht(s_star: int) -> Interval:
        return curvature.kappa(2 * s + s_star)

    def targets(enough: Enough, kappa: Kappa = kappa_tilde) -> tuple[int, int]:
        proven, possible = (_largest_target(s, enough, kappa, end) for end in ("upper", "lower"))
        return proven, possible

    recovered = targets(bounds.ompr_recovery_sparsity)
    promises = (
        Promise(
            "arht",
            "Theorem 3.1",
            *targets(bounds.arht_sparsity),
            probability=1 - 1 / n,
            iterations=bounds.arht_iterations(s, n, span, epsilon),
        ),
        Promise("ompr", "Theorem 4.2, case 1", *targets(bounds.ompr_sparsity)),
        Promise(
            "ompr",
            "Theorem 4.2, case 2",
            *recovered,
            factor=_error_factor(s, recovered[0], kappa_tilde),
        ),
        Promise(
            "omp",
            "Shalev-Shwartz et al.",
            *targets(partial(bounds.omp_sparsity, gap=span, epsilon=epsilon)),
        ),
        Promise("iht", "Jain et al.", *targets(bounds.iht_sparsity, for_iht)),
    )
    return Guarantee(s, n, float(epsilon), kappa_tilde(1), domain, promises)


def _largest_target(s: int, enough: Enough, kappa: Kappa, end: str) -> int:
    """Return the largest s* for which s features are enough. What is enough grows with s*."""
    low, high = 0, s + 1
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle, getattr(kappa(middle), end)) <= s:
            low = middle
        else:
            high = middle
    return low


def _error_factor(s: int, s_star: int, kappa_tilde: Kappa) -> float:
    """Return the factor of Theorem 4.2, with half the largest θ, as in Corollary 4.4."""
    if not s_star:
        return 0.0
    kappa = kappa_tilde(s_star).upper
    theta = min(1 - bounds.ompr_ratio(s, s_star, kappa) / 2, 0.5)
    return bounds.ompr_error_factor(s, s_star, kappa, theta)
