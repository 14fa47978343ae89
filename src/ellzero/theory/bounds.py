"""The theorems of the paper, one function each; the docstring is the statement.

Axiotis and Sviridenko, "Sparse Convex Optimization via Adaptively Regularized Hard Thresholding".
x* is any point with s* non-zeros (s_star), S* its support; ρ⁻ is ρ⁻ at level s + s*, and κ̃
(kappa_tilde) is ρ₂⁺/ρ⁻; B is a lower bound on f, `span` is f(0) − B. Logarithms are natural.
Where the paper writes O(·), these functions have the constants that its proofs give. Where nothing
is promised, they give inf.
"""

from __future__ import annotations

from math import ceil, floor, inf, log, sqrt

from ellzero.checks import check_count, check_number

CORE_SUCCESS = 0.2
"""Lemma 3.5: with opt ≥ f(x*), one run of ARHT's core reaches opt + ε with this probability."""


# ARHT


def arht_sparsity(s_star: int, kappa_tilde: float) -> float:
    """Theorem 3.1, sparsity. The least s for which ARHT is sure to reach f(x*) + ε.

    If s ≥ s* max(4κ̃ + 7, 12κ̃ + 6), Algorithm 6 returns an s-sparse x with f(x) ≤ f(x*) + ε, with
    probability at least 1 − 1/n. As κ̃ ≥ 1, the second term is always the larger one.

    >>> arht_sparsity(2, 1.0)
    36
    """
    _check(s_star, kappa_tilde)
    return _ceil(s_star * max(4 * kappa_tilde + 7, 12 * kappa_tilde + 6))


def arht_core_iterations(s: int, span: float, epsilon: float) -> int:
    """Line 10 of Algorithm 5. The core makes T = 2 s log(span/ε) iterations.

    Lemmas 3.3 and 3.4: half of T is enough for those that make progress. The other half is for the
    others, enough of them if log(span/ε) ≥ 5/9; ellzero therefore never takes the logarithm as less
    than 1.
    """
    check_count("s", s, 1)
    return ceil(2 * s * _log(span, epsilon))


def arht_idle_iterations(s_star: int, kappa_tilde: float) -> float:
    """Lemma 3.4. Iterations without enough progress ("Type 2") of a run of the core, s* ≥ 2.

    If s is as in Theorem 3.1 and opt ≥ f(x*), there are at most (s* − 1)(4κ̃ + 6) of them, with
    probability at least 0.2. (For s* = 1 the proof says nothing. It would with s*(4κ̃ + 6) instead,
    for which the s of Theorem 3.1 has room: each such iteration frees the one element of S* with
    probability 1/(2κ̃ + 3) or more, so it is free after them with probability 0.8 or more.)
    """
    _check(s_star, kappa_tilde)
    return (s_star - 1) * (4 * kappa_tilde + 6)


def arht_runs(n: int, span: float, epsilon: float) -> int:
    """Lemma 3.6. Runs of the core that together fail with probability below 1/(6 n log(span/ε)).

    There are 5 log(6 n log(span/ε)) of them, each failing with probability at most 0.8.
    """
    check_count("n", n, 1)
    return ceil(5 * log(6 * n * _log(span, epsilon)))


def arht_guesses(span: float, epsilon: float) -> int:
    """Lemma 3.7. The search makes at most 6 log(span/ε) guesses: each leaves 5/6 or less."""
    return ceil(6 * _log(span, epsilon))


def arht_iterations(s: int, n: int, span: float, epsilon: float) -> int:
    """Theorem 3.1, iterations: O(s log²(span/ε) log(n log(span/ε))) in all.

    With the constants: guesses × runs × iterations of the core, the last two at accuracy ε/3.
    """
    inner = arht_runs(n, span, epsilon / 3) * arht_core_iterations(s, span, epsilon / 3)
    return arht_guesses(span, epsilon) * inner


def arht_runtime(iterations: int, gradient: float, minimisation: float) -> float:
    """Corollary 3.2. Iterations × (G + M): the time of a gradient and of a minimisation on s.

    With gradient descent inside, M = O(G κₛ log(span/ε)). The paper has κ̃ in place of κₛ, but the
    steps of gradient descent are as short as ρₛ⁺ demands, which may be s/2 times ρ₂⁺.
    """
    return iterations * (gradient + minimisation)


