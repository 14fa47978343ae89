"""Errors a newcomer will meet: what is wrong, where, and what to do."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

import ellzero as lz
from ellzero.checks import closest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = X[:, 0] + RNG.normal(size=30)
LABELS = Y > 0
NAMES = ["age", "bmi", "bp", "city"]

SINGLE = [lz.SparseRegressor, lz.SparseSelector]
CHOOSING = [lz.SparseRegressorCV]


def frame(**columns):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=NAMES).assign(**columns)


def message(estimator, A, y, *weight, error=ValueError):
    with pytest.raises(error) as caught:
        estimator.fit(A, y, *weight)
    return str(caught.value)


@pytest.mark.parametrize("estimator", SINGLE + CHOOSING)
def test_more_features_than_there_are(estimator):
    assert message(estimator(5), X, Y) == (
        "sparsity: cannot select 5 features, X has only 4 feature(s); ask for 4 or fewer."
    )
    assert message(estimator(4, forced=[1]), X, Y) == (
        "sparsity: cannot select 4 features, X has only 3 feature(s) besides the 1 forced; "
        "ask for 3 or fewer."
    )


@pytest.mark.parametrize("sparsity", [2.5, "3", True])
@pytest.mark.parametrize("estimator", SINGLE)
def test_a_size_that_is_no_whole_number(estimator, sparsity):
    text = message(estimator(sparsity), X, Y, error=TypeError)
    assert text == f"sparsity: expected a whole number of features, got {sparsity!r}."


def test_sizes_that_are_none():
    assert message(lz.SparseRegressor(0), X, Y) == "sparsity: expected at least 1 feature, got 0."
    assert "at least one size, such as range(1, 11)" in message(lz.SparseRegressorCV([]), X, Y)
    assert message(lz.SparseRegressor(forced=[0, 1, 2, 3]), X, Y) == (
        "forced: all of the 4 feature(s) of X are forced, so there is none to select; force fewer."
    )


def test_the_search_for_the_name_that_was_meant_is_bounded(monkeypatch):
    compared = []

    def close(name, known, n):
        compared.append(len(name) * sum(map(len, known)))
        return known[:n]

    monkeypatch.setattr("difflib.get_close_matches", close)
    for length in (5, 100, 10_000):
        names = [f"{j:05d}{'x' * (length - 5)}" for j in range(50_000_000 // length // 100)]
        assert closest("y" * length, names) == names[0]
        assert closest(names[-1].upper(), names) == names[-1]
    assert max(compared) <= 4_000_000


def test_unknown_forced_names():
    assert message(lz.SparseRegressor(1, forced=["agee"]), frame(), Y) == (
        "forced: X has no column 'agee'; did you mean 'age'?"
    )
    assert message(lz.SparseRegressor(1, forced=["zzz"]), frame(), Y) == (
        "forced: X has no column 'zzz'; its columns are 'age', 'bmi', 'bp', 'city'."
    )
    assert message(lz.SparseRegressor(1, forced=["age"]), X, Y) == (
        "forced: 'age' is a name, but the columns of X have none; pass a data frame, or the "
        "indices of the features."
    )
    assert "forced: indices must be 0 to 3" in message(lz.SparseRegressor(1, forced=[4]), X, Y)
    assert "forced: expected names or indices" in message(
        lz.SparseRegressor(1, forced=4.0), X, Y, error=TypeError
    )


@pytest.mark.parametrize("estimator", [lz.SparseRegressor(1), lz.SparseClassifier(1)])
def test_text_in_X(estimator):
    advice = "encode it, for example with OneHotEncoder, or drop it."
    text = frame(city=["Rome", "Oslo"] * 15)
    assert message(estimator, text, LABELS) == (
        f"X: column 'city' holds text such as 'Rome'; {advice}"
    )
    array = X.astype(object)
    array[3, 2] = "Rome"
    assert message(estimator, array, LABELS) == f"X: column 2 holds text such as 'Rome'; {advice}"


def test_text_in_X_of_polars():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"age": [1.0, 2.0], "city": ["Rome", "Oslo"]})
    assert "X: column 'city' holds text such as 'Rome'" in message(
        lz.SparseRegressor(1), table, [1.0, 2.0]
    )


def test_text_in_y_of_a_regressor():
    assert message(lz.SparseRegressor(1), X, ["a", "b"] * 15) == (
        "y: expected numbers, got text; for classes use SparseClassifier or loss='log_loss'."
    )


def test_nan_is_found_by_name_and_row():
    bad = X.copy()
    bad[[7, 9], 1] = np.nan
    bad[8, 3] = np.inf
    advice = "drop those rows or impute them, for example with SimpleImputer."
    for table, column in ((bad, "1"), (frame(bmi=bad[:, 1], city=bad[:, 3]), "'bmi'")):
        assert message(lz.SparseClassifier(1), table, LABELS) == (
            f"X: column {column} has 2 NaN or infinite value(s), the first in row 7; {advice}"
        )
    thin = sparse.csr_array(np.where(np.abs(bad) < 0.5, 0.0, bad))
    assert "X: column 1 has 2 NaN" in message(lz.SparseRegressor(1), thin, Y)
    model = lz.SparseRegressor(1).fit(frame(), Y)
    with pytest.raises(ValueError, match="X: column 'bmi' has 2 NaN"):
        model.predict(frame(bmi=bad[:, 1]))
    with pytest.raises(ValueError, match="y contains NaN"):
        lz.SparseRegressor(1).fit(X, np.where(Y > 0, Y, np.nan))


def test_huge_numbers_are_not_infinite():
    huge = np.where(X > 0, 1e308, -1e308)
    for model, y in ((lz.SparseClassifier(1), LABELS), (lz.SparseRegressor(1), Y)):
        assert message(model, huge, y) == (
            "X: column 0 is too large to square in float64; rescale it."
        )


@pytest.mark.parametrize("estimator", [lz.SparseClassifier, lz.SparseClassifierCV])
def test_one_class_only(estimator):
    assert message(estimator(1), X, ["a"] * 30) == (
        "y: has only one class, 'a'; a classifier needs rows of at least two classes."
    )
    assert message(estimator(1), X, LABELS, LABELS.astype(float)) == (
        "y: has only one class, True once rows of weight zero are left out; a classifier needs "
        "rows of at least two classes."
    )


def test_numbers_for_a_classifier():
    assert "continuous" in message(lz.SparseClassifier(1), X, Y)


def test_options_that_are_unknown():
    assert "method: expected 'auto' or one of ['arht'," in message(
        lz.SparseRegressor(1, method="omg"), X, Y
    )
    assert "alpha: expected a finite number, 0 or above, got -1" in message(
        lz.SparseRegressor(1, alpha=-1), X, Y
    )
    assert "loss: expected one of ['squared_error', 'log_loss'], got 'l2'" in message(
        lz.SparseSelector(1, loss="l2"), X, Y
    )
    assert "criterion: expected one of ['cv', '1se', 'aic'," in message(
        lz.SparseRegressorCV(criterion="best"), X, Y
    )
    assert "random_state: expected" in message(lz.SparseRegressor(1, random_state="a"), X, Y)


def test_values_that_mean_nothing():
    assert "standardize: expected True or False, got 'no'" in message(
        lz.SparseRegressor(1, standardize="no"), X, Y
    )
    assert "fit_intercept: expected True or False" in message(
        lz.SparseClassifier(1, fit_intercept="no"), X, LABELS
    )
    assert "y: expected numbers, got dtype datetime64" in message(
        lz.SparseRegressor(1), X, np.arange(30).astype("datetime64[D]")
    )
    for several in ("23", np.array(3), (s for s in (1, 2))):
        assert "sparsity: expected a whole number" in message(
            lz.SparseRegressorCV(several), X, Y, error=TypeError
        )


def test_folds_that_cannot_be_fitted():
    assert message(lz.SparseRegressorCV(2, cv=[]), X, Y) == (
        "cv: expected at least one split of the rows."
    )
    assert message(lz.SparseClassifierCV(2, cv=KFold(2)), X, np.repeat(["a", "b"], 15)) == (
        "cv: the rows to fit in split 0 are all of class 'b'; use other folds, such as "
        "StratifiedKFold's."
    )


def test_a_class_without_weight():
    classes = np.repeat(["a", "b", "c"], 10)
    assert message(lz.SparseClassifier(1), X, classes, (classes != "b") * 1.0) == (
        "y: all rows of class 'b' have weight zero; leave them out."
    )


def undefined_at(*sizes):
    def score(model, A, y):
        s = np.count_nonzero(model.coef_)
        return np.nan if s in sizes else -s

    return score


def test_scores_that_are_no_numbers():
    with pytest.warns(UserWarning, match=r"scoring: the score is NaN at sizes \[1, 3\]"):
        model = lz.SparseRegressorCV(4, cv=3, scoring=undefined_at(1, 3)).fit(X, Y)
    assert model.sparsity_ == 2
    assert "scoring: the score is NaN at every size" in message(
        lz.SparseRegressorCV(2, cv=3, scoring=undefined_at(1, 2)), X, Y
    )


@pytest.mark.parametrize("scoring", ["neg_max_error", undefined_at()])
def test_scorers_that_take_no_weights(scoring):
    with pytest.warns(UserWarning, match="takes no sample_weight; the folds are scored without"):
        weighted = lz.SparseRegressorCV(3, cv=3, scoring=scoring).fit(X, Y, np.ones(30))
    plain = lz.SparseRegressorCV(3, cv=3, scoring=scoring).fit(X, Y)
    assert (
        weighted.cv_results_["mean_test_score"].tolist()
        == plain.cv_results_["mean_test_score"].tolist()
    )


def test_weights_that_are_wrong():
    assert "sample_weight: negative in row 0" in message(lz.SparseRegressor(1), X, Y, [-1.0] * 30)
    assert "sample_weight: all weights are zero" in message(
        lz.SparseRegressor(1), X, Y, np.zeros(30)
    )
    weight = np.ones(30)
    weight[6:12] = 0
    for model in (lz.SparseRegressorCV(2, cv=5), lz.SparseClassifierCV(2, cv=FOLDS)):
        y = Y if isinstance(model, lz.SparseRegressorCV) else LABELS
        assert message(model, X, y, weight) == (
            "cv: all rows to test in split 1 have weight zero; use other folds or leave those "
            "rows out."
        )


FOLDS = [(np.setdiff1d(np.arange(30), test), test) for test in np.array_split(np.arange(30), 5)]


@pytest.mark.parametrize("estimator", SINGLE + CHOOSING)
def test_options_go_to_the_search(estimator):
    seen = []
    estimator(2, options={"callback": seen.append, "effort": 0}).fit(X, Y)
    assert {len(x.support) for x in seen} >= {1, 2}
    assert message(estimator(2, options={"effort": -1}), X, Y).startswith("effort: expected")
    assert message(estimator(2, options=[1]), X, Y, error=TypeError) == (
        "options: expected a dict such as {'effort': 2}, got [1]."
    )
    assert message(estimator(2, method="omp", options={"effort": 1}), X, Y, error=TypeError) == (
        "omp: no option 'effort'; there are ['callback', 'max_iter']."
    )
