"""What all estimators share: parameters, fitting, and what is known afterwards."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ellzero.certificates import Certificate, OtherObjective, certify
from ellzero.core import Objective, Solution, Status
from ellzero.data.design import check_weight
from ellzero.estimators.problem import Problem, Solved, check_alpha, check_switch
from ellzero.estimators.report import Report
from ellzero.estimators.validation import (
    check_data,
    check_forced,
    check_numeric,
    check_search,
    check_size,
    feature_names,
    names_of,
)
from ellzero.methods.seeds import seed_of
from ellzero.selection import Path
from ellzero.silence import is_silent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    import pandas

    from ellzero.estimators.displays import CoefficientDisplay, PathDisplay


class SparseEstimator(BaseEstimator):
    """The best model that uses at most `sparsity` features; see `SparseRegressor`."""

    def __init__(
        self,
        sparsity: Any = None,
        *,
        method: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        forced: Any = (),
        alpha: float | None = None,
        max_iter: int | None = None,
        random_state: Any = 0,
        options: dict[str, Any] | None = None,
    ):
        self.sparsity = sparsity
        self.method = method
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.forced = forced
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state
        self.options = options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select features of X and fit the model on them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights; an integer weight means that many copies of the row.
        """
        X, y, weight = self._check_training_data(X, y, sample_weight)
        problem = self._problem(X.shape[1])
        self.forced_ = problem.forced
        self.path_, s = self._path_and_size(problem, X, y, weight)
        hold_model(self, self.path_[s], X.dtype)
        self._warn_of(self.solution_)
        return self

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, whole_path: bool = False, **options: Any
    ) -> Certificate | dict[int, Certificate]:
        """How far the model can be from the best possible one of its size; see `ellzero.certify`.

        Parameters
        ----------
        X, y, sample_weight : the data of `fit`
        whole_path : certify all sizes in `path_` and return a dictionary
        options : `time_limit`, `gap` and `callback` of `ellzero.certify`
        """
        check_is_fitted(self)
        same = copy.copy(self)  # the data are checked once more, the model stays as it is
        X, y, weight = same._check_training_data(X, y, sample_weight)
        f, scale = same._problem(X.shape[1]).objective_of(X, y, weight)
        solved = Solved.of(f, scale, self.path_)
        s = next(s for s, found in self.path_.items() if found is self.solution_)
        sizes = list(self.path_) if whole_path else [s]
        try:
            found = certify(f, Path((t, solved.searched[t]) for t in sizes), **options)
        except OtherObjective as error:
            raise ValueError(
                "X, y, sample_weight: expected the data of fit; with these, the loss of the model "
                "is another one."
            ) from error
        told = {t: solved.told(certificate) for t, certificate in found.items()}
        return told if whole_path else told[s]

    # what a subclass says

    def _check_target(self, y: NDArray[Any], weight: Any) -> NDArray[Any]:
        return check_numeric(y)

    def _objective(self) -> Callable[..., Objective]:
        raise NotImplementedError

    # what follows

    def _check_training_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        X, y = check_data(self, X, y, y_numeric=self._numeric_target)
        weight = check_weight(sample_weight, X.shape[0])
        return X, self._check_target(y, weight), weight

    def _problem(self, n_features: int) -> Problem:
        """What the parameters ask for; the data have been checked."""
        objective = self._objective()
        return Problem(
            objective=objective,
            method=self.method,
            fit_intercept=check_switch("fit_intercept", self.fit_intercept),
            standardize=check_switch("standardize", self.standardize),
            forced=check_forced(self.forced, names_of(self), n_features),
            alpha=check_alpha(self.alpha, objective),
            seed=seed_of(self.random_state),
            search=check_search(self.options, self.max_iter),
        )

    @property
    def _numeric_target(self) -> bool:
        return True

    def _path_and_size(self, problem: Problem, X: Any, y: Any, weight: Any) -> tuple[Path, int]:
        n, n_forced = X.shape[1], len(problem.forced)
        s = check_size(self.sparsity, n, n_forced)
        sizes = problem.sizes_around(s, n - n_forced)
        return self._solve(problem, X, y, weight, sizes).path, s

    def _solve(self, problem: Problem, X: Any, y: Any, weight: Any, sizes: list[int]) -> Solved:
        return problem.solve(X, y, weight, sizes)

    def _warn_of(self, solution: Solution) -> None:
        advice = {
            Status.NO_MINIMISER: "the coefficients grow without bound; set alpha above 0",
            Status.MAX_ITER: "raise max_iter, or try another method",
        }
        if solution.status in advice and not is_silent():
            names = feature_names(self)
            names = [names[j] for j in solution.support]
            warnings.warn(
                f"{type(self).__name__}: {solution.status} (features {names}); "
                f"{advice[solution.status]}.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # what users read

    def summary(self) -> pandas.DataFrame:
        """The features of the model, one per row; needs pandas.

        Columns: the coefficient (one per class for more than two), whether the feature was forced,
        and the smallest size in `path_` whose model has it.
        """
        check_is_fitted(self)
        import pandas

        rows = np.sort(np.concatenate([self.support_, self.forced_]))
        coef = np.atleast_2d(self.coef_)[:, rows]
        labels = [f"coefficient_{c}" for c in self.classes_] if len(coef) > 1 else ["coefficient"]
        names = feature_names(self)
        first = {j: s for s in reversed([*self.path_]) for j in self.path_[s].support.tolist()}
        return pandas.DataFrame(
            {
                **dict(zip(labels, coef, strict=True)),
                "forced": np.isin(rows, self.forced_),
                "first_size": [first.get(j, 0) for j in rows.tolist()],
            },
            index=pandas.Index([names[j] for j in rows], name="feature"),
        )

    def report(self) -> Report:
        """The model in words: its features, its loss, and what one feature more or less changes.

        Printed it is text; a notebook shows it as a table, also below the fitted estimator.
        """
        check_is_fitted(self)
        return Report(
            title=type(self).__name__,
            names=feature_names(self),
            path=self.path_,
            solution=self.solution_,
            forced=self.forced_,
            coef=np.atleast_2d(self.coef_),
            intercept=np.atleast_1d(self.intercept_),
            classes=list(getattr(self, "classes_", [])),
        )

    def plot_path(self, **options: Any) -> PathDisplay:
        """The loss at every size; see `PathDisplay`."""
        from ellzero.estimators.displays import PathDisplay

        return PathDisplay.from_estimator(self, **options)

    def plot_coefficients(self, **options: Any) -> CoefficientDisplay:
        """The coefficients at every size; see `CoefficientDisplay`."""
        from ellzero.estimators.displays import CoefficientDisplay

        return CoefficientDisplay.from_estimator(self, **options)

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._report_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._report_html()
        return bundle

    def _report_html(self) -> str:
        return self.report()._repr_html_() if hasattr(self, "solution_") else ""

    # what scikit-learn asks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {"requires_y": True}


def hold_model(estimator: SparseEstimator, solution: Solution, dtype: Any) -> None:
    """Set what is known of a fitted model. With classes, coefficients have a row for each."""
    estimator.solution_ = solution
    estimator.support_ = solution.support.copy()
    estimator.loss_ = solution.value
    estimator.n_iter_ = max(solution.n_iter, 1)
    estimator.coef_ = solution.x.T.astype(dtype)
    estimator.intercept_ = np.asarray(solution.intercept).astype(dtype)[()]
    if hasattr(estimator, "classes_"):
        estimator.coef_ = np.atleast_2d(estimator.coef_)
        estimator.intercept_ = np.broadcast_to(estimator.intercept_, len(estimator.coef_)).copy()


def training_data(
    estimator: SparseEstimator, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Any, Any]:
    """Check the data of a fit as the estimator does, and return them as it takes them."""
    return estimator._check_training_data(X, y, sample_weight)


def problem_of(estimator: SparseEstimator, n_features: int) -> Problem:
    """Return what the parameters of an estimator ask for."""
    return estimator._problem(n_features)


def linear_predictor(X: Any, coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]:
    """X coefᵀ + intercept, one column per row of coef; cut off where it would overflow."""
    S = np.flatnonzero(coef.any(axis=0))
    A, coef64 = X[:, S].astype(np.float64), coef[:, S].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        eta = A @ coef64.T + intercept
        overflown = ~np.isfinite(eta).all(axis=1)
        if overflown.any():
            eta[overflown] = _scaled_product(A[overflown], coef64) + intercept
    dtype = np.result_type(X.dtype, coef.dtype)
    largest = np.finfo(dtype).max / 2  # so that the difference of two scores is finite too
    return np.clip(eta, -largest, largest).astype(dtype)


def _scaled_product(A: Any, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """A coefᵀ, in which nothing but the result overflows."""
    A = A.toarray() if sparse.issparse(A) else A
    rows = np.abs(A).max(axis=1, keepdims=True)
    columns = np.abs(coef).max(axis=1)
    columns[columns == 0] = 1.0
    return (A / rows) @ (coef / columns[:, None]).T * rows * columns
