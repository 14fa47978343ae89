"""What several test files share: the fast objective of a literal problem, and how runs compare."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from threadpoolctl import threadpool_info

import ellzero as lz
from ellzero import LeastSquares, Logistic, Multinomial
from reference import Problem, multinomial_curvature

METHODS: dict[str, Callable[..., lz.Solution]] = {
    "omp": lz.omp,
    "ompr": lz.ompr,
    "els": lz.els,
    "exchange": lz.exchange,
    "iht": lz.iht,
    "lasso": lz.lasso,
    "arht": lambda f, s, **options: lz.arht(f, s, **{"n_runs": 3, "random_state": 0, **options}),
}

FORMATS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": np.asarray,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "float32": np.float32,
}


OBJECTIVES = {"squares": LeastSquares, "logistic": Logistic, "multinomial": Multinomial}


def blas_now() -> int:
    """Return the largest number of threads that a BLAS library uses at the moment."""
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def objective_of(problem: Problem, form: str = "dense") -> lz.Objective:
    """The fast objective of a literal problem."""
    return OBJECTIVES[problem.loss](
        FORMATS[form](problem.X),
        problem.y,
        sample_weight=problem.sample_weight,
        fit_intercept=problem.fit_intercept,
        forced=sorted(problem.forced),
        ridge=problem.ridge,
    )


def hessian_of(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Second derivatives of the profiled f at x, written down: a Schur complement.

    What a feature owns stands together.
    """
    fit = problem.profile(x)
    t = problem.X @ fit.x + fit.intercept
    w, each = problem.sample_weight, int(np.prod(problem.row))

    def products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if problem.loss == "multinomial":
            return multinomial_curvature(t, w, A, B)
        second = np.ones(problem.m) if problem.loss == "squares" else expit(t) * expit(-t)
        return A.T @ ((w * second)[:, None] * B)

    F = sorted(problem.forced)
    ones = np.ones((problem.m, int(problem.fit_intercept)))
    N = np.hstack([ones, problem.X[:, F]])
    H = products(problem.X, problem.X)
    if N.shape[1]:
        own = np.array([0.0] * ones.shape[1] + [problem.ridge] * len(F))
        cross = products(N, problem.X)
        inverse = np.linalg.pinv(products(N, N) + np.diag(np.repeat(own, each)), rcond=1e-13)
        H = H - cross.T @ inverse @ cross
    H = H + problem.ridge * np.eye(len(H))
    forced = np.isin(np.arange(problem.n).repeat(each), F)
    H[forced], H[:, forced] = 0.0, 0.0
    return H


def largest_eigenvalue(H: np.ndarray, k: int, each: int = 1) -> float:
    """ρ_k⁺ of a matrix, by trying every block of k features that own so many rows each."""
    of = np.arange(len(H)).reshape(-1, each)
    blocks = (
        H[np.ix_(of[[*S]].ravel(), of[[*S]].ravel())] for S in combinations(range(len(of)), k)
    )
    return max(np.linalg.eigvalsh(block)[-1] for block in blocks)


def supports(solution: lz.Solution) -> list[set[int]]:
    return [set(step.support.tolist()) for step in solution.trace]


def values(solution: lz.Solution) -> list[float]:
    return [step.value for step in solution.trace]


def assert_falls(run: list[float], slack: float = 0.0) -> None:
    assert (np.diff(run) <= slack).all(), run


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail, rather than hang, where the code under test might loop for ever."""

    def give_up(*_: Any) -> None:
        raise TimeoutError

    if os.name != "posix":
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    except TimeoutError:
        pytest.fail(f"still running after {seconds} s", pytrace=False)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def scores(model: Any) -> np.ndarray:
    """Of every fold, at every size."""
    return np.array([v for k, v in model.cv_results_.items() if k.startswith("split")])
