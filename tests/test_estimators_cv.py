"""Choosing the number of features: folds, the one-standard-error rule, information criteria."""

from time import sleep

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss, make_scorer, mean_squared_error, r2_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from threadpoolctl import threadpool_limits

import ellzero as lz
from ellzero.estimators import cv as cv_module
from ellzero.objectives.moments.statistics import Statistics
from helpers import blas_now

RNG = np.random.default_rng(0)
X = RNG.normal(loc=[0, 50, 0, 0, 0, -20, 0], size=(90, 7))
ETA = 2 * X[:, 0] - 1.5 * (X[:, 1] - 50) + 0.6 * X[:, 3]
Y = ETA + 2 * RNG.normal(size=90)
LABELS = np.where(ETA + RNG.logistic(size=90) > 0, "b", "a")
WEIGHT = RNG.uniform(0.5, 2, size=90)
SIZES = range(1, 6)


def scores_of(model):
    n = sum(key.startswith("split") for key in model.cv_results_)
    return np.array([model.cv_results_[f"split{k}_test_score"] for k in range(n)])


@pytest.mark.parametrize(
    "splitter", [KFold(4), KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)]
)
@pytest.mark.parametrize("options", [{}, {"alpha": 5.0, "method": "exchange"}])
def test_folds_of_a_regressor_are_fits_on_the_other_rows(splitter, options):
    model = lz.SparseRegressorCV(SIZES, cv=splitter, **options).fit(X, Y, WEIGHT)
    expected = [
        [
            -mean_squared_error(
                Y[test],
                lz.SparseRegressor(s, **options)
                .fit(X[train], Y[train], WEIGHT[train])
                .predict(X[test]),
                sample_weight=WEIGHT[test],
            )
            for s in SIZES
        ]
        for train, test in splitter.split(X)
    ]
    assert_allclose(scores_of(model), expected, rtol=1e-9)


def test_folds_of_a_classifier_are_fits_on_the_other_rows():
    model = lz.SparseClassifierCV(SIZES, cv=3).fit(X, LABELS, WEIGHT)
    expected = [
        [
            -log_loss(
                LABELS[test],
                lz.SparseClassifier(s)
                .fit(X[train], LABELS[train], WEIGHT[train])
                .predict_proba(X[test]),
                sample_weight=WEIGHT[test],
            )
            for s in SIZES
        ]
        for train, test in StratifiedKFold(3).split(X, LABELS)
    ]
    assert_allclose(scores_of(model), expected, rtol=1e-7)


def test_what_is_told_of_the_folds():
    model = lz.SparseRegressorCV(SIZES, cv=4).fit(X, Y)
    scores, results = scores_of(model), model.cv_results_
    assert_array_equal(results["sparsity"], SIZES)
    assert_allclose(results["mean_test_score"], scores.mean(axis=0))
    assert_allclose(results["std_test_score"], scores.std(axis=0))
    assert_allclose(results["se_test_score"], scores.std(axis=0, ddof=1) / 2)
    assert model.sparsity_ == SIZES[scores.mean(axis=0).argmax()]
    assert list(model.path_) == list(SIZES)
    assert model.solution_ is model.path_[model.sparsity_]
    whole = lz.SparseRegressor(model.sparsity_).fit(X, Y)
    assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    assert_allclose(results["loss"], [found.value for found in model.path_.values()])


def test_one_standard_error():
    best = lz.SparseRegressorCV(SIZES, cv=4).fit(X, Y)
    modest = lz.SparseRegressorCV(SIZES, cv=4, criterion="1se").fit(X, Y)
    mean, se = (best.cv_results_[key] for key in ("mean_test_score", "se_test_score"))
    close = mean >= mean.max() - se[mean.argmax()]
    assert modest.sparsity_ == SIZES[np.flatnonzero(close)[0]]
    assert modest.sparsity_ < best.sparsity_


