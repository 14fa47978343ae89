"""A study: the best models of several sizes, and what to know of them, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero import __version__, certificates
from ellzero.certificates import Certificate, Verdict
from ellzero.checks import check_count
from ellzero.core import Iterate, Solution
from ellzero.estimators import SparseClassifierCV, SparseRegressorCV, information_criteria
from ellzero.estimators.base import problem_of, training_data
from ellzero.estimators.cv import chosen_place, described, fold_scores
from ellzero.estimators.problem import Problem, Solved, deviations
from ellzero.estimators.validation import check_forced, names_of
from ellzero.report.models import Models
from ellzero.selection import Path
from ellzero.supports import Vector

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
    certify: float | None = None,
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
    certify : seconds to spend on proofs of how good the models are; None means no proofs
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
    if target is None and isinstance(getattr(y, "name", None), str):
        target = y.name
    model = _estimator(task)(
        method=first,
        criterion="1se",
        cv=cv,
        alpha=alpha,
        random_state=random_state,
        n_jobs=n_jobs,
        options=None if effort is None else {"effort": effort},
    )
    X, y, weight = training_data(model, X, y, sample_weight)
    names = _check_names(feature_names, names_of(model), X.shape[1])
    model.forced = check_forced(() if forced is None else forced, names, X.shape[1])
    problem = problem_of(model, X.shape[1])
    solved = _refitted(problem.solve(X, y, weight, sizes, callback))
    found = list(solved.searched)
    if not found:
        raise ValueError("callback: ended the search before a model of any size was found.")
    losses = {first: _losses(solved, found)}
    for method in others:
        rival = replace(problem, method=method, search={})
        losses[method] = _losses(_refitted(rival.solve(X, y, weight, found, callback)), found)
    models = Models(model, problem, solved, X, y, weight, n_stand_ins).described()
    if certify is not None:
        _add_bounds(models, certificates.certify(solved.f, solved.searched, time_limit=certify))
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
        "alpha": problem.alpha,
        "resolution": solved.f.resolution,
        "features": _features(models, names, deviations(X, weight)),
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
    """The same supports with the best coefficients on them: those of IHT need not be."""

    def refit(found: Solution) -> Solution:
        model = solved.f.refit(solved.f.minimize(found.support))
        features, coef, intercept, value, _ = model
        return replace(found, features=features, coef=coef, intercept=intercept, value=value)

    path = Path((s, refit(found)) for s, found in solved.searched.items())
    return solved._replace(searched=path)


def _add_bounds(models: list[dict[str, Any]], proofs: dict[int, Certificate]) -> None:
    for entry in models:
        proof = proofs[entry["s"]]
        if proof.status is not Verdict.NO_BOUND:
            entry["certified"] |= proof.proven
            entry["lower_bound"] = entry["loss"] if entry["certified"] else proof.lower_bound


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
    scores = fold_scores(model, problem, X, y, weight, sizes)
    results = described(scores)
    model.cv_results_ = {"sparsity": np.array(sizes), **results}
    return {
        "n_folds": len(scores),
        "error": (-results["mean_test_score"]).tolist(),
        "standard_error": results["se_test_score"].tolist(),
        "best": sizes[int(np.argmax(results["mean_test_score"]))],
        "one_standard_error": sizes[chosen_place(model)],
    }


def _features(models: list[dict[str, Any]], names: Any, spread: Vector) -> dict[str, Any]:
    """By index, the features that the models name: of many thousands these are few."""
    rows = [row for model in models for row in model["chosen"] + model["forced"]]
    others = [other for row in rows for other in row.get("stand_ins", ())]
    return {
        str(j): {
            "name": f"x{j}" if names is None else str(names[j]),
            "deviation": float(spread[j]),
        }
        for j in sorted({entry["feature"] for entry in rows + others})
    }
