"""ellzero's own search: what it finds, and what its parts promise one another."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import ellzero as lz
from ellzero.core import Features, Iterate
from ellzero.objectives import least_squares
from ellzero.objectives.beam import beam
from ellzero.objectives.moments import columns
from ellzero.objectives.moments.held import HeldMoments, unit_moments
from ellzero.objectives.quadratic import Quadratic
from ellzero.objectives.tableau import pair_changes, pivot, single_changes, swept
from ellzero.search.levels import Levels
from ellzero.search.quadratic import QuadraticSearch

N = 9


def block_quadratic(seed, sizes, m=40, ridge=0.0, forced=()):
    """Least squares over features that own several correlated columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, sum(sizes))) + rng.normal(size=(m, 1))
    y = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.4)) + rng.normal(size=m)
    features = Features(sizes, forced)
    gone = features.coordinates(features.forced)
    G, b = X.T @ X, X.T @ y
    G[gone] = G[:, gone] = b[gone] = 0.0
    moments, scale, unit = unit_moments(G, b, 0.5 * y @ y)
    return Quadratic.of(moments, features, scale, unit, ridge)


@pytest.fixture(params=["single", "ridge", "blocks"])
def f(request, rng):
    if request.param == "blocks":
        return block_quadratic(0, [1, 3, 2, 1, 4, 2, 1, 1, 2])
    X = rng.normal(size=(40, N)) + 0.8 * rng.normal(size=(40, 1))
    ridge = 0.3 * (request.param == "ridge")
    return lz.LeastSquares(X, X[:, :3] @ [1, -1, 2] + rng.normal(size=40), ridge=ridge)


@pytest.fixture
def tableau(f):
    """The moments of f with its target beside them."""
    T = np.arange(f.features.n_coordinates)
    c = f.moments.target[:, None]
    return np.block([[f.block(T, T), c], [c.T, 2 * f.moments.constant]])


def value_of(f, S):
    """The minimum over a support, in the units of a tableau."""
    return f.minimize(np.sort(S)).value / f.unit**2


def best_values(f, sizes):
    """The lowest value of all supports of each size."""
    free = f.features.choosable
    return {s: min(f.minimize(S).value for S in combinations(free, s)) for s in sizes}


# what a support leaves


def test_a_tableau_is_what_pivots_lead_to(f, tableau):
    T = tableau.copy()
    for j in (3, 5, 0, 8, 5):  # 5 enters and leaves again
        pivot(T, f.features.coordinates(np.array([j])))
    assert_allclose(T, swept(tableau, f.features, np.array([0, 3, 8])), atol=1e-11)


def test_a_tableau_gives_the_value_of_every_neighbour(f, tableau):
    S, every = np.array([2, 5, 6]), np.arange(N)
    T = swept(tableau, f.features, S)
    value = value_of(f, S)
    assert_allclose(T[-1, -1] / 2, value)
    single, pair = single_changes(T, f.features), pair_changes(T, f.features, every, every)
    for i in range(N):
        assert_allclose(value + single[i], value_of(f, np.setxor1d(S, [i])), rtol=1e-9)
        assert pair[i, i] == np.inf
        for j in set(range(N)) - {i}:
            after = value_of(f, np.setxor1d(S, [i, j]))
            assert_allclose(value + pair[i, j], after, rtol=1e-9, err_msg=f"{i}, {j}")


def test_dependent_features_have_no_tableau_and_gain_nothing():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 3] = X[:, 0] - X[:, 1]
    f = lz.LeastSquares(X, X[:, 2] + X[:, 0])
    every, c = np.arange(4), f.moments.target[:, None]
    M = np.block([[f.block(every, every), c], [c.T, 2 * f.moments.constant]])
    assert swept(M, f.features, np.array([0, 1, 3])) is None
    T = swept(M, f.features, np.array([0, 1]))
    assert single_changes(T, f.features)[3] == 0
    assert pair_changes(T, f.features, np.array([3]), np.array([2])) == np.inf


# beams


def test_a_beam_of_one_is_forward_selection(f):
    S = np.empty(0, dtype=int)
    for found in beam(f, N, 1):
        values = f.neighbourhood(f.minimize(S)).insertions()
        S = np.sort(np.append(S, np.argmin(values)))
        assert np.sort(found.S[0]).tolist() == S.tolist()
        assert_allclose(found.values[0], value_of(f, S), rtol=1e-8)


