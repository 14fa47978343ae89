"""The instances of the lower bounds have every property that the paper claims of them."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
from ellzero import Status
from ellzero.theory import Curvature, bounds
from ellzero.theory.instances import hard_for_greedy, hard_for_ompr

# Lemma 5.2: OMPR needs sparsity Ω(s*κ²)

SMALL = [(1, 4), (2, 6), (1, 10), (3, 8)]


@pytest.mark.parametrize(("s_star", "kappa"), SMALL)
def test_the_instance_is_that_of_the_lemma(s_star, kappa):
    instance = hard_for_ompr(s_star, kappa, delta=1e-3)
    f, delta = instance.f, instance.delta
    assert [len(part) for part in instance.parts] == [s_star, s_star * kappa, s_star * kappa**2]
    assert len(f.features) == s_star * (1 + kappa + kappa**2)
    constants = Curvature(f)
    for s in (1, 2, len(f.features) // 2, len(f.features)):
        assert_allclose(constants.rho_plus(s).upper, kappa)
        assert_allclose(constants.rho_minus(s).lower, 1.0)
        assert constants.kappa(s).exact
    target = instance.target
    assert_allclose(target.coef, kappa * np.sqrt(1 - 4 * delta))
    assert_allclose(target.value, s_star * kappa**2 * (1 - delta))
    # with the paper's κ(1 − 4δ) the value would be another
    printed = f.at(target.x * np.sqrt(1 - 4 * delta)).value
    assert printed > target.value * (1 + delta**2)


@pytest.mark.parametrize(("s_star", "kappa"), SMALL)
def test_the_start_of_ompr_is_that_of_the_lemma(s_star, kappa):
    instance = hard_for_ompr(s_star, kappa)
    f, delta, (I_1, I_2, I_3) = instance.f, instance.delta, instance.parts
    S0 = instance.start()
    assert len(S0) == s_star * kappa**2 // 2
    x0 = f.minimize(S0)
    assert_allclose(x0.coef, 1.0)
    assert_allclose(x0.value, s_star * kappa**2 * (5 / 4 - 3 * delta))
    g = f.gradient(x0)
    assert_allclose(g[I_1], -kappa * np.sqrt(1 - 4 * delta))
    assert_allclose(g[I_2], -kappa * np.sqrt(1 - 2 * delta))
    assert_allclose(g[np.setdiff1d(I_3, S0)], -1.0)
    assert_allclose(g[S0], 0.0, atol=1e-12)


@pytest.mark.parametrize(("s_star", "kappa"), SMALL)
def test_ompr_stays_far_above_the_target(s_star, kappa):
    instance = hard_for_ompr(s_star, kappa)
    delta, S0 = instance.delta, instance.start()
    found = lz.ompr(instance.f, len(S0), start=S0)
    stuck = s_star * kappa**2 * (5 / 4 - 3 * delta) - 0.5 * (kappa * (1 - 2 * delta) - 1)
    assert_allclose(found.value, stuck)
    assert found.value - instance.target.value >= 0.15 * s_star * kappa**2
    assert len(np.intersect1d(found.support, instance.parts[1])) == 1
    # one decoy in, and for ever: the next swap is decoy for decoy
    x = found.trace[-1]
    assert x.smallest in instance.parts[1]
    assert np.argmax(np.abs(instance.f.gradient(x))) in instance.parts[1]


@pytest.mark.parametrize("setting", ["practical", "theoretical"])
@pytest.mark.parametrize("rho", [None, 1.0])
@pytest.mark.parametrize(("s_star", "kappa"), [(1, 4), (2, 4), (1, 6)])
def test_arht_from_the_same_start_reaches_the_target(s_star, kappa, setting, rho):
    instance = hard_for_ompr(s_star, kappa)
    S0, target = instance.start(), instance.target.value
    epsilon = 1e-2 * target
    for seed in range(2):
        found = lz.arht(
            instance.f,
            len(S0),
            start=S0,
            setting=setting,
            rho=rho,
            epsilon=epsilon,
            random_state=seed,
        )
        assert len(found.support) <= len(S0)
        assert found.value <= target + epsilon


@pytest.mark.parametrize(("s_star", "kappa", "times"), [(1, 10, 2), (2, 10, 4), (1, 16, 3)])
def test_with_a_multiple_of_s_star_kappa_features_ompr_fails_and_arht_succeeds(
    s_star, kappa, times
):
    instance = hard_for_ompr(s_star, kappa)
    s = times * s_star * kappa
    S0, target = instance.start(s), instance.target.value
    assert s < len(instance.start())
    assert lz.ompr(instance.f, s, start=S0).value > 1.2 * target
    found = lz.arht(instance.f, s, start=S0, epsilon=1e-2 * target, random_state=0)
    assert found.value <= 1.01 * target


def test_with_the_features_of_the_theorem_ompr_fails_and_arht_succeeds():
    """κ = 26 is the first at which 12κ + 6 is less than κ²/2."""
    instance = hard_for_ompr(1, 26)
    s = bounds.arht_sparsity(1, Curvature(instance.f).kappa_tilde(2).lower)
    S0, target = instance.start(s), instance.target.value
    assert s == 318 < len(instance.start())
    assert lz.ompr(instance.f, s, start=S0).value > 1.2 * target
    options = {"start": S0, "setting": "theoretical", "random_state": 0}
    found = lz.arht_robust(instance.f, s, target, **options)
    assert found.status is Status.TARGET_REACHED
    assert found.value <= target


def test_ompr_succeeds_with_s_star_kappa_squared_features():
    """So the lower bound is tight."""
    instance = hard_for_ompr(2, 6)
    s = bounds.ompr_sparsity(2, 6.0)
    found = lz.ompr(instance.f, s, start=instance.start(s))
    assert found.value <= instance.target.value


def test_bad_parameters_are_named():
    for call, name in (
        (lambda: hard_for_ompr(0, 4), "s_star"),
        (lambda: hard_for_ompr(1, 1), "kappa"),
        (lambda: hard_for_ompr(1, 4, delta=0.3), "delta"),
        (lambda: hard_for_greedy(3), "n"),
        (lambda: hard_for_greedy(10, ratio=1.0), "ratio"),
    ):
        with pytest.raises(ValueError, match=name):
            call()


# Section 5.1: methods that insert the largest gradient need sparsity Ω(s*κ)


def proper_subsets(decoys, rng, count=200):
    """All of them if they are few, otherwise some of every size."""
    m = len(decoys)
    if 2**m <= 1024:
        return [S for k in range(m) for S in combinations(decoys.tolist(), k)]
    return [rng.choice(decoys, k % m, replace=False) for k in range(count)]


@pytest.mark.parametrize("n", [6, 11, 40])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.9])
def test_the_instance_has_the_stated_properties(n, ratio, rng):
    instance = hard_for_greedy(n, ratio)
    f, good, decoys = instance.f, instance.good, instance.decoys
    assert_allclose(np.linalg.norm(instance.A, axis=0), 1.0)
    assert [len(good), len(decoys)] == [2, n - 2]
    assert f.minimize(good).value == pytest.approx(0.0, abs=1e-12)
    assert f.minimize(decoys).value == pytest.approx(0.0, abs=1e-12)
    for S in proper_subsets(decoys, rng):
        x = f.minimize(S)
        assert x.value == pytest.approx(0.5 * (1 - len(S) / len(decoys)))
        assert x.value > 0.4 / n
        g = np.abs(f.gradient(x))
        assert g[good].max() < g[np.setdiff1d(decoys, S)].min()


@pytest.mark.parametrize("ratio", [0.5, 0.9])
def test_its_constants_are_known(ratio):
    for n in (6, 12):
        instance = hard_for_greedy(n, ratio)
        known = Curvature(instance.f)
        for s in range(2, n):
            assert_allclose(known.rho_plus(s).upper, instance.rho_plus())
            assert_allclose(known.rho_minus(s).lower, instance.rho_minus(s), rtol=1e-9)


def test_its_condition_number_is_of_order_n_at_half_the_features_and_infinite_at_all():
    """The paper says O(n) at level n, which two representations of b rule out."""
    ratio = 0.5
    for n in (10, 100, 1000):
        instance = hard_for_greedy(n, ratio)
        m = n - 2
        for s in (1, m // 2, m - 1):
            kappa = instance.rho_plus() / instance.rho_minus(s + 2)
            assert kappa <= (n - 1) / (ratio**2 * (1 - s / m)) * (1 + 1e-12)
        half = instance.rho_plus() / instance.rho_minus(m // 2 + 2)
        assert n / 2 <= half <= 8 * n
        assert m // 2 >= 2 * half / 40  # so s = Ω(s*κ)
        assert instance.rho_minus(n) == pytest.approx(0.0, abs=1e-15)
    assert Curvature(hard_for_greedy(10).f).rho_minus(10).upper < 1e-12


@pytest.mark.parametrize("n", [12, 42])
@pytest.mark.parametrize(
    "method",
    [
        lz.omp,
        lz.ompr,
        lz.iht,
        lz.els,
        lz.exchange,
        lambda f, s: lz.arht(f, s, random_state=0),
        lambda f, s: lz.arht(f, s, random_state=0, setting="theoretical", n_runs=3),
    ],
    ids=["omp", "ompr", "iht", "els", "exchange", "arht", "arht-theoretical"],
)
def test_methods_like_omp_never_meet_the_two_good_features(method, n):
    instance = hard_for_greedy(n)
    m = n - 2
    for s in (2, m // 2, m - 1):
        found = method(instance.f, s)
        assert not np.intersect1d(found.support, instance.good).size
        assert found.value == pytest.approx(0.5 * (1 - s / m))


@pytest.mark.parametrize("n", [12, 42])
def test_lasso_fails_too(n):
    """All decoys enter at once; before them there is nothing."""
    instance = hard_for_greedy(n)
    found = lz.lasso(instance.f, (n - 2) // 2)
    assert not np.intersect1d(found.support, instance.good).size
    assert found.value >= 0.25 - 1e-12


@pytest.mark.parametrize("n", [12, 42, 122])
def test_what_the_search_finds(n):
    """Not bound by the lower bound: it looks at all pairs, and so finds the two features."""
    instance = hard_for_greedy(n)
    path = lz.path(instance.f, [1, 2, 3, n // 2], method="auto")
    assert path[2].support.tolist() == instance.good.tolist()
    assert path[2].status is Status.OPTIMAL
    assert path[1].value == pytest.approx(0.5 * (1 - 1 / (n - 2)))
    for s in (2, 3, n // 2):
        assert path[s].value == pytest.approx(0.0, abs=1e-12)