def solution_distance(zeta: float, rho_minus: float, epsilon: float) -> float:
    """Corollary 3.11. How far from x* is an s-sparse x with f(x) ≤ f(x*) + ε?

    ‖x − x*‖₂ ≤ (ζ/ρ⁻) (1 + √(1 + 2ερ⁻/ζ²)), here as (ζ + √(ζ² + 2ερ⁻))/ρ⁻, which allows ζ = 0.
    ζ is ζₛ if x* is the minimiser on its support, as then only the part of x outside S* meets the
    gradient. For any other x*, x − x* has up to s + s* non-zeros that do, and ζ is that of level
    s + s*; the paper says level s in both cases.
    """
    return (zeta + sqrt(zeta**2 + 2 * epsilon * rho_minus)) / rho_minus if rho_minus > 0 else inf


def recovery_accuracy(theta: float, zeta: float, rho_minus: float) -> float:
    """Corollary 3.11, second part. The ε with which ‖x − x*‖₂ ≤ (2 + θ) ζ/ρ⁻, for θ > 0.

    It is ζ²/ρ⁻ · θ (1 + θ/2).
    """
    check_number("theta", theta, above=0.0)
    return zeta**2 / rho_minus * theta * (1 + theta / 2) if rho_minus > 0 else inf


def support_recovery_accuracy(x_min: float, zeta: float, rho_minus: float) -> float:
    """Corollary 3.12. Below which ε does f(x) ≤ f(x*) + ε imply that the support of x contains S*?

    If x* is the minimiser on its support and its least non-zero |x*_min| > ζ/ρ⁻, then for every
    ε < ρ⁻ x_min²/2 − ζ²/2ρ⁻. The result is 0 if x_min is not large enough: nothing is promised.
    (That x* is the minimiser on S* stands in the paper's proof only.)
    """
    if not x_min * rho_minus > zeta:
        return 0.0
    return rho_minus * x_min**2 / 2 - zeta**2 / (2 * rho_minus)


# OMPR


def ompr_ratio(s: int, s_star: int, kappa_tilde: float) -> float:
    """κ̃ √(s*/s), on which all depends in Theorem 4.2: at most 1, below 2, or too large."""
    _check(s_star, kappa_tilde)
    check_count("s", s, s_star)
    return kappa_tilde * sqrt(s_star / s)


def ompr_sparsity(s_star: int, kappa_tilde: float) -> float:
    """Theorem 4.2, first case. The least s for which OMPR is sure to reach f(x*) + ε: s* κ̃²."""
    _check(s_star, kappa_tilde)
    return _ceil(s_star * kappa_tilde**2)


def ompr_recovery_sparsity(s_star: int, kappa_tilde: float) -> float:
    """Theorem 4.2, second case. The least s > s* κ̃²/4, and at least s*."""
    _check(s_star, kappa_tilde)
    return max(floor(s_star * kappa_tilde**2 / 4) + 1, s_star) if kappa_tilde < inf else inf


def ompr_error_factor(s: int, s_star: int, kappa_tilde: float, theta: float) -> float:
    """Theorem 4.2. OMPR returns an x with f(x) ≤ f(x*) + ε + C (f(x*) − f(x̄*)); this is C.

    x̄* is the best point with s + s* non-zeros, 0 < θ < 1, and with q = κ̃ √(s*/s):
    if q ≤ 1, C = 0; if 1 < q < 2 − θ, C = 4 (1 − θ)(q − 1) / (2 − q − θ)².
    """
    _check_theta(theta)
    q = ompr_ratio(s, s_star, kappa_tilde)
    if q <= 1:
        return 0.0
    return 4 * (1 - theta) * (q - 1) / (2 - q - theta) ** 2 if q < 2 - theta else inf


def ompr_iterations(
    s: int, s_star: int, kappa_tilde: float, gap: float, accuracy: float, theta: float
) -> float:
    """Theorem 4.2, iterations. From f(x⁰) = f(x*) + gap to f(x*) + accuracy.

    √(s s*) log(gap/ε) if κ̃ √(s*/s) ≤ 1, where the accuracy is ε; √(s s*)/θ · log(gap/B) if it is
    below 2 − θ, where the accuracy is B = ε + C (f(x*) − f(x̄*)).
    """
    _check_theta(theta)
    check_number("accuracy", accuracy, above=0.0)
    q = ompr_ratio(s, s_star, kappa_tilde)
    if q >= 2 - theta:
        return inf
    steps = sqrt(s * s_star) / (1.0 if q <= 1 else theta)
    return ceil(steps * log(gap / accuracy)) if gap > accuracy else 0


