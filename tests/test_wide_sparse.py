"""Sparse data so wide that no Gram row is kept: the same answers as with rows that are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from ellzero import LeastSquares, Logistic, path
from ellzero.core import Iterate

M, N = 150, 40


@pytest.fixture(params=[1 << 23, 1], ids=["all at once", "row by row"])
def unkept(request, monkeypatch, lazy_gram):
    monkeypatch.setattr("ellzero.objectives.gram.LONGEST_KEPT", 0)
    monkeypatch.setattr("ellzero.core.AT_ONCE", request.param)


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
    x = Iterate(S, np.ones(3), np.nan, N)
    assert_allclose(wide.gradient(x), dense.gradient(x), atol=1e-9)


@pytest.mark.usefixtures("unkept")
@pytest.mark.parametrize("kind", [LeastSquares, Logistic])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "intercept and forced"])
def test_paths_are_the_same(rng, kind, options, monkeypatch):
    X, y = data(rng)
    found = path(made(kind, X, y, **options), range(1, 6), effort=0)
    monkeypatch.setattr("ellzero.objectives.gram.LONGEST_KEPT", 1000)
    wanted = path(made(kind, X, y, **options), range(1, 6), effort=0)
    for s in wanted:
        assert found[s].support.tolist() == wanted[s].support.tolist()
        assert_allclose(found[s].x, wanted[s].x, rtol=1e-7, atol=1e-9)
        assert_allclose(found[s].value, wanted[s].value, rtol=1e-9)
