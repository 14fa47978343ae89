"""List the jobs of an A/B run: the data of each job, and the public call that is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.base import Problem, Task
from benchmarks.problems import all_problems
from benchmarks.problems.synthetic import classification, regression

GROUPS = ("large", "small tables", "arht", "methods", "estimators", "certificates")
OBJECTIVES = {"least_squares": "LeastSquares", "logistic": "Logistic", "multinomial": "Multinomial"}
TOO_LONG = ("census-to-40",)
"""Benchmark problems that take longer than all other jobs together."""


@dataclass(frozen=True)
class Job:
    """One public call on one problem. `call` goes to the worker as JSON; see `worker.CALLS`."""

    group: str
    name: str
    problem: Problem
    call: dict[str, Any] = field(hash=False)

    @property
    def id(self) -> str:
        """Return the name that `--problems` selects by, such as small-tables/diabetes."""
        return f"{self.group.replace(' ', '-')}/{self.name}"


def all_jobs() -> list[Job]:
    """Return the jobs of all groups. Jobs on the same problem follow each other."""
    jobs = [*_large(), *_small_tables(), *_arht(), *_methods(), *_estimators(), *_certificates()]
    first: dict[str, int] = {}
    for place, job in enumerate(jobs):
        first.setdefault(job.problem.name, place)
    return sorted(jobs, key=lambda job: first[job.problem.name])


def _path(group: str, problem: Problem, stop: int = 0, method: str = "auto") -> Job:
    sizes = list(range(1, stop + 1)) or list(problem.sizes)
    call = {"kind": "path", "objective": OBJECTIVES[problem.task], "sizes": sizes}
    call |= {"method": method, "options": _seeded(method)}
    return Job(group, problem.name + (f"/{method}" if group == "methods" else ""), problem, call)


def _large() -> list[Job]:
    return [
        _path("large", p)
        for p in all_problems()
        if p.family in ("time", "quality") and p.full and p.name not in TOO_LONG
    ]


# --- Small tables -----------------------------------------------------------------------------


def _table(name: str, make: Callable[[], Any], stop: int, task: Task = "least_squares") -> Problem:
    return Problem(name, task, tuple(range(1, stop + 1)), make)


def bundled(name: str, columns: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set that comes with scikit-learn, cut to its first columns."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.ascontiguousarray(X[:, :columns]), y.astype(float)


def diabetes_products() -> tuple[np.ndarray, np.ndarray]:
    """Return the diabetes data with all squares and products of two columns."""
    from sklearn.preprocessing import PolynomialFeatures

    X, y = bundled("diabetes")
    return PolynomialFeatures(2, include_bias=False).fit_transform(X), y


def latent_factors(
    m: int, n: int, factors: int, k: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns that share a few latent factors, and y of k of the columns."""
    rng = np.random.default_rng([seed, m, n, factors])
    X = rng.standard_normal((m, factors)) @ rng.standard_normal((factors, n))
    X += rng.standard_normal((m, n))
    signal = X[:, rng.choice(n, k, replace=False)] @ rng.uniform(-1.0, 1.0, k)
    return X, signal + signal.std() * rng.standard_normal(m)


DIABETES = _table("diabetes", partial(bundled, "diabetes"), 10)
PRODUCTS = _table("diabetes-products", diabetes_products, 20)
CANCER = _table("breast-cancer", partial(bundled, "breast_cancer"), 30)
CANCER_LOGIT = _table("breast-cancer-logit", partial(bundled, "breast_cancer"), 10, "logistic")
CANCER_10 = _table(
    "breast-cancer-10-logit", partial(bundled, "breast_cancer", 10), 10, "logistic"
)  # its first ten columns: the means, without the standard errors and the extremes
WINE = _table("wine", partial(bundled, "wine"), 5, "multinomial")
SMALL = _table("100x50", partial(regression, 100, 50, 6), 15)
WIDE = _table("200x1000", partial(regression, 200, 1000, 10), 15)
LOGIT = _table("500x300-logit", partial(classification, 500, 300, 10), 10, "logistic")
FACTORS = _table("3000x300-factors", partial(latent_factors, 3000, 300, 5, 20), 20)


