"""The bounds say what the paper says, and `guarantee` applies them to data."""

from math import inf, log, sqrt

import numpy as np
import pytest

import ellzero as lz
from ellzero.methods.arht import Search
from ellzero.objectives.minimisers import lower_bound
from ellzero.theory import Curvature, Domain, bounds, guarantee


@pytest.mark.parametrize(
    ("ratio", "printed"), [(1, 0.33), (2, 0.47), (3, 0.55), (30, 0.83)], ids=str
)
def test_the_table_of_rip_conditions(ratio, printed):
    """The paper cuts to two digits: 0.4776 is printed as 0.47."""
    assert int(100 * bounds.rip_condition(ratio)) / 100 == printed


@pytest.mark.parametrize("theta", [0.0, 0.3])
def test_the_rip_condition_is_the_condition_on_kappa(theta):
    for ratio in (1, 1.5, 4, 30):
        delta = bounds.rip_condition(ratio, theta)
        kappa = (1 + delta) / (1 - delta)
        assert kappa == pytest.approx((2 - theta) * sqrt(ratio))
    assert bounds.rip_condition(1) == pytest.approx(1 / 3)


def test_arht_sparsity():
    assert bounds.arht_sparsity(1, 1.0) == 18
    assert bounds.arht_sparsity(3, 2.5) == 108
    assert bounds.arht_sparsity(1, inf) == inf
    for kappa in np.linspace(1, 50, 20):  # the maximum in the theorem is always its second term
        assert 4 * kappa + 7 <= 12 * kappa + 6


def test_arht_counts_are_those_of_the_algorithm():
    f = lz.Quadratic(np.diag(np.linspace(1, 2, 9)), np.arange(9.0), 300.0)
    span = f.minimize([]).value - lower_bound(f)
    for epsilon in (1e-3, 1.0):
        search = Search(f, 4, setting="theoretical", epsilon=epsilon)
        n_runs = bounds.arht_runs(9, span, epsilon)
        assert search.counts(epsilon) == (n_runs, bounds.arht_core_iterations(4, span, epsilon))
    total = bounds.arht_iterations(4, 9, span, 0.3)
    assert total == (
        bounds.arht_guesses(span, 0.3)
        * bounds.arht_runs(9, span, 0.1)
        * bounds.arht_core_iterations(4, span, 0.1)
    )
    assert bounds.arht_runtime(total, 2.0, 3.0) == 5 * total


def test_idle_iterations_leave_room_for_those_with_progress():
    for s_star in (2, 5):
        for kappa in (1.0, 3.0, 20.0):
            s = bounds.arht_sparsity(s_star, kappa)
            idle = bounds.arht_idle_iterations(s_star, kappa)
            assert idle == (s_star - 1) * (4 * kappa + 6)
            assert s - idle >= s_star * max(1, 8 * kappa)  # Invariant 3.10
            for span in (1.0, 1e6):
                epsilon = 1e-2
                T = bounds.arht_core_iterations(s, span, epsilon)
                assert T - idle >= s * log(span / epsilon)


def test_runs_and_guesses_suffice():
    for n, span in ((10, 1.0), (1000, 1e8)):
        epsilon = 1e-3
        calls = 6 * n * log(span / epsilon)
        assert (1 - bounds.CORE_SUCCESS) ** bounds.arht_runs(n, span, epsilon) < 1 / calls
        assert (5 / 6) ** bounds.arht_guesses(span, epsilon) * span <= epsilon


def test_solution_distance():
    zeta, rho = 0.3, 2.0
    for theta in (0.1, 1.0, 5.0):
        epsilon = bounds.recovery_accuracy(theta, zeta, rho)
        assert bounds.solution_distance(zeta, rho, epsilon) == pytest.approx(
            (2 + theta) * zeta / rho
        )
        printed = zeta / rho * (1 + sqrt(1 + 2 * epsilon * rho / zeta**2))
        assert bounds.solution_distance(zeta, rho, epsilon) == pytest.approx(printed)
    assert bounds.solution_distance(0.0, 2.0, 1.0) == 1.0
    assert bounds.solution_distance(0.1, 0.0, 1.0) == inf


