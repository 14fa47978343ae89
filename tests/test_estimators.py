"""The estimators: what they fit, what they take, and how they go with the rest of scikit-learn."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ellzero as lz

NAMES = ["age", "bmi", "bp", "hdl", "ldl", "tch", "ltg", "glu"]
TRUE = [1, 4, 6]


def data(m=120, seed=0):
    """Features on very different scales, three of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, len(NAMES))) * np.logspace(-3, 3, len(NAMES)) + 5
    z = (X - 5) / np.logspace(-3, 3, len(NAMES))
    eta = 2 * z[:, 1] - 3 * z[:, 4] + 1.5 * z[:, 6]
    return X, eta + rng.normal(size=m), np.where(eta + rng.logistic(size=m) > 0, "yes", "no")


X, Y, LABELS = data()

FITTED = {
    "regressor": (lz.SparseRegressor, Y),
    "classifier": (lz.SparseClassifier, LABELS),
    "selector": (lz.SparseSelector, Y),
    "regressor CV": (lz.SparseRegressorCV, Y),
    "classifier CV": (lz.SparseClassifierCV, LABELS),
}


@pytest.fixture(params=FITTED)
def kind(request):
    """An estimator class and a target for it."""
    return FITTED[request.param]


def frame(kind="pandas"):
    module = pytest.importorskip(kind)
    return module.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})


# what is fitted


def test_regressor_is_least_squares_on_the_features_it_selects():
    model = lz.SparseRegressor(3).fit(X, Y)
    assert model.support_.tolist() == TRUE
    plain = LinearRegression().fit(X[:, TRUE], Y)
    assert_allclose(model.coef_[TRUE], plain.coef_, rtol=1e-9)
    assert_allclose(model.intercept_, plain.intercept_, rtol=1e-9)
    assert_allclose(model.predict(X), plain.predict(X[:, TRUE]), rtol=1e-9)
    assert np.flatnonzero(model.coef_).tolist() == TRUE
    assert_allclose(model.loss_, 0.5 * np.sum((Y - model.predict(X)) ** 2))
    assert model.solution_ is model.path_[3]
    assert list(model.path_) == [1, 2, 3, 4]


def test_classifier_is_logistic_regression_on_the_features_it_selects():
    model = lz.SparseClassifier(3, alpha=0.5, standardize=False).fit(X, LABELS)
    S = model.support_
    plain = LogisticRegression(C=2.0, tol=1e-12, solver="newton-cholesky").fit(X[:, S], LABELS)
    assert model.coef_.shape == (1, 8)
    assert model.intercept_.shape == (1,)
    assert model.classes_.tolist() == ["no", "yes"]
    assert_allclose(model.coef_[:, S], plain.coef_, rtol=1e-5)
    assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, S]), rtol=1e-5)
    assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-9)
    assert_allclose(model.decision_function(X), plain.decision_function(X[:, S]), rtol=1e-5)
    assert_array_equal(model.predict(X), plain.predict(X[:, S]))


def test_sparsity_counts_neither_intercept_nor_forced_features():
    model = lz.SparseRegressor(2, forced=[0, 3]).fit(X, Y)
    assert len(model.support_) == 2
    assert model.forced_.tolist() == [0, 3]
    assert not {0, 3} & set(model.support_.tolist())
    assert np.count_nonzero(model.coef_) == 4
    assert model.intercept_ != 0
    assert lz.SparseRegressor(2, fit_intercept=False).fit(X, Y).intercept_ == 0


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (2, 2), (8, 3), (9, 3), (35, 6)])
def test_by_default_the_square_root_of_the_features_is_selected(n, expected):
    wide = np.random.default_rng(0).normal(size=(40, n))
    assert len(lz.SparseRegressor(method="omp").fit(wide, wide.sum(axis=1)).support_) == expected


@pytest.mark.parametrize("method", ["auto", "omp", "ompr", "els", "exchange", "arht", "lasso"])
def test_every_method_works_on_standardised_features(method):
    model = lz.SparseRegressor(3, method=method).fit(X, Y)
    assert model.support_.tolist() == TRUE
    assert 4 in model.path_
    assert 2 in model.path_


