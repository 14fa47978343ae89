"""Dask collections give what the same rows give in memory, however they are divided."""

import os
import pickle
import signal
import threading
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import ellzero as lz
from ellzero.distributed import SparseClassifier, SparseRegressor, passes
from ellzero.distributed.glm import DistributedLogistic, DistributedMultinomial
from ellzero.distributed.least_squares import DistributedLeastSquares
from ellzero.distributed.table import Table

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

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
    with (
        mock.patch.dict(os.environ),  # Dask leaves variables for its workers in it
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
    ):
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

    @pytest.mark.parametrize("columns", COLUMNS)
    @pytest.mark.parametrize("target", ["numbers", "two classes", "three classes"])
    def test_sparse_blocks(self, data, columns, target):
        X, targets, w = data
        y, (local, ours) = targets[target], estimators(target)
        X = sparse.csr_matrix(X * (np.abs(X) > np.abs(X).mean(axis=0)))
        blocks = da.from_array(X.toarray(), chunks=(ROWS["empty ones"], COLUMNS[columns]))
        blocks = blocks.map_blocks(sparse.csr_matrix)
        options = {"method": "omp", "alpha": 0.1, "forced": [4]}
        found, expected = (
            kind(2, **options).fit(A, y, w) for kind, A in ((ours, blocks), (local, X))
        )
        assert_same(found, expected)
        np.testing.assert_array_equal(found.predict(blocks).compute(), found.predict(X))

    def test_the_search_itself_on_sparse_blocks(self, data, monkeypatch):
        monkeypatch.setattr("ellzero.objectives.glm.model.LARGEST_SPARSE_MODEL", 0)
        X, targets, _ = data
        X, y = X * (np.abs(X) > np.abs(X).mean(axis=0)), targets["two classes"]
        blocks = da.from_array(X, chunks=(100, N)).map_blocks(sparse.csr_matrix)
        expected = lz.SparseClassifier(1, options={"effort": 0}).fit(sparse.csr_matrix(X), y)
        assert_same(SparseClassifier(1, options={"effort": 0}).fit(blocks, y), expected)

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


def table_of(X, y, w, chunks, classes):
    return Table(da.from_array(X, chunks=(chunks, (2, N - 2))), y, w, classes)


CASES = {
    "numbers": (DistributedLeastSquares, lz.LeastSquares),
    "two classes": (DistributedLogistic, lz.Logistic),
    "three classes": (DistributedMultinomial, lz.Multinomial),
}