def test_support_recovery_needs_a_large_enough_coefficient():
    assert bounds.support_recovery_accuracy(0.5, 1.0, 2.0) == 0.0
    assert bounds.support_recovery_accuracy(1.0, 1.0, 2.0) == pytest.approx(0.75)


def test_the_two_cases_of_ompr():
    factor = bounds.ompr_error_factor
    assert factor(s=9, s_star=1, kappa_tilde=3.0, theta=0.1) == 0.0
    q, theta = 1.5, 0.1
    expected = 4 * 0.9 * 0.5 / (2 - q - theta) ** 2
    assert factor(s=4, s_star=1, kappa_tilde=3.0, theta=theta) == pytest.approx(expected)
    assert factor(s=1, s_star=1, kappa_tilde=1.95, theta=theta) == inf
    assert bounds.ompr_sparsity(2, 3.0) == 18
    assert bounds.ompr_recovery_sparsity(2, 3.0) == 5
    assert bounds.ompr_recovery_sparsity(2, 1.0) == 2
    assert bounds.ompr_recovery_sparsity(4, 2.0) == 5  # s > s*κ²/4, not ≥
    assert bounds.ompr_recovery_sparsity(1, inf) == bounds.ompr_sparsity(1, inf) == inf


def test_a_smaller_theta_costs_iterations_and_saves_error():
    args = {"s": 4, "s_star": 1, "kappa_tilde": 3.0}
    thetas = (0.05, 0.1, 0.2, 0.4)
    factors = [bounds.ompr_error_factor(**args, theta=theta) for theta in thetas]
    steps = [bounds.ompr_iterations(**args, gap=1, accuracy=1e-3, theta=theta) for theta in thetas]
    assert (np.diff(factors) > 0).all()
    assert (np.diff(steps) < 0).all()
    assert bounds.ompr_iterations(**args, gap=1, accuracy=1e-3, theta=0.6) == inf
    assert bounds.ompr_iterations(**args, gap=1e-4, accuracy=1e-3, theta=0.4) == 0


def test_at_the_error_of_the_theorem_a_step_contracts_by_theta():
    """The choice of C in Theorem 4.2 makes r of Lemma 4.3 equal to θ."""
    s, s_star, kappa, theta = 7, 2, 2.5, 0.2
    C = bounds.ompr_error_factor(s, s_star, kappa, theta)
    contraction = bounds.ompr_contraction(s, s_star, kappa, missing=2, excess=1 + C)
    assert contraction == pytest.approx(1 - sqrt(s_star / s) / 2 * theta)
    assert bounds.ompr_contraction(s, s_star, kappa, missing=2, excess=1.0) == inf
    assert bounds.ompr_contraction(8, 2, 2.0, missing=1) == pytest.approx(0.5)


def test_the_noiseless_case():
    q = 3 / 2
    T = bounds.noiseless_iterations(4, 1, 3.0, gap=1.0, epsilon=1e-3)
    assert T == np.ceil(2 * sqrt(4) / (2 - q) * log(1e3))
    assert bounds.noiseless_iterations(9, 1, 3.0, 1.0, 1e-3) == np.ceil(3 * log(1e3))
    assert bounds.noiseless_iterations(2, 1, 3.0, 1.0, 1e-3) == inf


def test_the_distance_after_ompr():
    C_1 = bounds.ompr_error_factor(4, 1, 3.0, 0.1)
    assert bounds.l2_error_factor(4, 1, 3.0, 0.5, 0.1) == pytest.approx(8 * (2 + C_1))
    assert bounds.l2_error_factor(4, 1, 3.0, 0.0, 0.1) == inf


def test_for_comparison():
    assert bounds.omp_sparsity(2, 3.0, gap=1.0, epsilon=1e-2) == np.ceil(6 * log(100))
    assert bounds.omp_sparsity(2, 3.0, gap=0.0, epsilon=1e-2) == 0
    assert bounds.iht_sparsity(2, 3.0) == 32 * 18


