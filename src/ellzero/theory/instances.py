"""The two instances behind the paper's lower bounds (Section 5), as objectives.

Axiotis and Sviridenko, "Sparse Convex Optimization via Adaptively Regularized Hard Thresholding".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ellzero.checks import check_count
from ellzero.core import Iterate
from ellzero.objectives.least_squares import LeastSquares
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Support, Vector


@dataclass(frozen=True, eq=False)
class HardForOMPR:
    """Lemma 5.2: OMPR needs Ω(s* κ²) features; see `hard_for_ompr`."""

    f: Quadratic
    s_star: int
    kappa: float
    delta: float
    parts: tuple[Support, Support, Support]  # I₁, I₂, I₃

    @property
    def target(self) -> Iterate:
        """x*, the minimiser on I₁."""
        return self.f.minimize(self.parts[0])

    def start(self, s: int | None = None) -> Support:
        """S⁰: the first s members of I₃, s*κ²/2 of them unless told otherwise."""
        I_3 = self.parts[2]
        return I_3[: len(I_3) // 2 if s is None else s]


def hard_for_ompr(s_star: int, kappa: int, delta: float = 1e-3) -> HardForOMPR:
    """f(x) = ½‖Ax − b‖² with a diagonal A, on which OMPR with s*κ²/2 features is trapped.

    The s*(1 + κ + κ²) coordinates are s* good ones (I₁), s*κ decoys (I₂) and s*κ² crumbs (I₃):

        part   how many   Aᵢᵢ   bᵢ              gradient at 0
        I₁     s*         1     κ √(1 − 4δ)     −κ √(1 − 4δ)
        I₂     s*κ        √κ    √κ √(1 − 2δ)    −κ √(1 − 2δ)
        I₃     s*κ²       1     1               −1

    So ρ⁺ = κ and ρ⁻ = 1 at all levels. From a support in I₃, OMPR takes a decoy, whose gradient is
    the largest but whose coefficient √(1 − 2δ) is the smallest, and then only swaps decoys.
    """
    check_count("s_star", s_star, 1)
    check_count("kappa", kappa, 2)
    if not 0 < delta < 0.25:
        raise ValueError(f"delta: expected a number between 0 and 1/4, got {delta!r}.")
    sizes = s_star * kappa ** np.arange(3)
    A = np.repeat([1.0, np.sqrt(kappa), 1.0], sizes)
    b = np.repeat([kappa * np.sqrt(1 - 4 * delta), np.sqrt(kappa * (1 - 2 * delta)), 1.0], sizes)
    f = Quadratic(np.diag(A**2), A * b, 0.5 * float(b @ b))
    # The paper writes x*ᵢ = κ(1 − 4δ) on I₁. The minimiser there is bᵢ/Aᵢᵢ = κ√(1 − 4δ), and only
    # with it is f(x*) = s*κ²(1 − δ), as the paper says a line later.
    I_1, I_2, I_3 = np.split(np.arange(len(b)), np.cumsum(sizes)[:-1])
    return HardForOMPR(f, s_star, float(kappa), delta, (I_1, I_2, I_3))


@dataclass(frozen=True, eq=False)
class HardForGreedy:
    """Section 5.1: methods that insert the largest gradient need Ω(s* κ) features.

    See `hard_for_greedy`.
    """

    f: LeastSquares
    A: Vector
    b: Vector
    ratio: float
    good: Support  # S*
    decoys: Support  # its complement

    def rho_plus(self) -> float:
        """ρₛ⁺ for s ≥ 2: that of u − v, 2(1 − c²)."""
        return 2 * (1 - self._c2)

    def rho_minus(self, s: int) -> float:
        """ρₛ⁻ for s ≥ 2: that of u + v and s − 2 decoys."""
        if s < 2:
            return 1.0
        share = (s - 2) / len(self.decoys)
        p = 1 + 2 * self._c2
        # the eigenvalues of [[1, √2 c √share], [√2 c √share, 2c²]] have this sum and this product
        product = 2 * self._c2 * (1 - share)
        return 2 * product / (p + np.sqrt(p**2 - 4 * product))

    @property
    def _c2(self) -> float:
        return self.ratio**2 / len(self.decoys)


def hard_for_greedy(n: int, ratio: float = 0.5) -> HardForGreedy:
    """f(x) = ½‖Ax − b‖² with unit columns, where two are enough and n − 2 are taken.

    After the construction in Appendix B of Foster, Karloff and Thaler, "Variable selection is
    hard", of which the paper lists the properties. With m = n − 2, orthonormal directions e₁, ...,
    eₘ and w, and c = ratio/√m:

        b = (e₁ + ... + eₘ)/√m,  decoys e₁, ..., eₘ,  u = cb + √(1 − c²) w,  v = cb − √(1 − c²) w.

    S* = {u, v} is enough, as u + v = 2cb; so are all decoys together. Given any decoys S, the
    residual is b outside S: the gradients of the others are −1/√m, those of u and v −c(1 − |S|/m),
    which is always less. Inserting the largest gradient never meets S*.

    The paper says κ = ρₙ⁺/ρₙ⁻ = O(n). That cannot be: b is a combination of S* and also of the
    other columns, so all n together are dependent and ρₙ⁻ = 0, whatever the construction. What is
    true here, and enough for the lower bound: κ at level s + s* ≤ (n − 1)/(ratio² (1 − s/m)).
    That is O(n) for s ≤ m/2, say, where all these methods still are at ½(1 − s/m) > 0.
    """
    check_count("n", n, 4)
    if not 0 < ratio < 1:
        raise ValueError(f"ratio: expected a number between 0 and 1, got {ratio!r}.")
    m = n - 2
    c = ratio / np.sqrt(m)
    b = np.append(np.full(m, 1 / np.sqrt(m)), 0.0)
    aside = np.append(np.zeros(m), np.sqrt(1 - c**2))
    A = np.column_stack([np.eye(m + 1, m), c * b + aside, c * b - aside])
    return HardForGreedy(LeastSquares(A, b), A, b, ratio, np.arange(m, n), np.arange(m))
