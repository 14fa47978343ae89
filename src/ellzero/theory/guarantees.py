"""What the theorems promise for a user's own data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ellzero.checks import check_number, check_objective, check_sparsity
from ellzero.core import Objective
from ellzero.theory import bounds
from ellzero.theory.constants import EVERYWHERE, Curvature, Domain, Interval


@dataclass(frozen=True)
class Promise:
    """A theorem applied: it holds for every x* with at most `s_star` non-zeros.

    s_star : proven, from the certified bounds on the constants; 0 if nothing is
    at_best : what it could be if the constants were the best that the bounds leave possible
    """

    method: str
    theorem: str
    promised: str
    s_star: int
    at_best: int

    def __str__(self) -> str:
        proven = f"s* = {self.s_star}" if self.s_star else "nothing"
        unsure = f" (at best {self.at_best})" if self.at_best > self.s_star else ""
        head = f"{self.method:<5} {proven + unsure:<22}"
        return (
            f"{head} {self.promised}  [{self.theorem}]"
            if self.s_star
            else f"{head} [{self.theorem}]"
        )


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What is proven of solutions with s features; `print` it, or index it by method."""

    s: int
    n: int
    epsilon: float
    kappa_tilde: Interval
    domain: Domain
    promises: tuple[Promise, ...]

    def __getitem__(self, method: str) -> Promise:
        """The first promise of a method: ``guarantee["arht"].s_star``."""
        for promise in self.promises:
            if promise.method == method:
                return promise
        raise KeyError(method)

    def __repr__(self) -> str:
        bounded = "" if self.domain is EVERYWHERE else f", while all points stay in {self.domain}"
        return "\n".join(
            [
                f"What is proven for s = {self.s} of {self.n} features and epsilon = "
                f"{self.epsilon:.4g}{bounded},",
                "for every x* with at most s* non-zeros:",
                *(f"  {promise}" for promise in self.promises),
                f"  kappa~ at level {self.s + 1} (s* = 1) is {self.kappa_tilde}",
            ]
        )


def guarantee(
    f: Objective, s: int, *, epsilon: float | None = None, domain: Domain = EVERYWHERE
) -> Guarantee:
    """What the paper promises of solutions of f with s features, and against which x*.

    epsilon : the accuracy; by default 1e-3 (f(0) − min f)
    domain : for the logistic loss, a set in which all points that matter are assumed to lie

    Examples
    --------
    >>> import numpy as np, ellzero as lz
    >>> f = lz.Quadratic(np.diag(np.linspace(1, 1.2, 50)), np.arange(50.0))
    >>> lz.theory.guarantee(f, 40)
    What is proven for s = 40 of 50 features and epsilon = 20.21,
    for every x* with at most s* non-zeros:
      arht  s* = 2                 f(x) <= f(x*) + epsilon, probability 1 - 1/50  [Theorem 3.1]
      ompr  s* = 40                f(x) <= f(x*) + epsilon  [Theorem 4.2]
      ompr  s* = 40                f(x) <= f(x*) + epsilon, x* a global minimum  [Corollary 4.4]
      omp   s* = 5                 f(x) <= f(x*) + epsilon  [Shalev-Shwartz et al.]
      iht   s* = 1                 f(x) <= f(x*) + epsilon  [Jain et al.]
      kappa~ at level 41 (s* = 1) is 1
    """
    check_objective(f)
    s = check_sparsity(f, s)
    curvature = Curvature(f, domain)
    span = f.minimize(f.choosable[:0]).value - f.lower_bound()
    if epsilon is None:
        epsilon = 1e-3 * span or 1.0
    check_number("epsilon", epsilon, above=0.0)
    reached = "f(x) <= f(x*) + epsilon"

    def promise(
        method: str, theorem: str, promised: str, enough: Callable[[int, float], float]
    ) -> Promise:
        at = partial(_largest, s, enough, _kappa(curvature, method, s))
        return Promise(method, theorem, promised, at("upper"), at("lower"))

    return Guarantee(
        s=s,
        n=curvature.n,
        epsilon=float(epsilon),
        kappa_tilde=curvature.kappa_tilde(s + 1),
        domain=domain,
        promises=(
            promise(
                "arht",
                "Theorem 3.1",
                f"{reached}, probability 1 - 1/{curvature.n}",
                bounds.arht_sparsity,
            ),
            promise("ompr", "Theorem 4.2", reached, bounds.ompr_sparsity),
            promise(
                "ompr",
                "Corollary 4.4",
                f"{reached}, x* a global minimum",
                bounds.ompr_recovery_sparsity,
            ),
            promise(
                "omp",
                "Shalev-Shwartz et al.",
                reached,
                partial(bounds.omp_sparsity, gap=span, epsilon=epsilon),
            ),
            promise("iht", "Jain et al.", reached, bounds.iht_sparsity),
        ),
    )


def _kappa(curvature: Curvature, method: str, s: int) -> Callable[[int], Interval]:
    """The condition number that a method's theorem asks for, as a function of s*."""
    if method == "iht":
        return lambda s_star: curvature.kappa(2 * s + s_star)
    return lambda s_star: curvature.kappa_tilde(s + s_star)


def _largest(
    s: int, enough: Callable[[int, float], float], kappa: Callable[[int], Interval], end: str
) -> int:
    """The largest s* for which s features are enough; what is enough grows with s*."""
    low, high = 0, s + 1
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle, getattr(kappa(middle), end)) <= s:
            low = middle
        else:
            high = middle
    return low