def test_standardize_makes_units_irrelevant():
    """OMP compares gradients, which are in the units of the features."""
    units = np.logspace(3, -3, 8)
    for options in ({"method": "omp"}, {"alpha": 10.0}):
        one, other = (lz.SparseRegressor(2, **options).fit(A, Y) for A in (X, X * units))
        assert_array_equal(one.support_, other.support_)
        assert_allclose(one.predict(X), other.predict(X * units), rtol=1e-8)
    raw = lz.SparseRegressor(2, method="omp", standardize=False).fit(X, Y)
    assert raw.support_.tolist() != one.support_.tolist()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("weight", [None, np.arange(120) % 4])
def test_alpha_is_a_ridge_on_standardised_features(form, weight):
    model = lz.SparseRegressor(3, alpha=7.0).fit(form(X), Y, weight)
    S = model.support_
    w = np.ones(len(X)) if weight is None else weight
    scale = np.sqrt(np.average((X - np.average(X, axis=0, weights=w)) ** 2, axis=0, weights=w))
    ridge = Ridge(alpha=7.0).fit((X / scale)[:, S], Y, w)
    assert_allclose(model.coef_[S], ridge.coef_ / scale[S], rtol=1e-7)
    assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-7)


def test_the_trace_is_on_the_scale_of_the_data():
    found = lz.SparseRegressor(3, method="omp").fit(X, Y).solution_
    assert_allclose(found.trace[-1].x[found.support], found.x[found.support], rtol=1e-8)