class TestObjectives:
    """What algorithms ask of the objective, against the objective of the rows in memory."""

    @pytest.fixture(params=CASES)
    def pair(self, request, data):
        return self.make(request.param, data)

    def make(self, target, data):
        X, targets, w = data
        ours, local = CASES[target]
        y, classes = targets[target], target != "numbers"
        if classes:
            y = np.unique(y, return_inverse=True)[1]
        options = {"fit_intercept": True, "forced": [2], "ridge": 0.3}
        units = np.arange(1.0, N + 1)
        table = table_of(X, y, w, (0, 1, 150, 89), classes)
        several = {"n_classes": 3} if local is lz.Multinomial else {}
        return (
            ours(table, units=units, **options, **several),
            local(X / units, y, sample_weight=w, **options),
        )

    def test_values_gradients_and_minimisers(self, pair, rng):
        f, g = pair
        assert f.observations == g.observations
        assert f.size == g.size
        np.testing.assert_allclose(f.resolution, g.resolution)
        x = 0.3 * rng.standard_normal(f.features.n_coordinates)
        np.testing.assert_allclose(f.value(x), g.value(x), rtol=1e-10)
        np.testing.assert_allclose(f.gradient(x), g.gradient(x), rtol=1e-7, atol=1e-7)
        a, b = f.minimize([0, 3]), g.minimize([0, 3])
        np.testing.assert_allclose(a.value, b.value, rtol=1e-11)
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-8)
        for ours, theirs in zip(f.refit(a), g.refit(b), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-11)

    def test_neighbours(self, pair):
        f, g = pair
        S = np.array([0, 3])
        x, z = f.minimize(S), g.minimize(S)
        for near, other in (
            (f.neighbourhood(x), g.neighbourhood(z)),
            (f.quadratic(x).neighbourhood(x), g.quadratic(z).neighbourhood(z)),
        ):
            np.testing.assert_allclose(near.insertions(), other.insertions(), rtol=1e-8)
            np.testing.assert_allclose(near.removals(), other.removals(), rtol=1e-8)
            np.testing.assert_allclose(near.best_exchange(), other.best_exchange(), rtol=1e-8)
        a, b = f.quadratic(x).minimize([1, 3]), g.quadratic(z).minimize([1, 3])
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-7)

    def test_bounds(self, pair):
        f, g = pair
        np.testing.assert_allclose(f.smoothness(2), g.smoothness(2), rtol=1e-8)
        x, z = f.minimize([0, 3]), g.minimize([0, 3])
        np.testing.assert_allclose(f.rounding(x), g.rounding(z), rtol=0.1)
        for ours, theirs in zip(f.removal_bounds(x), g.removal_bounds(z), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8)

    def test_near_copies_are_told_apart(self, data):
        """A triangle of each partition is enough for coordinates that are orthonormal."""
        X, targets, _ = data
        X, y = X.copy(), (targets["two classes"] == "yes").astype(int)
        X[:, 1] = X[:, 0] + 1e-8 * np.random.default_rng(1).standard_normal(M)
        f = DistributedLogistic(table_of(X, y, None, (100, 140), True), fit_intercept=True)
        g = lz.Logistic(X, y, fit_intercept=True)
        x, z = f.minimize([0, 1]), g.minimize([0, 1])
        np.testing.assert_allclose(x.value, z.value, rtol=1e-8)
        np.testing.assert_allclose(x.coef, z.coef, rtol=1e-6)
        assert f.rounding(x) <= 10 * f.resolution

    @pytest.mark.parametrize("target", ["numbers", "two classes"])
    def test_without_a_gram_matrix(self, data, target, monkeypatch):
        monkeypatch.setattr("ellzero.distributed.table.LARGEST_HELD", 0)
        monkeypatch.setattr("ellzero.objectives.least_squares.LARGEST_HELD", 0)
        monkeypatch.setattr("ellzero.objectives.glm.model.LARGEST_MODEL", 0)
        pair = self.make(target, data)
        self.test_neighbours(pair)
        self.test_values_gradients_and_minimisers(pair, np.random.default_rng(1))

    def test_large_offsets_without_a_gram_matrix(self, data, monkeypatch):
        monkeypatch.setattr("ellzero.distributed.table.LARGEST_HELD", 0)
        X, y = data[0] + 1e6, data[1]["numbers"]
        table = table_of(X, y, None, (100, 140), classes=False)
        f = DistributedLeastSquares(table, fit_intercept=True)
        g = lz.LeastSquares(X - X.mean(axis=0), y, fit_intercept=True)
        S = np.array([0, 3])
        near, other = (h.neighbourhood(h.minimize(S)) for h in (f, g))
        np.testing.assert_allclose(near.insertions(), other.insertions(), rtol=1e-8)

    @pytest.mark.parametrize("mixed", [slice(0), slice(0, 100), slice(200, M)])
    def test_only_separable_classes_have_no_minimiser(self, data, mixed):
        """And it does not do that some of the parts are separable."""
        X, targets, _ = data
        y = (X[:, 0] > 0).astype(int)
        y[mixed] = (targets["two classes"] == "yes")[mixed]
        table = table_of(X, y, None, (100, 100, 40), classes=True)
        f = DistributedLogistic(table, fit_intercept=True, forced=(), ridge=0.0)
        assert f.refit(f.minimize([0])).attained == (mixed != slice(0))

    @pytest.mark.parametrize("classes", [False, True])
    def test_rows_are_counted(self, data, classes):
        X, targets, w = data
        y = targets["two classes" if classes else "numbers"]
        table = table_of(X, y, np.where(np.arange(M) < 60, 0.0, w), (60, 0, 180), classes)
        assert table.shape == (M, N)


