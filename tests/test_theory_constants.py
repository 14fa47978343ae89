"""Restricted constants: exact where all blocks are looked at, certified bounds elsewhere."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
from ellzero.theory import Curvature, Domain, Interval, constants, spectrum
from ellzero.theory.spectrum import DenseSpectrum
from helpers import hessian_of, objective_of
from reference import random_problem


def block_extremes(H, s):
    """The least and the largest eigenvalue of all s × s blocks, one after the other."""
    values = [np.linalg.eigvalsh(H[np.ix_(S, S)]) for S in combinations(range(len(H)), s)]
    return min(v[0] for v in values), max(v[-1] for v in values)


@pytest.fixture
def few_blocks(monkeypatch):
    """Only bounds: hardly anything may be enumerated."""
    monkeypatch.setattr(spectrum, "MAX_BLOCKS_TO_ENUMERATE", 30)


def quadratics():
    for seed, kind in enumerate(("gaussian", "correlated") * 2):
        yield objective_of(random_problem(seed, "squares", kind, fit_intercept=bool(seed % 2)))
    rng = np.random.default_rng(0)
    for rank in (3, 6, 9):
        A = rng.normal(size=(rank, 9)) * rng.uniform(0.1, 10, 9)
        yield lz.Quadratic(A.T @ A, A.T @ rng.normal(size=rank))


def hessian(f):
    """By differences of the gradient, which for a quadratic are exact."""
    H = np.array([f.gradient(e) - f.gradient(0 * e) for e in np.eye(len(f.features))])
    return (H + H.T)[np.ix_(f.features.choosable, f.features.choosable)] / 2


@pytest.mark.parametrize("f", [*quadratics()])
def test_enumeration_is_exact(f):
    H = hessian(f)
    known = Curvature(f)
    top = np.linalg.eigvalsh(H)[-1]
    for s in range(1, len(H) + 1):
        low, high = block_extremes(H, s)
        assert_allclose(known.rho_plus(s).upper, high, rtol=1e-9)
        assert_allclose(known.rho_minus(s).upper, max(low, 0), rtol=1e-9, atol=1e-12 * top)
        assert known.rho_plus(s).exact
        if low > 1e-3 * top:
            assert known.rho_minus(s).exact
            assert known.kappa(s).exact
            assert high / low in known.kappa(s)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("f", [*quadratics()])
def test_bounds_contain_the_value(f):
    H = hessian(f)
    known = Curvature(f)
    slack = 1e-12 * np.linalg.eigvalsh(H)[-1]
    bounded = 0
    for s in range(1, len(H) + 1):
        low, high = block_extremes(H, s)
        minus, plus = known.rho_minus(s), known.rho_plus(s)
        assert minus.lower - slack <= low <= minus.upper + slack
        assert plus.lower - slack <= high <= plus.upper + slack
        bounded += not plus.exact
    assert bounded


@pytest.mark.usefixtures("few_blocks")
def test_bounds_are_monotone_and_not_trivial(rng):
    X = rng.normal(size=(400, 30))
    known = Curvature(lz.LeastSquares(X, X[:, 0]))
    minus = [known.rho_minus(s) for s in range(1, 31)]
    plus = [known.rho_plus(s) for s in range(1, 31)]
    assert all(np.diff([interval.lower for interval in minus]) <= 0)
    assert all(np.diff([interval.upper for interval in plus]) >= 0)
    for s in range(1, 31):
        assert plus[s - 1].upper <= 1.3 * plus[s - 1].lower
        assert minus[s - 1].upper <= 1.5 * minus[s - 1].lower


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("name", ["_disks", "_averages"])
def test_each_bound_is_a_bound_by_itself(name, rng):
    for _ in range(20):
        A = rng.normal(size=(20, 8)) * rng.uniform(0.5, 2, 8)
        form = DenseSpectrum(A.T @ A)
        for s in range(3, 8):
            low, high = block_extremes(form.H, s)
            arguments = (s,) if name == "_disks" else (s, 2)
            lower, upper = getattr(form, name)(*arguments)
            assert lower <= low * (1 + 1e-12)
            assert upper >= high * (1 - 1e-12)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("correlation", [0.4, -0.1])
def test_both_bounds_are_tight_where_all_features_are_equally_correlated(correlation):
    form = DenseSpectrum(np.eye(9) + correlation * (1 - np.eye(9)))
    for s in (3, 5, 7):
        low, high = block_extremes(form.H, s)
        for lower, upper in (form._disks(s), form._averages(s, 2)):
            if correlation > 0:
                assert upper == pytest.approx(high)
            else:
                assert lower == pytest.approx(low)


def test_forced_features_and_the_ridge(rng):
    X, y = rng.normal(size=(30, 7)), rng.normal(size=30)
    f = lz.LeastSquares(X, y, fit_intercept=True, forced=[2], ridge=0.5)
    N = np.column_stack([np.ones(30), X[:, 2]])
    K = np.linalg.inv(N.T @ N + np.diag([0, 0.5]))
    free = [0, 1, 3, 4, 5, 6]
    H = X[:, free].T @ (np.eye(30) - N @ K @ N.T) @ X[:, free] + 0.5 * np.eye(6)
    for s in (1, 3, 6, 9):
        low, high = block_extremes(H, min(s, 6))
        assert_allclose(constants.rho_minus(f, s).lower, low, rtol=1e-9)
        assert_allclose(constants.rho_plus(f, s).lower, high, rtol=1e-9)


@pytest.mark.usefixtures("on_demand")
def test_without_a_gram_matrix_the_diagonal_is_used(rng):
    X = rng.normal(size=(40, 6))
    f = lz.LeastSquares(X, X[:, 0])
    for s in (1, 2, 4):
        low, high = block_extremes(X.T @ X, s)
        assert low in constants.rho_minus(f, s)
        assert high in constants.rho_plus(f, s)
    assert constants.rho_minus(f, 2).lower == 0
    assert constants.kappa(f, 2).upper == inf


def test_definitions_hang_together(rng):
    f = lz.LeastSquares(rng.normal(size=(60, 8)), rng.normal(size=60))
    assert constants.rho_plus(f, 2).upper == pytest.approx(f.smoothness(2))
    for s in (2, 5, 8):
        kappa, kappa_tilde = constants.kappa(f, s), constants.kappa_tilde(f, s)
        assert kappa_tilde.upper <= kappa.upper * (1 + 1e-12)
        expected = constants.rho_plus(f, 2) / constants.rho_minus(f, s)
        assert kappa_tilde.upper == pytest.approx(expected.upper)
        k = kappa.upper
        assert constants.rip(f, s).upper == pytest.approx((k - 1) / (k + 1))
    assert constants.rip(lz.Quadratic(np.ones((2, 2)), [1, 1]), 2).upper == 1.0
    # Lemma 2.4
    assert constants.rho_plus(f, 2).lower <= 2 * constants.rho_plus(f, 1).upper


def test_zeta_is_the_norm_of_the_largest_entries_of_the_gradient(rng):
    f = lz.LeastSquares(rng.normal(size=(40, 6)), rng.normal(size=40))
    x = f.minimize([1, 4]).x
    g = f.gradient(x)
    for s in (1, 2, 6, 9):
        largest = max(np.linalg.norm(g[list(S)]) for S in combinations(range(6), min(s, 6)))
        assert largest in constants.zeta(f, x, s)
        assert constants.zeta(f, x, s).exact
    optimum = f.minimize(range(6)).x
    assert constants.zeta(f, optimum, 3).lower == 0
    assert constants.zeta(f, optimum, 3).upper < 1e-9


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("domain", [Domain(radius=0.7), Domain(box=0.3), Domain(0.9, 0.4)])
def test_logistic_constants_hold_in_the_domain(fit_intercept, domain, rng):
    problem = random_problem(3, "logistic", "correlated", fit_intercept=fit_intercept)
    f = objective_of(problem)
    n = len(f.features)
    known = Curvature(f, domain)
    points = [np.zeros(n), *(domain.farthest(rng.normal(size=n)) for _ in range(30))]
    hessians = [hessian_of(problem, x) for x in points]
    for s in (1, 2, 3, n):
        extremes = [block_extremes(H, s) for H in hessians]
        assert known.rho_minus(s).lower <= min(low for low, _ in extremes) * (1 + 1e-9)
        assert known.rho_plus(s).upper >= max(high for _, high in extremes) * (1 - 1e-9)
        assert known.rho_minus(s).upper >= known.rho_minus(s).lower > 0
    assert known.rho_plus(2).lower >= block_extremes(hessians[0], 2)[1] * (1 - 1e-9)
    # the definition itself, with x and y that differ in two coordinates
    for x in points:
        y = x * np.where(np.arange(n) < 2, rng.uniform(-1, 1, n), 1.0)
        gap = f.value(y) - f.value(x) - f.gradient(x) @ (y - x)
        square = 0.5 * (y - x) @ (y - x)
        assert gap <= known.rho_plus(2).upper * square + 1e-8
        assert gap >= known.rho_minus(2).lower * square - 1e-8


def test_the_intercept_of_a_rare_class_flattens_the_logistic_loss(rng):
    X = rng.normal(size=(200, 3))
    y = np.arange(200) < 4
    known = Curvature(lz.Logistic(X, y, fit_intercept=True), Domain(radius=1e-6))
    X = X - X.mean(axis=0)
    curvature = 0.02 * 0.98 * X.T @ X
    for s in (1, 2, 3):
        low, high = block_extremes(curvature, s)
        assert_allclose([known.rho_minus(s).lower, known.rho_minus(s).upper], low, rtol=1e-4)
        assert_allclose([known.rho_plus(s).lower, known.rho_plus(s).upper], high, rtol=1e-4)


def test_logistic_without_an_intercept_has_its_smoothness_at_zero():
    f = objective_of(random_problem(3, "logistic"))
    assert constants.rho_plus(f, 2).exact
    assert constants.rho_plus(f, 2).upper == pytest.approx(f.smoothness(2))


def test_on_all_points_nothing_is_known_of_the_convexity_of_a_logistic_loss():
    for fit_intercept in (False, True):
        f = objective_of(random_problem(3, "logistic", fit_intercept=fit_intercept))
        assert constants.rho_minus(f, 3).lower == 0
        assert constants.kappa(f, 3).upper == inf
        assert not constants.kappa(f, 3).exact
        assert constants.rho_minus(f.ridged(0.1), 3).lower == pytest.approx(0.1)


def test_forced_features_of_a_logistic_loss_are_not_bounded(rng):
    X, y = rng.normal(size=(50, 4)), rng.random(50) < 0.5
    f = lz.Logistic(X, y, forced=[1], ridge=0.2)
    known = Curvature(f, Domain(radius=1.0))
    assert known.rho_minus(2).lower == pytest.approx(0.2)
    assert known.rho_plus(2).upper >= known.rho_plus(2).lower > 0.2 - 1e-12


def test_a_single_class_has_no_best_intercept(rng):
    f = lz.Logistic(rng.normal(size=(20, 3)), np.ones(20), fit_intercept=True)
    known = Curvature(f, Domain(radius=1.0))
    assert known.rho_minus(2).lower == 0
    assert known.rho_plus(2).upper == pytest.approx(f.smoothness(2))


def test_of_a_custom_objective_only_its_smoothness_is_known():
    f = lz.from_callables(lambda x: float(x @ x), lambda x: 2 * x, 4, smoothness=2.0)
    assert constants.rho_plus(f, 2) == Interval(0.0, 2.0)
    assert constants.rho_minus(f, 2) == Interval(0.0, 2.0)
    assert constants.rho_minus(f.ridged(0.5), 3).lower == 0.5
    assert constants.kappa(f, 2) == Interval(1.0, inf)


def test_intervals():
    assert Interval(1.0, 1.0 + 1e-10).exact
    assert not Interval(1.0, 1.1).exact
    assert not Interval(1.0, inf).exact
    assert Interval(inf, inf).exact
    assert 1.05 in Interval(1.0, 1.1)
    assert Interval(2.0, 4.0) / Interval(1.0, 2.0) == Interval(1.0, 4.0)
    assert Interval(0.0, 4.0) / Interval(0.0, 0.0) == Interval(0.0, inf)
    assert Interval(1.0, 4.0) / Interval(0.0, 0.0) == Interval(inf, inf)
    assert str(Interval(1.0, 2.0)) == "1 to 2"
    assert str(Interval(2.0, 2.0)) == "2"
    with pytest.raises(ValueError, match="lower"):
        Interval(2.0, 1.0)


@pytest.mark.parametrize("options", [{"radius": 0}, {"box": [1.0, -1.0]}, {"radius": np.nan}])
def test_a_domain_has_positive_bounds(options):
    with pytest.raises(ValueError, match="radius, box"):
        Domain(**options)


def test_bad_arguments_are_named(rng):
    f = lz.Quadratic(np.eye(3), np.ones(3))
    with pytest.raises(TypeError, match="f:"):
        constants.kappa(np.eye(3), 2)
    with pytest.raises(ValueError, match="s:"):
        constants.kappa(f, 0)
    with pytest.raises(ValueError, match="s:"):
        constants.zeta(f, np.zeros(3), 1.5)
    with pytest.raises(ValueError, match="x: expected finite"):
        constants.zeta(f, [0.0, np.nan, 0.0], 1)
    with pytest.raises(ValueError, match=r"box: expected one number or 3, got shape \(2,\)"):
        constants.kappa(f, 1, Domain(box=[1.0, 2.0]))
