"""Bad input gets an error that names the argument; degenerate input works."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import ellzero as lz
from ellzero import (
    LeastSquares,
    Logistic,
    Multinomial,
    Quadratic,
    Statistics,
    Status,
    from_callables,
)
from ellzero.objectives.minimisers import lower_bound
from helpers import METHODS, at_most, objective_of
from reference import Problem, random_problem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 5))
Y = (X[:, 0] + RNG.normal(size=20) > 0).astype(float)

EVERY_METHOD = {**METHODS, "auto": lz.solve}


def with_entry(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


def refuses(match):
    return pytest.raises((TypeError, ValueError), match=match)


# the data

BAD_X = {
    "NaN": (with_entry(X, (7, 2), np.nan), r"X: column 2 .* row 7"),
    "inf": (with_entry(X, (7, 3), np.inf), r"X: column 3 .* row 7"),
    "-inf": (with_entry(X, (0, 0), -np.inf), r"X: column 0 .* row 0"),
    "both infinities": (with_entry(X, ([1, 2], [4, 4]), [np.inf, -np.inf]), "X: column 4"),
    "sparse NaN": (sparse.csr_matrix(with_entry(X, (7, 2), np.nan)), r"X: column 2"),
    "float32 NaN": (with_entry(X, (7, 2), np.nan).astype(np.float32), r"X: column 2"),
    "vector": (X[:, 0], "X: .*shape"),
    "cube": (X[None], "X: .*shape"),
    "number": (3.0, "X: .*shape"),
    "no rows": (X[:0], "X: is empty"),
    "no columns": (X[:, :0], "X: is empty"),
    "nothing": ([], "X: "),
    "text": (X.astype(str), "X: expected numbers"),
    "objects": (X.astype(object), "X: expected numbers"),
    "complex": (X.astype(complex), "X: expected numbers"),
    "None": (None, "X: "),
    "ragged": ([[1.0, 2.0], [3.0]], "X: "),
}
BAD_Y = {
    "short": (Y[:-1], "y: .*shape"),
    "table": (Y[:, None], "y: .*shape"),
    "NaN": (with_entry(Y, 4, np.nan), "y: .* row 4"),
    "inf": (with_entry(Y, 4, np.inf), "y: "),
    "text": (["a", "b"] * 10, "y: "),
    "objects": ([None, "b"] * 10, "y: "),
    "number": (1.0, "y: "),
}
BAD_OPTIONS = {
    "negative weight": (
        {"sample_weight": with_entry(np.ones(20), 3, -1)},
        "sample_weight: .*row 3",
    ),
    "no weight": ({"sample_weight": np.zeros(20)}, "sample_weight: all weights are zero"),
    "NaN weight": ({"sample_weight": with_entry(np.ones(20), 3, np.nan)}, "sample_weight: .*NaN"),
    "short weights": ({"sample_weight": np.ones(19)}, "sample_weight: .*shape"),
    "one weight": ({"sample_weight": 2.0}, "sample_weight: .*shape"),
    "text weights": ({"sample_weight": ["a"] * 20}, "sample_weight: "),
    "forced too large": ({"forced": [5]}, "forced: "),
    "forced negative": ({"forced": [-1]}, "forced: "),
    "forced twice": ({"forced": [1, 1]}, "forced: "),
    "forced float": ({"forced": [1.5]}, "forced: "),
    "forced text": ({"forced": "age"}, "forced: "),
    "ridge negative": ({"ridge": -1.0}, "ridge: "),
    "ridge NaN": ({"ridge": np.nan}, "ridge: "),
    "ridge shape": ({"ridge": np.ones(4)}, "ridge: "),
    "ridge text": ({"ridge": "much"}, "ridge: "),
}


def table(cases):
    return pytest.mark.parametrize(("bad", "match"), cases.values(), ids=cases.keys())


@pytest.fixture(params=["gram", "lazy"])
def gram(request):
    if request.param == "lazy":
        request.getfixturevalue("on_demand")


@pytest.mark.usefixtures("gram")
@pytest.mark.parametrize("objective", [LeastSquares, Logistic, Multinomial])
class TestData:
    @table(BAD_X)
    def test_bad_X(self, objective, bad, match):
        with refuses(match):
            objective(bad, Y)

    @table(BAD_Y)
    def test_bad_y(self, objective, bad, match):
        with refuses(match):
            objective(X, bad)

    @table(BAD_OPTIONS)
    def test_bad_options(self, objective, bad, match):
        with refuses(match):
            objective(X, Y, **bad)

    def test_forcing_every_feature_leaves_nothing_to_choose(self, objective):
        with refuses(r"s: .*forced"):
            lz.omp(objective(X, Y, forced=range(5)), 1)


def test_a_text_column_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).assign(town="Ulm")
    with refuses("X: expected numbers, got dtype .* in column 'town'"):
        LeastSquares(frame, Y)


@table({**BAD_X, "too large": (with_entry(X, (7, 2), 1e200), "X: column 2 .*too large")})
def test_bad_X_of_statistics(bad, match):
    with refuses(match):
        Statistics.from_arrays(bad, Y)


@pytest.mark.usefixtures("gram")
def test_values_that_cannot_be_squared():
    with refuses("X: column 2 .*too large"):
        LeastSquares(with_entry(X, (7, 2), 1e200), Y)
    with refuses("y: .*too large"):
        LeastSquares(X, with_entry(Y, 7, 1e200))
    with refuses("y: .*too small"):
        LeastSquares(X, 1e-160 * Y)
    for form in (np.asarray, sparse.csr_matrix):
        for scale in (1e-155, 1e-170):
            with refuses("X: column 2 .*too small"):
                LeastSquares(form(X * [1, 1, scale, 1, 1]), Y)


@pytest.mark.usefixtures("gram")
def test_columns_of_zeros_are_not_too_small():
    empty = X * [1, 1, 0, 1, 1]
    weight = np.arange(20) > 7
    for form in (np.asarray, sparse.csr_matrix):
        assert lz.omp(LeastSquares(form(empty), Y), 2).status is lz.Status.COMPLETE
        seen_by_nobody = form(with_entry(empty, (7, 2), 1e-200))
        found = lz.omp(LeastSquares(seen_by_nobody, Y, sample_weight=weight), 2)
        assert 2 not in found.support


@pytest.mark.parametrize(
    "labels", [Y + 1, np.arange(20), np.arange(20) % 3 - 1, Y * 0.5, Y - 1, ["no", "yes"] * 10]
)
def test_labels_of_logistic(labels):
    with refuses("y: expected two classes"):
        Logistic(X, labels)


def test_statistics_must_be_statistics():
    with refuses("stats: "):
        LeastSquares.from_statistics(X)


@pytest.mark.parametrize(
    ("gram", "b", "match"),
    [
        (np.eye(3), np.ones(2), "shape"),
        (np.ones((3, 2)), np.ones(3), "shape"),
        (np.eye(3), [[1.0, 2.0, 3.0]], "shape"),
        (with_entry(np.eye(3), (0, 1), np.nan), np.ones(3), "NaN"),
        (np.eye(3), [1.0, np.inf, 0.0], "NaN or infinite"),
        (with_entry(np.eye(3), (0, 1), 0.5), np.ones(3), "symmetric"),
        (-np.eye(3), np.ones(3), "convex|positive"),
    ],
)
def test_matrix_and_vector_of_a_quadratic(gram, b, match):
    with refuses(match):
        Quadratic(gram, b)


# the arguments of a method


@pytest.fixture(scope="module")
def f():
    return LeastSquares(X, Y, forced=[4])


@pytest.fixture(params=EVERY_METHOD)
def method(request):
    return EVERY_METHOD[request.param]


@pytest.mark.parametrize("s", [0, -1, 5, 100])
def test_s_out_of_range(method, f, s):
    with pytest.raises(ValueError, match="s: expected 1 to 4"):
        method(f, s)


@pytest.mark.parametrize("s", [1.5, 2.0, "2", True, None, [2]])
def test_s_of_a_wrong_type(method, f, s):
    with pytest.raises(TypeError, match="s: expected a whole number"):
        method(f, s)


def test_s_may_be_a_numpy_integer(method, f):
    assert len(method(f, np.int32(2)).support) <= 2


@pytest.mark.parametrize("thing", [X, None, lambda x: 0.0, LeastSquares])
def test_f_must_be_an_objective(method, thing):
    with pytest.raises(TypeError, match="f: expected an Objective"):
        method(thing, 2)


def test_unknown_method(f):
    with refuses("method: .*'magic'"):
        lz.solve(f, 2, method="magic")
    with refuses("method: .*'magic'"):
        lz.path(f, [1, 2], method="magic")


def test_unknown_option(method, f):
    with pytest.raises(TypeError, match="speed"):
        method(f, 2, speed=11)


BAD_STARTS = {
    "unknown": "random",
    "too many": [0, 1, 2],
    "forced": [0, 4],
    "out of range": [0, 9],
    "negative": [-1],
    "twice": [1, 1],
    "floats that are indices": [0.0, 1.0],
    "wrong number of coefficients": np.ones(7),
    "table": np.ones((2, 5)),
    "NaN": [0.0, np.nan, 0.0, 0.0, 0.0],
    "None": None,
    "text": ["a", "b"],
}


@pytest.mark.parametrize("name", ["ompr", "els", "exchange", "arht"])
@pytest.mark.parametrize("start", BAD_STARTS.values(), ids=BAD_STARTS.keys())
def test_bad_start(name, f, start):
    with refuses("start: "):
        METHODS[name](f, 2, start=start)


@pytest.mark.parametrize(
    "start", ["best", np.ones(7), [0.0, np.nan, 0.0, 0.0, 0.0], np.ones((5, 2))]
)
def test_bad_start_of_iht(f, start):
    with refuses("start: "):
        lz.iht(f, 2, start=start)


BAD_ARGUMENTS = [
    (lz.iht, {"step": 0.0}, "step: "),
    (lz.iht, {"step": -1.0}, "step: "),
    (lz.iht, {"step": np.nan}, "step: "),
    (lz.iht, {"step": np.inf}, "step: "),
    (lz.iht, {"step": "long"}, "step: "),
    (lz.arht, {"setting": "optimistic"}, "setting: "),
    (lz.arht, {"rho": 0.0}, "rho: "),
    (lz.arht, {"rho": -1.0}, "rho: "),
    (lz.arht, {"rho": np.nan}, "rho: "),
    (lz.arht, {"rho": np.inf}, "rho: "),
    (lz.arht, {"rho": "large"}, "rho: "),
    (lz.arht, {"epsilon": 0.0}, "epsilon: "),
    (lz.arht, {"epsilon": np.nan}, "epsilon: "),
    (lz.arht, {"n_runs": 0}, "n_runs: "),
    (lz.arht, {"n_runs": 2.5}, "n_runs: "),
    (lz.arht, {"lower": np.nan}, "lower: "),
    (lz.arht, {"lower": -np.inf}, "lower: "),
    (lz.arht, {"random_state": "dice"}, "random_state: "),
    (lz.arht, {"random_state": -1}, "random_state: "),
    (lz.arht_core, {"opt": np.nan}, "opt: "),
    (lz.arht_core, {"opt": "low"}, "opt: "),
    (lz.arht_robust, {"opt": np.nan}, "opt: "),
    (lz.solve, {"effort": -1.0}, "effort: expected a finite number of at least 0, got -1.0"),
    (lz.solve, {"effort": np.nan}, "effort: "),
    *((m, {"max_iter": bad}, "max_iter: ") for m in (lz.omp, lz.iht) for bad in (-1, 1.5, "two")),
    *((m, {"callback": 3}, "callback: ") for m in (lz.omp, lz.arht, lz.solve)),
]


@pytest.mark.parametrize(
    ("function", "options", "match"),
    BAD_ARGUMENTS,
    ids=[f"{function.__name__}-{options}" for function, options, _ in BAD_ARGUMENTS],
)
def test_bad_argument(f, function, options, match):
    with at_most(5), refuses(match):
        function(f, 2, **options)


# functions the user brings


def custom(**replaced):
    functions = {
        "value": lambda x: float(np.sum((x - 1) ** 2)),
        "gradient": lambda x: 2 * (x - 1),
        "n_features": 3,
    }
    return from_callables(**{**functions, **replaced})


def away_from_zero(good, bad):
    return lambda x: bad if x.any() else good


EYE = np.eye(3)
BAD_CALLABLES = {
    "value is no function": {"value": 3.0},
    "gradient is no function": {"gradient": None},
    "hessian is no function": {"hessian": EYE},
    "value is a vector": {"value": lambda x: x},
    "value is text": {"value": lambda x: "one"},
    "value is None": {"value": lambda x: None},
    "value is NaN": {"value": lambda x: np.nan},
    "value is inf": {"value": away_from_zero(0.0, np.inf)},
    "gradient is a number": {"gradient": lambda x: 1.0},
    "gradient is short": {"gradient": lambda x: np.ones(2)},
    "gradient is a table": {"gradient": lambda x: np.ones((3, 1))},
    "gradient is NaN": {"gradient": lambda x: np.full(3, np.nan)},
    "gradient is NaN elsewhere": {"gradient": away_from_zero(np.ones(3), np.full(3, np.nan))},
    "gradient is None": {"gradient": lambda x: None},
    "hessian is a vector": {"hessian": lambda x: np.ones(3)},
    "hessian is inf": {"hessian": lambda x: np.full((3, 3), np.inf)},
    "n_features is zero": {"n_features": 0},
    "n_features is negative": {"n_features": -2},
    "n_features is a float": {"n_features": 3.0},
    "n_features is text": {"n_features": "3"},
    "smoothness is negative": {"smoothness": -1.0},
    "smoothness is NaN": {"smoothness": np.nan},
}


@pytest.mark.parametrize("replaced", BAD_CALLABLES.values(), ids=BAD_CALLABLES.keys())
def test_bad_callables(replaced):
    (name,) = replaced
    with refuses(f"^{name}: "):
        lz.ompr(custom(**replaced), 1, start="first")


def test_smoothness_that_nobody_knows():
    for method in (lz.iht, lz.arht):
        with refuses("smoothness: .*unknown"):
            method(custom(), 1)
    assert_allclose(lz.iht(custom(), 1, step=0.1).value, 2.0)
    assert_allclose(lz.arht(custom(), 1, rho=1.0, random_state=0).value, 2.0)


def test_bad_jax_function():
    pytest.importorskip("jax")
    with refuses("value: "):
        lz.omp(lz.from_jax(lambda x: 0.0 * x.sum() + np.nan, 3), 1)
    with refuses("n_features: "):
        lz.from_jax(lambda x: x.sum(), 0)


# degenerate, and working


def regular(rng, m=30, n=6):
    return rng.normal(size=(m, n))


def edited(edit):
    def build(rng):
        X = regular(rng)
        edit(X)
        return X

    return build


def duplicate(X):
    X[:, 1] = X[:, 2] = X[:, 0]


def dependent(X):
    X[:, 3] = X[:, 0] + X[:, 1] - 2 * X[:, 2]
    X[:, 4] = 1e3 * X[:, 0]


def constants(X):
    X[:, :2] = 3.0, -1e-3


DEGENERATE = {
    "constant columns": edited(constants),
    "constant at 1e8": edited(lambda X: X[:, 0].fill(1e8 + 0.1)),
    "zero column": edited(lambda X: X[:, 0].fill(0.0)),
    "only zero columns": edited(lambda X: X.fill(0.0)),
    "only constant columns": edited(lambda X: X.fill(0.1)),
    "duplicates": edited(duplicate),
    "only duplicates": lambda rng: np.repeat(regular(rng, n=1), 5, axis=1),
    "opposites": lambda rng: np.outer(rng.normal(size=30), [1, -1, 2, -2]),
    "dependent": edited(dependent),
    "almost dependent": lambda rng: regular(rng, n=1) + 1e-9 * regular(rng),
    "wide": lambda rng: regular(rng, 8, 20),
    "square": lambda rng: regular(rng, 6, 6),
    "one row": lambda rng: regular(rng, 1, 4),
    "two rows": lambda rng: regular(rng, 2, 4),
    "one feature": lambda rng: regular(rng, n=1),
    "one zero feature": lambda rng: np.zeros((10, 1)),
    "one number": lambda rng: np.ones((1, 1)),
    "offset 1e8": lambda rng: regular(rng) + 1e8,
    "huge": lambda rng: 1e150 * regular(rng),
    "tiny": lambda rng: 1e-150 * regular(rng),
    "scales 1e-150 to 1e150": lambda rng: regular(rng) * np.logspace(-150, 150, 6),
    "scales 1e-8 to 1e8": lambda rng: regular(rng) * np.logspace(-8, 8, 6),
    "integers": lambda rng: rng.integers(-3, 4, (30, 6)),
    "booleans": lambda rng: rng.random((30, 6)) < 0.5,
}
TARGETS = {
    "noisy": lambda rng, X: (
        (X / np.maximum(np.abs(X).max(0), 1e-300)).sum(1) + rng.normal(size=len(X))
    ),
    "constant": lambda rng, X: np.full(len(X), 3.0),
    "zero": lambda rng, X: np.zeros(len(X)),
    "huge": lambda rng, X: 1e150 * rng.normal(size=len(X)),
    "tiny": lambda rng, X: 1e-150 * rng.normal(size=len(X)),
}


def run(method, f, s, problem, seconds=10):
    """A solution that is finite, sparse, honest about its value, no worse than the empty model."""
    limit = {"max_iter": 30} if method is lz.iht else {}
    with warnings.catch_warnings(), at_most(seconds):
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = method(f, s, **limit)
    assert len(found.support) <= s
    assert len(found.support) == s or found.status is not Status.COMPLETE
    assert np.isfinite(found.x).all()
    assert np.isfinite(found.value)
    tol = 1e-9 * value_of_nothing(problem)
    there = problem.value(found.x, found.intercept)
    assert_allclose(found.value, there, rtol=1e-8, atol=tol + rounding(found, problem))
    assert found.value <= problem.profile(problem.zero).value + tol
    return found


def rounding(found, problem):
    """Bound what rounding of the predictions may change of a loss: its slope times their terms."""
    terms = np.abs(problem.X) @ np.abs(found.x) + np.abs(found.intercept)
    if problem.loss != "squares":  # no slope is above the weight of the row
        return np.finfo(float).eps * (problem.sample_weight @ terms).sum()
    residuals = np.abs(problem.y - problem.X @ found.x - found.intercept)
    return np.finfo(float).eps * residuals @ terms


def value_of_nothing(problem):
    return problem.value(problem.zero, 0.0)


def assert_minimum(found, problem):
    """Nothing is left to gain on the support."""
    best = problem.fit(found.support).value
    assert found.value <= best * (1 + 1e-6) + 1e-9 * value_of_nothing(problem)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("build", DEGENERATE.values(), ids=DEGENERATE.keys())
class TestDegenerate:
    def test_least_squares(self, method, build, fit_intercept, rng):
        X = build(rng)
        y = TARGETS["noisy"](rng, X)
        problem = Problem(X, y, fit_intercept=fit_intercept)
        f = LeastSquares(X, y, fit_intercept=fit_intercept)
        for s in sorted({(X.shape[1] + 1) // 2, X.shape[1]}):
            found = run(method, f, s, problem)
            assert found.status is not Status.NO_MINIMISER
            if method is not lz.iht:
                assert_minimum(found, problem)

    def test_least_squares_without_a_gram_matrix(self, build, fit_intercept, rng, on_demand):
        X = build(rng)
        y = TARGETS["noisy"](rng, X)
        problem = Problem(X, y, fit_intercept=fit_intercept)
        for data in (X, sparse.csr_matrix(X)):
            f = LeastSquares(data, y, fit_intercept=fit_intercept)
            for name in ("exchange", "arht"):
                assert_minimum(run(METHODS[name], f, (X.shape[1] + 1) // 2, problem), problem)

    def test_logistic(self, method, build, fit_intercept, rng):
        X = build(rng)
        y = TARGETS["noisy"](rng, X) > 0
        problem = Problem(X, y, "logistic", fit_intercept=fit_intercept)
        f = Logistic(X, y, fit_intercept=fit_intercept)
        run(method, f, min((X.shape[1] + 1) // 2, 4), problem)

    def test_logistic_with_ridge_has_a_minimum(self, method, build, fit_intercept, rng):
        X = build(rng)
        y = TARGETS["noisy"](rng, X) > 0
        if len(y) > 1:
            y[:2] = False, True  # one class would leave the intercept without a minimum
        ridge = 0.1 * (np.median(np.abs(X).max(axis=0)) or 1.0) ** 2
        problem = Problem(X, y, "logistic", fit_intercept=fit_intercept, ridge=ridge)
        f = Logistic(X, y, fit_intercept=fit_intercept, ridge=ridge)
        found = run(method, f, min(3, X.shape[1]), problem)
        if len(y) > 1 or not fit_intercept:
            assert found.status is not Status.NO_MINIMISER
            if method is not lz.iht:
                assert_minimum(found, problem)

    @pytest.mark.parametrize("ridge", [0.0, 0.1], ids=["", "ridge"])
    def test_multinomial(self, method, build, fit_intercept, ridge, rng):
        X = build(rng)
        if method is lz.lasso or len(X) < 3:
            return
        y = np.argsort(np.argsort(TARGETS["noisy"](rng, X))) % 9 // 3
        y[:3] = 0, 1, 2
        ridge *= (np.median(np.abs(X).max(axis=0)) or 1.0) ** 2
        problem = Problem(X, y, "multinomial", fit_intercept=fit_intercept, ridge=ridge)
        f = Multinomial(X, y, fit_intercept=fit_intercept, ridge=ridge)
        found = run(method, f, min(3, X.shape[1]), problem, seconds=60)
        if ridge:
            assert found.status is not Status.NO_MINIMISER
            if method is not lz.iht:
                assert_minimum(found, problem)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_targets_of_every_size(method, target, fit_intercept, rng):
    X = regular(rng)
    y = target(rng, X)
    problem = Problem(X, y, fit_intercept=fit_intercept)
    found = run(method, LeastSquares(X, y, fit_intercept=fit_intercept), 3, problem)
    if method is not lz.iht:
        assert_minimum(found, problem)


def test_a_constant_target_needs_no_feature(method, rng):
    f = LeastSquares(regular(rng), np.full(30, 7.0), fit_intercept=True)
    found = method(f, 2)
    assert_allclose(found.value, 0, atol=1e-20)
    assert_allclose(found.intercept, 7.0)


@pytest.mark.parametrize("c", [1e-150, 1e8, 1e150])
@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_the_unit_of_X_does_not_matter(method, loss, c):
    p = random_problem(9, loss, fit_intercept=True)
    f, g = objective_of(p), objective_of(Problem(c * p.X, p.y, loss, fit_intercept=True))
    a, b = method(f, 5), method(g, 5)
    assert a.support.tolist() == b.support.tolist()
    assert a.status is b.status
    assert_allclose(a.value, b.value, rtol=1e-6)
    assert_allclose(a.x, c * b.x, rtol=1e-4, atol=1e-4 * np.abs(a.x).max())


@pytest.mark.parametrize("c", [1e-150, 1e-8, 1e8, 1e150])
def test_the_unit_of_y_does_not_matter(method, c):
    p = random_problem(9, fit_intercept=True)
    a, b = (method(LeastSquares(p.X, y, fit_intercept=True), 3) for y in (p.y, c * p.y))
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(c * np.sqrt(a.value), np.sqrt(b.value), rtol=1e-6)
    assert_allclose(c * a.x, b.x, rtol=1e-4, atol=c * 1e-4 * np.abs(a.x).max())


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_the_units_of_single_columns_do_not_matter_to_exchange(loss):
    p = random_problem(9, loss, fit_intercept=True)
    scaled = Problem(p.X * np.logspace(-150, 150, p.n), p.y, loss, fit_intercept=True)
    a, b = (lz.exchange(objective_of(q), 3, start="first") for q in (p, scaled))
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(a.value, b.value, rtol=1e-8)


@pytest.mark.parametrize("offset", [1e6, 1e8])
@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_offsets_do_not_matter_with_an_intercept(method, loss, offset):
    p = random_problem(9, loss, fit_intercept=True)
    X = (p.X + offset) - offset  # what is left of X beside such an offset
    near, far = (Problem(Z, p.y, loss, fit_intercept=True) for Z in (X, X + offset))
    a, b = method(objective_of(near), 3), method(objective_of(far), 3)
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(a.value, b.value, rtol=1e-6)
    assert_allclose(a.x, b.x, rtol=1e-3, atol=1e-3 * np.abs(a.x).max())


def test_an_offset_of_y_does_not_matter_with_an_intercept(method):
    p = random_problem(9, fit_intercept=True)
    y = (p.y + 1e8) - 1e8
    a, b = (method(LeastSquares(p.X, t, fit_intercept=True), 3) for t in (y, y + 1e8))
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(a.value, b.value, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", ["ompr", "els", "exchange", "arht"])
def test_the_constant_of_a_quadratic_does_not_matter(name, scale):
    p = random_problem(9, kind="equicorrelated")
    G, b = p.X.T @ p.X, scale * p.X.T @ p.y
    constant = 0.5 * scale**2 * p.y @ p.y
    with_it, without = (
        METHODS[name](f, 3, start="first") for f in (Quadratic(G, b, constant), Quadratic(G, b))
    )
    assert with_it.n_iter > 0
    assert with_it.support.tolist() == without.support.tolist()
    assert_allclose(without.value + constant, with_it.value, rtol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 1e-12, 1e-8, 1e-6, 1e-4])
@pytest.mark.parametrize("objective", [LeastSquares, Logistic])
def test_searches_among_near_copies_end(objective, spread):
    """Swaps that gain nothing but rounding must not go round in circles."""

    def towards_the_bound(f, s):
        return lz.arht_core(f, s, lower_bound(f), random_state=0)

    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = regular(rng, n=1) + spread * regular(rng)
        y = TARGETS["noisy"](rng, X)
        y = y if objective is LeastSquares else y > 0
        loss = "squares" if objective is LeastSquares else "logistic"
        for fit_intercept in (False, True):
            f = objective(X, y, fit_intercept=fit_intercept)
            problem = Problem(X, y, loss, fit_intercept=fit_intercept)
            for search in (towards_the_bound, METHODS["arht"], lz.els, lz.exchange, lz.ompr):
                run(search, f, 2, problem)


def test_twins_do_not_both_pay(rng):
    """Of a column and its copy one is enough: nothing gained, nothing lost."""
    X = regular(rng)
    y = X[:, 0] + 0.5 * X[:, 3] + 0.1 * rng.normal(size=30)
    twins = np.column_stack([X, X[:, 0], X[:, 3]])
    for name in ("ompr", "els", "exchange", "arht"):
        plain = METHODS[name](LeastSquares(X, y), 2)
        with_twins = METHODS[name](LeastSquares(twins, y), 2)
        assert_allclose(with_twins.value, plain.value, rtol=1e-9)


# classes without a minimiser

MINIMISING = [name for name in EVERY_METHOD if name != "iht"]


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("name", MINIMISING)
def test_separable_classes_have_no_minimiser(name, fit_intercept, rng):
    X = regular(rng, 40)
    f = Logistic(X, X[:, 2] > 0, fit_intercept=fit_intercept)
    with pytest.warns(ConvergenceWarning, match="Set a small ridge"):
        found = EVERY_METHOD[name](f, 2)
    assert found.status is Status.NO_MINIMISER
    assert 2 in found.support
    assert found.value < 1e-3
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize("name", MINIMISING)
def test_quasi_separable_classes_have_no_minimiser(name, rng):
    """All but the rows with x = 0 are told apart."""
    X = np.where(rng.random((40, 3)) < 0.5, 0.0, rng.choice([-1.0, 1.0], (40, 3)))
    y = np.where(X[:, 0] == 0, rng.random(40) < 0.5, X[:, 0] > 0)
    with pytest.warns(ConvergenceWarning, match="Set a small ridge"):
        found = EVERY_METHOD[name](Logistic(X, y, fit_intercept=True), 1)
    assert found.status is Status.NO_MINIMISER
    assert found.support.tolist() == [0]


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", [name for name in MINIMISING if name != "lasso"])
def test_one_class_with_an_intercept_has_no_minimiser(name, label, rng):
    f = Logistic(regular(rng), np.full(30, label), fit_intercept=True)
    with pytest.warns(ConvergenceWarning, match="Set a small ridge"):
        found = EVERY_METHOD[name](f, 2)
    assert found.status is Status.NO_MINIMISER
    assert found.value < 1e-3


def test_one_class_without_an_intercept_may_have_one(rng):
    f = Logistic(regular(rng), np.ones(30))
    found = lz.exchange(f, 2)
    assert found.status is Status.LOCAL_OPTIMUM
    assert 0 < found.value < f.value(np.zeros(6))


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e3, 1e150])
def test_separability_does_not_hang_on_the_unit(scale, rng):
    X = scale * regular(rng, 40)
    with pytest.warns(ConvergenceWarning, match="Set a small ridge"):
        found = lz.omp(Logistic(X, X[:, 2] > 0), 2)
    assert found.status is Status.NO_MINIMISER


def test_nearly_separable_classes_have_a_minimiser(rng):
    """One row on the wrong side is enough, however far out the minimum then lies."""
    X = np.linspace(-3, 3, 40)[:, None]
    y = X[:, 0] > 0
    y[19] = True
    y[20] = False
    found = lz.omp(Logistic(X, y), 1)
    assert found.status is Status.COMPLETE
    assert_allclose(found.value, Problem(X, y, "logistic").fit([0]).value, rtol=1e-9)


def test_a_ridge_makes_separable_classes_finite(method, rng):
    X = regular(rng, 40)
    found = method(Logistic(X, X[:, 2] > 0, ridge=1.0), 2)
    assert found.status is not Status.NO_MINIMISER


@pytest.mark.parametrize("ridge", [1e-3, 1e-9])
def test_a_small_ridge_holds_what_few_rows_of_one_class_have(rng, ridge):
    """The value is so flat there that Newton's last step is long."""
    X = (rng.random((4000, 3)) < [0.5, 0.3, 0.002]).astype(float)
    y = (rng.random(4000) < 0.3 + 0.3 * X[:, 0]) | (X[:, 2] > 0)
    found = lz.omp(Logistic(X, y, fit_intercept=True, ridge=ridge), 3)
    assert found.status is Status.COMPLETE