@pytest.mark.parametrize("estimator", [lz.SparseRegressorCV, lz.SparseClassifierCV])
def test_results_do_not_depend_on_the_number_of_jobs(estimator):
    y = Y if estimator is lz.SparseRegressorCV else LABELS
    one, two = (estimator(SIZES, cv=4, n_jobs=n).fit(X, y, WEIGHT) for n in (1, 2))
    for key, values in one.cv_results_.items():
        assert_array_equal(values, two.cv_results_[key], err_msg=key)
    assert_array_equal(one.coef_, two.coef_)


def test_folds_may_run_as_threads():
    """Each has a model of its own: a slow scorer sees the one it was given."""

    def slow(model, A, y):
        before = model.coef_
        sleep(0.02)
        assert model.coef_ is before
        return 0.0

    with parallel_config("threading", n_jobs=4):
        lz.SparseRegressorCV(SIZES, cv=4, scoring=slow).fit(X, Y)


def test_folds_run_with_one_blas_thread():
    """More of them would round differently."""
    seen = []

    def remember(model, A, y):
        seen.append(blas_now())
        return 0.0

    with threadpool_limits(2, "blas"):
        lz.SparseRegressorCV([1], cv=3, scoring=remember).fit(X, Y)
    assert seen == [1, 1, 1]


def test_folds_are_added_up_not_subtracted():
    """One row of 1e9 dwarfs all others: what subtraction leaves of them is rounding."""
    A, y = X.copy(), Y.copy()
    A[0], y[0] = 1e9, 1e9
    model = lz.SparseRegressorCV([2], cv=KFold(3)).fit(A, y)
    train, test = np.arange(30, 90), np.arange(30)
    plain = lz.SparseRegressor(2).fit(A[train], y[train])
    expected = -mean_squared_error(y[test], plain.predict(A[test]))
    assert_allclose(model.cv_results_["split0_test_score"], expected, rtol=1e-8)


def test_every_row_is_looked_at_once_for_the_folds(monkeypatch):
    seen = []
    made = Statistics.from_arrays.__func__

    def counted(cls, A, *rest):
        seen.append(A.shape[0])
        return made(cls, A, *rest)

    monkeypatch.setattr(cv_module.Statistics, "from_arrays", classmethod(counted))
    splits = [(np.arange(18, 90), np.arange(18)), (np.arange(18), np.arange(18, 90))]
    cv_module._training_statistics((X, Y, None), splits)
    assert seen == [18, 72]
    overlapping = [(np.arange(90), np.arange(45)), (np.arange(90), np.arange(45, 90))]
    assert cv_module._training_statistics((X, Y, None), overlapping) is None


def test_a_fold_knows_nothing_of_its_test_rows():
    """Whatever is in the test rows, the model that is tested on them stays the same."""
    seen = []

    def remember(model, A, y, **_):
        seen.append(model.coef_.copy())
        return 0.0

    other = X.copy()
    other[:30] *= 1e3
    for A in (X, other):
        lz.SparseRegressorCV([2], cv=KFold(3), scoring=remember, alpha=1.0).fit(A, Y)
    assert_array_equal(seen[0], seen[3])
    assert (seen[1] != seen[4]).any()


@pytest.mark.parametrize("scoring", ["r2", make_scorer(r2_score)])
def test_a_scorer_of_scikit_learn(scoring):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcdefg"))
    model = lz.SparseRegressorCV(SIZES, cv=KFold(3), scoring=scoring).fit(table, Y)
    train, test = np.arange(30, 90), np.arange(30)
    plain = lz.SparseRegressor(2).fit(X[train], Y[train])
    assert_allclose(model.cv_results_["split0_test_score"][1], plain.score(X[test], Y[test]))
    accuracy = lz.SparseClassifierCV(SIZES, cv=3, scoring="accuracy").fit(table, LABELS)
    assert 0.5 < accuracy.cv_results_["mean_test_score"].max() <= 1


