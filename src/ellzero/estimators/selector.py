"""The transformer: keeps the best features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ellzero.core import Objective
from ellzero.estimators.base import SparseEstimator
from ellzero.estimators.problem import class_objective
from ellzero.estimators.validation import encode_classes
from ellzero.objectives.least_squares import LeastSquares

LOSSES = ("squared_error", "log_loss")


class SparseSelector(SelectorMixin, SparseEstimator):
    """Keep the features of the best linear model with at most `sparsity` of them.

    Forced features are kept too and do not count.

    Parameters
    ----------
    sparsity, method, fit_intercept, standardize, forced, alpha, max_iter, random_state, options
        As for `SparseRegressor`.
    loss : {"squared_error", "log_loss"}, default="squared_error"
        "squared_error" where y holds numbers, "log_loss" where it holds classes.

    The attributes are those of `SparseRegressor`; for classes there are also `classes_`, and where
    there are more than two `coef_` and `intercept_` have a row for each.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ellzero import SparseSelector
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> selector = SparseSelector(sparsity=2, forced=["sex"]).fit(X, y)
    >>> selector.get_feature_names_out().tolist()
    ['sex', 'bmi', 's5']
    """

    def __init__(
        self,
        sparsity: Any = None,
        *,
        loss: str = "squared_error",
        method: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        forced: Any = (),
        alpha: float | None = None,
        max_iter: int | None = None,
        random_state: Any = 0,
        options: dict[str, Any] | None = None,
    ):
        super().__init__(
            sparsity,
            method=method,
            fit_intercept=fit_intercept,
            standardize=standardize,
            forced=forced,
            alpha=alpha,
            max_iter=max_iter,
            random_state=random_state,
            options=options,
        )
        self.loss = loss

    @property
    def _numeric_target(self) -> bool:
        if self.loss not in LOSSES:
            raise ValueError(f"loss: expected one of {list(LOSSES)}, got {self.loss!r}.")
        return self.loss == "squared_error"

    def _check_target(self, y: NDArray[Any], weight: Any) -> NDArray[Any]:
        self.__dict__.pop("classes_", None)
        if self._numeric_target:
            return super()._check_target(y, weight)
        check_classification_targets(y)
        self.classes_, codes = encode_classes(y, weight)
        return codes

    def _objective(self) -> Callable[..., Objective]:
        return LeastSquares if self._numeric_target else class_objective(len(self.classes_))

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = mask[self.forced_] = True
        return mask
