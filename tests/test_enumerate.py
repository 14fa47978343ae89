"""All supports of one size: which is the best, and where moments leave that in doubt."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
from ellzero.search.enumerate import best_of_all, best_pair

EPS = np.finfo(float).eps


@pytest.mark.parametrize("penalty", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_pair_is_the_best_of_all_pairs(seed, penalty):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 45)) + rng.normal(size=(60, 1))
    X[:, 40], X[:, 41], X[:, 42] = X[:, 3], -2 * X[:, 40], 0.0  # copies, and nothing at all
    X[:, 44] = X[:, 43] + 1e-3 * X[:, 44]
    y = (X[:, 43] - X[:, 44]) * 500 + X[:, :3].sum(axis=1) + rng.normal(size=60)
    C, features = X.T @ X, np.delete(np.arange(45), 7)
    scale = np.sqrt(np.where(C.diagonal() > 0, C.diagonal(), 1.0))
    C, c = C / scale / scale[:, None], X.T @ y / scale / 100
    penalties = np.full(45, penalty)
    pair, doubtful = best_pair(C, penalties, c, features, EPS, same=4)
    best, none = best_of_all(C, penalties, c, features, EPS, same=4, k=2)
    assert pair.tolist() == best.tolist()
    assert len(doubtful) == len(none) == 0


def test_a_pair_has_two_features_and_gains_nothing_by_dependence():
    C, every = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.arange(3)
    for c, best in (([1.0, 0.0, 0.0], {0}), ([1.0, 2.0, 0.9], {1, 2})):
        pair, doubtful = best_pair(C, np.zeros(3), np.array(c), every, EPS, same=4)
        assert len(set(pair)) == 2
        assert best <= set(pair)
        assert not len(doubtful)


@pytest.mark.parametrize("rank", [best_pair, partial(best_of_all, k=2)])
def test_pairs_that_moments_do_not_tell_apart_are_in_doubt(rng, rank):
    X = rng.normal(size=(60, 40))
    X[:, 7] = X[:, 3] + 1e-7 * X[:, 7]
    X[:, 39] = X[:, 2] + 1e-9 * X[:, 39]
    X /= np.linalg.norm(X, axis=0)
    c = X.T @ (X[:, 10] + X[:, 11])
    best, doubtful = rank(X.T @ X, np.zeros(40), c / 2, np.arange(40), EPS, -np.inf)
    assert best.tolist() == [10, 11]
    assert sorted(map(tuple, doubtful.tolist())) == [(2, 39), (3, 7)]


@pytest.mark.parametrize("rank", [best_pair, partial(best_of_all, k=2)])
def test_a_doubtful_pair_stays_in_doubt_when_a_better_one_comes(rng, rank):
    """With few digits all pairs that come close are, wherever they stand."""
    X = rng.normal(size=(300, 90))
    y = X[:, 2] + X[:, 3] + (1 + 1e-9) * (X[:, 85] + X[:, 86])
    X[:, 85:87] = X[:, 2:4] + 1e-9 * X[:, 85:87]
    X, y = X / np.linalg.norm(X, axis=0), y / np.linalg.norm(y)
    best, doubtful = rank(X.T @ X, np.zeros(90), X.T @ y, np.arange(90), 1e-9, -np.inf)
    close = {(2, 3), (85, 86), (2, 86), (3, 85), tuple(best)}
    assert close <= {tuple(best), *map(tuple, doubtful)}


@pytest.mark.parametrize("noise", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("forms", ["plain", "weighted", "offset", "ridge", "forced"])
def test_the_best_of_nearly_equal_columns_is_the_best(forms, noise):
    """Moments hold squares of what tells such columns apart, which is less than rounding."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 10))
    X[:, 5:] = X[:, :5] + noise * X[:, 5:]
    weight = rng.uniform(0.5, 2, 60) if forms == "weighted" else np.ones(60)
    X += 10 * (forms == "offset")
    y = X[:, 0] - X[:, 3] + rng.normal(size=60)
    ridge, forced = 1e-13 * (forms == "ridge"), [1] * (forms == "forced")
    f = lz.LeastSquares(X, y, sample_weight=weight, fit_intercept=True, ridge=ridge, forced=forced)
    root = np.sqrt(np.append(weight, np.ones(10)))[:, None]
    A = root * np.vstack([np.column_stack([np.ones(60), X]), np.eye(10, 11, 1) * np.sqrt(ridge)])
    t = root[:, 0] * np.append(y, np.zeros(10))

    def value(S):
        A_S = A[:, [0, *(1 + j for j in (*forced, *S))]]
        Q = np.linalg.qr(A_S / np.linalg.norm(A_S, axis=0))[0]
        return 0.5 * np.linalg.norm(t - Q @ (Q.T @ t)) ** 2

    found = lz.path(f, range(1, len(f.features.choosable) + 1))
    for s, solution in found.items():
        best = min(value(S) for S in combinations(f.features.choosable, s))
        assert solution.status is lz.Status.OPTIMAL
        assert_allclose(solution.value, best, rtol=max(1e-9, 1e-15 / noise * 10))


