"""The estimator for numbers: least squares on the best features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ellzero.core import Objective
from ellzero.estimators.base import SparseEstimator, linear_predictor
from ellzero.estimators.validation import check_data
from ellzero.objectives.least_squares import LeastSquares


class SparseRegressor(RegressorMixin, SparseEstimator):
    """Linear regression on the best features, at most `sparsity` of them.

    Minimises ½ Σ w (y − Xx − a)² + ½ alpha ‖x‖² over all models of that size; with `standardize`
    the x of the penalty is that of features divided by their standard deviations.

    Parameters
    ----------
    sparsity : int, default=None
        How many features to select. The intercept and forced features do not count. None selects
        as many as the square root of the number of features, rounded up.
    method : str, default="auto"
        How to search: "auto", or one of "omp", "ompr", "els", "exchange", "arht", "iht", "lasso".
    fit_intercept : bool, default=True
        Whether to fit a constant, which is never penalised.
    standardize : bool, default=True
        Whether the search takes features divided by their standard deviations, so that `alpha`,
        and the methods that compare coefficients or gradients, treat them alike. Coefficients are
        told on the scale of X all the same.
    forced : names or indices of features, default=()
        Features that are in every model, on top of the `sparsity` selected ones. Whole numbers are
        positions, also where the columns of a frame are called by numbers.
    alpha : float, default=None
        The ridge penalty on all coefficients. None means 0 for least squares, and for the log-loss
        1e-3, just enough for coefficients to be finite where features separate the classes. It
        stands beside a sum over weighted rows, so it counts for more where weights sum to less.
    max_iter : int, default=None
        The most steps that a search may take, after which a warning says that it was cut short:
        of "auto" improvements at any size, of "omp" features, of the others steps of the algorithm
        after its start. None leaves the
        method its own limit; all but "iht", which stops after 10 000, then run to their end.
    random_state : int, RandomState, Generator or None, default=0
        Seeds the methods that draw random numbers, "auto" and "arht". None draws afresh.
    options : dict, default=None
        What else `path` takes for the method: ``{"effort": 4}`` searches longer, a "callback" sees
        every step. Folds get the same.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients on the scale of X.
    intercept_ : float
    support_ : array of int
        The selected features, sorted; forced ones are in `forced_`.
    loss_ : float
        What was minimised, at the solution.
    solution_ : Solution
        With `status`, why the search stopped.
    path_ : Path
        Solutions of other sizes by size: up to ``sparsity + 1`` for "auto" and "omp", otherwise
        the two neighbours.
    n_iter_ : int
        Steps the search took to its solution, at least 1.
    n_features_in_, feature_names_in_
        The columns of X that was fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ellzero import SparseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseRegressor(sparsity=2).fit(X, y)
    >>> model.feature_names_in_[model.support_].tolist()
    ['bmi', 's5']
    """

    def _objective(self) -> Callable[..., Objective]:
        return LeastSquares

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted values, one per row of X."""
        check_is_fitted(self)
        return self._predict(check_data(self, X, reset=False))

    def _predict(self, X: Any) -> NDArray[Any]:
        return linear_predictor(X, self.coef_[None], np.atleast_1d(self.intercept_))[:, 0]