def ompr_contraction(
    s: int, s_star: int, kappa_tilde: float, missing: int, excess: float = inf
) -> float:
    """Lemma 4.3. One step of OMPR multiplies f(x) − f(x*) by no more than this.

    `missing` = |S* ∖ S| ≥ 1; `excess` = (f(x) − f(x̃)) / (f(x*) − f(x̃)), where x̃ minimises f over
    S ∪ S*, is inf if f(x*) = f(x̃). With μ = √(s*/s) and q = μκ̃ the factor is 1 − μ/missing · r,
    r = 1 if q ≤ 1, else r = 2 − q − 2(q − 1)/(√excess − 1).
    """
    check_count("missing", missing, 1)
    q = ompr_ratio(s, s_star, kappa_tilde)
    if q <= 1:
        rate = 1.0
    else:
        rate = 2 - q - 2 * (q - 1) / (sqrt(excess) - 1) if excess > 1 else -inf
    return 1 - sqrt(s_star / s) / missing * rate


def noiseless_iterations(
    s: int, s_star: int, kappa_tilde: float, gap: float, epsilon: float
) -> float:
    """Corollary 4.4. If x* is a global minimum and κ̃ √(s*/s) < 2, OMPR reaches f(x*) + ε.

    It is Theorem 4.2 with θ = ½ (2 − κ̃ √(s*/s)), where the term with f(x*) − f(x̄*) is zero.
    """
    q = ompr_ratio(s, s_star, kappa_tilde)
    if q >= 2:
        return inf
    theta = 0.5 if q <= 1 else (2 - q) / 2
    return ompr_iterations(s, s_star, kappa_tilde, gap, epsilon, theta)


def rip_condition(ratio: float, theta: float = 0.0) -> float:
    """Corollary 4.5. OMPR recovers x* if δ at level s + s* is below this, for s/s* = `ratio`.

    ((2 − θ) √ratio − 1) / ((2 − θ) √ratio + 1), which says κ < (2 − θ) √(s/s*); θ = 0 is the limit.

    >>> [round(rip_condition(ratio), 3) for ratio in (1, 2, 3, 30)]
    [0.333, 0.478, 0.552, 0.833]
    """
    check_number("ratio", ratio, above=0.0)
    if theta != 0:
        _check_theta(theta)
    k = (2 - theta) * sqrt(ratio)
    return (k - 1) / (k + 1)


def l2_error_factor(
    s: int, s_star: int, kappa_tilde: float, rho_minus: float, theta: float
) -> float:
    """Corollary 4.5. OMPR's x has ‖x − x*‖₂² ≤ 4ε/ρ⁻ + C (f(x*) − min f); this is C.

    If δ at level s + s* is below `rip_condition`, Theorem 4.2 with its factor C₁ and Lemma 4.1 give
    C = 4 (2 + C₁)/ρ⁻. The paper has f(x) in place of f(x*), which cannot be meant: x may be optimal
    and x* not. And C depends on ρ⁻ as well, unless f is scaled so that ρ⁻ is a function of δ.
    """
    factor = ompr_error_factor(s, s_star, kappa_tilde, theta)
    return 4 * (2 + factor) / rho_minus if rho_minus > 0 else inf


# For comparison


def omp_sparsity(s_star: int, kappa: float, gap: float, epsilon: float) -> float:
    """OMP (Natarajan; Shalev-Shwartz, Srebro and Zhang): s ≥ s* κ log((f(0) − f(x*))/ε) suffices.

    κ may be ρ₁⁺/ρ⁻ ≤ κ̃: each step lowers f by at least max |∇f|²/2ρ₁⁺, and strong convexity makes
    that at least (f(x) − f(x*))/(s*κ).
    """
    _check(s_star, kappa)
    check_number("epsilon", epsilon, above=0.0)
    return _ceil(s_star * kappa * max(log(gap / epsilon), 0.0)) if gap > 0 else 0


def iht_sparsity(s_star: int, kappa: float, constant: float = 32.0) -> float:
    """IHT (Jain, Tewari and Kar): s = O(s* κ²) suffices for f(x*) + ε.

    The paper has the order only. The constant 32 is theirs, for the step 2/3ρ⁺ and κ at level
    2s + s*.
    """
    _check(s_star, kappa)
    return _ceil(constant * s_star * kappa**2)


def _check(s_star: int, kappa: float) -> None:
    check_count("s_star", s_star, 1)
    if not kappa >= 1:
        raise ValueError(f"kappa: a condition number is at least 1, got {kappa!r}.")


def _check_theta(theta: float) -> None:
    if not 0 < theta < 1:
        raise ValueError(f"theta: expected a number between 0 and 1, got {theta!r}.")


def _log(span: float, epsilon: float) -> float:
    """log(span/ε), and at least 1."""
    check_number("epsilon", epsilon, above=0.0)
    check_number("span", span)
    return max(log(span / epsilon), 1.0) if span > 0 else 1.0


def _ceil(number: float) -> float:
    return ceil(number) if number < inf else inf
