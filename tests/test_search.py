"""The parts of ellzero's search: the sweep operator, the beam, the levels, the working set."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
from ellzero.algorithms.beam import STRIDE, beam
from ellzero.algorithms.levels import Levels
from ellzero.algorithms.outside import Outside
from ellzero.algorithms.quadratic_search import QuadraticSearch
from ellzero.algorithms.search import rounds_of, shakes
from ellzero.algorithms.sweep import pair_changes, pivot, single_changes, tableau

N = 9


@pytest.fixture(params=[0.0, 0.3], ids=["plain", "ridge"])
def f(request, rng):
    X = rng.normal(size=(40, N)) + 0.8 * rng.normal(size=(40, 1))
    return lz.LeastSquares(X, X[:, :3] @ [1, -1, 2] + rng.normal(size=40), ridge=request.param)


@pytest.fixture
def moments(f):
    return f.moment_rows(np.arange(N + 1))


def test_moments_describe_the_objective(f, moments):
    S = np.array([1, 4, 7])
    x = np.linalg.solve(moments[np.ix_(S, S)], moments[S, N])
    assert_allclose(moments[N, N] / 2 - 0.5 * moments[S, N] @ x, f.minimize(S).value)
    assert_allclose(moments.diagonal(), f.moment_diagonal)
    assert_allclose(moments, moments.T)


def test_a_tableau_is_what_pivots_lead_to(moments):
    S = np.array([0, 3, 8])
    swept = moments.copy()
    for j in (3, 5, 0, 8, 5):  # 5 enters and leaves again
        pivot(swept, j)
    assert_allclose(swept, tableau(moments, S), atol=1e-12)


def test_a_tableau_gives_the_value_of_every_neighbour(f, moments):
    S = np.array([2, 5, 6])
    T = tableau(moments, S)
    value = f.minimize(S).value
    assert_allclose(T[-1, -1] / 2, value)
    every = np.arange(N)
    single, pair = single_changes(T), pair_changes(T, every, every)
    assert_allclose(pair_changes(T, S, every[3:]), pair[S, 3:])
    assert_allclose(single_changes(np.array([moments, T]))[1], single)
    for i in range(N):
        after = np.setxor1d(S, [i])
        assert_allclose(value + single[i], f.minimize(after).value, rtol=1e-10)
        for j in set(range(N)) - {i}:
            after = np.setxor1d(S, [i, j])
            assert_allclose(value + pair[i, j], f.minimize(after).value, rtol=1e-10)


def test_dependent_features_have_no_tableau_and_no_change():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 3] = X[:, 0] - X[:, 1]
    f = lz.LeastSquares(X, X[:, 2] + X[:, 0])
    moments = f.moment_rows(np.arange(5))
    assert tableau(moments, np.array([0, 1, 3])) is None
    T = tableau(moments, np.array([0, 1]))
    assert single_changes(T)[3] == np.inf
    assert pair_changes(T, np.array([3]), np.array([2])) == np.inf


def test_a_beam_of_one_is_forward_selection(f):
    S = np.empty(0, dtype=int)
    for supports, values, _ in beam(f, N, 1):
        gains = f.insertion_values(S)
        S = np.sort(np.append(S, np.argmin(gains)))
        assert np.sort(supports[0]).tolist() == S.tolist()
        assert_allclose(values[0], f.minimize(S).value, rtol=1e-9)


def test_a_beam_wide_enough_is_exhaustive(f):
    for supports, values, _ in beam(f, 4, 1000):
        assert len({tuple(sorted(S)) for S in supports.tolist()}) == len(supports)
        assert_allclose(values, [f.minimize(S).value for S in supports], rtol=1e-9)
        assert_allclose(values, np.sort(values))
        best, proven = f.best_subset(supports.shape[1])
        assert proven
        assert_allclose(values[0], best.value, rtol=1e-9)


@pytest.mark.parametrize("n_active", [N, 6])
def test_a_beam_with_few_active_features_knows_what_its_supports_are_worth(f, n_active):
    for supports, values, _ in beam(f, N, 3, n_active):
        assert_allclose(values, [f.minimize(S).value for S in supports], rtol=1e-9)
    assert supports.shape[1] == len(f.choosable)


def test_a_beam_whose_features_are_all_active_finds_what_it_finds_without_asking_for_that(f):
    for few, all_ in zip(beam(f, N, 3, N), beam(f, N, 3), strict=True):
        assert np.sort(few[0]).tolist() == np.sort(all_[0]).tolist()


def test_a_beam_looks_at_all_features_after_some_steps():
    rng = np.random.default_rng(5)
    Q, _ = np.linalg.qr(rng.normal(size=(40, 20)))
    X = Q.copy()
    X[:, 19] -= 0.99 * Q[:, 0]  # of use when 0 is there, of little use, hence not active, before
    y = Q[:, :12] @ np.linspace(3, 1, 12) + 2.9 * Q[:, 19]
    supports = [S[0].tolist() for S, _, _ in beam(lz.LeastSquares(X, y), 8, 1, 4)]
    assert 19 not in supports[STRIDE - 1]
    assert 19 in supports[STRIDE]


def test_a_beam_names_ahead_what_gains_most_and_nothing_that_gains_nothing(rng):
    X = rng.normal(size=(30, 60))
    X[:, 20:] = 0.0
    f = lz.LeastSquares(X, X[:, :3].sum(axis=1) + rng.normal(size=30), forced=[0])
    _, _, ahead = next(beam(f, 3, 2))
    values = f.insertion_values(np.array([], dtype=int))
    assert ahead.tolist() == [i for i in np.argsort(values) if 0 < i < 20]


def test_a_beam_that_looks_at_all_features_names_what_may_be_next(rng, monkeypatch):
    """Where a row costs a pass over the data, a pass makes several."""
    f, named = lz.LeastSquares(rng.normal(size=(30, 20)), rng.normal(size=30)), []
    products = f.moment_products
    monkeypatch.setattr(
        f, "moment_products", lambda rows, A, ahead: named.append(len(ahead)) or products(rows, A)
    )
    list(beam(f, 3, 2))
    assert min(named) > 10


def test_a_beam_ends_where_nothing_is_left_to_gain():
    X = np.eye(5)
    y = np.array([1.0, 2.0, 0.0, 0.0, 0.0])
    values = [v[0] for _, v, _ in beam(lz.LeastSquares(X, y), 5, 3)]
    assert_allclose(values, [0.5, 0.0], atol=1e-12)


def test_levels_keep_the_best_few():
    levels = Levels(0, 2, 2, 1e-9)
    offers = [([1], 3.0), ([2], 2.0), ([3], 4.0), ([1], 1.0), ([4], 2.5), ([1, 2, 3], 0.0)]
    kept = [levels.offer(np.array(S), value) for S, value in offers]
    assert kept == [True, True, False, False, True, False]  # [1] was seen, size 3 is too large
    assert [x.value for x in levels.kept[1]] == [2.0, 2.5]
    assert [x.value for x in levels.take_fresh(1)] == [2.0, 2.5]
    assert levels.take_fresh(2) == []


def wide_problem(rng, m=60, n=200):
    X = rng.normal(size=(m, n)) + rng.normal(size=(m, 1))
    return lz.LeastSquares(X, X[:, :6] @ [1, -1, 1, -1, 1, -1] + 0.1 * rng.normal(size=m))


def test_no_neighbour_is_better_than_what_is_settled(rng):
    """Also none outside the working set."""
    f = wide_problem(rng)
    levels = Levels(0, 8, 2, f.resolution)
    search = QuadraticSearch(f, levels)
    search.forward(2)
    for _ in search.settle():
        pass
    assert len(search.W) < f.n_features
    values = {k: kept[0].value for k, kept in levels.kept.items() if kept}
    for k, kept in levels.kept.items():
        if not kept:
            continue
        S, tolerance = kept[0].support, 1e-9 * values[1]
        assert_allclose(values[k], f.minimize(S).value, rtol=1e-8)
        if k:
            assert f.best_exchange(S)[2] >= values[k] - tolerance
        if k + 1 in values:
            assert f.insertion_values(S).min() >= values[k + 1] - tolerance
        if k > 1:
            assert f.removal_values(S).min() >= values[k - 1] - tolerance


def test_shakes_only_help(rng):
    f = wide_problem(rng)
    little, much = (lz.path(f, range(1, 9), effort=effort) for effort in (0, 4))
    assert all(much[s].value <= little[s].value * (1 + 1e-12) for s in little)


@pytest.mark.parametrize("breadth", [1, 256], ids=["large data", "small data"])
def test_only_no_effort_shakes_nothing(rng, monkeypatch, breadth):
    f, shaken = wide_problem(rng), []
    f.breadth = breadth
    shake = QuadraticSearch.shake
    monkeypatch.setattr(
        QuadraticSearch, "shake", lambda *given: shaken.append(given[1]) or shake(*given)
    )
    lz.path(f, range(1, 9), effort=0)
    assert not shaken
    lz.path(f, range(1, 9))
    assert shaken


@pytest.mark.parametrize("n", [30, 200], ids=["whole", "working-set"])
def test_the_planted_pairs_are_found(n, rng):
    """Pairs of nearly equal columns with opposite signs: one alone gains next to nothing."""
    X = rng.normal(size=(400, n))
    X[:, 1::2] = X[:, ::2] + 0.05 * rng.normal(size=X[:, 1::2].shape)
    coef = np.zeros(n)
    coef[:6] = [10, -10, 10, -10, 10, -10]
    f = lz.LeastSquares(X, X @ coef + 0.1 * rng.normal(size=400))
    assert lz.solve(f, 6).support.tolist() == [0, 1, 2, 3, 4, 5]


def test_sizes_above_one_at_the_floor_are_shaken_no_more():
    levels = Levels(1, 3, breadth=1, resolution=1e-9, floor=0.0)
    for k in (1, 2, 3):
        levels.offer(np.arange(k), 4.0 - k)

    class Search:
        explored = 1

        def shake(self, k, rng):
            assert k <= levels.top
            self.explored += 1
            return levels.offer(np.array([7]), 0.0)  # separates the classes by itself

        def settle(self):
            return iter(())

    search = Search()
    search.levels = levels
    list(shakes(search, {}, 5, 0))
    assert levels.top == 1
    assert search.explored == 2


@pytest.mark.parametrize("seed", range(3))
def test_twice_the_effort_is_never_worse(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 150)) + rng.normal(size=(40, 150))
    f = lz.LeastSquares(X, X[:, :12] @ rng.normal(size=12) + rng.normal(size=40))
    paths = [lz.path(f, range(1, 16), effort=effort) for effort in (0, 0.25, 0.5, 1, 2)]
    values = np.array([[found.value for found in path.values()] for path in paths])
    assert (np.diff(values, axis=0) <= f.resolution).all()
    assert (values[-1] < values[0] - f.resolution).any()


def test_rounds_of_effort_double():
    assert list(rounds_of(1.0, 256)) == [(0.125, 0), (0.25, 64), (0.5, 128), (1.0, 256)]
    assert list(rounds_of(2.0, 10)) == [(2.0, 0)]
    assert list(rounds_of(0.0, 256)) == [(0.0, 0)]


def test_copied_levels_go_their_own_way():
    levels = Levels(1, 2, breadth=1, resolution=0.0)
    levels.offer(np.array([1]), 5.0)
    levels.take_fresh(2)
    other = levels.copy()
    assert other.offer(np.array([2]), 4.0)
    assert levels.kept[1][0].value == 5.0
    assert not levels.kept[1][0].displaced
    assert not levels.fresh
    assert levels.offer(np.array([2]), 4.0)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("rough", [False, True])
def test_no_feature_that_could_help_is_out_of_reach(rng, ridge, rough, request):
    if rough:
        request.getfixturevalue("lazy_gram")
    X = rng.normal(size=(300, 200)).cumsum(axis=1) + rng.normal(size=(300, 200))
    y = X[:, ::20] @ rng.normal(size=10) + 5 * rng.normal(size=300)
    f = lz.LeastSquares(X, y, fit_intercept=True, ridge=ridge)
    levels = Levels(0, 8, 1, f.resolution)
    S = np.array([], dtype=int)
    levels.offer(S, f.minimize(S).value)
    for _ in range(8):  # greedily among a third of the features, so that others can help
        S = np.append(S, 3 * np.argmin(f.insertion_values(S)[::3]))
        levels.offer(np.sort(S), f.minimize(S).value)
    search = QuadraticSearch(f, levels)
    outside = Outside(f, levels, search.W, search.moments)
    views = [view for x in levels.bests() for view in outside.views(x)]
    assert len(views) == 9
    for view, within in outside.within_reach(views):
        S, value = view.held.support, view.held.value
        beyond = np.setdiff1d(np.flatnonzero(f.outside(search.W)), within)
        assert len(beyond)
        if len(S) < levels.top:
            larger = levels.kept[len(S) + 1][0].value
            assert f.insertion_values(S)[beyond].min() >= larger - f.resolution
        if len(S):
            assert f.exchange_values(S)[:, beyond].min() >= value - f.resolution


@pytest.mark.parametrize(("rank", "n"), [(1, 30), (2, 60)])
def test_a_search_of_dependent_columns_ends(rank, n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, rank)) @ rng.normal(size=(rank, n))
    y = rng.normal(size=40)
    found = lz.path(lz.LeastSquares(X, y), range(1, 8))
    least = 0.5 * np.linalg.norm(y - X @ np.linalg.lstsq(X, y)[0]) ** 2
    assert_allclose([found[s].value for s in range(rank, 8)], least, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_local_search_is_better_on_small_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(54, 1)) + 1e-4 * rng.normal(size=(54, 40))
    f = lz.LeastSquares(X, X @ rng.normal(size=40) + rng.normal(size=54))
    found = lz.path(f, range(1, 13))
    for method in ("omp", "ompr", "els", "exchange"):
        other = lz.path(f, range(1, 13), method=method)
        assert all(found[s].value <= other[s].value + f.resolution for s in found)


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_is_no_pair_under_a_large_ridge(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 20))
    f = lz.LeastSquares(X, X[:, :4].sum(axis=1) + rng.normal(size=60), ridge=1e9)
    S, levels = np.array([3, 7, 11]), Levels(0, 5, 1, 0.0)
    levels.offer(S, f.minimize(S).value)
    search = QuadraticSearch(f, levels)
    [x] = levels.take_fresh(5)
    search.explore(x)
    pairs = combinations(np.setdiff1d(np.arange(20), S), 2)
    best = min((np.sort(np.append(S, pair)) for pair in pairs), key=lambda S: f.minimize(S).value)
    assert levels.kept[5][0].support.tolist() == best.tolist()


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 1e-4])
def test_nearly_dependent_columns_keep_their_digits(rng, noise):
    own = rng.normal(size=(54, 40))
    X = rng.normal(size=(54, 2)) @ rng.normal(size=(2, 40)) + noise * own
    f = lz.LeastSquares(X, own @ rng.normal(size=40) + rng.normal(size=54))
    tolerance = 1e-14 / noise**2 * f.minimize([]).value
    for supports, values, _ in beam(f, 10, 8):
        assert_allclose(values, [f.minimize(S).value for S in supports], atol=tolerance)
    S = np.sort(supports[0])
    T = tableau(f.moment_rows(np.arange(41)), S)
    value, rest = T[-1, -1] / 2, np.setdiff1d(np.arange(40), S)
    assert_allclose(value, f.minimize(S).value, atol=tolerance)
    single = [f.minimize(np.setxor1d(S, [i])).value for i in range(40)]
    assert_allclose(single_changes(T) + value, single, atol=tolerance)
    exchanged = [[f.minimize(np.setxor1d(S, [i, j])).value for j in rest] for i in S]
    assert_allclose(pair_changes(T, S, rest) + value, exchanged, atol=tolerance)
    assert_allclose(f.exchange_values(S)[:, rest], exchanged, atol=tolerance)