def _small_tables() -> list[Job]:
    tables = [DIABETES, PRODUCTS, CANCER, CANCER_LOGIT, WINE, SMALL, WIDE, LOGIT, FACTORS]
    quick = [p for p in all_problems() if p.quick and not p.full]  # the other quick ones are large
    return [_path("small tables", table) for table in [*tables, *quick]]


def _arht() -> list[Job]:
    shapes = ((200, 40, 8), (500, 200, 10), (2000, 100, 10), (20_000, 400, 40))
    tables = [_table(f"{m}x{n}", partial(regression, m, n, k), 15) for m, n, k in shapes]
    jobs = [_path("arht", table, method="arht") for table in tables]
    return [*jobs, _path("arht", CANCER_LOGIT, 8, method="arht")]


# --- Single methods, estimators and certificates ----------------------------------------------

GREEDY = ("omp", "ompr")
SWAPS = (*GREEDY, "els", "exchange")
METHODS = {
    "year_sample10000": (*SWAPS, "arht"),
    "slice_first682": (*SWAPS, "arht"),
    "riboflavin": (*SWAPS, "arht"),
    "ls-20000x400": (*SWAPS, "arht"),
    "ls-1000x20000": (*SWAPS, "arht"),
    "logit-20000x100": GREEDY,
    "logit-3000x50": SWAPS,
    "letter": (*GREEDY, "els"),
    "colon-logit": (*GREEDY, "arht"),
}


def _methods() -> list[Job]:
    jobs = []
    for problem in all_problems():
        for method in METHODS.get(problem.name, ()):
            jobs.append(_path("methods", problem, method=method))
    jobs += [_one_size("solve", method, 5) for method in ("auto", "arht")]
    return jobs + [_one_size("algorithm", method, 10) for method in (*SWAPS, "arht")]


def _one_size(kind: str, method: str, s: int) -> Job:
    """Time `lz.solve`, or the function of the algorithm, on a small table."""
    call = {"kind": kind, "objective": OBJECTIVES[SMALL.task], "s": s, "method": method}
    call["options"] = _seeded(method)
    return Job("methods", f"{SMALL.name}/{kind}-{method}-at-{s}", SMALL, call)


def _seeded(method: str) -> dict[str, Any]:
    """Return the options that make a method repeat its answer: ARHT is random by default."""
    return {"random_state": 0} if method == "arht" else {}


def _estimators() -> list[Job]:
    return [
        _fit("SparseRegressor", DIABETES, sparsity=5),
        _fit("SparseRegressorCV", DIABETES),
        _fit("SparseClassifier", CANCER_LOGIT, sparsity=5),
        _fit("SparseClassifierCV", CANCER_10, sparsity=[1, 2, 3, 4, 5]),
        _fit("SparseClassifier", WINE, sparsity=3),
    ]


def _fit(estimator: str, problem: Problem, **options: Any) -> Job:
    call = {"kind": "fit", "estimator": estimator, "options": options}
    return Job("estimators", f"{estimator}-{problem.name}", problem, call)


def _certificates() -> list[Job]:
    work: Sequence[tuple[Problem, int]] = (
        (DIABETES, 10),
        (PRODUCTS, 2),
        (CANCER, 8),
        (CANCER_10, 4),
        (WINE, 2),
        (SMALL, 6),
        (_table("500x200", partial(regression, 500, 200, 10), 5), 5),
    )
    return [_certificate(problem, stop) for problem, stop in work]


def _certificate(problem: Problem, stop: int) -> Job:
    call = {"kind": "certify", "objective": OBJECTIVES[problem.task], "time_limit": 100.0}
    call["sizes"] = list(range(1, stop + 1))
    return Job("certificates", problem.name, problem, call)