def test_a_beam_wide_enough_is_exhaustive(f):
    least = best_values(f, range(1, 5))
    for k, found in enumerate(beam(f, 4, 1000), 1):
        assert len({tuple(sorted(S)) for S in found.S.tolist()}) == len(found.S)
        assert_allclose(found.values, [value_of(f, S) for S in found.S], rtol=1e-9)
        assert_allclose(found.values, np.sort(found.values))
        assert_allclose(found.values[0] * f.unit**2, least[k], rtol=1e-9)


def test_a_beam_names_what_gains_most_next(f):
    for found in beam(f, 3, 2):
        S = np.sort(found.S[0])
        values = f.neighbourhood(f.minimize(S)).insertions()
        best = np.argsort(values)[:2]
        assert found.ahead[:2].tolist() == best.tolist()


def test_a_beam_ends_where_nothing_is_left_to_gain():
    y = np.array([1.0, 2.0, 0.0, 0.0, 0.0])
    f = lz.LeastSquares(np.eye(5), y)
    values = [found.values[0] * f.unit**2 for found in beam(f, 5, 3)]
    assert_allclose(values, [0.5, 0.0], atol=1e-12)


def test_a_beam_leaves_forced_features_alone(rng):
    X = rng.normal(size=(30, 6))
    f = lz.LeastSquares(X, X.sum(axis=1) + rng.normal(size=30), forced=[1, 4])
    for found in beam(f, 4, 3):
        assert not np.isin(found.S, [1, 4]).any()
        assert not np.isin(found.ahead, [1, 4]).any()


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 1e-4])
def test_nearly_dependent_columns_keep_their_digits(rng, noise):
    own = rng.normal(size=(54, 40))
    X = rng.normal(size=(54, 2)) @ rng.normal(size=(2, 40)) + noise * own
    f = lz.LeastSquares(X, own @ rng.normal(size=40) + rng.normal(size=54))
    every, c, tolerance = np.arange(40), f.moments.target[:, None], 1e-14 / noise**2
    for found in beam(f, 10, 8):
        assert_allclose(found.values, [value_of(f, S) for S in found.S], atol=tolerance)
    S = np.sort(found.S[0])
    M = np.block([[f.block(every, every), c], [c.T, 2 * f.moments.constant]])
    T, rest = swept(M, f.features, S), np.setdiff1d(every, S)
    value = T[-1, -1] / 2
    assert_allclose(value, value_of(f, S), atol=tolerance)
    single = [value_of(f, np.setxor1d(S, [i])) for i in every]
    assert_allclose(single_changes(T, f.features) + value, single, atol=tolerance)
    exchanged = [[value_of(f, np.setxor1d(S, [i, j])) for j in rest] for i in S]
    assert_allclose(pair_changes(T, f.features, S, rest) + value, exchanged, atol=tolerance)


# levels


def offered(levels, offers):
    return [levels.offer(np.array(S), value) for S, value in offers]


def test_levels_keep_the_best_few():
    levels = Levels(0, 2, 2, 1e-9)
    kept = offered(
        levels, [([1], 3.0), ([2], 2.0), ([3], 4.0), ([1], 1.0), ([4], 2.5), ([1, 2, 3], 0.0)]
    )
    assert kept == [True, True, False, False, True, False]  # [1] was seen, size 3 is too large
    assert [x.value for x in levels.kept[1]] == [2.0, 2.5]
    assert [x.value for x in levels.bests()] == [2.0]


def test_levels_give_small_supports_first_and_leave_out_what_was_displaced():
    levels = Levels(0, 3, 1, 0.0)
    offered(levels, [([1, 2], 5.0), ([1], 6.0), ([2], 5.5), ([1, 2, 3], 4.0)])
    taken = levels.take()
    assert next(taken).S.tolist() == [2]
    offered(levels, [([3], 5.0), ([2, 3], 3.0)])  # while the search goes on
    assert [x.S.tolist() for x in taken] == [[3], [2, 3], [1, 2, 3]]
    levels.renew()
    assert len(list(levels.take())) == 3


def test_a_support_at_the_floor_ends_the_levels():
    levels = Levels(0, 3, 1, 1e-9, floor=0.0)
    offered(levels, [([1, 2, 3], 2.0), ([1, 2], 3.0), ([7], 0.0)])
    assert levels.top == 1
    assert not any(offered(levels, [([4, 5], 0.0)]))
    assert [x.S.tolist() for x in levels.bests()] == [[7]]
    assert list(levels.take()) == []


