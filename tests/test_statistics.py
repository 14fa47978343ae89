"""Statistics add up: however the rows are divided, the sum is the statistics of the whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from ellzero import LeastSquares, Statistics, exchange
from ellzero.objectives.moments import statistics

M, N = 60, 5


def exact(X, y, w=None):
    """Centred moments in extended precision, two passes."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, np.longdouble)
    y = np.asarray(y, np.longdouble)
    w = np.ones(len(y), np.longdouble) if w is None else np.asarray(w, np.longdouble)
    mean, mean_y = w @ X / w.sum(), w @ y / w.sum()
    A, t = X - mean, y - mean_y
    WA = w[:, None] * A
    return Statistics(len(y), w.sum(), mean, mean_y, A.T @ WA, WA.T @ t, t @ (w * t))


def assert_same(found, true, tol):
    """Moments to `tol` of the norms involved; means to a few units in the last place."""
    norms = np.sqrt(np.diag(true.xx)).astype(float)
    norm_y = float(np.sqrt(true.yy))
    assert found.n_rows == true.n_rows
    assert_allclose(float(found.weight), float(true.weight), rtol=1e-14)
    assert_allclose(found.mean, true.mean.astype(float), rtol=1e-14, atol=1e-14)
    assert_allclose(found.mean_y, float(true.mean_y), rtol=1e-14, atol=1e-14)
    unit = np.outer(norms, norms)
    assert_allclose((found.xx / unit), (true.xx / unit).astype(float), rtol=0, atol=tol)
    wanted = (true.xy / norms / norm_y).astype(float)
    assert_allclose(found.xy / norms / norm_y, wanted, rtol=0, atol=tol)
    assert_allclose(found.yy, float(true.yy), rtol=tol)


def data(rng, offset=0.0):
    X = rng.normal(size=(M, N)) * [1, 1, 5, 0.2, 1] + offset * np.array([1, -1, 2, 1, 0])
    y = X @ [1, 0, 1, 0, -1] + rng.normal(size=M)
    return X, y, rng.uniform(0.1, 3, M)


def pieces(rng, kind):
    if kind == "one row each":
        return [np.array([k]) for k in range(M)]
    if kind == "one row and the rest":
        return [np.array([0]), np.arange(1, M)]
    return np.array_split(rng.permutation(M), rng.integers(2, 8))


# What a float64 mean can know of an offset limits what merging can know of the moments.
OFFSETS = [(0.0, 1e-13), (1e6, 1e-8), (1e8, 1e-6)]


@pytest.mark.parametrize(("offset", "tol"), OFFSETS)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_the_whole_are_the_exact_ones(rng, offset, tol, weighted):
    X, y, w = data(rng, offset)
    w = w if weighted else None
    assert_same(Statistics.from_arrays(X, y, w), exact(X, y, w), min(tol, 1e-11))


@pytest.mark.parametrize(("offset", "tol"), OFFSETS)
@pytest.mark.parametrize("kind", ["random", "one row each", "one row and the rest"])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_add_up(rng, offset, tol, kind, weighted):
    X, y, w = data(rng, offset)
    parts = [
        Statistics.from_arrays(X[k], y[k], w[k] if weighted else None) for k in pieces(rng, kind)
    ]
    assert_same(sum(parts), exact(X, y, w if weighted else None), tol)


def test_sum_is_associative_and_commutative(rng):
    X, y, w = data(rng, 1e3)
    a, b, c = (Statistics.from_arrays(X[k::3], y[k::3], w[k::3]) for k in range(3))
    truth = exact(X, y, w)
    for total in (a + (b + c), (a + b) + c, (c + a) + b):
        assert_same(total, truth, 1e-11)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_is_dense(rng, kind, offset, weighted):
    X, y, w = data(rng, offset)
    X[rng.random(X.shape) < 0.7] = 0.0
    w = w if weighted else None
    found = Statistics.from_arrays(kind(X), y + offset, w)
    assert_same(found, exact(X, y + offset, w), 1e-11)


def test_sparse_entries_given_twice_are_summed():
    twice = sparse.csc_matrix((np.ones(3), ([0, 0, 1]), [0, 2, 3]), shape=(3, 2))
    y = np.array([1.0, 2.0, 4.0])
    assert_same(Statistics.from_arrays(twice, y), exact(twice, y), 1e-14)


@pytest.mark.usefixtures("on_demand")
def test_sparse_entries_given_twice_are_summed_without_a_gram_matrix_too():
    twice = sparse.csc_matrix((np.ones(3), ([0, 0, 1]), [0, 2, 3]), shape=(3, 2))
    f, g = (LeastSquares(X, [1.0, 2.0, 4.0]) for X in (twice, twice.toarray()))
    assert_allclose(f.minimize([0, 1]).x, g.minimize([0, 1]).x)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_float32_is_summed_in_float64(rng, kind):
    X, y, w = data(rng, 100.0)
    X = X.astype(np.float32)
    assert_same(Statistics.from_arrays(kind(X), y, w), exact(X, y, w), 1e-11)


def test_many_row_blocks_are_one(rng, monkeypatch):
    X, y, w = data(rng, 1e6)
    monkeypatch.setattr("ellzero.data.design.BLOCK_BYTES", 1)
    assert_same(Statistics.from_arrays(X, y, w), exact(X, y, w), 1e-11)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_least_squares_runs_from_a_sum(rng, fit_intercept):
    X, y, w = data(rng)
    parts = [Statistics.from_arrays(X[k], y[k], w[k]) for k in (slice(0, 20), slice(20, None))]
    options = {"fit_intercept": fit_intercept, "forced": [3], "ridge": 0.1}
    from_parts = exchange(LeastSquares.from_statistics(parts[0] + parts[1], **options), 2)
    from_data = exchange(LeastSquares(X, y, sample_weight=w, **options), 2)
    assert from_parts.support.tolist() == from_data.support.tolist()
    assert_allclose(from_parts.x, from_data.x, rtol=1e-9)
    assert_allclose(from_parts.value, from_data.value, rtol=1e-9)
    assert_allclose(from_parts.intercept, from_data.intercept, rtol=1e-9)


def test_different_features_do_not_add_up(rng):
    X, y, _ = data(rng)
    with pytest.raises(ValueError, match="5 and of 4 features"):
        Statistics.from_arrays(X, y) + Statistics.from_arrays(X[:, :4], y)
    with pytest.raises(TypeError):
        Statistics.from_arrays(X, y) + 1
    with pytest.raises(TypeError):
        1 + Statistics.from_arrays(X, y)


def test_repr_says_what_it_holds(rng):
    X, y, _ = data(rng)
    assert repr(Statistics.from_arrays(X, y)) == "Statistics(60 rows, 5 features, weight 60)"


@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_no_digit(rng, monkeypatch, weighted):
    X = rng.normal(size=(9_000, 12)) + 100.0
    y, w = rng.normal(size=9_000), rng.uniform(size=9_000) if weighted else None
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(statistics, "current_blas_threads", lambda threads=threads: threads)
        found.append(Statistics.from_arrays(X, y, w))
    for other in found[1:]:
        np.testing.assert_array_equal(other.xx, found[0].xx)
        np.testing.assert_array_equal(other.xy, found[0].xy)
    assert_same(found[0], exact(X, y, w), 1e-12)
