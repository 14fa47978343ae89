"""Sparse data so wide that no Gram row is kept: the same answers as with rows that are."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from ellzero import LeastSquares, Logistic, path
from ellzero.core import Iterate
from ellzero.objectives.design import Design

M, N = 150, 40


@pytest.fixture(params=[1 << 23, 1], ids=["all at once", "row by row"])
def unkept(request, monkeypatch, lazy_gram):
    monkeypatch.setattr("ellzero.objectives.lazy_gram.LONGEST_KEPT", 0)
    monkeypatch.setattr("ellzero.supports.AT_ONCE", request.param)


def data(rng):
    X = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.15)
    X[:, 7] = 0.0  # a word that never occurs
    X = sparse.csc_matrix(X)
    eta = X[:, [1, 4, 9, 11]] @ [2.0, -2.0, 3.0, 1.5]
    return X, eta + rng.normal(size=M)


def made(kind, X, y, **options):
    return kind(X, y if kind is LeastSquares else y > 0, ridge=0.1, **options)


OPTIONS = {"fit_intercept": True, "forced": [2]}


@pytest.mark.usefixtures("unkept")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "intercept and forced"])
def test_combinations_and_blocks_are_those_of_the_rows(rng, options, weighted):
    X, y = data(rng)
    w = rng.uniform(0.5, 2, M) if weighted else None
    wide = LeastSquares(X, y, sample_weight=w, ridge=0.1, **options)
    assert not wide.keeps_moments
    dense = LeastSquares(X.toarray(), y, sample_weight=w, ridge=0.1, **options)
    assert dense.keeps_moments
    rows, columns = np.array([3, 7, 5, N, 12]), np.array([N, 5, 0, 3, 30])
    A = rng.normal(size=(4, len(rows)))
    M_ = dense.moment_rows(rows)
    assert_allclose(wide.moment_rows(rows), M_, atol=1e-10)
    for f in (wide, dense):
        assert_allclose(f.moment_block(rows, columns), M_[:, columns], atol=1e-10)
        assert_allclose(f.moment_products(rows, A), A @ M_[:, :-1], atol=1e-10)
    S = np.array([1, 4, 9])
    assert_allclose(wide.insertion_values(S), dense.insertion_values(S), rtol=1e-9)
    supports = np.array([[1, 4, 7], [4, 9, 30]])
    for f in (wide, dense):
        for T, block in zip(supports, f.gram.blocks(supports), strict=True):
            assert_allclose(block, dense.gram.block(T), atol=1e-10)
    x = Iterate(S, np.ones(3), np.nan, N)
    assert_allclose(wide.gradient(x), dense.gradient(x), atol=1e-9)


@pytest.mark.usefixtures("lazy_gram")
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "intercept and forced"])
def test_a_block_makes_no_rows_and_is_kept(rng, options, is_sparse, monkeypatch):
    X, y = data(rng)
    X = X.toarray()
    X[:, 30] = 1e6 * (X[:, 2] + 5e-7 * X[:, 3])  # only rounding is left of it where 2 is forced
    ridge = np.where(np.arange(N) == 2, 10.0 * is_sparse, 0.0)
    f = LeastSquares(sparse.csc_matrix(X) if is_sparse else X, y, ridge=ridge, **options)
    monkeypatch.setattr("ellzero.objectives.least_squares.LARGEST_GRAM", 1000)
    C = LeastSquares(X, y, ridge=ridge, **options).gram.matrix
    gram = f.gram
    S, T = np.array([1, 4, 7, 11, 2, 30]), np.array([9, 11, 4, 30, 7, 1, 2])
    for rows in (S, T, np.array([5])):
        for columns in (T, S, np.array([9, 12, 5])):
            assert_allclose(gram.block(rows, columns), C[rows[:, None], columns], atol=1e-10)
    supports = np.array([[1, 4, 7], [4, 9, 30], [4, 9, 11], [1, 2, 30], [20, 1, 21]])
    for R, block in zip(supports, gram.blocks(supports), strict=True):
        assert_allclose(block, C[R[:, None], R], atol=1e-10)
    assert len(gram._exact) == len(gram._coarse) == 0
    kept = gram._columns.slot[[4, 9]]
    gram._among[kept[0], kept[1]] = np.nan  # so it shows where an entry comes from
    assert np.isnan(gram.block(np.array([4, 1]), np.array([9, 1]))[0, 0])
    monkeypatch.setattr("ellzero.objectives.lazy_gram.MANY", 2)  # too many at a time to be kept
    many = np.arange(12)
    assert_allclose(gram.block(many, T), C[many[:, None], T], atol=1e-10)
    assert not gram._columns.has(np.array([0]))
    monkeypatch.setattr("ellzero.objectives.lazy_gram.MOST", len(gram._columns))
    assert_allclose(gram.block(np.array([0])), C[:1, :1], atol=1e-10)
    assert gram._columns.features.tolist() == [0]
    for R, block in zip(supports, gram.blocks(supports), strict=True):
        assert_allclose(block, C[R[:, None], R], atol=1e-10)


@pytest.mark.usefixtures("unkept")
@pytest.mark.parametrize("kind", [LeastSquares, Logistic])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "intercept and forced"])
def test_paths_are_the_same(rng, kind, options, monkeypatch):
    X, y = data(rng)
    found = path(made(kind, X, y, **options), range(1, 6), effort=0)
    monkeypatch.setattr("ellzero.objectives.lazy_gram.LONGEST_KEPT", 1000)
    wanted = path(made(kind, X, y, **options), range(1, 6), effort=0)
    for s in wanted:
        assert found[s].support.tolist() == wanted[s].support.tolist()
        assert_allclose(found[s].x, wanted[s].x, rtol=1e-7, atol=1e-9)
        assert_allclose(found[s].value, wanted[s].value, rtol=1e-9)


@pytest.mark.usefixtures("unkept")
def test_gradients_find_the_insertions_that_gain_most(rng, monkeypatch):
    X, y = data(rng)
    wide, kept = made(LeastSquares, X, y), made(LeastSquares, X.toarray(), y)
    S = np.array([1, 4])
    wanted = kept.promising_insertions(S, 5).tolist()
    assert wide.promising_insertions(S, 5).tolist() == wanted
    monkeypatch.setattr("ellzero.objectives.quadratic.SCREENED", 8)
    assert wide.promising_insertions(S, 5).tolist() == wanted


@pytest.mark.parametrize("entries", [1, 7, 1 << 20])
def test_columns_are_summed_block_by_block(rng, monkeypatch, entries):
    X, _ = data(rng)
    offset = 1000.0 + rng.normal(size=(M, 1))  # its variance is lost in a difference of squares
    X = sparse.hstack([X, offset], format="csc")
    monkeypatch.setattr("ellzero.objectives.design.ENTRIES", entries)
    w = rng.uniform(0, 2, M)
    sparse_, dense = Design(X), Design(X.toarray())
    for found, wanted in zip(
        sparse_.means_and_norms(w, True), dense.means_and_norms(w, True), strict=True
    ):
        assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    scale = np.abs(X.toarray()).max(axis=0)
    assert_allclose(sparse_.standardised(True).scale, np.where(scale > 0, scale, 1.0))


def test_sparse_columns_give_the_same_fits(rng, monkeypatch):
    X, y = data(rng)
    S = np.array([1, 4, 9])
    wanted = made(Logistic, X, y, **OPTIONS).minimize(S)
    monkeypatch.setattr("ellzero.objectives.design.SPARSE_FROM", 0)
    monkeypatch.setattr("ellzero.objectives.design.SPARSE_UP_TO", 1.0)
    f = made(Logistic, X, y, **OPTIONS)
    assert sparse.issparse(f._with_nuisance(S))
    found = f.minimize(S)
    assert_allclose(found.coef, wanted.coef, rtol=1e-9)
    assert_allclose(found.value, wanted.value, rtol=1e-13)
    assert_allclose(f.removal_bounds(found)[1], f.removal_values(S), rtol=0.1)


def test_a_fit_is_given_up_where_it_promises_too_little(rng, monkeypatch):
    X, y = data(rng)
    f = made(Logistic, X, y)
    start, S = f.minimize([1]), np.array([1, 4])
    best = f.minimize(S, start)
    assert f.minimize_below(S, start, best.value + 1e-3).value == best.value
    steps = []
    hessian = f._problem.hessian
    monkeypatch.setattr(f._problem, "hessian", lambda *a: (steps.append(0), hessian(*a))[1])
    assert f.minimize_below(S, start, best.value - 100) is None
    assert len(steps) == 1


def test_a_model_promises_no_more_than_rows_can_give():
    """A word in one row, which the model is wrong about: −log p is far less than (1 − p)/2p."""
    m = 400
    X = np.zeros((m, 2))
    X[: m // 2, 0] = X[0, 1] = 1.0
    y = np.repeat([1, 0], m // 2)
    y[[0, -1]] = 0, 1
    f = Logistic(sparse.csc_matrix(X), y, fit_intercept=True)
    x = f.minimize([0])
    promised = x.value - f.quadratic_model(x).insertion_values(x.support)[1]
    given = x.value - f.minimize([0, 1]).value
    naive = Logistic(X, y, fit_intercept=True)
    x = naive.minimize([0])
    assert x.value - naive.quadratic_model(x).insertion_values(x.support)[1] > 5 * given
    assert given * 0.8 < promised < given * 1.2


def test_rare_words_do_not_hide_what_omp_finds(rng):
    m, n = 800, 300
    p = np.minimum(0.3, 3 / np.arange(1, n + 1))
    X = sparse.csc_matrix((rng.random((m, n)) < p).astype(float))
    eta = X[:, ::12] @ rng.normal(size=25) * 2
    y = rng.random(m) < 1 / (1 + np.exp(-(eta - eta.mean())))
    f = Logistic(X, y, fit_intercept=True, ridge=1e-3)
    f.breadth = 1  # as for data that are large
    found, greedy = path(f, range(1, 11)), path(f, range(1, 11), "omp")
    for s in found:
        assert found[s].value <= greedy[s].value + f.resolution
        x = f.minimize(found[s].support)
        if s < 10 and not s % 3:  # a sweep has looked at the neighbours of every third size
            assert found[s + 1].value <= f.insertion_values(x.support, x).min() + 0.5


@pytest.mark.usefixtures("lazy_gram")
def test_a_sparse_column_without_zeros_can_be_constant(rng):
    X, y = data(rng)
    X = X.toarray()
    X[:, 5] = 3.7
    for _ in range(20):
        f = LeastSquares(sparse.csc_matrix(X), y, sample_weight=rng.random(M), fit_intercept=True)
        assert f.gram.diagonal[5] == 0 < f.gram.diagonal[4]


def test_a_pickled_gram_has_no_room_for_rows_to_come(monkeypatch):
    monkeypatch.setattr("ellzero.objectives.lazy_gram.PANELS_FROM", 0)
    rng = np.random.default_rng(0)
    f = LeastSquares(rng.standard_normal((30, 3100)), rng.standard_normal(30))
    f.gram.rows(np.array([5, 7]))
    before = len(pickle.dumps(f))
    f.gram.blocks(np.arange(600).reshape(100, 6))
    f.gram.coarse_rows(np.arange(20))
    assert len(pickle.dumps(f)) == before
    again = pickle.loads(pickle.dumps(f))
    assert len(again.gram._exact._store) == 2 < len(f.gram._exact._store)
    T = np.array([[5, 9, 11]])
    assert_allclose(again.gram.blocks(T), f.gram.blocks(T))
    S = np.array([5, 9])
    assert_allclose(again.minimize(S).value, f.minimize(S).value)