# the search


@pytest.mark.parametrize("kind", ["held", "on demand", "blocks"])
def test_no_neighbour_is_better_than_what_is_settled(rng, monkeypatch, kind):
    """Also none outside the working set."""
    if kind == "on demand":
        monkeypatch.setattr(least_squares, "LARGEST_HELD", 0)
    X = rng.normal(size=(60, 200)) + rng.normal(size=(60, 1))
    y = X[:, :6] @ [1, -1, 1, -1, 1, -1] + 0.1 * rng.normal(size=60)
    f = lz.LeastSquares(X, y) if kind != "blocks" else block_quadratic(3, [1, 2] * 70, 400)
    levels = Levels(0, 8, 2, f.resolution / f.unit**2)
    search = QuadraticSearch(f, levels)
    levels.offer(np.empty(0, dtype=int), f.moments.constant)
    search.forward(2)
    for _ in search.settle():
        pass
    assert len(search.W) < len(f.features)
    values, slack = {len(x.S): x.value for x in levels.bests() if len(x.S) <= 8}, 1e-9
    for k, kept in levels.kept.items():
        near = f.neighbourhood(search.minimiser(kept[0]))
        assert_allclose(values[k], near.x.value / f.unit**2, rtol=1e-7, atol=1e-12)
        if k:
            assert near.best_exchange().value / f.unit**2 >= values[k] - slack
        if k < 8:
            assert near.insertions().min() / f.unit**2 >= values[k + 1] - slack
        if k > 1:
            assert near.removals().min() / f.unit**2 >= values[k - 1] - slack


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_is_no_pair_under_a_large_ridge(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 20))
    f = lz.LeastSquares(X, X[:, :4].sum(axis=1) + rng.normal(size=60), ridge=1e9)
    S, levels = np.array([3, 7, 11]), Levels(0, 5, 1, 0.0)
    levels.offer(S, value_of(f, S))
    search = QuadraticSearch(f, levels)
    search.explore(next(levels.take()))
    pairs = combinations(np.setdiff1d(np.arange(20), S), 2)
    best = min((np.sort(np.append(S, pair)) for pair in pairs), key=lambda S: f.minimize(S).value)
    assert levels.kept[5][0].S.tolist() == best.tolist()


@pytest.mark.parametrize("n", [30, 200], ids=["whole", "working set"])
def test_the_planted_pairs_are_found(n, rng):
    """Pairs of nearly equal columns with opposite signs: one alone gains next to nothing."""
    X = rng.normal(size=(400, n))
    X[:, 1::2] = X[:, ::2] + 0.05 * rng.normal(size=X[:, 1::2].shape)
    coef = np.zeros(n)
    coef[:6] = [10, -10, 10, -10, 10, -10]
    f = lz.LeastSquares(X, X @ coef + 0.1 * rng.normal(size=400))
    assert lz.solve(f, 6).support.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"forced": (2, 5)}], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_best_blocks_are_found(seed, options):
    rng = np.random.default_rng(seed)
    f = block_quadratic(seed, rng.integers(1, 4, size=11).tolist(), **options)
    found = lz.path(f, range(1, 7))
    for s, least in best_values(f, found).items():
        assert_allclose(found[s].value, least, rtol=1e-9)


@pytest.mark.parametrize(("rank", "n"), [(1, 30), (2, 60)])
def test_a_search_of_dependent_columns_ends(rank, n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, rank)) @ rng.normal(size=(rank, n))
    y = rng.normal(size=40)
    found = lz.path(lz.LeastSquares(X, y), range(1, 8))
    least = 0.5 * np.linalg.norm(y - X @ np.linalg.lstsq(X, y)[0]) ** 2
    assert_allclose([found[s].value for s in range(rank, 8)], least, rtol=1e-9)
    assert [len(found[s].support) for s in found] == list(found)


@pytest.mark.parametrize("seed", range(4))
def test_no_local_search_is_better_on_small_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(54, 1)) + 1e-4 * rng.normal(size=(54, 40))
    f = lz.LeastSquares(X, X @ rng.normal(size=40) + rng.normal(size=54))
    found = lz.path(f, range(1, 13))
    for method in ("omp", "ompr", "els", "exchange"):
        other = lz.path(f, range(1, 13), method=method)
        assert all(found[s].value <= other[s].value + f.resolution for s in found)


