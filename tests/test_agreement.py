"""The fast algorithms against their literal twins, scikit-learn, and other ways to say the same.

224 random problems (128 of least squares, 80 logistic, 16 multinomial) in four kinds, among them
neighbours with correlation 0.999; dense, csr and csc; with and without intercept, weights, forced
features, ridge.
"""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import Lasso, LogisticRegression, OrthogonalMatchingPursuit

import ellzero as lz
import reference
from ellzero import LeastSquares, Logistic, Status
from ellzero.objectives.glm.families import SquaredLoss
from ellzero.objectives.glm.glm import GLM
from ellzero.objectives.minimisers import lower_bound
from helpers import METHODS, objective_of, supports, values
from reference import Problem, random_problem

KINDS = ("gaussian", "correlated", "equicorrelated", "scaled")
PROBLEMS = [
    *product(["squares"], KINDS, range(32)),
    *product(["logistic"], KINDS, range(20)),
    *product(["multinomial"], KINDS, range(2, 6)),
]
FEW_PROBLEMS = [(loss, kind, seed) for loss, kind, seed in PROBLEMS if seed < 6]


def on(problems):
    return pytest.mark.parametrize(
        "pair", problems, indirect=True, ids=lambda p: "-".join(map(str, p))
    )


@pytest.fixture
def pair(request):
    """A literal problem, its fast objective, a sparsity, and the seed, which sets the options."""
    loss, kind, seed = request.param
    options = {"weighted": seed % 4 >= 2, "fit_intercept": seed % 2 == 1}
    if seed % 5 == 4:
        options["forced"] = (1,)
    if seed % 6 == 5:
        options["ridge"] = 0.5
    problem = random_problem(seed, loss, kind, **options)
    form = ("dense", "csr", "csc")[seed % 3]
    return problem, objective_of(problem, form), 2 + seed % 3, seed


def a_start(problem, s, seed):
    """One of the kinds of start: what the fast code is given, and the support it means."""
    kind = ("omp", "first", "support", "x")[seed % 4]
    if kind == "omp":
        return kind, reference.omp(problem, s)[-1].support
    if kind == "first":
        return kind, problem.outside()[:s]
    S = np.random.default_rng(seed).choice(problem.outside(), s, replace=False)
    if kind == "support":
        return S.tolist(), S
    x = problem.zero.copy()
    x.T[..., S] = np.arange(1, s + 1)
    return x, S


def assert_same_steps(found, steps):
    assert supports(found) == [set(step.support) for step in steps]
    assert_allclose(values(found), [step.value for step in steps], rtol=1e-8)
    assert_allclose(found.value, min(step.value for step in steps), rtol=1e-8)


@on(PROBLEMS)
def test_omp(pair):
    problem, f, s, _ = pair
    assert_same_steps(lz.omp(f, s), reference.omp(problem, s))


@on(PROBLEMS)
def test_ompr(pair):
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    assert_same_steps(lz.ompr(f, s, start=start), reference.ompr(problem, s, S))


@on(PROBLEMS)
def test_els(pair):
    """The literal twin enumerates: it refits every candidate."""
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    assert_same_steps(lz.els(f, s, start=start), reference.els(problem, s, S))


@on([(loss, kind, seed) for loss, kind, seed in PROBLEMS if loss == "squares" or seed < 6])
def test_exchange(pair):
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    assert_same_steps(lz.exchange(f, s, start=start), reference.exchange(problem, s, S))


@on([(loss, kind, seed) for loss, kind, seed in PROBLEMS if loss == "squares" or seed < 6])
def test_exchange_leaves_no_improving_swap(pair):
    problem, f, s, _ = pair
    found = lz.exchange(f, s, start="first")
    S = set(found.support.tolist())
    swaps = product(S, problem.outside(S))
    best = min(problem.fit((S | {i}) - {j}).value for j, i in swaps)
    assert best >= found.value * (1 - 1e-10)
    assert found.status is Status.LOCAL_OPTIMUM


@on(PROBLEMS)
def test_iht(pair):
    problem, f, s, _ = pair
    step = 1 / f.smoothness(2 * s)
    count = iter(range(12))
    found = lz.iht(f, s, callback=lambda _: next(count) == 10)
    assert_same_steps(found, reference.iht(problem, s, step, 10))


def target(problem, S):
    """A value that is below the start's and that some runs reach."""
    everything = problem.fit(problem.outside()).value
    return everything + 0.5 * (problem.fit(S).value - everything)


@on(PROBLEMS)
def test_arht_core(pair):
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    opt, rho = target(problem, S), f.smoothness(1)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    steps = reference.arht_core(problem, s, opt, rho, S, rng)
    found = lz.arht_core(f, s, opt, start=start, random_state=seed)
    assert_same_steps(found, steps)


