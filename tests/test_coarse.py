"""Wide data in single precision: it tells which columns matter, and exact numbers decide."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ellzero import LeastSquares, arht, omp, ompr, path
from ellzero.algorithms import search
from ellzero.algorithms.beam import left_of
from ellzero.algorithms.levels import Levels
from ellzero.algorithms.outside import Outside
from ellzero.linalg import inverse_root
from ellzero.objectives import panels
from ellzero.objectives.design import Design
from ellzero.objectives.kept_rows import KeptRows
from ellzero.objectives.panels import Panels
from ellzero.supports import smallest


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 64, 150, 700])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_panels(rng, monkeypatch, threads, order, n, dtype):
    monkeypatch.setattr(panels, "SHELF_BYTES", 30_000)
    monkeypatch.setattr(panels, "run_of", lambda m: 7)
    X = np.asarray(rng.normal(5.0, 1.0, (30, n)), dtype=dtype, order=order)
    mean, factor = X.mean(axis=0, dtype=float), rng.uniform(0.5, 2.0, n)
    root = rng.uniform(0.0, 2.0, 30)
    made = Panels(Design(X), mean, factor, root, threads)
    for count in (1, 3, 8):
        V = rng.normal(size=(count, 30))
        Z = (X - mean) * factor * root[:, None]
        assert_allclose(made.products(V), V @ Z, atol=1e-4)


@pytest.fixture
def wide(rng, lazy_gram):
    """With a constant, a copy, a near copy, and columns on very different scales and offsets."""
    X = rng.normal(size=(400, 150)) + rng.normal(size=(400, 1))
    X[:, 20], X[:, 30] = 3.0, X[:, 40]
    X[:, 50] = X[:, 60] + 1e-7 * rng.normal(size=400)
    y = X[:, ::15] @ rng.normal(size=10) + rng.normal(size=400)
    X *= 10.0 ** rng.integers(-100, 100, 150)
    X[:, 5] = 1e8 + rng.normal(size=400)
    return X, y


@pytest.mark.parametrize("weighted", [False, True])
def test_coarse_rows_are_as_near_as_they_say(wide, rng, weighted):
    X, y = wide
    weight = rng.uniform(0.0, 3.0, 400) if weighted else None
    f = LeastSquares(X, y, fit_intercept=True, sample_weight=weight)
    exact = LeastSquares(X, y, fit_intercept=True, sample_weight=weight).gram.rows(np.arange(150))
    for S in (np.array([3]), np.array([20, 3, 30]), np.arange(150)):  # at first without panels
        assert_allclose(f.gram.coarse_rows(S), exact[S], atol=f.gram.roughness)
    assert f.gram.coarse_rows(S).dtype == np.float32
    A = rng.normal(size=(4, 31)) * np.array([[1.0], [1e-60], [1e60], [0.0]])
    rows = np.append(np.arange(30), 150)
    rough, doubt = f.rough_moment_products(rows, A)
    error = np.abs(rough - f.moment_products(rows, A)).max(axis=1)
    assert (error <= doubt + 1e-12 * np.abs(A).sum(axis=1) * f.unit).all()
    assert len(f.gram._exact) == 30  # those of the comparison


def test_rows_ahead_are_made_along_and_once():
    kept = KeptRows(9, 3, float)
    kept.add(np.array([4]), np.ones((1, 3)))
    S, ahead = np.array([7, 4, 2]), np.array([5, 7, 4, 5, 1, 8])
    assert kept.missing(S, ahead, 4).tolist() == [2, 7, 5, 1]
    assert kept.missing(S, ahead, 2).tolist() == [2, 7]
    assert kept.missing(np.array([4]), ahead, 4).tolist() == []


@pytest.mark.parametrize("m", [500, 6000])
def test_equal_addends_are_rounded_the_same_way(rng, lazy_gram, m):
    X = np.where(rng.random((m, 200)) < 0.03, 1.0, 0.0)
    X[:, 100:] = np.where(rng.random((m, 100)) < 0.02, 1 - X[:, :1], X[:, :1])
    f = LeastSquares(X, rng.normal(size=m), fit_intercept=True)
    S = np.arange(90, 200)
    assert_allclose(f.gram.coarse_rows(S), f.gram.rows(S), atol=f.gram.roughness)


@pytest.mark.parametrize("size", [1e-80, 1.0, 1e80])
def test_weights_of_any_size(wide, rng, size):
    X, y = wide
    weight = size * rng.uniform(0.5, 1.0, 400)
    weight[7] *= 1e-60
    X = np.column_stack([X, np.arange(400) == 7])
    f = LeastSquares(X, y, sample_weight=weight)
    S = np.arange(151)
    assert_allclose(f.gram.coarse_rows(S), f.gram.rows(S), atol=f.gram.roughness)


def test_what_fills_up_the_last_block_never_enters(rng):
    X = rng.normal(size=(601, 401))
    y = X @ rng.normal(size=401)
    f = LeastSquares(X, y)
    found = arht(f, 400, start=np.arange(1, 401), random_state=0, n_runs=4)
    assert found.support.max() <= 400


def test_forced_features_and_sparse_data_have_exact_rows(wide):
    X, y = wide
    f = LeastSquares(X, y, forced=[7])
    assert f.gram.roughness == 0
    S = np.arange(1, 9)
    assert_allclose(f.gram.coarse_rows(S), f.gram.rows(S), atol=1e-7)
    assert (f.rough_moment_products(S, np.eye(8))[1] == 0).all()


def test_omp_and_ompr_as_on_a_whole_gram_matrix(wide, monkeypatch):
    X, y = wide
    lazy = LeastSquares(X, y, fit_intercept=True)
    monkeypatch.setattr("ellzero.objectives.least_squares.LARGEST_GRAM", 1000)
    dense = LeastSquares(X, y, fit_intercept=True)
    for solver in (omp, ompr):
        found, wanted = solver(lazy, 25), solver(dense, 25)
        assert [x.note for x in found.trace] == [x.note for x in wanted.trace]
    assert len(lazy.gram._exact) == 0


@pytest.mark.parametrize("roughness", [1e-3, 3e-2])
def test_what_rough_rows_leave_open_is_decided_exactly(rng, monkeypatch, lazy_gram, roughness):
    X, y = rng.normal(size=(300, 500)), rng.normal(size=300)  # many features are nearly as good
    X[:, ::5] += X[:, 1::5]
    lazy, products = LeastSquares(X, y, fit_intercept=True), Panels.products

    def off(self, V):
        exact = products(self, V)
        return exact + roughness * rng.uniform(-0.9, 0.9, exact.shape).astype(np.float32)

    monkeypatch.setattr(Panels, "products", off)
    lazy.gram.roughness = roughness
    monkeypatch.setattr("ellzero.objectives.least_squares.LARGEST_GRAM", 1000)
    dense = LeastSquares(X, y, fit_intercept=True)
    for solver in (omp, ompr, partial(arht, random_state=0, n_runs=4, rho=dense.smoothness(1))):
        found, wanted = solver(lazy, 20), solver(dense, 20)
        assert [x.support.tolist() for x in found.trace] == [
            x.support.tolist() for x in wanted.trace
        ]


def reached(f, levels, W):
    moments = f.moment_block(np.append(W, f.n_features), np.append(W, f.n_features))
    outside = Outside(f, levels, W, moments)
    views = [view for x in levels.bests() for view in outside.views(x)]
    return {len(view.S): set(found.tolist()) for view, found in outside.within_reach(views)}


@pytest.mark.parametrize("explained", [3.0, 0.0])  # none: what is left of columns decides
def test_bounds_on_features_outside_allow_for_rough_rows(rng, monkeypatch, lazy_gram, explained):
    X = rng.normal(size=(300, 400))
    X[:, 20:] += rng.normal(size=(300, 1)) + X[:, :12:2].sum(axis=1, keepdims=True)
    y = explained * X[:, :12].sum(axis=1) + 2 * rng.normal(size=300)
    lazy, products = LeastSquares(X, y), Panels.products

    def off(self, V):
        exact = products(self, V)
        return exact - np.float32(0.009) * np.sign(exact)

    monkeypatch.setattr(Panels, "products", off)
    lazy.gram.roughness = 1e-2
    monkeypatch.setattr("ellzero.objectives.least_squares.LARGEST_GRAM", 1000)
    dense = LeastSquares(X, y)
    levels, W = Levels(0, 6, 1, dense.resolution), np.arange(20)
    for k in range(7):
        S = np.arange(0, 2 * k, 2)
        levels.offer(S, dense.minimize(S).value)
    rough, exact = reached(lazy, levels, W), reached(dense, levels, W)
    assert all(exact[k] <= rough[k] for k in exact)
    assert sum(map(len, rough.values())) < 7 * 380


def test_a_beam_on_few_features_of_many(wide, monkeypatch):
    """Those that are active are chosen roughly; the values of the supports are exact."""
    X, y = wide
    f = LeastSquares(X, y, fit_intercept=True)
    monkeypatch.setattr(search, "MANY", 100)
    monkeypatch.setattr(search, "WORTHWHILE", np.inf)
    monkeypatch.setattr(search, "ACTIVE", 20)
    found = path(f, range(1, 12))
    assert len(f.gram._exact) == 0
    monkeypatch.setattr("ellzero.objectives.least_squares.LARGEST_GRAM", 1000)
    dense = LeastSquares(X, y, fit_intercept=True)
    wanted = path(dense, range(1, 12))
    for s in found:
        assert found[s].value == pytest.approx(wanted[s].value, rel=1e-9)
        assert found[s].value <= dense.minimize(found[s].support).value * (1 + 1e-9)


def test_what_supports_leave_of_some_features(wide):
    X, y = wide
    f = LeastSquares(X, y, fit_intercept=True)
    supports, columns = np.array([[3, 8, 11], [90, 3, 70]]), np.array([1, 3, 8, 64, 149])
    roots = np.array([inverse_root(f.moment_block(S, S)) for S in supports])
    r, d = left_of(f, supports, roots, columns)
    for S, own_r, own_d in zip(supports, r, d, strict=True):
        x = f.minimize(S)
        gradient = f.gradient(x)[columns] / f.scale[columns]
        assert_allclose(own_r, -gradient, atol=1e-9 * f.unit)
        outside = ~np.isin(columns, S)
        assert (own_d[~outside] == 0).all()
        gain = x.value - f.insertion_values(S)[columns[outside]]
        assert_allclose(own_r[outside] ** 2 / (2 * own_d[outside]), gain, rtol=1e-6, atol=1e-9)


def test_nothing_within_reach_is_lost_to_rounding(wide, monkeypatch):
    """A search that starts from little finds by bounds what a better start has."""
    X, y = wide
    f = LeastSquares(X, y, fit_intercept=True)
    best = {k: smallest(f.insertion_values(np.array([k])), 1)[0] for k in (3, 60, 75)}
    monkeypatch.setattr(search, "NARROW", 1)
    found = path(f, range(1, 4), effort=0)
    for k, i in best.items():
        assert found[2].value <= f.minimize([k, i]).value + f.resolution
