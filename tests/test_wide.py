"""Wide data: moments made on demand answer as moments that are held."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from ellzero import LeastSquares, Logistic, Multinomial, path
from ellzero.data.design import Design
from ellzero.objectives import least_squares
from ellzero.objectives.moments import columns
from ellzero.objectives.moments.columns import ProjectedColumns

M, N = 150, 40
OPTIONS = {"fit_intercept": True, "forced": [2]}


def data(rng):
    X = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.15)
    X[:, 7] = 0.0  # a word that never occurs
    X = sparse.csc_matrix(X)
    eta = X[:, [1, 4, 9, 11]] @ [2.0, -2.0, 3.0, 1.5]
    return X, eta + rng.normal(size=M)


def made(kind, X, y, **options):
    return kind(X, y if kind is LeastSquares else y > 0, ridge=0.1, **options)


@pytest.fixture(params=["rows kept", "no rows kept", "dense"])
def wide(request, monkeypatch, on_demand):
    """Make moments on demand, with rows that are kept or not, of sparse or dense columns."""
    if request.param == "no rows kept":
        monkeypatch.setattr(columns, "LONGEST_KEPT_ROW", 0)
    return sparse.csc_matrix.toarray if request.param == "dense" else lambda X: X


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "intercept and forced"])
def test_moments_on_demand_are_those_that_are_held(rng, wide, options, weighted, monkeypatch):
    X, y = data(rng)
    w = rng.uniform(0.5, 2, M) if weighted else None
    f = LeastSquares(wide(X), y, sample_weight=w, ridge=0.1, **options)
    monkeypatch.setattr(least_squares, "LARGEST_HELD", 1000)
    held = LeastSquares(X.toarray(), y, sample_weight=w, ridge=0.1, **options)
    C = held.moments.matrix
    assert_allclose(f.scale, held.scale)
    assert_allclose(f.moments.target, held.moments.target, atol=1e-12)
    assert_allclose(f.moments.diagonal, held.moments.diagonal)
    S, T = np.array([3, 7, 5, 12]), np.array([5, 0, 3, 30, 2])
    A = rng.normal(size=(4, len(S)))
    for _ in range(2):  # before and after rows were made
        assert_allclose(f.moments.block(S, T), C[np.ix_(S, T)], atol=1e-10)
        assert_allclose(f.moments.products(S, A), A @ C[S], atol=1e-10)
    stack = np.array([[1, 4, 7], [4, 9, 30], [9, 9, 2]])
    assert_allclose(f.moments.block(stack, stack), held.moments.block(stack, stack), atol=1e-10)
    one = stack[:, :1]
    assert_allclose(f.moments.block(stack, one), held.moments.block(stack, one), atol=1e-10)
    x = f.at(held.minimize([1, 4, 9]).x)
    assert_allclose(f.gradient(x), held.gradient(x), atol=1e-9)


@pytest.mark.parametrize("kind", [LeastSquares, Logistic])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "intercept and forced"])
def test_paths_are_the_same(rng, wide, kind, options, monkeypatch):
    X, y = data(rng)
    found = path(made(kind, wide(X), y, **options), range(1, 6), effort=0)
    monkeypatch.setattr(least_squares, "LARGEST_HELD", 1000)
    wanted = path(made(kind, X, y, **options), range(1, 6), effort=0)
    for s in wanted:
        assert found[s].support.tolist() == wanted[s].support.tolist()
        assert_allclose(found[s].x, wanted[s].x, rtol=1e-7, atol=1e-9)
        assert_allclose(found[s].value, wanted[s].value, rtol=1e-9)


def test_a_factor_has_the_products_of_the_matrix(rng, on_demand):
    X, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    for options in ({}, OPTIONS, {"sample_weight": rng.uniform(0.5, 2, 20)}):
        f = LeastSquares(X, y, **options)
        A, every = f.moments.factor(), np.arange(50)
        assert_allclose(A.T @ A, f.moments.block(every, every), atol=1e-12)
    assert LeastSquares(X, y, forced=[2], ridge=1.0).moments.factor() is None


@pytest.mark.parametrize("entries", [1, 7, 1 << 20])
def test_columns_are_summed_block_by_block(rng, monkeypatch, entries):
    X, _ = data(rng)
    offset = 1000.0 + rng.normal(size=(M, 1))  # its variance is lost in a difference of squares
    X = sparse.hstack([X, offset], format="csc")
    monkeypatch.setattr("ellzero.data.design.ENTRIES", entries)
    w = rng.uniform(0, 2, M)
    sparse_, dense = Design(X), Design(X.toarray())
    for found, wanted in zip(
        sparse_.means_and_norms(w, True), dense.means_and_norms(w, True), strict=True
    ):
        assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    scale = np.abs(X.toarray()).max(axis=0)
    assert_allclose(sparse_.standardised(True).scale, np.where(scale > 0, scale, 1.0))


@pytest.mark.parametrize("kind", [Logistic, Multinomial])
def test_sparse_columns_give_the_same_fits(rng, kind, monkeypatch):
    X, y = data(rng)
    S = np.array([1, 4, 9])
    wanted = made(kind, X.toarray(), y, **OPTIONS).minimize(S)
    monkeypatch.setattr("ellzero.data.design.SPARSE_FROM", 0)
    monkeypatch.setattr("ellzero.data.design.SPARSE_UP_TO", 1.0)
    found = made(kind, X, y, **OPTIONS).minimize(S)
    assert_allclose(found.coef, wanted.coef, rtol=1e-8)
    assert_allclose(found.value, wanted.value, rtol=1e-12)


def test_a_model_promises_no_more_than_rows_can_give():
    """A word in one row, which the model is wrong about: −log p is far less than (1 − p)/2p."""
    m = 400
    X = np.zeros((m, 2))
    X[: m // 2, 0] = X[0, 1] = 1.0
    y = np.repeat([1, 0], m // 2)
    y[[0, -1]] = 0, 1

    def promise(f):
        x = f.minimize([0])
        near = f.quadratic(x).neighbourhood(x)
        return x.value - near.insertions()[1], x.value - f.minimize([0, 1]).value

    promised, given = promise(Logistic(sparse.csc_matrix(X), y, fit_intercept=True))
    naive, _ = promise(Logistic(X, y, fit_intercept=True))
    assert naive > 5 * given
    assert given * 0.8 < promised < given * 1.2


def test_rare_words_do_not_hide_what_omp_finds(rng):
    m, n = 800, 300
    p = np.minimum(0.3, 3 / np.arange(1, n + 1))
    X = sparse.csc_matrix((rng.random((m, n)) < p).astype(float))
    eta = X[:, ::12] @ rng.normal(size=25) * 2
    y = rng.random(m) < 1 / (1 + np.exp(-(eta - eta.mean())))
    f = Logistic(X, y, fit_intercept=True, ridge=1e-3)
    found, greedy = path(f, range(1, 11), effort=0), path(f, range(1, 11), "omp")
    for s in found:
        assert found[s].value <= greedy[s].value + f.resolution


@pytest.mark.usefixtures("on_demand")
def test_a_sparse_column_without_zeros_can_be_constant(rng):
    X, y = data(rng)
    X = X.toarray()
    X[:, 5] = 3.7
    for _ in range(20):
        f = LeastSquares(sparse.csc_matrix(X), y, sample_weight=rng.random(M), fit_intercept=True)
        assert f.moments.diagonal[5] == 0 < f.moments.diagonal[4]


def test_a_pickled_objective_leaves_its_rows_behind():
    rng = np.random.default_rng(0)
    f = LeastSquares(rng.standard_normal((30, 3100)), rng.standard_normal(30))
    before = len(pickle.dumps(f))
    f.moments.products(np.arange(20), np.eye(20))
    assert len(pickle.dumps(f)) == before
    again, S = pickle.loads(pickle.dumps(f)), np.array([5, 9])
    assert_allclose(again.minimize(S).value, f.minimize(S).value)


def test_threads_share_the_rows_of_a_wide_problem(rng, monkeypatch):
    X, y = rng.standard_normal((30, 3200)), rng.standard_normal(30)
    f, make = LeastSquares(X, y), ProjectedColumns.rows

    def slow(self, S):
        sleep(0.005)  # threads meet where one has not yet said that its rows are there
        return make(self, S)

    supports = [np.arange(k, 40, 4) for k in range(4)] * 4
    exact = LeastSquares(X, y).moments.products(np.arange(40), np.eye(40))
    monkeypatch.setattr(ProjectedColumns, "rows", slow)
    with ThreadPoolExecutor(8) as pool:
        for S, block in zip(supports, pool.map(f.moments.block, supports, supports), strict=True):
            assert_allclose(block, exact[np.ix_(S, S)], atol=1e-12)
        rows = pool.map(f.moments.products, supports, [np.eye(10)] * len(supports))
        for S, row in zip(supports, rows, strict=True):
            assert_allclose(row, exact[S], atol=1e-12)