def test_moments_that_do_not_tell_prove_nothing(rng):
    X = rng.normal(size=(60, 8))
    X[:, 4:] = X[:, :4] + 1e-7 * X[:, 4:]
    y = X[:, 0] + rng.normal(size=60)
    f = lz.Quadratic(X.T @ X, X.T @ y, 0.5 * y @ y)
    found = lz.path(f, range(1, 5))
    assert [x.status is lz.Status.OPTIMAL for x in found.values()] == [True, False, False, False]


def test_copies_are_no_doubt_where_rows_can_tell(rng):
    X = rng.normal(size=(80, 300))
    X[:, 200:] = X[:, :100]
    f = lz.LeastSquares(X, X[:, 10] + X[:, 20] + 0.1 * rng.normal(size=80))
    x = lz.solve(f, 2)
    assert x.status is lz.Status.OPTIMAL
    assert {j % 200 for j in x.support.tolist()} == {10, 20}


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_only_several_others_span_together_are_dependent(seed):
    """Each leaves a little of the next; of the first, all together leave less than rounding."""
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, 30))
    X = np.column_stack([a, d, a + 1e-4 * b, b + 1e-4 * c])
    f = lz.LeastSquares(X, rng.normal(size=30))
    supports = np.array([[0, 2, 3], [0, 1, 3]])
    least = [f.exact().minimize(S).value for S in supports]
    many = np.array([x.value for x in f.minimize_stack(supports, np.zeros((2, 3)))])
    for values in (many, [f.minimize(S).value for S in supports]):
        assert (values >= np.array(least) * (1 - 1e-9)).all()
        assert_allclose(values[1], least[1])


def test_sizes_above_a_nearly_perfect_fit_are_the_best_too(rng):
    """Two features explain all but a trace of y, which ends the search; what is left is a pair."""
    X = rng.normal(size=(30, 6))
    X[:, 3] = X[:, 2] + 0.1 * X[:, 3]
    left = X[:, 2] - X[:, 3]
    X[:, 4] = left + 0.1 * X[:, 4]
    found = lz.path(lz.LeastSquares(X, X[:, 0] + X[:, 1] + 3e-6 * left), range(1, 7))
    assert found[4].support.tolist() == [0, 1, 2, 3]
    assert all(solution.status is lz.Status.OPTIMAL for solution in found.values())


def test_many_doubtful_pairs_do_not_hide_those_that_were_not_looked_at(rng):
    """10 001 pairs are about as good as one another; a better one comes after them."""
    Q = np.linalg.qr(rng.normal(size=(400, 400)))[0]
    (g, h, a, b, z), E = Q[:, :5].T, Q[:, 5:]
    common, own = np.sqrt(0.99 - 1e-4) * g, 0.1 * h
    X = np.column_stack(
        [
            (common + own)[:, None] + 0.01 * E[:, :73],
            (own - common)[:, None] + 0.01 * E[:, 73 : 73 + 137],
            a + 0.1 * b,
            a - 0.1 * b,
        ]
    )
    assert lz.solve(lz.LeastSquares(X, 0.8 * h + b + 0.2 * z), 2).support.tolist() == [210, 211]