def test_what_is_tried_by_default():
    model = lz.SparseRegressorCV().fit(X, Y)
    assert list(model.path_) == list(range(1, 8))
    assert len(scores_of(model)) == 5
    assert list(lz.SparseRegressorCV(3).fit(X, Y).path_) == [1, 2, 3]
    assert list(lz.SparseRegressorCV([5, 2, 2]).fit(X, Y).path_) == [2, 5]


# information criteria


def test_criteria_of_least_squares_written_down():
    model = lz.SparseRegressorCV(SIZES, criterion="bic", n_candidates=200).fit(X, Y)
    for k, s in enumerate(SIZES):
        S = model.path_[s].support
        residual = Y - LinearRegression().fit(X[:, S], Y).predict(X[:, S])
        deviance = 90 * np.log(residual @ residual / 90)
        log_choices = gammaln(201) - gammaln(s + 1) - gammaln(201 - s)
        bic = deviance + (s + 1) * np.log(90)
        gic = deviance + (s + 1) * np.log(200) * np.log(np.log(90))
        expected = {
            "aic": deviance + 2 * (s + 1),
            "bic": bic,
            "ebic": bic + 2 * log_choices,
            "gic": gic,
        }
        for name, value in expected.items():
            assert_allclose(model.cv_results_[name][k], value, err_msg=name)
    assert "mean_test_score" not in model.cv_results_
    assert model.sparsity_ == SIZES[model.cv_results_["bic"].argmin()]


def test_criteria_of_logistic_regression_leave_the_ridge_out():
    model = lz.SparseClassifierCV(SIZES, criterion="aic", alpha=3.0, forced=[2]).fit(X, LABELS)
    p = lz.SparseClassifier(2, alpha=3.0, forced=[2]).fit(X, LABELS).predict_proba(X)
    deviance = 2 * log_loss(LABELS, p, normalize=False)
    assert_allclose(model.cv_results_["aic"][1], deviance + 2 * 4, rtol=1e-6)


def test_screened_candidates_count():
    few, many = (
        lz.SparseRegressorCV(criterion="ebic", n_candidates=n).fit(X, Y) for n in (None, 10**6)
    )
    assert many.sparsity_ < few.sparsity_
    with pytest.raises(ValueError, match="n_candidates: expected a whole number of at least 7"):
        lz.SparseRegressorCV(criterion="ebic", n_candidates=6).fit(X, Y)


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic", "gic"])
@pytest.mark.parametrize("estimator", [lz.SparseRegressorCV, lz.SparseClassifierCV])
def test_each_criterion_chooses_its_minimum(estimator, criterion):
    y = Y if estimator is lz.SparseRegressorCV else LABELS
    model = estimator(SIZES, criterion=criterion).fit(X, y)
    assert model.sparsity_ == SIZES[model.cv_results_[criterion].argmin()]
    assert {0, 1} <= set(model.support_.tolist())


def test_a_perfect_fit_takes_no_further_features():
    model = lz.SparseRegressorCV(criterion="bic").fit(X, X[:, 0] - 2 * X[:, 3])
    assert model.support_.tolist() == [0, 3]


def test_folds_are_reported_beside_a_criterion_if_asked_for():
    model = lz.SparseRegressorCV(SIZES, criterion="gic", cv=3).fit(X, Y)
    assert "split2_test_score" in model.cv_results_
    assert model.sparsity_ == SIZES[model.cv_results_["gic"].argmin()]


def test_a_loss_without_likelihood_has_no_criterion():
    f = lz.from_callables(lambda x: np.sum(x**4), lambda x: 4 * x**3, 3)
    with pytest.raises(ValueError, match=r"Custom: .* no likelihood.*choose .* cross-validation"):
        lz.information_criteria(f, lz.path(f, [1, 2]))


def test_criteria_do_not_take_a_model_that_fits_anything():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 60)), rng.standard_normal(20)
    model = lz.SparseRegressorCV(range(17, 22), criterion="bic", method="omp").fit(X, y)
    assert np.isinf(model.cv_results_["bic"]).tolist() == [False, False, True, True, True]
    assert model.sparsity_ < 19
