"""Information criteria: the price of a feature, where the loss has a likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ellzero.checks import check_count, check_objective
from ellzero.core import Likelihood, Objective, Solution
from ellzero.selection import Path

CRITERIA = ("aic", "bic", "ebic", "gic")


def information_criteria(
    f: Objective, path: Path, *, n_candidates: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return AIC, BIC, EBIC and GIC of every size of a path. The size with the least is the best.

    With D = −2 log-likelihood up to a constant, k coefficients, m rows and s of p features selected
    these are D + 2k, D + k log m, D + k log m + 2 log (p choose s) and D + k log p log log m.
    Weights count as rows: m is their sum. A model with as many coefficients as rows has inf.

    Parameters
    ----------
    f : Objective
        Its loss must have a likelihood, as those of LeastSquares and Logistic do.
    path : Path
        Solutions of f.
    n_candidates : int, optional
        How many features there were before you screened them yourself, if you did. EBIC and GIC
        must know, or they trust the features that are left too much.

    Returns
    -------
    dict of arrays, one entry for each size of the path

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
    likelihood, p = likelihood_of(f), len(f.features.choosable)
    if n_candidates is not None:
        check_count("n_candidates", n_candidates, p)
        p = n_candidates
    m = likelihood.observations
    found = list(path.values())
    chosen = np.array([len(solution.support) for solution in found], dtype=float)
    k = np.array([_n_coefficients(f, solution) for solution in found], dtype=float)
    deviance = np.array([likelihood.deviance(bare_loss(f, solution)) for solution in found])
    log_choices = gammaln(p + 1) - gammaln(chosen + 1) - gammaln(p - chosen + 1)
    deviance[k >= likelihood.n_rows] = np.inf  # any y would be fitted: that says nothing
    bic = deviance + k * np.log(m)
    return {
        "aic": deviance + 2 * k,
        "bic": bic,
        "ebic": bic + 2 * log_choices,
        "gic": deviance + k * np.log(p) * np.log(np.log(max(m, 3.0))),
    }


def likelihood_of(f: Any) -> Likelihood:
    """Return f if its loss has a likelihood, or raise an error."""
    if hasattr(f, "deviance"):
        return f
    raise ValueError(
        f"{type(f).__name__}: this loss has no likelihood, hence no information criterion; "
        "choose the size by cross-validation."
    )


def _n_coefficients(f: Objective, solution: Solution) -> int:
    """Count the free numbers of a model. Of the rows of several classes, the others fix one."""
    each = solution.coef.shape[1] - 1 if solution.coef.ndim == 2 else 1
    own_intercept = int(getattr(f, "fit_intercept", False))
    return each * (len(solution.support) + len(f.features.forced) + own_intercept)


def bare_loss(f: Objective, solution: Solution) -> float:
    """Return the value of a solution without its ridge."""
    squares = solution.coef**2 if solution.coef.ndim == 1 else (solution.coef**2).sum(axis=1)
    ridge = getattr(f, "ridge", np.zeros(len(f.features)))
    return float(solution.value - 0.5 * ridge[solution.features] @ squares)


def check_criterion(criterion: Any, allowed: tuple[str, ...]) -> None:
    if criterion not in allowed:
        raise ValueError(f"criterion: expected one of {list(allowed)}, got {criterion!r}.")