def test_bad_arguments_are_named():
    for call, name in (
        (lambda: bounds.arht_sparsity(0, 2.0), "s_star"),
        (lambda: bounds.arht_sparsity(1, 0.5), "kappa"),
        (lambda: bounds.ompr_ratio(1, 2, 2.0), "s:"),
        (lambda: bounds.ompr_error_factor(2, 1, 2.0, 1.0), "theta"),
        (lambda: bounds.recovery_accuracy(0.0, 1.0, 1.0), "theta"),
        (lambda: bounds.rip_condition(0), "ratio"),
        (lambda: bounds.rip_condition(2, 1.5), "theta"),
        (lambda: bounds.arht_runs(5, 1.0, 0.0), "epsilon"),
        (lambda: bounds.arht_runs(0, 1.0, 0.1), "n:"),
        (lambda: bounds.arht_runs(5, np.nan, 0.1), "span"),
        (lambda: bounds.arht_core_iterations(-3, 1.0, 0.1), "s:"),
        (lambda: bounds.ompr_iterations(2, 1, 1.0, 1.0, 0.0, 0.5), "accuracy"),
        (lambda: bounds.ompr_contraction(2, 1, 1.0, 0), "missing"),
        (lambda: bounds.omp_sparsity(2, 3.0, 10.0, 0.0), "epsilon"),
    ):
        with pytest.raises(ValueError, match=name):
            call()


# guarantee


def test_a_guarantee_is_the_largest_target_that_the_theorems_allow(rng):
    X = rng.normal(size=(4000, 60))
    f = lz.LeastSquares(X, X[:, :3].sum(axis=1))
    s = 45
    g = guarantee(f, s)
    known = Curvature(f)
    enough = {"arht": bounds.arht_sparsity, "ompr": bounds.ompr_sparsity}
    for method, needed in enough.items():
        s_star = g[method].s_star
        assert 1 <= s_star <= g[method].at_best < s
        assert needed(s_star, known.kappa_tilde(s + s_star).upper) <= s
        assert needed(s_star + 1, known.kappa_tilde(s + s_star + 1).upper) > s
    weaker = g.promises[2]
    assert weaker.s_star >= g["ompr"].s_star
    assert 0 < weaker.factor < inf
    assert g["arht"].probability == pytest.approx(1 - 1 / 60)
    assert g["arht"].iterations > 0
    assert g["omp"].s_star >= 1


def test_a_guarantee_grows_with_s(rng):
    X = rng.normal(size=(2000, 40))
    f = lz.LeastSquares(X, X[:, 0])
    for method in ("arht", "ompr", "omp"):
        found = [guarantee(f, s)[method].s_star for s in (5, 20, 40)]
        assert found == sorted(found)


def test_dependent_features_have_no_guarantee(rng):
    X = rng.normal(size=(30, 5))
    g = guarantee(lz.LeastSquares(np.column_stack([X, X]), X[:, 0]), 4)
    assert all(promise.s_star == promise.at_best == 0 for promise in g.promises)
    assert "nothing" in repr(g)


def test_a_guarantee_for_a_logistic_loss_names_its_domain(rng):
    X = rng.normal(size=(5000, 30))
    f = lz.Logistic(X, rng.random(5000) < 0.5)
    assert guarantee(f, 25)["ompr"].s_star == 0
    g = guarantee(f, 25, domain=Domain(radius=0.1), epsilon=0.5)
    assert g["ompr"].s_star >= 1
    assert "as long as all points are in Domain(radius=0.1" in repr(g)
    assert g.epsilon == 0.5


def test_a_guarantee_that_is_not_sure_says_so(rng):
    X = rng.normal(size=(3000, 150))
    text = repr(guarantee(lz.LeastSquares(X, X[:, 0]), 40))
    assert "at best" in text
    assert "kappa~ is" in text
    assert " to " in text


def test_guarantee_checks_its_arguments():
    f = lz.Quadratic(np.eye(3), np.ones(3))
    with pytest.raises(TypeError, match="f:"):
        guarantee(np.eye(3), 2)
    with pytest.raises(ValueError, match="s:"):
        guarantee(f, 4)
    with pytest.raises(ValueError, match="epsilon"):
        guarantee(f, 2, epsilon=0.0)
    with pytest.raises(KeyError, match="lasso"):
        guarantee(f, 2)["lasso"]
    assert guarantee(lz.Quadratic(np.eye(3), np.zeros(3)), 2).epsilon == 1.0