def test_moments_that_do_not_tell_the_value_prove_nothing_of_the_only_support(rng):
    A = rng.normal(size=(6, 1)) + 1e-6 * rng.normal(size=(6, 3))
    t = rng.normal(size=6)
    by_moments = lz.solve(lz.Quadratic(A.T @ A, A.T @ t, 0.5 * t @ t), 3)
    assert by_moments.status is not lz.Status.OPTIMAL
    by_rows = lz.solve(lz.LeastSquares(A, t), 3)
    assert by_rows.status is lz.Status.OPTIMAL
    Q = np.linalg.qr(A)[0]
    assert_allclose(by_rows.value, 0.5 * np.linalg.norm(t - Q @ (Q.T @ t)) ** 2, rtol=1e-8)


def test_rows_are_not_asked_where_that_takes_long(rng, monkeypatch):
    X = rng.normal(size=(3000, 400))
    X[:, 200:] = X[:, :200]
    f = lz.LeastSquares(X, X[:, 0] + rng.normal(size=3000))
    monkeypatch.setattr(lz.LeastSquares, "_of_rows", None)
    assert lz.solve(f, 2).status is lz.Status.SEARCH_ENDED


def test_a_constant_column_is_no_doubt_beside_forced_ones(rng, monkeypatch):
    X = rng.normal(size=(50, 6))
    X[:, 2] = 3.0
    f = lz.LeastSquares(X, X[:, 0] + rng.normal(size=50), fit_intercept=True, forced=[1])
    monkeypatch.setattr(lz.LeastSquares, "_of_rows", None)
    assert lz.solve(f, 2).status is lz.Status.OPTIMAL


def test_no_search_follows_where_all_sizes_are_proven(rng, monkeypatch):
    X = rng.normal(size=(60, 9))
    f = lz.LeastSquares(X, X[:, 0] + rng.normal(size=60))
    monkeypatch.setattr("ellzero.search.auto.QuadraticSearch", None)
    found = lz.path(f, range(1, 10))
    assert {x.status for x in found.values()} == {lz.Status.OPTIMAL}


def test_what_is_proven_does_not_depend_on_the_sizes_asked_for(rng):
    X = rng.normal(size=(60, 30))
    f = lz.LeastSquares(X, X[:, :3].sum(axis=1) + rng.normal(size=60))
    found = lz.path(f, range(1, 9))
    assert [x.status is lz.Status.OPTIMAL for x in found.values()] == [s <= 3 for s in found]
    assert lz.solve(f, 2).status is lz.Status.OPTIMAL


@pytest.mark.parametrize("noise", [1.0, 1e-11])
def test_the_best_of_all_fits_is_proven_unless_a_fit_is_in_doubt(rng, noise):
    X = rng.normal(size=(80, 6))
    X[:, 5] = X[:, 4] + noise * X[:, 5]
    y = X[:, 0] + X[:, 4] + rng.logistic(size=80) > 0
    f = lz.Logistic(X, y, fit_intercept=True)
    found = lz.path(f, range(1, 4))
    for s, solution in found.items():
        best = min(f.minimize(S).value for S in combinations(range(6), s))
        assert_allclose(solution.value, best, rtol=1e-9)
    assert found[1].status is lz.Status.OPTIMAL
    assert (found[2].status is lz.Status.OPTIMAL) == (noise == 1.0)


def test_an_objective_that_tells_no_rounding_is_taken_at_its_word(rng):
    X = rng.normal(size=(50, 5))
    y = X[:, 1] - X[:, 3] + rng.normal(size=50)
    f = lz.from_callables(
        lambda x: 0.5 * np.sum((X @ x - y) ** 2),
        lambda x: X.T @ (X @ x - y),
        5,
        hessian=lambda x: X.T @ X,
    )
    assert lz.solve(f, 2).support.tolist() == [1, 3]
