"""The problems of the golden files: their data, their objectives, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import PolynomialFeatures, scale

import ellzero as lz
from golden.real import read

STEPWISE = ("omp", "ompr", "els", "exchange")
SINGLE = (*STEPWISE, "arht", "iht", "lasso")

Data = tuple[Any, np.ndarray, dict[str, Any]]
"""X, y and options of the objective that depend on the data, such as weights."""


@dataclass(frozen=True)
class Problem:
    """One golden file.

    Attributes
    ----------
    data : makes X, y and options of the objective
    sizes : the sizes of the search, `path(f, sizes)`
    objective : makes f of X, y and the options
    options : options of the objective that do not depend on the data
    methods : the sizes recorded of each single method
    traces : the sizes at which every step of ARHT is recorded
    certified : sizes, among `sizes`, that are certified; their proofs take seconds
    real : the name of the real data set that the data are read from, if they are
    """

    name: str
    data: Callable[[], Data]
    sizes: Iterable[int]
    objective: Callable[..., lz.Objective] = lz.LeastSquares
    options: dict[str, Any] = field(default_factory=lambda: {"fit_intercept": True})
    methods: dict[str, Iterable[int]] = field(default_factory=dict)
    traces: Iterable[int] = ()
    certified: Iterable[int] = ()
    real: str = ""


def upto(stop: int, step: int = 1) -> range:
    """Return the sizes 1 to `stop`; with a step, the sizes that end at `stop`."""
    return range(stop - (stop - 1) // step * step, stop + 1, step)


def each(
    names: Iterable[str], sizes: Iterable[int], **others: Iterable[int]
) -> dict[str, Iterable[int]]:
    """Return the same sizes for several methods, and the sizes of the others."""
    return {**dict.fromkeys(names, sizes), **others}


# synthetic data


def neighbours(m: int, n: int, rho: float, rng: np.random.Generator) -> np.ndarray:
    """Return columns of unit variance, each of which correlates with the one before at `rho`."""
    X = rng.standard_normal((m, n))
    for j in range(1, n):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def cancelling(X: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return a signal of unit variance from k / 2 pairs of neighbours that nearly cancel.

    Half of a pair looks useless without the other half, which greedy choices miss.
    """
    b = np.zeros(X.shape[1])
    first = 2 * rng.choice(X.shape[1] // 2, k // 2, replace=False)
    size = rng.uniform(0.5, 1.5, k // 2) * rng.choice([-1.0, 1.0], k // 2)
    b[first], b[first + 1] = size, -size * rng.uniform(0.8, 1.2, k // 2)
    t = X @ b
    return t / t.std()


def regression(m: int, n: int, k: int, rho: float = 0.9, seed: int = 0) -> Data:
    rng = np.random.default_rng([seed, m, n])
    X = neighbours(m, n, rho, rng)
    return X, 3.0 + cancelling(X, k, rng) + rng.standard_normal(m), {}


def classification(m: int, n: int, k: int, rho: float = 0.9, seed: int = 0) -> Data:
    rng = np.random.default_rng([seed, m, n, 1])
    X = neighbours(m, n, rho, rng)
    t = 2.0 * cancelling(X, k, rng) - 0.5
    return X, (rng.random(m) < expit(t)).astype(float), {}


def classes(m: int, n: int, k: int, n_classes: int) -> Data:
    rng = np.random.default_rng([m, n, n_classes, 2])
    X = neighbours(m, n, 0.6, rng)
    scores = np.stack([cancelling(X, k, rng) for _ in range(n_classes)], axis=1)
    return X, np.argmax(1.5 * scores + rng.gumbel(size=scores.shape), axis=1), {}


def independent(m: int, n: int, k: int, binary: bool = False) -> Data:
    """Return independent columns, on which no step of a method is a close call."""
    rng = np.random.default_rng([m, n, 3])
    X = rng.standard_normal((m, n))
    t = X[:, rng.choice(n, k, replace=False)] @ rng.uniform(0.3, 1.5, k)
    if binary:
        return X, (rng.random(m) < expit(t)).astype(float), {}
    return X, t + rng.standard_normal(m), {}


def factors(m: int, n: int, k: int) -> Data:
    """Return features that share k latent factors, and a target of the factors."""
    rng = np.random.default_rng([m, n, 4])
    F = rng.standard_normal((m, k))
    X = F @ rng.standard_normal((k, n)) + 0.7 * rng.standard_normal((m, n))
    return X, F @ rng.uniform(0.5, 1.5, k) + rng.standard_normal(m), {}


def near_copies(m: int, n: int) -> Data:
    """Return columns in pairs that differ by a thousandth, with a target that asks for both."""
    rng = np.random.default_rng([m, n, 5])
    half = rng.standard_normal((m, n // 2))
    other = half + 1e-3 * rng.standard_normal(half.shape)
    X = np.stack([half, other], axis=2).reshape(m, n)
    t = half[:, :6] @ rng.uniform(0.5, 1.5, 6) + 600.0 * (X[:, 1] - X[:, 0])
    return X, t + rng.standard_normal(m), {}


def combinations() -> Data:
    """Return columns of which two are combinations of others, so that proofs need the rows."""
    rng = np.random.default_rng([40, 12, 8])
    X = rng.standard_normal((40, 12))
    X[:, 5], X[:, 9] = X[:, 0] - 2.0 * X[:, 1], 0.5 * X[:, 2] + X[:, 7]
    return X, X @ rng.uniform(-1.0, 1.0, 12) + rng.standard_normal(40), {}


def categories(m: int, n_variables: int, n_levels: int, binary: bool, form: str) -> Data:
    """Return the indicators of categorical variables, whose levels are unequally frequent."""
    rng = np.random.default_rng([m, n_variables, n_levels, 6])
    share = rng.dirichlet(np.full(n_levels, 2.0), n_variables)
    level = np.stack([rng.choice(n_levels, m, p=p) for p in share], axis=1)
    columns = (level + n_levels * np.arange(n_variables)).ravel()
    where = np.repeat(np.arange(m), n_variables), columns
    X = sparse.coo_array((np.ones(m * n_variables), where), (m, n_variables * n_levels))
    n = X.shape[1]
    b = np.where(rng.random(n) < 0.2, rng.standard_normal(n), 0.0)
    t = X @ b
    y = rng.random(m) < expit(t - t.mean()) if binary else t + rng.standard_normal(m)
    return X.asformat(form), y.astype(float), {}


def weighted(data: Data) -> Data:
    """Weight the rows, and give every column a scale and an offset of its own."""
    X, y, _ = data
    rng = np.random.default_rng([*X.shape, 7])
    X = X * 10.0 ** rng.uniform(-2, 2, X.shape[1]) + rng.uniform(-3, 3, X.shape[1])
    return X, y, {"sample_weight": rng.uniform(0.2, 3.0, len(y))}


def single_precision(data: Data) -> Data:
    X, y, options = data
    return X.astype(np.float32), y, options


def from_statistics(X: Any, y: np.ndarray, **options: Any) -> lz.Objective:
    return lz.LeastSquares.from_statistics(lz.Statistics.from_arrays(X, y), **options)


def quadratic(X: Any, y: np.ndarray, **options: Any) -> lz.Objective:
    return lz.Quadratic(X.T @ X, X.T @ y, 0.5 * float(y @ y), **options)


def softplus(X: Any, y: np.ndarray) -> lz.Objective:
    """Return the logistic loss as a person would bring it: a value, a gradient and a Hessian."""

    def value(x: np.ndarray) -> float:
        t = X @ x
        return float(np.logaddexp(0.0, t).sum() - y @ t)

    def gradient(x: np.ndarray) -> np.ndarray:
        return X.T @ (expit(X @ x) - y)

    def hessian(x: np.ndarray) -> np.ndarray:
        t = X @ x
        return X.T @ ((expit(t) * expit(-t))[:, None] * X)

    smoothness = 0.25 * float(np.linalg.eigvalsh(X.T @ X)[-1])
    return lz.from_callables(value, gradient, X.shape[1], hessian=hessian, smoothness=smoothness)


# data sets that come with scikit-learn


def diabetes(products: bool = False) -> Data:
    X, y = load_diabetes(return_X_y=True)
    if products:
        terms = PolynomialFeatures(2, include_bias=False).fit(X)
        # Sex (x1) has two values, so its square would be a copy of it, and a tie.
        kept = [name != "x1^2" for name in terms.get_feature_names_out()]
        X = scale(terms.transform(X)[:, kept])
    return X, y, {}


def breast_cancer() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y.astype(float), {}


def wine() -> Data:
    X, y = load_wine(return_X_y=True)
    return scale(X), y, {}


RIDGE = {"fit_intercept": True, "ridge": 1e-3}
FORCED = {"fit_intercept": True, "forced": [3, 11], "ridge": 0.5}

SYNTHETIC = [
    Problem("ls-2000x100", partial(regression, 2000, 100, 10), upto(20),
        methods=each(SINGLE, upto(20, 3), omp=upto(20)), traces=(6, 12)),
    Problem("ls-20000x50", partial(regression, 20_000, 50, 10), upto(20),
        methods=each(SINGLE, upto(20, 4))),
    Problem("ls-20000x100", partial(regression, 20_000, 100, 20), upto(30),
        methods=each(STEPWISE, upto(30, 5), arht=(10, 20))),
    Problem("ls-500x2000", partial(regression, 500, 2000, 10), upto(15),
        methods=each((*STEPWISE, "iht"), upto(13, 3), arht=(7,), lasso=(3,))),
    Problem("ls-1000x2000", partial(regression, 1000, 2000, 10, 0.5), upto(12),
        methods=each(STEPWISE, (3, 8, 11), arht=(8,), iht=(3, 8))),
    Problem("ls-200x5000", partial(regression, 200, 5000, 6, 0.5), upto(10),
        methods=each(STEPWISE, upto(6, 2), arht=(4,), lasso=(4,))),
    Problem("ls-100x50", partial(regression, 100, 50, 8), upto(40),
        methods=each((*STEPWISE, "arht", "lasso"), upto(25, 3), omp=upto(49), iht=upto(7, 3)),
        certified=upto(8)),
    Problem("ls-200x1000", partial(regression, 200, 1000, 8), upto(15),
        methods=each(SINGLE, upto(10, 3)), traces=(5,)),
    Problem("ls-60x200", partial(regression, 60, 200, 6, 0.5), upto(12),
        methods=each(SINGLE, upto(9, 2))),
    Problem("ridge-80x3200", partial(regression, 80, 3200, 4, 0.5), upto(4),
        options={"fit_intercept": True, "ridge": 300.0}, methods=each(STEPWISE, (2, 4)),
        certified=(1, 2)),
    Problem("combinations-40x12", combinations, upto(9), certified=upto(9)),
    Problem("factors-3000x300", partial(factors, 3000, 300, 6), upto(15),
        methods=each((*STEPWISE, "arht", "lasso"), upto(13, 3), iht=(4,))),
    Problem("near-copies-300x60", partial(near_copies, 300, 60), upto(15),
        methods=each(STEPWISE, upto(14, 2), arht=(4, 8))),
    Problem("independent-300x60", partial(independent, 300, 60, 12), upto(30),
        methods=each(SINGLE, upto(22, 3)), traces=(4, 10, 16), certified=upto(9)),
    Problem("no-intercept-400x40", partial(regression, 400, 40, 8, 0.6), upto(39), options={},
        methods=each(SINGLE, upto(15, 2)), traces=(6, 12), certified=upto(7)),
    Problem("forced-weighted-400x40", lambda: weighted(regression(400, 40, 8)), upto(30),
        options=FORCED, methods=each((*STEPWISE, "arht", "lasso"), upto(15, 2)), traces=(6,),
        certified=upto(7)),
    Problem("float32-500x80", lambda: single_precision(regression(500, 80, 8)), upto(15),
        methods=each(SINGLE, upto(12, 2))),
    Problem("statistics-500x60", partial(regression, 500, 60, 8), upto(15),
        objective=from_statistics, methods=each(SINGLE, upto(12, 2)), certified=upto(5)),
    Problem("quadratic-300x30", partial(independent, 300, 30, 8), upto(29), options={"ridge": 2.0},
        objective=quadratic, methods=each(SINGLE, upto(12, 2)), traces=(6,), certified=upto(9)),
    Problem("categories-ls-3000x120", partial(categories, 3000, 12, 10, False, "csc"), upto(20),
        methods=each(SINGLE, upto(20, 4))),
    Problem("logit-2000x40", partial(classification, 2000, 40, 8), upto(20),
        objective=lz.Logistic, methods=each((*STEPWISE, "arht", "lasso"), upto(14, 3))),
    Problem("logit-3000x50", partial(classification, 3000, 50, 10), upto(12),
        objective=lz.Logistic, methods=each(STEPWISE, upto(10, 3), arht=(7,))),
    Problem("logit-3000x100", partial(classification, 3000, 100, 10), upto(12),
        objective=lz.Logistic, methods=each(STEPWISE, (3, 8), lasso=(8,))),
    Problem("logit-500x300", partial(classification, 500, 300, 6), upto(8),
        objective=lz.Logistic, methods=each(STEPWISE, (3, 6), iht=(4,))),
    Problem("independent-logit-400x30", partial(independent, 400, 30, 8, True), upto(15),
        objective=lz.Logistic, methods=each(SINGLE, upto(10, 2)), traces=(5, 9), certified=upto(5)),
    Problem("forced-weighted-logit-400x30", lambda: weighted(classification(400, 30, 6)), upto(10),
        objective=lz.Logistic, options=FORCED,
        methods=each((*STEPWISE, "arht", "lasso"), upto(8, 2)), certified=(1, 2)),
    Problem("categories-logit-3000x120", partial(categories, 3000, 12, 10, True, "csr"), upto(12),
        objective=lz.Logistic, methods=each(SINGLE, (3, 7, 10))),
    Problem("callables-300x20", partial(independent, 300, 20, 5, True), upto(12), options={},
        objective=softplus, methods=each(SINGLE, (2, 4, 6)), traces=(4,)),
    Problem("classes-600x25", partial(classes, 600, 25, 4, 4), upto(12), objective=lz.Multinomial,
        methods=each(STEPWISE, upto(11, 3), arht=(5,), iht=(2,)), traces=(4,)),
]  # fmt: skip

CARRIED = [
    Problem("diabetes", diabetes, upto(10), methods=each(SINGLE, upto(10)), traces=(3, 6),
        certified=upto(10)),
    Problem("diabetes-products", partial(diabetes, products=True), upto(30),
        methods=each(STEPWISE, upto(23, 3), arht=(5, 11, 17), lasso=(5, 11)), certified=upto(3)),
    Problem("breast-cancer", breast_cancer, upto(30),
        methods=each(STEPWISE, upto(20, 2), arht=(5, 10, 15), iht=(4,), lasso=upto(12, 3)),
        certified=upto(6)),
    Problem("breast-cancer-logit", breast_cancer, upto(8), objective=lz.Logistic,
        methods=each(STEPWISE, upto(7, 2), arht=(4,), lasso=(2, 5))),
    Problem("breast-cancer-logit-ridge", breast_cancer, upto(14), objective=lz.Logistic,
        options=RIDGE, methods=each(STEPWISE, upto(10, 3), arht=(5,), lasso=(2, 5, 8))),
    Problem("wine", wine, upto(8), objective=lz.Multinomial, options=RIDGE,
        methods=each(STEPWISE, upto(5), arht=(3,)), certified=(1, 2)),
]  # fmt: skip

# The labels of letters are cut in the middle of the alphabet, as in the benchmarks.
LETTER = {"every": 4, "positive": tuple("ABCDEFGHIJKLM")}

REAL = [
    Problem("cal_housing", partial(read, "cal_housing"), upto(8), real="cal_housing",
        methods=each((*STEPWISE, "arht", "lasso"), upto(8), iht=upto(5)), certified=upto(8)),
    Problem("comp_activ_harder", partial(read, "comp_activ_harder"), upto(12),
        real="comp_activ_harder", methods=each(SINGLE, upto(12)), traces=(6,), certified=upto(12)),
    Problem("year_sample10000", partial(read, "year_sample10000"), upto(40),
        real="year_sample10000",
        methods=each(STEPWISE, upto(40, 6), arht=(10, 20), lasso=(10, 20)), traces=(8,)),
    # 27 of its columns are copies of others: methods would tie, and which of two copies enters
    # depends on the last digit of a product. From size 16 on that changes the values of the search.
    Problem("slice_first682", partial(read, "slice_first682"), upto(15), real="slice_first682"),
    Problem("letter", partial(read, "letter", **LETTER), upto(16), real="letter",
        objective=lz.Logistic, methods=each(STEPWISE, upto(16, 3), arht=(6,), lasso=(4, 10))),
    Problem("ijcnn1", partial(read, "ijcnn1", every=7, positive=(1,)), upto(22), real="ijcnn1",
        objective=lz.Logistic, methods=each(STEPWISE, upto(12, 3))),
    Problem("kddcup04_bio", partial(read, "kddcup04_bio", every=40, positive=(1,)), upto(10),
        real="kddcup04_bio", objective=lz.Logistic, methods=each(STEPWISE, (2, 5))),
    Problem("census", partial(read, "census", every=60, positive=(1,)), upto(10), real="census",
        objective=lz.Logistic),
    Problem("riboflavin", partial(read, "riboflavin"), upto(20), real="riboflavin",
        methods=each(STEPWISE, (3, 6, 9), arht=(5,))),
    Problem("trim32_500", partial(read, "trim32_500"), upto(20), real="trim32_500",
        methods=each(STEPWISE, upto(12, 3), arht=(6,), lasso=(5,))),
    Problem("leukemia", partial(read, "leukemia"), upto(15), real="leukemia",
        methods=each(STEPWISE, (3, 6, 9))),
    Problem("colon", partial(read, "colon"), upto(20), real="colon",
        methods=each(STEPWISE, (2, 5, 8))),
    Problem("leukemia-logit", partial(read, "leukemia"), upto(5), real="leukemia",
        objective=lz.Logistic, methods=each(("omp", "ompr"), (1,))),
    Problem("colon-logit", partial(read, "colon"), upto(8), real="colon",
        objective=lz.Logistic, methods=each(("omp", "ompr"), (1, 2))),
]  # fmt: skip

PROBLEMS = {problem.name: problem for problem in (*SYNTHETIC, *CARRIED, *REAL)}
