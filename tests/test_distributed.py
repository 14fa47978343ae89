"""Dask collections give what the same rows give in memory, however they are divided."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

import ellzero as lz

pytest.importorskip("dask.array", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask
import dask.array as da
import pandas as pd

from ellzero.distributed import SparseClassifier, SparseRegressor, passes
from ellzero.distributed.glm import DistributedLogistic, DistributedMultinomial
from ellzero.distributed.least_squares import DistributedLeastSquares
from ellzero.distributed.table import Table

M, N = 240, 6

ROWS = {
    "one": (M,),
    "uneven": (100, 13, 127),
    "one row each end": (1, M - 2, 1),
    "empty ones": (0, 60, 0, 0, 180, 0),
    "many": (10,) * 24,
}
COLUMNS = {"whole": (N,), "split": (1, 3, 2)}
OPTIONS = {
    "plain": {},
    "ridge and forced": {"alpha": 2.0, "forced": [4]},
    "no intercept": {"fit_intercept": False},
    "as it comes": {"standardize": False, "alpha": 0.5},
    "omp": {"method": "omp"},
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, N)) * [1, 2, 0.1, 30, 1, 1] + [0, 5, 1, -40, 0, 2]
    X[:, 5] += X[:, 0]
    eta = 1.5 * X[:, 0] - 0.5 * X[:, 1] + 0.02 * X[:, 3] + 2.5
    noise = rng.logistic(size=M)
    targets = {
        "numbers": eta + noise,
        "two classes": np.array(["no", "yes"])[(eta + noise > 0).astype(int)],
        "three classes": np.digitize(eta + noise, [-1.5, 1.5]),
    }
    return X, targets, rng.integers(0, 4, M).astype(float)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client, client.as_current():
        yield client


def estimators(target):
    if target == "numbers":
        return lz.SparseRegressor, SparseRegressor
    return lz.SparseClassifier, SparseClassifier


def assert_same(found, expected):
    np.testing.assert_array_equal(found.support_, expected.support_)
    for name in ("coef_", "intercept_"):
        a, b = getattr(found, name), getattr(expected, name)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.loss_, expected.loss_, rtol=1e-10, atol=1e-12)
    assert list(found.path_) == list(expected.path_)
    for s in found.path_:
        np.testing.assert_array_equal(found.path_[s].support, expected.path_[s].support)


def unknown(array):
    """The same array, of which Dask does not know the lengths of the chunks."""
    return array[da.ones(len(array), chunks=array.chunks[0], dtype=bool)]


class TestAgreement:
    @pytest.mark.parametrize("columns", COLUMNS)
    @pytest.mark.parametrize("rows", ROWS)
    @pytest.mark.parametrize("options", OPTIONS)
    def test_least_squares(self, data, rows, columns, options):
        X, targets, w = data
        y = targets["numbers"]
        chunks = ROWS[rows], COLUMNS[columns]
        found = SparseRegressor(2, **OPTIONS[options]).fit(da.from_array(X, chunks=chunks), y, w)
        assert_same(found, lz.SparseRegressor(2, **OPTIONS[options]).fit(X, y, w))

    @pytest.mark.parametrize("target", ["two classes", "three classes"])
    @pytest.mark.parametrize(
        ("rows", "options"),
        [("empty ones", "plain"), ("one row each end", "ridge and forced"), ("one", "omp")],
    )
    def test_classes(self, data, rows, options, target):
        X, targets, w = data
        y, options = targets[target], {"method": "omp", **OPTIONS[options]}
        chunks = ROWS[rows], COLUMNS["split"]
        found = SparseClassifier(2, **options).fit(da.from_array(X, chunks=chunks), y, w)
        assert_same(found, lz.SparseClassifier(2, **options).fit(X, y, w))

    def test_the_search_itself_on_classes(self, data):
        X, targets, _ = data
        y = targets["two classes"]
        found = SparseClassifier(1).fit(da.from_array(X, chunks=(100, 4)), y)
        assert_same(found, lz.SparseClassifier(1).fit(X, y))

    @pytest.mark.parametrize("target", ["numbers", "two classes"])
    def test_unknown_chunks(self, data, target):
        X, targets, w = data
        local, ours = estimators(target)
        y = targets[target]
        split = [unknown(da.from_array(a, chunks=50)) for a in (X, y, w)]
        assert np.isnan(split[0].shape[0])
        assert_same(ours(2, method="omp").fit(*split), local(2, method="omp").fit(X, y, w))

    def test_float32(self, data):
        X, targets, _ = data
        X, y = X.astype(np.float32), targets["numbers"]
        for sizes in ((M,), (7, 233)):
            found = SparseRegressor(2).fit(da.from_array(X, chunks=(sizes, N)), y)
            assert found.coef_.dtype == np.float32
            assert_same(found, lz.SparseRegressor(2).fit(X, y))

    def test_weights_are_repeated_rows(self, data):
        X, targets, w = data
        y = targets["numbers"]
        twice = np.repeat(np.arange(M), w.astype(int))
        whole = lz.SparseRegressor(2).fit(X[twice], y[twice])
        found = SparseRegressor(2).fit(da.from_array(X, chunks=(50, N)), y, w)
        np.testing.assert_array_equal(found.support_, whole.support_)
        np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-8)

    def test_a_partition_without_weight(self, data):
        X, targets, w = data
        w = np.where(np.arange(M) < 60, 0.0, w)
        for target in ("numbers", "two classes"):
            local, ours = estimators(target)
            y = targets[target]
            found = ours(2, method="omp").fit(da.from_array(X, chunks=(30, N)), y, w)
            assert_same(found, local(2, method="omp").fit(X, y, w))

    def test_large_offsets_and_exact_fits(self, data):
        """Here moments do not give ten digits: the rows must be asked once more."""
        X = data[0] + 1e7
        y = X[:, 1] - 3 * X[:, 2]
        found = SparseRegressor(2).fit(da.from_array(X, chunks=(70, 4)), y)
        assert found.support_.tolist() == [1, 2]
        np.testing.assert_allclose(found.coef_[[1, 2]], [1, -3], rtol=1e-8)
        expected = lz.SparseRegressor(2).fit(X, y)
        assert abs(found.loss_ - expected.loss_) <= 1e-12 * (y @ y)

    def test_a_constant_column(self, data):
        X, targets, _ = data
        X = X.copy()
        X[:, 3] = 7.7
        for target in ("numbers", "two classes"):
            local, ours = estimators(target)
            found = ours(2, method="omp").fit(da.from_array(X, chunks=(90, N)), targets[target])
            assert_same(found, local(2, method="omp").fit(X, targets[target]))
