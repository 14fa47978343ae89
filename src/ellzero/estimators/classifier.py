"""The estimator for classes: logistic regression on the best features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ellzero.core import Objective
from ellzero.estimators.base import SparseEstimator, linear_predictor
from ellzero.estimators.problem import class_objective
from ellzero.estimators.validation import check_data, encode_classes


class SparseClassifier(ClassifierMixin, SparseEstimator):
    """Logistic regression on the best features, at most `sparsity` of them.

    Minimises Σ w (−log p(y)) + ½ alpha ‖x‖² over all models of that size. With more than two
    classes it is the multinomial loss, and all classes use the same features.

    Where the selected features separate the classes, coefficients without any penalty would grow
    for ever: with ``alpha=0`` a warning says so.

    Parameters are those of `SparseRegressor`, and so are the attributes, but for these.

    Attributes
    ----------
    coef_ : array of shape (1, n_features), or (n_classes, n_features) for more than two classes
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : the classes, sorted

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from ellzero import SparseClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SparseClassifier(sparsity=2).fit(X, y)
    >>> model.feature_names_in_[model.support_].tolist()
    ['worst area', 'worst concave points']
    """

    _numeric_target = False

    def _check_target(self, y: NDArray[Any], weight: Any) -> NDArray[Any]:
        check_classification_targets(y)
        self.classes_, codes = encode_classes(y, weight)
        return codes

    def _objective(self) -> Callable[..., Objective]:
        return class_objective(len(self.classes_))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Log-odds of the second class, or with more than two classes one score for each."""
        check_is_fitted(self)
        scores = self._scores(check_data(self, X, reset=False))
        return scores[:, 1] if len(self.coef_) == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        check_is_fitted(self)
        return self.classes_[self._scores(check_data(self, X, reset=False)).argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of every class, in the order of `classes_`."""
        check_is_fitted(self)
        return softmax(self._scores(check_data(self, X, reset=False)), axis=1)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of `predict_proba`, to full precision."""
        check_is_fitted(self)
        return self._log_proba(check_data(self, X, reset=False))

    def _log_proba(self, X: Any) -> NDArray[Any]:
        return log_softmax(self._scores(X), axis=1)

    def _scores(self, X: Any) -> NDArray[Any]:
        """One column per class; that of the first of two classes is zero."""
        eta = linear_predictor(X, self.coef_, self.intercept_)
        return np.hstack([np.zeros_like(eta), eta]) if len(self.coef_) == 1 else eta