def test_a_ridge_does_not_hold_the_intercept(rng):
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        lz.omp(Logistic(regular(rng, 40), np.ones(40), fit_intercept=True, ridge=1.0), 2)


def test_rows_without_weight_do_not_hide_separability(rng):
    X = regular(rng, 40)
    y = X[:, 2] > 0
    y[:5] = ~y[:5]
    f = Logistic(X, y, sample_weight=np.arange(40) >= 5)
    with pytest.warns(ConvergenceWarning, match="Set a small ridge"):
        assert lz.omp(f, 2).status is Status.NO_MINIMISER


@pytest.mark.parametrize("method", [lz.omp, lz.arht, lz.solve], ids=lambda m: m.__name__)
def test_an_unknown_option_is_named(f, method):
    with pytest.raises(TypeError, match=r"no option 'sped'; there are \["):
        method(f, 2, sped=3)


def test_sizes_must_be_several(f):
    with pytest.raises(TypeError, match="sizes: "):
        lz.path(f, 3)


def test_a_custom_function_without_a_minimiser():
    f = from_callables(
        lambda x: float(np.exp(-x).sum()),
        lambda x: -np.exp(-x),
        3,
        hessian=lambda x: np.diag(np.exp(-x)),
    )
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        assert lz.omp(f, 1).status is Status.NO_MINIMISER


def test_a_hessian_that_is_not_symmetric_or_only_nearly():
    H = 2 * np.eye(3)
    H[0, 1] = 1e-8
    assert_allclose(lz.solve(custom(hessian=lambda x: H), 1).value, 2.0)
    H[0, 1] = 1.0
    with refuses("^hessian: "):
        lz.omp(custom(hessian=lambda x: H), 1)