def small_problem(seed, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 60)) + rng.normal(size=(40, 60))
    y = X[:, :12] @ rng.normal(size=12) + rng.normal(size=40)
    if kind == "squares":
        return lz.LeastSquares(X, y)
    return lz.Logistic(X, y > 0, ridge=0.1)


@pytest.mark.parametrize("kind", ["squares", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_twice_the_effort_is_never_worse(seed, kind):
    f = small_problem(seed, kind)
    efforts, sizes = ((0, 0.25, 0.5, 1, 2, 4), 11) if kind == "squares" else ((0, 1, 2), 6)
    paths = [lz.path(f, range(1, sizes), effort=effort) for effort in efforts]
    values = np.array([[found.value for found in path.values()] for path in paths])
    assert (np.diff(values, axis=0) <= 1e-9 * values[:-1]).all()


@pytest.mark.parametrize("kind", ["squares", "logistic"])
def test_one_size_alone_is_the_end_of_a_path(kind):
    f = small_problem(7, kind)
    for s in (1, 4, 9):
        alone, found = lz.solve(f, s), lz.path(f, range(1, s + 1))[s]
        assert alone.support.tolist() == found.support.tolist()
        assert alone.value == found.value
        assert alone.status == found.status
        assert alone.n_iter == found.n_iter


def test_the_seed_changes_nothing_but_is_checked():
    f = small_problem(1, "squares")
    assert repr(lz.path(f, [3, 5], random_state=1)) == repr(lz.path(f, [3, 5], random_state=2))
    with pytest.raises(ValueError, match="random_state: "):
        lz.solve(f, 3, random_state="x")


# wide data


@pytest.fixture(params=["kept rows", "no kept rows"])
def on_demand(request, monkeypatch):
    """Treat all data as too wide for a Gram matrix, and perhaps for rows of it."""
    monkeypatch.setattr(least_squares, "LARGEST_HELD", 0)
    if request.param == "no kept rows":
        monkeypatch.setattr(columns, "LONGEST_KEPT_ROW", 0)


@pytest.mark.usefixtures("on_demand")
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "forced": [2], "ridge": 0.1}])
def test_wide_data_have_the_same_answers(rng, monkeypatch, options):
    X = sparse.csc_matrix(rng.normal(size=(150, 40)) * (rng.random((150, 40)) < 0.15))
    y = X[:, [1, 4, 9, 11]] @ [2.0, -2.0, 3.0, 1.5] + rng.normal(size=150)
    wide = lz.LeastSquares(X, y, **options)
    assert not isinstance(wide.moments, HeldMoments)
    monkeypatch.setattr(least_squares, "LARGEST_HELD", 1000)
    held = lz.LeastSquares(X, y, **options)
    found, wanted = lz.path(wide, range(1, 8)), lz.path(held, range(1, 8))
    for s in wanted:
        assert found[s].support.tolist() == wanted[s].support.tolist()
        assert_allclose(found[s].value, wanted[s].value, rtol=1e-9)


# every other f


class Plain(lz.Objective):
    """A least-squares problem that tells nothing but values, gradients and minimisers."""

    def __init__(self, f):
        self.f, self.features, self.resolution = f, f.features, f.resolution

    def at(self, x):
        return self.f.at(x)

    def gradient(self, x):
        return self.f.gradient(x)

    def minimize(self, S, start=None, below=np.inf):
        return self.f.minimize(S)


def test_gradients_propose_neighbours_where_there_is_no_model(rng):
    X = rng.normal(size=(80, 25)) + rng.normal(size=(80, 1))
    f = lz.LeastSquares(X, X[:, :5] @ [3, -3, 2, -2, 1] + rng.normal(size=80))
    found, greedy = lz.path(Plain(f), range(1, 8)), lz.path(f, range(1, 8), method="omp")
    assert all(isinstance(x, Iterate) for x in found[5].trace)
    assert all(found[s].value <= greedy[s].value * (1 + 1e-12) for s in found)
    assert found[5].support.tolist() == lz.solve(f, 5).support.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_best_logistic_model_is_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 12)) + rng.normal(size=(120, 1))
    y = X[:, :4] @ [1.5, -1.5, 1.0, -1.0] + rng.logistic(size=120) > 0
    f = lz.Logistic(X, y, fit_intercept=True, ridge=0.1)
    found = lz.path(f, range(1, 5))
    for s, least in best_values(f, found).items():
        assert_allclose(found[s].value, least, rtol=1e-8)