def test_a_size_that_is_not_used_does_not_warn():
    """One feature separates the classes, but s = 1 does not use it alone."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    y = A[:, 0] + A[:, 1] > 0
    lz.SparseClassifier(1, alpha=0.0).fit(A, y)  # the path goes on to 2, where there is no optimum
    with pytest.warns(ConvergenceWarning, match=r"\[0, 1\].*set alpha above 0"):
        lz.SparseClassifier(2, alpha=0.0).fit(A, y)
    assert np.abs(lz.SparseClassifier(2).fit(A, y).coef_).max() < 1e4


def test_probabilities_never_overflow():
    model = lz.SparseClassifier(3).fit(X, LABELS)
    far = np.vstack([X * 1e300, -X * 1e300, np.full_like(X[:2], 1e308)])
    for A in (far, sparse.csr_array(far)):
        assert np.isfinite(model.decision_function(A)).all()
        p = model.predict_proba(A)
        assert_allclose(p.sum(axis=1), 1)
        assert (np.sign(model.decision_function(A)) == np.sign(p[:, 1] - p[:, 0])).all()
        assert not np.isnan(model.predict_log_proba(A)).any()
    small = lz.SparseClassifier(3).fit(X.astype(np.float32), LABELS)
    assert np.isfinite(small.decision_function(np.full((2, 8), 3e38, dtype=np.float32))).all()
    assert np.isfinite(lz.SparseRegressor(3).fit(X, Y).predict(far)).all()


def test_infinite_terms_that_cancel():
    A = np.random.default_rng(0).normal(size=(50, 2)) / 100
    model = lz.SparseRegressor(2).fit(A, A @ [200.0, -100.0])
    exact = model.predict([[1e307, 1.95e307], [1e307, 1e306]])
    assert_allclose(exact[0], 5e307, rtol=1e-6)  # 2e309 − 1.95e309
    assert exact[1] == np.finfo(float).max / 2


# what goes in


def test_float32_in_float32_out(kind):
    estimator, y = kind
    small = estimator(2).fit(X.astype(np.float32), y)
    large = estimator(2).fit(X, y)
    assert small.coef_.dtype == np.float32
    assert large.coef_.dtype == np.float64
    assert np.asarray(small.intercept_).dtype == np.float32
    assert_allclose(small.coef_, large.coef_, rtol=1e-4)
    for method in ("decision_function", "predict_proba", "predict_log_proba", "transform"):
        if hasattr(small, method):
            assert getattr(small, method)(X.astype(np.float32)).dtype == np.float32
    if hasattr(small, "predict") and y is Y:
        assert small.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_frames_bring_names(kind, module):
    estimator, y = kind
    table = frame(module)
    by_name = estimator(2, forced=["hdl", "age"]).fit(table, y)
    by_index = estimator(2, forced=[3, 0]).fit(X, y)
    assert by_name.feature_names_in_.tolist() == NAMES
    assert not hasattr(by_index, "feature_names_in_")
    assert by_name.n_features_in_ == by_index.n_features_in_ == 8
    assert_array_equal(by_name.support_, by_index.support_)
    assert_allclose(by_name.coef_, by_index.coef_)
    if hasattr(by_name, "predict"):
        assert_array_equal(by_name.predict(table), by_index.predict(X))


def test_one_forced_name_may_stand_alone():
    assert lz.SparseRegressor(2, forced="age").fit(frame(), Y).forced_.tolist() == [0]
    assert lz.SparseRegressor(2, forced=np.array(["age"])).fit(frame(), Y).forced_.tolist() == [0]
    assert lz.SparseRegressor(2, forced=np.arange(8) < 2).fit(X, Y).forced_.tolist() == [0, 1]


@pytest.mark.parametrize(
    "form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.csr_array]
)
def test_sparse_is_dense(kind, form):
    estimator, y = kind
    A = np.where(np.abs(X - 5) < np.median(np.abs(X - 5), axis=0), 0.0, X)
    dense, thin = estimator(2).fit(A, y), estimator(2).fit(form(A), y)
    assert_array_equal(dense.support_, thin.support_)
    assert_allclose(dense.coef_, thin.coef_, rtol=1e-7)
    if hasattr(dense, "predict"):
        assert_array_equal(dense.predict(A) == y, thin.predict(form(A)) == y)


def test_read_only_memory_maps(kind, tmp_path):
    estimator, y = kind
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_array_equal(estimator(2).fit(mapped, y).coef_, estimator(2).fit(X, y).coef_)


@pytest.mark.parametrize("options", [{}, {"alpha": 2.0}, {"method": "omp"}])
def test_integer_weights_are_repeated_rows(kind, options):
    estimator, y = kind
    weight = np.random.default_rng(1).integers(0, 4, size=len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    weighted, repeated = estimator(2, **options), estimator(2, **options)
    if "cv" in weighted.get_params():
        fold, folds = np.arange(len(X)) % 4, range(4)
        weighted.cv = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in folds]
        repeated.cv = [
            (np.flatnonzero(fold[rows] != k), np.flatnonzero(fold[rows] == k)) for k in folds
        ]
    weighted.fit(X, y, sample_weight=weight)
    repeated.fit(X[rows], y[rows])
    assert_array_equal(weighted.support_, repeated.support_)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-8)
    assert_allclose(weighted.loss_, repeated.loss_, rtol=1e-8)
    for name, values in getattr(weighted, "cv_results_", {}).items():
        assert_allclose(values, repeated.cv_results_[name], rtol=1e-8, err_msg=name)


# with the rest of scikit-learn


def test_clone_and_pickle(kind):
    estimator, y = kind
    model = estimator(2, forced=("age",)).fit(frame(), y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert copy.get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.coef_, model.coef_)
    assert again.path_[1].support.tolist() == model.path_[1].support.tolist()
    assert repr(again.report()) == repr(model.report())


def test_in_a_pipeline_with_a_column_transformer():
    table = frame().assign(city=np.where(X[:, 0] > 5, "Rome", "Oslo"))
    city = OneHotEncoder(drop="first", sparse_output=False)
    columns = ColumnTransformer(
        [("city", city, ["city"]), ("rest", StandardScaler(), NAMES)],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    model = make_pipeline(columns, lz.SparseRegressor(3, forced=["city_Rome"])).fit(table, Y)
    names = model[-1].feature_names_in_
    assert set(names[model[-1].support_]) == {NAMES[j] for j in TRUE}
    assert model.score(table, Y) > 0.9


def test_grid_search_over_sizes():
    search = GridSearchCV(lz.SparseRegressor(), {"sparsity": [1, 2, 3, 4]}, cv=4).fit(X, Y)
    assert search.best_params_["sparsity"] >= 3
    assert search.best_score_ > 0.9


def test_select_from_model():
    kept = SelectFromModel(lz.SparseClassifier(3), threshold=1e-12).fit(X, LABELS)
    assert_array_equal(
        kept.get_support(indices=True), lz.SparseClassifier(3).fit(X, LABELS).support_
    )


def test_selector_transforms():
    selector = lz.SparseSelector(2, forced=["hdl"]).fit(frame(), Y)
    assert selector.get_support(indices=True).tolist() == [1, 3, 4]
    assert selector.get_feature_names_out().tolist() == ["bmi", "hdl", "ldl"]
    assert_array_equal(selector.transform(frame()), X[:, [1, 3, 4]])
    out = selector.set_output(transform="pandas").transform(frame())
    assert list(out.columns) == ["bmi", "hdl", "ldl"]
    back = selector.set_output(transform="default").inverse_transform(X[:, [1, 3, 4]])
    assert_array_equal(back[:, [1, 3, 4]], X[:, [1, 3, 4]])
    assert not back[:, 0].any()


def test_selector_of_classes():
    selector = lz.SparseSelector(3, loss="log_loss").fit(X, LABELS)
    assert_array_equal(selector.support_, lz.SparseClassifier(3).fit(X, LABELS).support_)
    assert make_pipeline(selector, LogisticRegression(max_iter=10_000)).fit(X, LABELS) is not None


@pytest.mark.parametrize("estimator", [lz.SparseRegressor, lz.SparseRegressorCV])
def test_weights_are_routed(estimator):
    """Half of the rows are noise of weight zero: scores are good only where weights arrive."""
    rng = np.random.default_rng(0)
    weight = (np.arange(len(X)) % 2).astype(float)
    y = np.where(weight > 0, Y, 100 * rng.normal(size=len(Y)))
    with config_context(enable_metadata_routing=True):
        model = estimator(3).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        scores = cross_validate(pipeline, X, y, cv=4, params={"sample_weight": weight})
        search = GridSearchCV(model, {"alpha": [0.0, 1.0]}, cv=4).fit(X, y, sample_weight=weight)
    assert (scores["test_score"] > 0.5).all()
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
@pytest.mark.parametrize("routing", [True, False])
def test_weights_reach_the_scores_of_folds(scoring, routing):
    weight = (np.arange(len(X)) % 2).astype(float)
    y = np.where(weight > 0, Y, 1e3)
    with config_context(enable_metadata_routing=routing):
        model = lz.SparseRegressorCV(range(1, 5), scoring=scoring).fit(X, y, sample_weight=weight)
    assert model.cv_results_["mean_test_score"].max() > -1.5
    assert set(TRUE) <= set(model.support_.tolist())


def test_the_same_seed_gives_the_same_model(kind):
    estimator, y = kind
    wide = np.random.default_rng(0).normal(size=(120, 20))
    a, b = (estimator(3, random_state=np.random.RandomState(5)).fit(wide, y) for _ in range(2))
    assert_array_equal(a.coef_, b.coef_)


@pytest.mark.parametrize("method", ["auto", "arht", "iht"])
def test_a_limit_on_steps_is_kept_and_said(method):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 40)) + rng.standard_normal((60, 1))
    y = X[:, :9] @ rng.standard_normal(9) + rng.standard_normal(60)
    with pytest.warns(ConvergenceWarning, match="SparseRegressor: the iteration limit.*max_iter"):
        short = lz.SparseRegressor(6, method=method, max_iter=1).fit(X, y)
    assert short.n_iter_ == 1
    assert lz.SparseRegressor(6, method=method, max_iter=5000).fit(X, y).loss_ <= short.loss_
    with pytest.raises(ValueError, match="max_iter: expected a whole number of at least 1"):
        lz.SparseRegressor(6, method=method, max_iter=0).fit(X, y)


@pytest.mark.parametrize("constant", [1.0, 7.0, 1e6, np.pi])
@pytest.mark.parametrize("weight", [None, np.arange(120.0)])
def test_a_constant_column_has_no_coefficient(constant, weight):
    A = np.column_stack([X, np.full(len(X), constant)])
    for model in (lz.SparseRegressor(9), lz.SparseRegressor(8, forced=8)):
        assert model.fit(A, Y, weight).coef_[-1] == 0
    assert not lz.SparseRegressor(2).fit(np.full((120, 3), constant), Y).coef_.any()


def test_no_forced_features_may_be_none():
    assert_array_equal(
        lz.SparseRegressor(2, forced=None).fit(X, Y).coef_, lz.SparseRegressor(2).fit(X, Y).coef_
    )


def test_few_supports_of_classes_are_all_looked_at():
    model = lz.SparseClassifier(2).fit(X, LABELS)
    assert model.solution_.status is lz.Status.OPTIMAL
    f = lz.Logistic(X / X.std(axis=0), LABELS == "yes", fit_intercept=True, ridge=1e-3)
    best = min(f.minimize(S).value for S in combinations(range(len(NAMES)), 2))
    assert_allclose(model.loss_, best, rtol=1e-9)
