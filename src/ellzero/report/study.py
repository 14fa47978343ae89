"""A study: the best models of several sizes, and what to know of them, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero import __version__
from ellzero.checks import check_count
from ellzero.core import Iterate, Solution, Status
from ellzero.estimators import SparseClassifierCV, SparseRegressorCV, information_criteria
from ellzero.estimators.base import linear_predictor
from ellzero.estimators.criteria import bare_loss
from ellzero.estimators.cv import described
from ellzero.estimators.problem import Problem, Solved, deviations
from ellzero.estimators.validation import check_forced, names_of
from ellzero.report.stand_ins import Correlations, StandIn, stand_ins
from ellzero.selection import Path

SCHEMA, VERSION = "ellzero.study", 1

ESTIMATORS = {"regression": SparseRegressorCV, "classification": SparseClassifierCV}


def study(
    X: Any,
    y: Any,
    *,
    sizes: Iterable[int],
    task: str = "regression",
    methods: Iterable[str] = ("auto",),
    cv: Any = None,
    sample_weight: Any = None,
    forced: Any = None,
    alpha: float | None = None,
    effort: float | None = None,
    n_stand_ins: int = 3,
    feature_names: Any = None,
    target: str | None = None,
    title: str | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    callback: Callable[[Iterate], Any] | None = None,
) -> dict[str, Any]:
    """The best models of several sizes as plain data, to be saved as JSON and rendered.

    Parameters
    ----------
    X, y, sample_weight : the data, as for `SparseRegressor`
    sizes : the numbers of features wanted
    task : "regression" (y holds numbers) or "classification" (y holds classes)
    methods : as for `path`; the models are those of the first, the others are compared by loss
    cv : the folds, as for `SparseRegressorCV`; None means no cross-validation
    forced : names or indices of features that are in every model and do not count
    alpha : the ridge, as for `SparseRegressor`
    effort : of the first method, if it is "auto"; as for `path`
    n_stand_ins : how many replacements to name for every chosen feature
    feature_names : names of the columns, where X is an array
    target, title : what the report calls y, and itself
    random_state, n_jobs : as for `SparseRegressorCV`
    callback : called with every iterate of the searches on all rows; a true answer ends the search

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ellzero.report import study
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> found = study(X, y, sizes=range(1, 4))
    >>> [found["features"][str(row["feature"])]["name"] for row in found["models"][1]["chosen"]]
    ['bmi', 's5']
    """
    first, *others = _check_methods(methods)
    check_count("n_stand_ins", n_stand_ins, 0)
    model = _estimator(task)(
        method=first,
        criterion="1se",
        cv=cv,
        alpha=alpha,
        random_state=random_state,
        n_jobs=n_jobs,
        options=None if effort is None else {"effort": effort},
    )
    if target is None and isinstance(getattr(y, "name", None), str):
        target = y.name
    X, y, weight = model._check_training_data(X, y, sample_weight)
    names = _check_names(feature_names, names_of(model), X.shape[1])
    model.forced = check_forced(() if forced is None else forced, names, X.shape[1])
    problem = model._problem(X.shape[1])
    solved = _refitted(problem.solve(X, y, weight, sizes, callback))
    found = list(solved.searched)
    if not found:
        raise ValueError("callback: ended the search before a model of any size was found.")
    losses = {first: _losses(solved, found)}
    for method in others:
        rival = replace(problem, method=method, search={})
        losses[method] = _losses(_refitted(rival.solve(X, y, weight, found, callback)), found)
    models = _Models(model, problem, solved, X, y, weight, n_stand_ins).described()
    used = sorted({j for entry in models for j in _features_of(entry)})
    spread = deviations(X, weight)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "made_by": f"ellzero {__version__}",
        "title": title,
        "target": target,
        "task": task,
        "classes": [str(c) for c in getattr(model, "classes_", [])],
        "n_rows": int(X.shape[0]),
        "n_features": int(X.shape[1]),
        "n_forced": len(problem.forced),
        "features": {
            str(j): {
                "name": f"x{j}" if names is None else str(names[j]),
                "deviation": float(spread[j]),
            }
            for j in used
        },
        "methods": [first, *others],
        "sizes": found,
        "losses": losses,
        "models": models,
        "criteria": _picks(solved, found),
        "cv": None if cv is None else _cross_validation(model, problem, X, y, weight, found),
        "stand_in_losses": "exact" if task == "regression" else "refitted",
    }


def _check_methods(methods: Any) -> list[str]:
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise TypeError(f"methods: expected names such as ('auto', 'omp'), got {methods!r}.")
    names = list(dict.fromkeys(methods))
    if not names:
        raise ValueError("methods: expected at least one, such as ('auto',).")
    return names


def _estimator(task: Any) -> Any:
    if task not in ESTIMATORS:
        raise ValueError(f"task: expected 'regression' or 'classification', got {task!r}.")
    return ESTIMATORS[task]


def _check_names(given: Any, own: Any, n_features: int) -> NDArray[Any] | None:
    """The names of the columns: those given, or those that X has itself."""
    if given is None:
        return own
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names: expected {n_features} names, one per column of X; got {len(names)}."
        )
    return np.array(names, dtype=object)


def _refitted(solved: Solved) -> Solved:
    """The same supports with the best coefficients on them: LASSO's and IHT's are not."""

    def refit(found: Solution) -> Solution:
        model = solved.f.complete(solved.f.minimize(found.support))
        return replace(found, x=model.x, intercept=model.intercept, value=model.value)

    path = Path((s, refit(found)) for s, found in solved.searched.items())
    return solved._replace(searched=path)


def _losses(solved: Solved, sizes: list[int]) -> list[float | None]:
    path = solved.searched
    return [float(path[s].value) if s in path else None for s in sizes]


def _picks(solved: Solved, sizes: list[int]) -> dict[str, int]:
    """The size that each information criterion takes."""
    criteria = information_criteria(solved.f, solved.searched)
    return {name: sizes[int(np.argmin(values))] for name, values in criteria.items()}


def _cross_validation(
    model: Any, problem: Problem, X: Any, y: Any, weight: Any, sizes: list[int]
) -> dict[str, Any]:
    scores = model._cross_validated(problem, X, y, weight, sizes)
    model.cv_results_ = results = described(scores)
    return {
        "n_folds": len(scores),
        "error": (-results["mean_test_score"]).tolist(),
        "standard_error": results["se_test_score"].tolist(),
        "best": sizes[int(np.argmax(results["mean_test_score"]))],
        "one_standard_error": sizes[model._chosen()],
    }


def _features_of(entry: dict[str, Any]) -> Iterable[int]:
    for row in entry["chosen"] + entry["forced"]:
        yield row["feature"]
        yield from (other["feature"] for other in row.get("stand_ins", ()))


class _Models:
    """What is told of the model of every size."""

    def __init__(
        self, model: Any, problem: Problem, solved: Solved, X: Any, y: Any, weight: Any, count: int
    ):
        self.model, self.forced, self.solved = model, problem.forced, solved
        self.X, self.y, self.weight, self.count = X, y, weight, count
        self.correlation = Correlations(X, weight)
        bare = problem.objective(X[:, :1], y, sample_weight=weight, fit_intercept=True)
        self.null = bare.minimize([]).value

    def described(self) -> list[dict[str, Any]]:
        return [self._entry(s, found) for s, found in self.solved.path.items()]

    def _entry(self, s: int, found: Solution) -> dict[str, Any]:
        f = self.solved.f
        x = f.minimize(found.support)
        without = f.removal_values(x.support, x)
        replacements = stand_ins(f, x, self.count)
        return {
            "s": s,
            "loss": float(found.value),
            "status": found.status.name,
            "explanation": str(found.status),
            "certified": found.status is Status.OPTIMAL,
            "intercept": np.atleast_1d(found.intercept).tolist(),
            **self._fit(found, bare_loss(f, self.solved.searched[s])),
            "chosen": [
                {
                    "feature": j,
                    "coefficients": np.atleast_1d(found.x[j]).tolist(),
                    "loss_without": float(loss),
                    "stand_ins": [self._stand_in(j, other) for other in others],
                }
                for j, loss, others in zip(x.support.tolist(), without, replacements, strict=True)
            ],
            "forced": [
                {"feature": j, "coefficients": np.atleast_1d(found.x[j]).tolist()}
                for j in self.forced.tolist()
            ],
        }

    def _stand_in(self, j: int, other: StandIn) -> dict[str, Any]:
        i, loss = other
        return {"feature": i, "loss": float(loss), "correlation": self.correlation(i, j)}

    def _fit(self, found: Solution, loss: float) -> dict[str, float | None]:
        """How well the model fits, in terms that do not depend on the number of rows."""
        explained = 1 - loss / self.null if self.null > 0 else None
        self.model._set_model(found, np.float64)
        if hasattr(self.model, "classes_"):
            eta = linear_predictor(self.X, self.model.coef_, self.model.intercept_)
            guess = eta[:, 0] > 0 if eta.shape[1] == 1 else eta.argmax(axis=1)
            right = float(np.average(guess == self.y, weights=self.weight))
            return {"explained": explained, "accuracy": right}
        error = float(np.sqrt(2 * max(loss, 0.0) / self.solved.f.total_weight))
        return {"explained": explained, "rmse": error}
