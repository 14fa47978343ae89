"""Information criteria: the price of a feature, where the loss has a likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ellzero.checks import check_count, check_objective
from ellzero.core import Objective, Solution
from ellzero.selection import Path

CRITERIA = ("aic", "bic", "ebic", "gic")


def information_criteria(
    f: Objective, path: Path, *, n_candidates: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """AIC, BIC, EBIC and GIC of every size of a path; the size with the least is the one to take.

    With D = −2 log-likelihood up to a constant, k coefficients, m rows and s of p features selected
    these are D + 2k, D + k log m, D + k log m + 2 log (p choose s) and D + k log p log log m.
    Weights count as rows: m is their sum. A model with as many coefficients as rows has inf.

    Parameters
    ----------
    f : the objective, whose loss must have a likelihood, such as LeastSquares or Logistic
    path : its solutions
    n_candidates : how many features there were before you screened them yourself, if you did;
        EBIC and GIC must know, or they trust the features that are left too much

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import LeastSquares, information_criteria, path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 6))
    >>> f = LeastSquares(X, X[:, 1] - X[:, 4] + rng.standard_normal(80))
    >>> p = path(f, range(1, 6))
    >>> list(p)[information_criteria(f, p)["bic"].argmin()]
    2
    """
    check_objective(f)
    p = f.n_choosable
    if n_candidates is not None:
        check_count("n_candidates", n_candidates, p)
        p = n_candidates
    m = f.total_weight
    found = list(path.values())
    chosen = np.array([len(solution.support) for solution in found], dtype=float)
    k = np.array([_n_coefficients(f, solution) for solution in found], dtype=float)
    deviance = np.array([f.deviance(bare_loss(f, solution)) for solution in found])
    log_choices = gammaln(p + 1) - gammaln(chosen + 1) - gammaln(p - chosen + 1)
    deviance[k >= f.n_rows] = np.inf  # any y would be fitted: that says nothing
    bic = deviance + k * np.log(m)
    return {
        "aic": deviance + 2 * k,
        "bic": bic,
        "ebic": bic + 2 * log_choices,
        "gic": deviance + k * np.log(p) * np.log(np.log(max(m, 3.0))),
    }


def _n_coefficients(f: Objective, solution: Solution) -> int:
    """Free numbers of the model; of the rows of several classes, one is determined by the rest."""
    each = solution.coef.shape[1] - 1 if solution.coef.ndim == 2 else 1
    own_intercept = int(getattr(f, "fit_intercept", False))
    return each * (len(solution.support) + len(f.forced) + own_intercept)


def bare_loss(f: Objective, solution: Solution) -> float:
    """The value without its ridge."""
    squares = solution.coef**2 if solution.coef.ndim == 1 else (solution.coef**2).sum(axis=1)
    return float(solution.value - 0.5 * f.ridge[solution.features] @ squares)


def check_criterion(criterion: Any, allowed: tuple[str, ...]) -> None:
    if criterion not in allowed:
        raise ValueError(f"criterion: expected one of {list(allowed)}, got {criterion!r}.")