def test_the_scheduler_is_told_what_parts_weigh(data):
    X, targets, w = data
    table = table_of(X, targets["two classes"], w, (M,), classes=True)
    f = DistributedLogistic(table, fit_intercept=True, forced=(), ridge=0.0)
    for parts in (table.parts, f.rows.parts):
        assert dask.sizeof.sizeof(dask.compute(parts.delayed[0])[0]) > X.nbytes


def summed(part):
    return part


@pytest.mark.parametrize("n_parts", [1, 2, 8, 9, 64, 200])
def test_a_pass_is_a_task_per_partition_and_a_tree(n_parts):
    parts = passes.Parts([dask.delayed(i) for i in range(n_parts)])
    total = parts.total(summed)
    tree, level = 1, n_parts
    while level > 1:
        level = -(-level // passes.FAN_IN)
        tree += level
    assert len(total.dask) <= 2 * n_parts + tree + 1  # the parts are in the graph themselves
    assert total.compute() == sum(range(n_parts))


def plus(part, x):
    return part + x.sum()


def test_only_large_arguments_are_a_task_of_their_own():
    parts = passes.Parts([dask.delayed(i) for i in range(9)])
    few, many = (parts.total(plus, np.ones(n)) for n in (10, 10_000))
    assert len(many.dask) == len(few.dask) + 1
    assert (few.compute(), many.compute()) == (36 + 9 * 10, 36 + 9 * 10_000)


def test_features_do_not_add_tasks(data, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        passes, "computed", lambda total: sizes.append(len(total.dask)) or total.compute()
    )
    rng = np.random.default_rng(0)
    for n in (4, 40):
        X = rng.standard_normal((M, n))
        SparseClassifier(1, method="omp").fit(da.from_array(X, chunks=(60, n)), X[:, 0] > 0.3)
    assert max(sizes) <= 4 * (1 + 1 + 4)  # 4 partitions: blocks of X and y, loading, answer, tree


class TestFrames:
    @pytest.fixture
    def frame(self, data):
        names = [f"x{j}" for j in range(N)]
        return pd.DataFrame(data[0], columns=names, index=np.arange(M) * 2)

    @pytest.mark.parametrize("target", ["numbers", "two classes", "three classes"])
    def test_names_and_predictions(self, data, frame, target):
        local, ours = estimators(target)
        y = pd.Series(data[1][target], index=frame.index)
        X = dd.from_pandas(frame, npartitions=5)
        found = ours(2, method="omp", forced=["x4"]).fit(X, dd.from_pandas(y, npartitions=5))
        expected = local(2, method="omp", forced=["x4"]).fit(frame, y)
        assert_same(found, expected)
        assert found.feature_names_in_.tolist() == list(frame)
        predicted = found.predict(X)
        assert isinstance(predicted, dd.Series)
        pd.testing.assert_index_equal(predicted.compute().index, frame.index)
        assert predicted.compute().tolist() == pytest.approx(expected.predict(frame).tolist())
        if target != "numbers":
            probabilities = found.predict_proba(X).compute()
            np.testing.assert_allclose(probabilities, expected.predict_proba(frame), rtol=1e-7)

    def test_filtered_frames_have_empty_partitions(self, data, frame):
        frame = frame.assign(target=data[1]["numbers"], row=np.arange(M))
        parts = dd.from_pandas(frame, npartitions=8)
        parts, frame = (table[table.row > 150] for table in (parts, frame))
        found = SparseRegressor(2).fit(parts.drop(columns=["target", "row"]), parts.target)
        assert_same(
            found, lz.SparseRegressor(2).fit(frame.drop(columns=["target", "row"]), frame.target)
        )

    @pytest.mark.parametrize("divisions", [(0, 30, 478), (0, 100, 101, 102, 300, 478)])
    def test_one_index_divided_at_other_places(self, data, frame, divisions):
        y = pd.Series(data[1]["numbers"], index=frame.index)
        parts = dd.from_pandas(y, npartitions=1).repartition(divisions=divisions)
        found = SparseRegressor(2).fit(dd.from_pandas(frame, npartitions=5), parts, parts**2)
        assert_same(found, lz.SparseRegressor(2).fit(frame, y, y**2))

    def test_weights_that_are_an_array_beside_a_series_divided_otherwise(self, data, frame):
        y = pd.Series(data[1]["numbers"], index=frame.index)
        weights = dd.from_pandas(y**2, npartitions=5).to_dask_array()
        X, parts = dd.from_pandas(frame, npartitions=5), dd.from_pandas(y, npartitions=3)
        found = SparseRegressor(2).fit(X, parts, weights)
        assert_same(found, lz.SparseRegressor(2).fit(frame, y, y**2))

    @pytest.mark.parametrize("mixed", ["shuffle", "sort_values", "set_index"])
    def test_rows_of_a_shuffled_frame_stay_together(self, data, frame, mixed):
        y = data[1]["numbers"]
        table = frame.assign(target=y, key=np.arange(M) % 5, weight=np.abs(y))
        one = getattr(dd.from_pandas(table, npartitions=4), mixed)("key")
        X = one[list(frame)]
        found = SparseRegressor(2).fit(X, one.target, one.weight)
        expected = lz.SparseRegressor(2).fit(frame, y, np.abs(y))
        assert_same(found, expected)
        assert found.score(X, one.target) == pytest.approx(expected.score(frame, y))

    def test_ties_of_an_index_do_not_order_rows(self, data, frame):
        X = dd.from_pandas(frame.set_axis(np.arange(M) // 2), npartitions=4)
        y = pd.Series(data[1]["numbers"], index=np.arange(M) // 2)
        with pytest.raises(ValueError, match=r"index has \d+ twice, so that rows cannot be told"):
            SparseRegressor(2).fit(X, dd.from_pandas(y, npartitions=3))

    def test_an_index_that_does_not_help(self, data, frame):
        X = dd.from_pandas(frame, npartitions=5)
        y = pd.Series(data[1]["numbers"], index=frame.index)
        with pytest.raises(ValueError, match="y: has 3 partitions, but X has 5; take both from"):
            SparseRegressor(2).fit(X, dd.from_pandas(y, npartitions=3).clear_divisions())
        other = y.set_axis(frame.index + 1000)  # rows belong together by their places
        found = SparseRegressor(2).fit(X, dd.from_pandas(other, npartitions=5))
        assert_same(found, lz.SparseRegressor(2).fit(frame, y))
        bent = y.set_axis(frame.index**2 / frame.index[-1])
        with pytest.raises(ValueError, match=r"partition .: y: shape .* rows in this partition"):
            SparseRegressor(2).fit(X, dd.from_pandas(bent, npartitions=3))

    def test_text_is_named(self, frame):
        X = dd.from_pandas(frame.assign(x3="red"), npartitions=2)
        with pytest.raises(ValueError, match="X: column 'x3' has dtype"):
            SparseRegressor(2).fit(X, X.x0)


class TestModels:
    @pytest.mark.parametrize("target", ["numbers", "two classes", "three classes"])
    def test_to_local(self, data, target):
        X, targets, _ = data
        local, ours = estimators(target)
        model = ours(2, method="omp", random_state=3).fit(
            da.from_array(X, chunks=(99, 3)), targets[target]
        )
        plain = pickle.loads(pickle.dumps(model.to_local()))
        assert type(plain) is local
        assert plain.get_params() == model.get_params()
        np.testing.assert_array_equal(plain.predict(X), model.predict(X))
        assert b"dask" not in pickle.dumps(plain)
        assert b"distributed" not in pickle.dumps(plain)
        assert "features" in str(plain.report())
        assert clone(model).get_params() == model.get_params()

    @pytest.mark.parametrize("target", ["numbers", "two classes", "three classes"])
    def test_predictions_are_lazy(self, data, target):
        X, targets, _ = data
        model = estimators(target)[1](2, method="omp")
        parts = da.from_array(X, chunks=((0, 100, 140), (4, 2)))
        model.fit(parts, targets[target])
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            if not hasattr(model, method):
                continue
            predicted = getattr(model, method)(parts)
            assert isinstance(predicted, da.Array)
            expected = getattr(model.to_local(), method)(X)
            assert predicted.shape == expected.shape
            assert predicted.dtype == expected.dtype
            np.testing.assert_array_equal(predicted.compute(), expected)
            np.testing.assert_array_equal(
                getattr(model, method)(unknown(parts)).compute(), expected
            )


class TestErrors:
    def fit(self, X, y, w=None, rows=60, kind=SparseRegressor):
        return kind(2).fit(da.from_array(X, chunks=(rows, 4)), y, w)

    @pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_bad_values_are_placed(self, data, bad, kind):
        X = data[0].copy()
        X[130, 5] = X[131, 5] = bad
        with pytest.raises(ValueError, match=r"partition 2: X: column 5 has 2 NaN or inf.* row 10"):
            self.fit(X, np.arange(M) % 2, kind=kind)

    def test_bad_values_in_a_frame_have_the_name(self, data):
        frame = pd.DataFrame(data[0], columns=list("abcdef"))
        frame.loc[M - 1, "c"] = np.nan
        X = dd.from_pandas(frame, npartitions=3)
        with pytest.raises(ValueError, match="partition 2: X: column 'c' has 1 NaN"):
            SparseRegressor(2).fit(X, X.a)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    def test_a_row_without_class(self, data, missing):
        y = np.array(["a", "b"] * (M // 2), dtype=object)
        y[70] = missing
        with pytest.raises(ValueError, match="partition 1: y: no class in row 10"):
            self.fit(data[0], da.from_array(y, chunks=60), kind=SparseClassifier)

    def test_two_columns_of_one_name(self, data):
        X = dd.from_pandas(pd.DataFrame(data[0], columns=list("abcdea")), npartitions=2)
        with pytest.raises(ValueError, match="X: two columns have the name 'a'"):
            SparseRegressor(2).fit(X, X.b)

    def test_bad_targets_and_weights(self, data):
        X, targets, w = data
        y = targets["numbers"].copy()
        y[70] = np.nan
        with pytest.raises(ValueError, match="partition 1: y: NaN or infinite in row 10"):
            self.fit(X, y)
        w = w.copy()
        w[5] = -1
        with pytest.raises(ValueError, match="partition 0: sample_weight: negative in row 5"):
            self.fit(X, targets["numbers"], w)
        for kind in (SparseRegressor, SparseClassifier):
            with pytest.raises(ValueError, match="all weights are zero"):
                self.fit(X, np.arange(M) % 2, 0 * w, kind=kind)
        with pytest.raises(ValueError, match="no classes; use SparseRegressor"):
            self.fit(X, targets["numbers"], kind=SparseClassifier)
        with pytest.raises(ValueError, match="only one class"):
            self.fit(X, np.ones(M), kind=SparseClassifier)

    def test_what_does_not_fit_together(self, data):
        X, targets, _ = data
        y = targets["numbers"]
        parts = da.from_array(X, chunks=(60, N))
        with pytest.raises(TypeError, match=r"use ellzero\.SparseRegressor"):
            SparseRegressor(2).fit(X, y)
        with pytest.raises(ValueError, match="y: expected shape"):
            SparseRegressor(2).fit(parts, y[:-1])
        with pytest.raises(ValueError, match="y: has 239 rows, but X has 240"):
            SparseRegressor(2).fit(parts, da.from_array(y[:-1]))
        with pytest.raises(ValueError, match="y: has 3 partitions, but X has 4"):
            SparseRegressor(2).fit(unknown(parts), unknown(da.from_array(y, chunks=80)))
        uneven = unknown(da.from_array(y, chunks=((59, 61, 60, 60),)))
        with pytest.raises(
            ValueError, match=r"partition .: y: shape \((59|61),\), but X has 60 rows"
        ):
            SparseRegressor(2).fit(unknown(parts), uneven)
        with pytest.raises(TypeError, match="X does not know its lengths"):
            SparseRegressor(2).fit(unknown(parts), y)
        with pytest.raises(ValueError, match="X: has no rows"):
            SparseRegressor(2).fit(da.zeros((0, 3)), da.zeros(0))

    @pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])
    def test_out_of_memory(self, data, kind):
        parts = da.from_array(data[0], chunks=(60, N))
        parts = parts.map_blocks(out_of_memory, meta=np.empty((0, 0)))
        with pytest.raises(MemoryError, match="make partitions smaller"):
            kind(2).fit(parts, np.arange(M) % 2)

    def test_out_of_memory_when_parts_are_made(self, data, monkeypatch):
        monkeypatch.setattr("ellzero.distributed.glm.Design", out_of_memory)
        with pytest.raises(MemoryError, match="make partitions smaller"):
            self.fit(data[0], np.arange(M) % 2, kind=SparseClassifier)


def out_of_memory(block):
    raise MemoryError


class TestCluster:
    """Two real worker processes."""

    @pytest.mark.parametrize("target", ["numbers", "three classes"])
    def test_same_as_in_memory(self, data, client, target):
        X, targets, w = data
        local, ours = estimators(target)
        found = ours(1, method="omp").fit(da.from_array(X, chunks=(80, 4)), targets[target], w)
        assert_same(found, local(1, method="omp").fit(X, targets[target], w))

    def test_the_search_itself_on_sparse_blocks(self, data, client):
        X, y = data[0][:, [0, 1, 3]], data[1]["two classes"]
        X = X * (np.abs(X) > np.abs(X).mean(axis=0))
        blocks = da.from_array(X, chunks=(120, 2)).map_blocks(sparse.csr_matrix)
        found = SparseClassifier(1, options={"effort": 0}).fit(blocks, y)
        assert_same(found, lz.SparseClassifier(1, options={"effort": 0}).fit(X, y))

    @pytest.mark.parametrize("when", [0, 6])
    def test_a_worker_is_killed(self, data, client, when, monkeypatch):
        X, targets, _ = data
        y = targets["two classes"]
        passed = []

        def computed(total):
            passed.append(total)
            if len(passed) == when + 1:
                victim = next(iter(client.run(os.getpid).values()))
                threading.Timer(0.01, os.kill, (victim, signal.SIGKILL)).start()
            return compute(total)

        compute = passes.computed
        monkeypatch.setattr(passes, "computed", computed)
        slow = da.from_array(X, chunks=(60, 4)).map_blocks(slowly, meta=np.empty((0, 0)))
        found = SparseClassifier(1, method="omp").fit(slow, y)
        assert len(passed) > when
        assert_same(found, lz.SparseClassifier(1, method="omp").fit(X, y))

    def test_a_partition_that_kills_its_worker(self, data, client, cluster, monkeypatch):
        monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
        X, targets, _ = data
        parts = da.from_array(X, chunks=(120, N)).map_blocks(deadly, meta=np.empty((0, 0)))
        with pytest.raises(RuntimeError, match="make partitions smaller"):
            SparseRegressor(2).fit(parts, targets["numbers"])

    def test_bad_values_are_placed(self, data, client):
        X = data[0].copy()
        X[130, 5] = np.nan
        with pytest.raises(ValueError, match="partition 2: X: column 5 has 1 NaN"):
            SparseRegressor(2).fit(da.from_array(X, chunks=(60, N)), data[1]["numbers"])


def slowly(block):
    import time

    time.sleep(0.03)
    return block


def deadly(block):
    os.kill(os.getpid(), signal.SIGKILL)