@on(PROBLEMS)
def test_arht_core_in_the_theoretical_setting(pair):
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    opt = target(problem, S)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    steps = reference.arht_core(problem, s, opt, 1.0, S, rng, factor=1.0, half_stop=False)
    found = lz.arht_core(
        f, s, opt, start=start, setting="theoretical", rho=1.0, epsilon=1e-9, random_state=seed
    )
    assert_same_steps(found, steps)


@on(FEW_PROBLEMS)
def test_arht_robust(pair):
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    opt, rho = target(problem, S), f.smoothness(1)
    found = lz.arht_robust(f, s, opt, start=start, n_runs=4, random_state=seed)
    best = reference.arht_robust(problem, s, opt, rho, S, seed, n_runs=4)
    assert set(found.support.tolist()) == best.support
    assert_allclose(found.value, best.value, rtol=1e-8)
    for z, run in enumerate(found.trace):  # each is the best of a run of its own
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(z,)))
        steps = reference.arht_core(problem, s, opt, rho, S, rng)
        assert_allclose(run.value, min(step.value for step in steps), rtol=1e-8)


@on(FEW_PROBLEMS)
def test_arht(pair):
    problem, f, s, seed = pair
    start, S = a_start(problem, s, seed)
    gap = problem.fit(S).value - lower_bound(f)
    search = {"rho": f.smoothness(2), "epsilon": 0.02 * gap, "lower": lower_bound(f), "n_runs": 3}
    steps = reference.arht(problem, s, start=S, seed=seed, **search)
    found = lz.arht(f, s, start=start, random_state=seed, **search)
    assert set(found.support.tolist()) == steps[-1].support
    assert_allclose(found.value, steps[-1].value, rtol=1e-8)
    visited = supports(found)  # the trace has every run, the reference every improvement
    positions = [visited.index(set(step.support)) for step in steps]
    assert positions == sorted(positions)


# brute force


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_better_than_the_best_subset(seed):
    problem = random_problem(seed, kind="correlated")
    f = objective_of(problem)
    best = reference.best_subset(problem, 3).value
    for name, method in METHODS.items():
        assert method(f, 3).value >= best * (1 - 1e-10), name


# scikit-learn


@pytest.mark.parametrize("seed", range(10))
def test_omp_is_scikit_learns_on_unit_norm_columns(seed):
    problem = random_problem(seed, kind=KINDS[seed % 3])
    X = problem.X / np.linalg.norm(problem.X, axis=0)
    theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=4, fit_intercept=False).fit(X, problem.y)
    ours = lz.omp(LeastSquares(X, problem.y), 4)
    assert ours.support.tolist() == np.flatnonzero(theirs.coef_).tolist()
    assert_allclose(ours.x, theirs.coef_, rtol=1e-8, atol=1e-10)


def alpha_of(iterate):
    return float(iterate.note.removeprefix("alpha="))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_lasso_is_scikit_learns(seed, weighted, fit_intercept):
    p = random_problem(seed, kind=KINDS[seed % 4], weighted=weighted, fit_intercept=fit_intercept)
    found = lz.lasso(objective_of(p), 3, refit=False)
    alpha = alpha_of(found.trace[-1]) / p.sample_weight.sum()
    theirs = Lasso(alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=10**6)
    theirs.fit(p.X, p.y, sample_weight=p.sample_weight)
    scale = np.abs(theirs.coef_).max()
    assert_allclose(found.x, theirs.coef_, rtol=1e-4, atol=1e-4 * scale)
    assert_allclose(found.intercept, theirs.intercept_, rtol=1e-4, atol=1e-4)
    assert set(np.flatnonzero(found.x)) == set(found.support)


@pytest.mark.parametrize("loss", ["squares", "logistic"])
@pytest.mark.parametrize("seed", range(6))
def test_lasso_meets_its_optimality_conditions(loss, seed):
    p = random_problem(seed, loss, fit_intercept=seed % 2 == 1, weighted=seed % 3 == 1)
    f = objective_of(p)
    found = lz.lasso(f, 3)
    as_is = found.trace[-2]
    alpha, g = alpha_of(as_is), f.gradient(as_is.x)
    assert_allclose(g[as_is.support], -alpha * np.sign(as_is.coef), rtol=1e-4)
    assert np.abs(g).max() <= alpha * (1 + 1e-4)


