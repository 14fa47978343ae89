"""Estimators that choose their size: by cross-validation or by an information criterion."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from ellzero.estimators.base import SparseEstimator, hold_model
from ellzero.estimators.classifier import SparseClassifier
from ellzero.estimators.criteria import CRITERIA, check_criterion, information_criteria
from ellzero.estimators.problem import Problem
from ellzero.estimators.regressor import SparseRegressor
from ellzero.estimators.validation import check_sizes, names_of
from ellzero.objectives.moments.statistics import Statistics
from ellzero.parallel import new_parallel
from ellzero.selection import Path
from ellzero.threads import blas_threads, thread_budget

if TYPE_CHECKING:
    from ellzero.estimators.displays import CVDisplay

BY_FOLDS = ("cv", "1se")

Rows = tuple[Any, Any, Any]
"""X, y and weights of some rows."""


class ChoosesSparsity(SparseEstimator):
    """Adds the choice of a size to an estimator; see `SparseRegressorCV`."""

    def __init__(
        self,
        sparsity: Any = None,
        *,
        criterion: str = "cv",
        cv: Any = None,
        scoring: Any = None,
        n_candidates: int | None = None,
        method: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        forced: Any = (),
        alpha: float | None = None,
        max_iter: int | None = None,
        random_state: Any = 0,
        options: dict[str, Any] | None = None,
        n_jobs: int | None = None,
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
        self.criterion = criterion
        self.cv = cv
        self.scoring = scoring
        self.n_candidates = n_candidates
        self.n_jobs = n_jobs

    def _path_and_size(self, problem: Problem, X: Any, y: Any, weight: Any) -> tuple[Path, int]:
        check_criterion(self.criterion, BY_FOLDS + CRITERIA)
        sizes = check_sizes(self.sparsity, X.shape[1], len(problem.forced))
        solved = problem.solve(X, y, weight, sizes)
        self.cv_results_: dict[str, NDArray[Any]] = {
            "sparsity": np.array(sizes),
            "loss": np.array([found.value for found in solved.searched.values()]),
            **information_criteria(solved.f, solved.searched, n_candidates=self.n_candidates),
        }
        if self.criterion in BY_FOLDS or self.cv is not None or self.scoring is not None:
            scores = self._cross_validated(problem, X, y, weight, sizes)
            self.cv_results_.update(described(scores))
        self.sparsity_ = sizes[self._chosen()]
        return solved.path, self.sparsity_

    def _chosen(self) -> int:
        """The position of the size to take; of equals the smallest."""
        results = self.cv_results_
        if self.criterion in CRITERIA:
            return int(np.argmin(results[self.criterion]))
        mean = ranked(results["mean_test_score"], results["sparsity"])
        best = int(np.argmax(mean))
        if self.criterion == "1se":
            return int(np.argmax(mean >= mean[best] - results["se_test_score"][best]))
        return best

    def _cross_validated(
        self, problem: Problem, X: Any, y: Any, weight: Any, sizes: list[int]
    ) -> NDArray[np.float64]:
        """One row per fold, one column per size."""
        from sklearn.model_selection import check_cv

        X = X.tocsr() if sparse.issparse(X) else X
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        splits = list(splitter.split(X, y))
        model = copy.copy(self)
        if names_of(self) is not None:  # rows in folds are arrays
            del model.feature_names_in_
        scorer = None if self.scoring is None else check_scoring(model, self.scoring)
        rows = (X, y, weight)
        if not splits:
            raise ValueError("cv: expected at least one split of the rows.")
        for k, split in enumerate(splits):
            self._check_split(k, split[0], split[1], y, weight)
        if weight is not None and scorer is not None and not takes_weights(scorer):
            warnings.warn(
                f"scoring: {self.scoring!r} takes no sample_weight; the folds are scored without.",
                UserWarning,
                stacklevel=5,
            )
        training = _training_statistics(rows, splits) if problem.adds_up(X.shape[1]) else None
        # all of X goes to every task: joblib shares one copy of it, which it cannot do of folds;
        # not scikit-learn's Parallel, whose threads change the filters of warnings of the process
        tasks = (
            delayed(_configured)(
                get_config(),
                model,
                problem,
                rows,
                train if training is None else training[k],
                test,
                sizes,
                scorer,
            )
            for k, (train, test) in enumerate(splits)
        )
        with blas_threads(1):  # here too: threadpoolctl may refuse it to folds that are threads
            return np.array(new_parallel(self.n_jobs)(tasks))

    def _check_split(self, k: int, train: Any, test: Any, y: Any, weight: Any) -> None:
        if weight is not None and not weight[test].any():
            raise ValueError(
                f"cv: all rows to test in split {k} have weight zero; use other folds or leave "
                "those rows out."
            )
        if is_classifier(self):
            live = np.unique(y[train] if weight is None else y[train][weight[train] > 0])
            if len(live) < 2:
                raise ValueError(
                    f"cv: the rows to fit in split {k} are all of class "
                    f"{self.classes_[live].tolist()[0]!r}; use other folds, such as "
                    "StratifiedKFold's."
                )

    def _mean_score(self, X: Any, y: Any, weight: Any) -> float:
        """Minus the mean loss of a prediction."""
        raise NotImplementedError

    def plot_cv(self, **options: Any) -> CVDisplay:
        """The cross-validated score at every size; see `CVDisplay`."""
        from ellzero.estimators.displays import CVDisplay

        return CVDisplay.from_estimator(self, **options)


class SparseRegressorCV(ChoosesSparsity, SparseRegressor):
    """Linear regression on the best features, whose number is chosen too.

    Parameters
    ----------
    sparsity : range, list of int or int, default=None
        The sizes to choose from; one number stands for 1 up to it, None for 1 to 10. A size counts
        selected features, not the intercept nor forced ones.
    criterion : {"cv", "1se", "aic", "bic", "ebic", "gic"}, default="cv"
        "cv" takes the size with the best mean score over the folds, "1se" the smallest size whose
        score is within one standard error of that; the others are information criteria, for which
        folds are made only if you give `cv` or `scoring`, and then only to be reported; they take
        the sum of the weights for the number of rows.
    cv : int, splitter or iterable of (train, test), default=None
        The folds; None makes 5. For groups, pass ``list(GroupKFold().split(X, y, groups))``.
    scoring : str or callable, default=None
        A scorer of scikit-learn; it gets `sample_weight` if `fit` did. None takes minus the mean
        squared error, or the log-loss of a classifier.
    n_candidates : int, default=None
        How many features there were before you screened them, for "ebic" and "gic" and for these
        two in `cv_results_`; None means that X has them all but for the forced ones.
    n_jobs : int, default=None
        Folds that are fitted at the same time, by joblib's backend of the day (see
        ``joblib.parallel_config``); results depend on neither.
    method, fit_intercept, standardize, forced, alpha, max_iter, random_state, options
        As for `SparseRegressor`.

    Attributes
    ----------
    sparsity_ : int
        The size chosen.
    cv_results_ : dict of arrays, one entry per size
        "sparsity", "loss", "aic", "bic", "ebic" and "gic" on all rows; and with folds
        "split0_test_score", ..., "mean_test_score", "std_test_score" and "se_test_score".
    path_ : Path
        The solutions of all sizes, on all rows.

    The other attributes are those of `SparseRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ellzero import SparseRegressorCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> SparseRegressorCV(criterion="bic").fit(X, y).sparsity_
    5
    """

    def _mean_score(self, X: Any, y: Any, weight: Any) -> float:
        residual = y - self._predict(X).astype(np.float64)
        return -float(np.average(residual**2, weights=weight))


class SparseClassifierCV(ChoosesSparsity, SparseClassifier):
    """Logistic regression on the best features, whose number is chosen too.

    The parameters are those of `SparseRegressorCV`, the attributes those of `SparseClassifier` and
    the ones `SparseRegressorCV` adds. Folds keep the proportions of the classes unless `cv` says
    otherwise.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from ellzero import SparseClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> SparseClassifierCV(range(1, 5), criterion="1se").fit(X, y).sparsity_
    3
    """

    def _mean_score(self, X: Any, y: Any, weight: Any) -> float:
        return float(np.average(self._log_proba(X)[np.arange(len(y)), y], weights=weight))


def fold_scores(
    model: ChoosesSparsity, problem: Problem, X: Any, y: Any, weight: Any, sizes: list[int]
) -> NDArray[np.float64]:
    """Return the scores of every fold, a row each, at every size."""
    return model._cross_validated(problem, X, y, weight, sizes)


def chosen_place(model: ChoosesSparsity) -> int:
    """Return the place of the size that the criterion of a model takes, of equals the smallest."""
    return model._chosen()


def _training_statistics(rows: Rows, splits: list[Any]) -> list[Statistics] | None:
    """The statistics of every training set as the sum of those of the other folds.

    None where the test sets do not divide the rows. Nothing is subtracted: what is left of a
    difference is rounding where one fold dwarfs the others.
    """
    m = rows[0].shape[0]
    tests = np.sort(np.concatenate([test for _, test in splits]))
    divided = np.array_equal(tests, np.arange(m)) and len(splits) > 1
    if not divided or any(
        len(np.union1d(train, test)) < m or len(train) + len(test) > m for train, test in splits
    ):
        return None
    parts = [Statistics.from_arrays(*_taken(rows, test)) for _, test in splits]
    return [_sum(parts[:k] + parts[k + 1 :]) for k in range(len(parts))]


def _sum(parts: list[Statistics]) -> Statistics:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _taken(rows: Rows, index: Any) -> Rows:
    X, y, weight = rows
    return X[index], y[index], None if weight is None else weight[index]


def _configured(config: dict[str, Any], *arguments: Any) -> list[float]:
    """Return the scores of a fold under the caller's configuration of scikit-learn."""
    with config_context(**config):
        return _fold_scores(*arguments)


def _fold_scores(
    model: Any,
    problem: Problem,
    rows: Rows,
    train: Statistics | NDArray[np.intp],
    test: NDArray[np.intp],
    sizes: list[int],
    scorer: Callable[..., float] | None,
) -> list[float]:
    """The scores of all sizes on one fold; with one BLAS thread, for the same digits anywhere."""
    X, y, weight = _taken(rows, test)
    model = copy.copy(model)  # folds may run as threads
    with thread_budget(1):
        if isinstance(train, Statistics):
            path = problem.solve_statistics(train, sizes).path
        else:
            path = problem.solve(*_taken(rows, train), sizes).path
        scores = []
        for s in sizes:
            hold_model(model, path[s], X.dtype)
            scores.append(_score(model, X, y, weight, scorer))
    return scores


def _score(model: Any, X: Any, y: Any, weight: Any, scorer: Callable[..., float] | None) -> float:
    if scorer is None:
        return model._mean_score(X, y, weight)
    labels = model.classes_[y] if is_classifier(model) else y
    weights = {} if weight is None or not takes_weights(scorer) else {"sample_weight": weight}
    return scorer(model, X, labels, **weights)


def takes_weights(scorer: Callable[..., float]) -> bool:
    """Does a scorer, or the metric that scikit-learn has made it of, know what to do with them?"""
    known = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in known


def ranked(scores: NDArray[np.float64], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """Scores to compare, in which those that are no numbers come last."""
    undefined = np.isnan(scores)
    if undefined.all():
        raise ValueError("scoring: the score is NaN at every size; use another, or other folds.")
    if undefined.any():
        warnings.warn(
            f"scoring: the score is NaN at sizes {sizes[undefined].tolist()}, which are not taken.",
            UserWarning,
            stacklevel=6,
        )
    return np.where(undefined, -np.inf, scores)


def described(scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Scores of folds (rows) at every size (columns) as entries of `cv_results_`."""
    n_folds = len(scores)
    spread = scores.std(axis=0, ddof=1) if n_folds > 1 else np.zeros(scores.shape[1])
    return {
        **{f"split{k}_test_score": fold for k, fold in enumerate(scores)},
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
        "se_test_score": spread / np.sqrt(n_folds),
    }
