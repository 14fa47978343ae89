"""The features with the largest gradients, for many points of a quadratic at once."""

import numpy as np
import pytest

from ellzero import LeastSquares, arht, path, supports
from ellzero.core import Iterates
from ellzero.objectives import steepest
from ellzero.supports import magnitudes


@pytest.fixture(autouse=True)
def _in_small_parts(monkeypatch, lazy_gram):
    """As on data with many features and points."""
    monkeypatch.setattr(steepest, "COLUMNS", 16)
    monkeypatch.setattr(steepest, "BLOCKS", 2)
    monkeypatch.setattr(steepest, "TOGETHER", 8)
    monkeypatch.setattr(steepest, "WORTH", 0)


def points(f, rng, count, largest):
    supports, coef = np.full((count, largest), -1), np.zeros((count, largest))
    for row, x in zip(supports, coef, strict=True):
        s = rng.integers(1, largest + 1)
        row[:s] = np.sort(rng.choice(f.choosable, s, replace=False))
        x[:s] = f.minimize(row[:s]).coef * rng.uniform(0.2, 1.0, s)
    return Iterates(supports, coef, np.zeros(count), f.n_features)


def alone(f, xs):
    return [f.largest_outside(x.support, magnitudes(f.gradient(x))) for x in xs]


@pytest.mark.parametrize("threads", [1, 3, 9])  # 9: more than there are blocks of columns
@pytest.mark.parametrize("spread", [0.0, 1.0, 12.0])
def test_they_are_those_of_each_point(rng, threads, spread):
    X = rng.standard_normal((40, 75)) * 10 ** rng.uniform(-spread, spread, 75)
    f = LeastSquares(X, rng.standard_normal(40), fit_intercept=True, forced=[0, 20])
    f.gram.threads = threads
    find = f.successive_steepest()
    for count in (1, 9, 50, 3):
        xs = points(f, rng, count, 9)
        assert find(xs).tolist() == alone(f, xs)


def test_of_equals_the_first_is_taken_whoever_else_is_asked_about(rng):
    X = rng.standard_normal((30, 40))
    X = np.hstack([X, X[:, ::-1], -X])  # everything three times
    f = LeastSquares(X, rng.standard_normal(30))
    xs = points(f, rng, 40, 5)
    together = f.steepest(xs)
    one = [
        f.steepest(Iterates(xs.support[[k]], xs.coef[[k]], xs.value[[k]], 120)) for k in range(40)
    ]
    assert together.tolist() == np.concatenate(one).tolist()
    for x, i in zip(xs, together, strict=True):
        sizes = np.abs(f.gradient(x))
        sizes[x.support] = -1.0
        assert i == (sizes > sizes.max() * (1 - 1e-9)).argmax()


def test_a_path_with_copies_of_columns_is_that_of_its_sizes(rng):
    X = rng.standard_normal((50, 30))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    y = X[:, 0] - X[:, 1] + X[:, 2:6].sum(axis=1) + rng.standard_normal(50)
    f = LeastSquares(np.hstack([X, X]), y)
    options = {"start": "first", "random_state": 0, "n_runs": 6, "rho": 2.0, "lower": 0.0}
    found = path(f, range(1, 9), "arht", **options)
    for s, solution in found.items():
        other = arht(LeastSquares(np.hstack([X, X]), y), s, **options)
        assert solution.support.tolist() == other.support.tolist()
        assert [x.note for x in solution.trace] == [x.note for x in other.trace]


@pytest.mark.parametrize("size", [1e39, 1e45, 1e60])
def test_numbers_too_large_for_single_precision(rng, size):
    f = LeastSquares(rng.standard_normal((40, 90)), rng.standard_normal(40))
    xs = points(f, rng, 12, 4)
    for some in (slice(12), slice(1)):
        huge = Iterates(xs.support[some], size * xs.coef[some], xs.value[some], 90)
        assert f.steepest(huge).tolist() == alone(f, huge)


@pytest.mark.parametrize("apart", [16, 40])  # 16: in the same place of two blocks
def test_what_single_precision_does_not_tell_double_precision_does(rng, apart):
    X = rng.standard_normal((30, apart))
    f = LeastSquares(np.hstack([X, X * (1 + 1e-9)]), rng.standard_normal(30))
    xs = points(f, rng, 40, 5)
    found = f.steepest(xs)
    assert found.tolist() == alone(f, xs)
    assert (found >= apart).mean() > 0.5


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_column_of_zeros_never_enters_however_small_the_others_are(rng, fit_intercept):
    X = (rng.standard_normal((60, 30)) + 2 * rng.standard_normal((60, 1))) * 1e-16
    y = 1e16 * X[:, 10:16].sum(axis=1) + rng.standard_normal(60)
    X[:, 0] = float(fit_intercept)
    f = LeastSquares(X, y, fit_intercept=fit_intercept)
    xs = points(f, rng, 20, 5)
    assert f.steepest(xs).tolist() == alone(f, xs)
    found = arht(f, 5, start=[1, 2, 3, 4, 5], random_state=0)
    assert found.value < 0.5 * found.trace[0].value


def test_many_points_on_many_features_are_looked_at_in_parts(rng, monkeypatch):
    X = rng.standard_normal((30, 40))
    f = LeastSquares(np.hstack([X, X]), rng.standard_normal(30), forced=[3])  # none is clear
    xs = points(f, rng, 30, 5)
    whole = f.steepest(xs).tolist()
    monkeypatch.setattr(supports, "AT_ONCE", 500)
    assert f.steepest(xs).tolist() == whole


def test_coefficients_that_are_zero(rng):
    f = LeastSquares(rng.standard_normal((40, 75)), rng.standard_normal(40))
    xs = points(f, rng, 24, 12)
    some = np.where(rng.random(xs.coef.shape) < 0.6, 0.0, xs.coef)
    xs = Iterates(xs.support, some, xs.value, f.n_features)
    assert f.steepest(xs).tolist() == alone(f, xs)


def test_a_small_support_beside_large_ones_and_none_at_all(rng):
    X = rng.standard_normal((40, 30))
    f = LeastSquares(np.hstack([X, X * (1 + 1e-13)]), rng.standard_normal(40))
    xs = points(f, rng, 30, 12)
    each = [Iterates(xs.support[[k]], xs.coef[[k]], xs.value[[k]], 60) for k in range(30)]
    assert f.steepest(xs).tolist() == [int(f.steepest(x)[0]) for x in each]
    none = Iterates(np.empty((3, 0), dtype=int), np.empty((3, 0)), np.zeros(3), f.n_features)
    assert f.steepest(none).tolist() == [int(f.steepest(none)[0])] * 3


def test_what_is_in_the_support_does_not_enter_however_large_it_is():
    X, y = np.eye(5)[:, :4], np.array([1.0, 0.5, 0.3, 0.2, 0.1])
    for forced, S in ((), 0), ([0], 1):
        f = LeastSquares(X, y, forced=forced)
        x = Iterates(np.array([[S]]), np.array([[1e17]]), np.zeros(1), 4)
        assert f.steepest(x)[0] not in (S, *forced)