@pytest.mark.parametrize("loss", ["squares", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_lasso_has_s_features_or_says_so_and_is_refit(loss, seed):
    p = random_problem(seed, loss)
    f = objective_of(p)
    for s in (1, 2, 4, p.n):
        found = lz.lasso(f, s)
        exact = len(found.support) == s
        assert found.status is (Status.COMPLETE if exact else Status.FEWER_FEATURES)
        assert len(found.support) <= s
        assert found.trace[-1].note == "refit"
        assert_allclose(found.value, p.fit(found.support).value, rtol=1e-8)
        as_is = lz.lasso(f, s, refit=False)
        assert as_is.support.tolist() == found.support.tolist()
        assert as_is.value > found.value


def test_lasso_without_a_hessian_is_the_same():
    p = random_problem(2, "logistic")
    plain = lz.from_callables(lambda x: p.value(x, 0.0), lambda x: p.gradient(x, 0.0), p.n)
    a, b = lz.lasso(plain, 3), lz.lasso(objective_of(p), 3)
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(a.value, b.value, rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_logistic_fit_is_scikit_learns(seed, fit_intercept):
    p = random_problem(seed, "logistic", fit_intercept=fit_intercept, weighted=True)
    theirs = LogisticRegression(
        C=np.inf, solver="newton-cholesky", tol=1e-12, fit_intercept=fit_intercept
    ).fit(p.X, p.y, sample_weight=p.sample_weight)
    ours = lz.omp(objective_of(p), p.n)
    assert_allclose(ours.x, theirs.coef_[0], rtol=1e-6, atol=1e-6)
    assert_allclose(ours.intercept, theirs.intercept_ if fit_intercept else 0.0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_logistic_ridge_is_scikit_learns(seed):
    p = random_problem(seed, "logistic", fit_intercept=True)
    theirs = LogisticRegression(C=1 / 2.5, solver="newton-cholesky", tol=1e-12).fit(p.X, p.y)
    ours = lz.omp(Logistic(p.X, p.y, fit_intercept=True, ridge=2.5), p.n)
    assert_allclose(ours.x, theirs.coef_[0], rtol=1e-6, atol=1e-6)
    assert_allclose(ours.intercept, theirs.intercept_[0], atol=1e-6)


# other ways to say the same

METHODS_AND_LOSSES = pytest.mark.parametrize(
    ("method", "loss"),
    [
        (method, loss)
        for method in METHODS
        for loss in ("squares", "logistic", "multinomial")
        if (method, loss) != ("lasso", "multinomial")
    ],
)


def assert_same_solution(a, b, tol=1e-8):
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(a.x, b.x, rtol=tol, atol=tol * np.abs(b.x).max())
    assert_allclose(a.value, b.value, rtol=tol)
    assert_allclose(a.intercept, b.intercept, rtol=tol, atol=tol)


@pytest.mark.parametrize("method", [n for n in METHODS if n not in ("iht", "lasso")])
@pytest.mark.parametrize("seed", range(4))
def test_least_squares_is_the_squared_loss(method, seed):
    p = random_problem(seed, kind=KINDS[seed], weighted=True, fit_intercept=seed % 2 == 0)
    options = {"sample_weight": p.sample_weight, "fit_intercept": p.fit_intercept, "forced": [2]}
    f = LeastSquares(p.X, p.y, **options)
    g = GLM(p.X, p.y, SquaredLoss(), **options)
    solve = METHODS[method]
    assert_same_solution(solve(f, 3), solve(g, 3))


@METHODS_AND_LOSSES
def test_order_of_rows_does_not_matter(method, loss, rng):
    p = random_problem(11, loss, weighted=True, fit_intercept=True)
    k = rng.permutation(p.m)
    moved = Problem(p.X[k], p.y[k], loss, p.sample_weight[k], fit_intercept=True)
    solve, tol = METHODS[method], 1e-6 if method == "lasso" else 1e-8
    assert_same_solution(solve(objective_of(p), 3), solve(objective_of(moved), 3), tol)


@METHODS_AND_LOSSES
def test_order_of_columns_does_not_matter(method, loss, rng):
    p = random_problem(11, loss, weighted=True, fit_intercept=True)
    k = rng.permutation(p.n)
    moved = Problem(p.X[:, k], p.y, loss, p.sample_weight, fit_intercept=True)
    solve = METHODS[method]
    a, b = solve(objective_of(p), 3), solve(objective_of(moved), 3)
    assert set(a.support.tolist()) == set(k[b.support].tolist())
    assert_allclose(a.value, b.value, rtol=1e-8 if method != "lasso" else 1e-6)


@METHODS_AND_LOSSES
def test_integer_weights_are_repeated_rows(method, loss, rng):
    p = random_problem(11, loss, fit_intercept=True)
    w = rng.integers(0, 4, p.m)
    weighted = Problem(p.X, p.y, loss, w, fit_intercept=True)
    repeated = Problem(p.X.repeat(w, axis=0), p.y.repeat(w), loss, fit_intercept=True)
    solve, tol = METHODS[method], 1e-6 if method == "lasso" else 1e-8
    assert_same_solution(solve(objective_of(weighted), 3), solve(objective_of(repeated), 3), tol)


@METHODS_AND_LOSSES
def test_sparse_is_dense(method, loss, rng):
    p = random_problem(11, loss, fit_intercept=True)
    p.X[rng.random(p.X.shape) < 0.5] = 0.0
    solve, tol = METHODS[method], 1e-6 if method == "lasso" else 1e-8
    dense = solve(objective_of(p), 3)
    for form in ("csr", "csc"):
        assert_same_solution(solve(objective_of(p, form), 3), dense, tol)


@METHODS_AND_LOSSES
def test_a_gram_matrix_made_when_asked_for_is_the_same(method, loss, request):
    """All but the step of IHT and the ρ of ARHT, which come from a coarser smoothness bound."""
    p = random_problem(11, loss, weighted=True, fit_intercept=True, forced=(2,), ridge=0.1)
    f = objective_of(p)
    options = {"iht": {"step": 1 / f.smoothness(6)}, "arht": {"rho": f.smoothness(2)}}
    options["arht"] |= {"lower": lower_bound(f)}
    solve, tol = METHODS[method], 1e-6 if method == "lasso" else 1e-8
    whole = solve(f, 3, **options.get(method, {}))
    request.getfixturevalue("on_demand")
    for form in ("dense", "csr"):
        made = solve(objective_of(p, form), 3, **options.get(method, {}))
        assert_same_solution(made, whole, tol)


def test_labels_may_be_minus_one_and_one():
    p = random_problem(4, "logistic")
    a, b = (lz.exchange(Logistic(p.X, y), 3) for y in (p.y, 2 * p.y - 1))
    assert_same_solution(a, b, 1e-14)
    assert_same_solution(lz.exchange(Logistic(p.X, p.y.astype(bool)), 3), a, 1e-14)


def test_data_frames_are_arrays():
    pandas = pytest.importorskip("pandas")
    p = random_problem(4)
    frame, series = pandas.DataFrame(p.X), pandas.Series(p.y)
    assert_same_solution(
        lz.exchange(LeastSquares(frame, series), 3), lz.exchange(objective_of(p), 3), 1e-14
    )


def test_frames_may_hold_several_kinds_of_numbers(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.normal(size=(30, 4))
    X[:, 1], X[:, 2] = X[:, 1] > 0, np.round(X[:, 2])
    y = X @ [1.0, 2.0, 3.0, 4.0]
    frame = pandas.DataFrame(X, columns=list("abcd")).astype({"b": bool, "c": int})
    for form in (frame, frame.convert_dtypes(), frame.astype({"a": "Float64", "b": "boolean"})):
        f = LeastSquares(form, y)
        assert f.features.names == ("a", "b", "c", "d")
        assert_same_solution(lz.exchange(f, 3), lz.exchange(LeastSquares(X, y), 3), 1e-14)
    holes = frame.convert_dtypes()
    holes.loc[3, "c"] = pandas.NA
    with pytest.raises(ValueError, match="X: column 2 has 1 NaN"):
        LeastSquares(holes, y)


def test_float32_is_used_as_it_is():
    p = random_problem(4)
    narrow = p.X.astype(np.float32)
    for kind in (np.asarray, sparse.csr_matrix):
        a = lz.exchange(LeastSquares(kind(narrow), p.y), 3)
        assert a.x.dtype == np.float64
        assert_same_solution(a, lz.exchange(LeastSquares(narrow.astype(float), p.y), 3))


def test_lasso_of_long_sparse_data_needs_no_matrix_of_rows_by_rows():
    rng = np.random.default_rng(0)
    X = sparse.random(3000, 150, 0.05, "csc", random_state=0)  # wide enough for a lazy Gram matrix
    y = (X @ rng.standard_normal(150) + 0.3 * rng.standard_normal(3000) > 0).astype(float)
    f = lz.Logistic(X, y, fit_intercept=True)
    A, t = f.quadratic(f.minimize([])).least_squares_form(np.arange(150))
    assert len(A) == len(t) <= 150
    ours, dense = lz.lasso(f, 4), lz.lasso(lz.Logistic(X.toarray(), y, fit_intercept=True), 4)
    assert ours.support.tolist() == dense.support.tolist()
    assert_allclose(ours.trace[-2].value, dense.trace[-2].value, rtol=1e-8)
