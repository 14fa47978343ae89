"""More than two classes: one support for all of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

import ellzero as lz

X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[CODES]


def test_all_features_give_scikit_learns_model():
    model = lz.SparseClassifier(4, alpha=1.0, standardize=False).fit(X, LABELS)
    plain = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(X, LABELS)
    assert model.classes_.tolist() == plain.classes_.tolist()
    assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-6, atol=1e-12)
    assert_array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("standardize", [True, False])
def test_s_features_are_s_features(standardize):
    model = lz.SparseClassifier(2, standardize=standardize).fit(X, LABELS)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert np.flatnonzero(model.coef_.any(axis=0)).tolist() == model.support_.tolist() == [2, 3]
    scores = model.decision_function(X)
    assert_allclose(scores, X @ model.coef_.T + model.intercept_)
    assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1))
    assert model.score(X, LABELS) > 0.95


def test_probabilities_never_overflow():
    model = lz.SparseClassifier(2).fit(X, LABELS)
    far = np.vstack([X * 1e300, -X * 1e300])
    assert np.isfinite(model.decision_function(far)).all()
    assert_allclose(model.predict_proba(far).sum(axis=1), 1)


def test_folds_and_criteria():
    model = lz.SparseClassifierCV(3, cv=3, alpha=0.5).fit(X, LABELS)
    train, test = next(StratifiedKFold(3).split(X, LABELS))
    part = lz.SparseClassifier(2, alpha=0.5).fit(X[train], LABELS[train])
    expected = part.predict_log_proba(X[test])[np.arange(len(test)), CODES[test]].mean()
    assert_allclose(model.cv_results_["split0_test_score"][1], expected, rtol=1e-7)
    whole = lz.SparseClassifier(2, alpha=0.5).fit(X, LABELS).predict_log_proba(X)
    deviance = -2 * whole[np.arange(len(X)), CODES].sum()
    assert_allclose(model.cv_results_["aic"][1], deviance + 2 * 2 * 3, rtol=1e-7)


def test_a_fold_may_miss_a_class():
    splits = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
    model = lz.SparseClassifierCV(2, cv=splits).fit(X, LABELS)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_summary_has_a_column_per_class():
    pytest.importorskip("pandas")
    model = lz.SparseClassifier(2).fit(X, LABELS)
    table = model.summary()
    assert_allclose(table["coefficient_virginica"], model.coef_[2, model.support_])
    assert "virginica" in repr(model.report())
    assert "virginica" in model.report()._repr_html_()


def test_selector_of_several_classes():
    selector = lz.SparseSelector(2, loss="log_loss").fit(X, LABELS)
    assert selector.get_support(indices=True).tolist() == [2, 3]


def test_classes_beyond_their_number():
    with pytest.raises(ValueError, match="up to 1, got 2"):
        lz.Multinomial(X, CODES, n_classes=2)
