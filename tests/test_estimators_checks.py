"""scikit-learn's own checks, without exceptions."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import ellzero as lz


@pytest.mark.filterwarnings("default")  # the checks bring warnings of their own making
@parametrize_with_checks(
    [
        lz.SparseRegressor(),
        lz.SparseRegressor(2, method="omp", standardize=False),
        lz.SparseClassifier(),
        lz.SparseClassifier(alpha=0.1, standardize=False),
        lz.SparseSelector(),
        lz.SparseSelector(1, loss="log_loss"),
        lz.SparseRegressorCV(cv=3),
        lz.SparseRegressorCV(criterion="ebic"),
        lz.SparseClassifierCV(cv=3),
        lz.SparseClassifierCV(criterion="bic"),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
