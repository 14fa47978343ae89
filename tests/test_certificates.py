"""Certificates: a bound is never above the optimum, and a proof is one."""

import warnings
from dataclasses import replace
from importlib import import_module
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
from ellzero import LeastSquares, Logistic, Quadratic, certify
from ellzero.certificates import Verdict
from ellzero.certificates.diagonal import certified, uniform, weighted
from ellzero.certificates.perspective import IN, OUT, Perspective, weights
from ellzero.certificates.ridge_bound import RidgeBound
from ellzero.core import Features, Iterate, Objective, Solution
from ellzero.objectives.moments.held import unit_moments


def random_problem(seed):
    """Small and awkward: ill-conditioned, rank-deficient, weighted, forced, ridge or none."""
    rng = np.random.default_rng([seed, 17])
    n = int(rng.integers(3, 7))
    m = int(rng.integers(n + 2, 25)) if rng.random() < 0.85 else int(rng.integers(2, n + 1))
    X = rng.standard_normal((m, n))
    kind = seed % 4
    if kind == 1:  # ill-conditioned
        X = X @ (np.ones((n, n)) + 10.0 ** -rng.uniform(1, 4) * rng.standard_normal((n, n)))
    elif kind == 2:  # rank-deficient
        X[:, rng.integers(n)] = X[:, 0] * rng.choice([1.0, -2.0]) + X[:, n - 1] * rng.choice([0, 1])
    elif kind == 3:
        X = X * 10.0 ** rng.integers(-3, 4, n) + rng.choice([0.0, 5.0])
    y = X @ rng.standard_normal(n) * rng.choice([0.1, 1.0]) + rng.standard_normal(m)
    options = {
        "sample_weight": rng.integers(1, 4, m).astype(float) if rng.random() < 0.4 else None,
        "fit_intercept": bool(rng.random() < 0.5),
        "forced": [int(rng.integers(n))] if rng.random() < 0.3 else [],
        "ridge": float(10.0 ** rng.uniform(-3, 2)) if rng.random() < 0.5 else 0.0,
    }
    return X, y, options


def literal_minimum(X, y, S, options):
    """½ Σ w (Xx + a − y)² + ½ ridge ‖x‖² over the columns S, by a least-squares solver."""
    m = len(y)
    w = np.ones(m) if options["sample_weight"] is None else options["sample_weight"]
    A = X[:, list(S)]
    scale = np.where(np.linalg.norm(A, axis=0) > 0, np.linalg.norm(A, axis=0), 1.0)
    rows = np.sqrt(options["ridge"]) * np.diag(1 / scale)
    A = A / scale
    if options["fit_intercept"]:
        A, rows = np.column_stack([A, np.ones(m)]), np.column_stack([rows, np.zeros(len(S))])
    A = np.vstack([np.sqrt(w)[:, None] * A, rows])
    t = np.concatenate([np.sqrt(w) * y, np.zeros(len(S))])
    u = np.linalg.lstsq(A, t, rcond=1e-12)[0]
    return 0.5 * np.sum((A @ u - t) ** 2)


def enumerated(X, y, s, options):
    """The value of every support of size s; forced features are in all."""
    forced = options["forced"]
    free = [j for j in range(X.shape[1]) if j not in forced]
    return {
        S: literal_minimum(X, y, sorted([*S, *forced]), options)
        for size in range(s + 1)
        for S in combinations(free, size)
    }


def assert_sound(certificate, values):
    optimum, slack = min(values.values()), certificate.margin
    assert certificate.lower_bound <= optimum + slack
    if certificate.status is Verdict.NO_BOUND:
        assert certificate.advice
        return
    if certificate.status is Verdict.UNSURE:  # only where rounding may be a part of the value
        assert slack > 1e-3 * abs(optimum)
        assert not certificate.proven
        return
    assert certificate.status is Verdict.OPTIMAL
    best = certificate.value if certificate.better is None else certificate.better.value
    assert best <= optimum + slack
    for S in (set(S) for S, value in values.items() if value <= best):
        assert set(certificate.proven_in.tolist()) <= S
        assert not set(certificate.proven_out.tolist()) & S


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_problems(block):
    """Against enumeration; the solution certified is a greedy one, so often not the best."""
    for seed in range(100 * block, 100 * (block + 1)):
        X, y, options = random_problem(seed)
        f = LeastSquares(X, y, **options)
        s = 1 + seed % len(f.features.choosable)
        certificate = certify(f, lz.omp(f, s), s=s)
        values = enumerated(X, y, s, options)
        assert_sound(certificate, values)


def classification(seed, ridge):
    rng = np.random.default_rng([seed, 5])
    X = rng.standard_normal((90, 6)) @ (np.eye(6) + 0.4 * rng.standard_normal((6, 6)))
    y = (X @ rng.standard_normal(6) + 2.5 * rng.standard_normal(90) > 0).astype(float)
    weight = rng.integers(1, 3, 90).astype(float)
    forced = [2] if seed % 3 == 0 else []
    return Logistic(X, y, sample_weight=weight, fit_intercept=True, forced=forced, ridge=ridge)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_logistic_proofs_against_enumeration(seed, ridge):
    f = classification(seed, ridge)
    sizes = range(1, len(f.features.choosable) + 1)
    found = certify(f, lz.path(f, sizes, "omp"))
    for s in sizes:
        values = {S: f.minimize(S).value for S in combinations(f.features.choosable.tolist(), s)}
        assert_sound(found[s], values)


@pytest.mark.parametrize("gap", [0.3, 0.05])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_logistic_hold_before_the_proof_is_done(seed, gap):
    f = classification(seed, 5.0)
    certificate = certify(f, lz.solve(f, 2), gap=gap)
    optimum = min(f.minimize(S).value for S in combinations(f.features.choosable.tolist(), 2))
    assert certificate.lower_bound <= optimum + certificate.margin
    assert certificate.gap <= gap


def test_any_point_of_the_relaxation_gives_a_bound(rng):
    """Also for nodes, and for the children of every free feature."""
    n, s = 7, 3
    A = rng.standard_normal((12, n))
    C, c = A.T @ A, rng.standard_normal(n) * 3
    wide = A[:5].T @ A[:5] + 0.5 * np.eye(n)
    for matrix, d in ((C, uniform(C)), (wide, np.full(n, 0.5 * (1 - 1e-12)))):
        tested = Perspective(matrix, c, 1.0, d)
        f = Quadratic(matrix, c, 1.0)
        for _ in range(40):
            states = rng.choice([IN, 0, 0, 0, OUT], n).astype(np.int8)[None]
            k = np.array([s - (states == IN).sum()])
            if k[0] < 0:
                continue
            p = rng.standard_normal((1, n)) * rng.choice([0.0, 0.3])
            p, u = tested.improve(p, states, k, int(rng.integers(1, 30)))
            assert u[0][states[0] == 0].sum() <= k[0] + 1e-6
            found = tested.bound(p, states, k)
            must, may = np.flatnonzero(states[0] == IN), np.flatnonzero(states[0] == 0)
            models = {
                S: f.minimize([*must, *S]).value for S in combinations(may, min(k[0], len(may)))
            }
            assert found.node[0] <= min(models.values()) + 1e-9
            for j in may:
                inside = [value for S, value in models.items() if j in S]
                outside = [f.minimize([*must, *(set(S) - {j})]).value for S in models]
                assert found.if_in[0, j] <= min(inside, default=np.inf) + 1e-9
                assert found.if_out[0, j] <= min(outside) + 1e-9


def test_the_relaxation_is_solved(rng):
    """No point of a fine grid over two features gives a better bound."""
    C, c = np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([1.0, 0.9])
    relaxation = Perspective(C, c, 1.0, np.full(2, 0.35))
    states, k = np.zeros((1, 2), dtype=np.int8), np.array([1])
    p, _ = relaxation.improve(np.zeros((1, 2)), states, k, 500)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 2, 601)] * 2), axis=-1).reshape(-1, 2)
    everywhere = relaxation.bound(grid, np.repeat(states, len(grid), 0), np.ones(len(grid), int))
    assert relaxation.bound(p, states, k).node[0] >= everywhere.node.max() - 1e-9


def test_weights_add_up(rng):
    a = np.abs(rng.standard_normal((50, 9))) ** 3
    states = rng.choice([IN, 0, 0, 0, OUT], a.shape).astype(np.int8)
    k = rng.integers(0, 6, 50)
    u = weights(a, 0.3, states, k)
    free = states == 0
    enough = free.sum(axis=1) > k
    assert_allclose(np.where(free, u, 0).sum(axis=1)[enough], k[enough], atol=1e-6)
    assert (u[states == IN] == 1).all()
    assert (u[states == OUT] == 0).all()


def test_splits_are_certified(rng):
    A = rng.standard_normal((30, 8))
    C = A.T @ A
    even = uniform(C)
    better = weighted(C, np.ones(8), even, 0.01 * even[0])
    for d in (even, better):
        assert np.linalg.eigvalsh(C - np.diag(d))[0] >= 0
        assert (d > 0).all()
    assert better.sum() > even.sum()
    too_large = certified(C, np.diag(C).copy())
    assert too_large is None or np.linalg.eigvalsh(C - np.diag(too_large))[0] >= 0


def test_a_split_at_the_end_of_what_is_allowed_is_certified():
    """There the inverse is rounding, and Newton's step cannot be computed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30)) @ (np.eye(30) + 0.3 * rng.standard_normal((30, 30)))
    X /= np.linalg.norm(X, axis=0)
    C = X.T @ X
    even = uniform(C)
    for seed in range(20):
        w = 10.0 ** np.random.default_rng(seed).uniform(0, 9, 30)
        better = weighted(C, w, even, 0.01 * even[0])
        assert np.linalg.eigvalsh(C - np.diag(better))[0] >= 0
        assert w @ better > 0.5 * w @ even


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((25, 60))
    return X, X[:, :3].sum(axis=1) + rng.standard_normal(25)


def test_where_no_bound_is_possible_it_says_so(wide):
    f = LeastSquares(*wide)
    certificate = certify(f, lz.solve(f, 6))
    assert certificate.status is Verdict.NO_BOUND
    assert certificate.lower_bound == 0.0
    assert "ridge" in str(certificate)
    assert not certificate.proven


def test_a_ridge_makes_a_bound_possible(wide):
    f = LeastSquares(*wide, ridge=5.0)
    certificate = certify(f, lz.solve(f, 3), time_limit=10, gap=0.2)
    assert 0 < certificate.lower_bound < certificate.value
    assert certificate.gap <= 0.2


def test_bounds_grow_with_time_and_fall_with_size(rng):
    X = rng.standard_normal((200, 30)) @ (np.eye(30) + 0.3 * rng.standard_normal((30, 30)))
    f = LeastSquares(X, X[:, :10].sum(axis=1) + 6 * rng.standard_normal(200))
    seen = []
    p = lz.path(f, [6, 8, 10])
    found = certify(f, p, time_limit=3, callback=lambda c: seen.append(c))
    for before, after in pairwise(seen):
        assert all(after[s].lower_bound >= before[s].lower_bound - 1e-9 for s in p)
    assert found[6].lower_bound >= found[8].lower_bound >= found[10].lower_bound


def test_the_callback_and_ctrl_c_end_it(rng):
    X = rng.standard_normal((60, 40)) @ rng.standard_normal((40, 40))
    f = LeastSquares(X, rng.standard_normal(60))
    solution = lz.solve(f, 12)

    def interrupt(_):
        raise KeyboardInterrupt

    for callback in (lambda _: True, interrupt):
        certificate = certify(f, solution, callback=callback)
        assert certificate.status in (Verdict.STOPPED, Verdict.OPTIMAL)
        assert 0 <= certificate.lower_bound <= solution.value


def test_a_better_model_is_handed_over():
    X = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.9], [0.0, 0.0, 0.3], [0.1, -0.1, 0.0]])
    f = LeastSquares(X, [1.0, 1.0, 0.0, 0.0])
    greedy = lz.omp(f, 2)
    certificate = certify(f, greedy)
    if certificate.better is None:
        assert certificate.proven
    else:
        assert certificate.better.value < greedy.value
        assert f"{certificate}".count("better")
    best = min(f.minimize(S).value for S in combinations(range(3), 2))
    assert_allclose(certificate.lower_bound, best, atol=1e-8)


def test_errors_name_the_argument(rng):
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    f = LeastSquares(X, y)
    with pytest.raises(TypeError, match="solution: expected a Solution or a Path"):
        certify(f, [0, 1])
    for other in (LeastSquares(X, 10 * y), LeastSquares(X, 0.99 * y), LeastSquares(X, y, ridge=9)):
        with pytest.raises(ValueError, match="another objective"):
            certify(other, lz.solve(f, 2))
    with pytest.raises(ValueError, match="s: the solution has 2 features"):
        certify(f, lz.solve(f, 2), s=1)
    with pytest.raises(ValueError, match="time_limit"):
        certify(f, lz.solve(f, 2), time_limit=0)


def test_words_and_summary(rng):
    X = rng.standard_normal((40, 6))
    f = LeastSquares(X, X[:, 0] + rng.standard_normal(40))
    certificate = certify(f, lz.solve(f, 2))
    assert str(certificate) == "proven: this is the best possible 2-feature model, up to rounding"
    assert "best possible 2-feature model" in certificate._repr_html_()
    summary = certificate.summary()
    assert summary["proven"] is True
    assert summary["gap"] == 0.0
    import json

    assert json.loads(json.dumps(summary))["status"] == "OPTIMAL"


def test_estimators_certify(rng):
    X = rng.standard_normal((80, 6)) * [1, 10, 100, 1, 1, 1]
    y = X[:, 0] - 0.1 * X[:, 1] + rng.standard_normal(80)
    model = lz.SparseRegressor(2, alpha=3.0).fit(X, y)
    assert model.certify(X, y).proven
    assert all(c.proven for c in model.certify(X, y, whole_path=True).values())
    labels = np.where(y > 0, "yes", "no")
    classifier = lz.SparseClassifier(2, method="omp").fit(X, labels)
    certificate = classifier.certify(X, labels)
    assert certificate.status is Verdict.OPTIMAL
    several = lz.SparseClassifier(2).fit(X, np.digitize(y, [-1, 1]))
    assert several.certify(X, np.digitize(y, [-1, 1])).status is Verdict.OPTIMAL


def test_the_plot_shows_the_band(rng):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X = rng.standard_normal((40, 6))
    y = X[:, 0] + rng.standard_normal(40)
    model = lz.SparseRegressor(3).fit(X, y)
    assert model.plot_path().band_ is None
    display = model.plot_path(certificates=model.certify(X, y, whole_path=True))
    assert display.band_ is not None
    assert_allclose(display.bounds, display.losses, rtol=1e-6)
    plt.close("all")


@pytest.mark.parametrize("name", ["cal_housing", "comp_activ_harder"])
def test_real_data_are_proven_at_all_sizes(data_folder, name):
    pandas = pytest.importorskip("pandas", reason="Parquet files need pandas")
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    frame = pandas.read_parquet(data_folder / f"{name}.parquet")
    X, y = frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)
    f = LeastSquares(X, y, fit_intercept=True)
    p = lz.path(f, range(1, len(f.features) + 1))
    for s, certificate in certify(f, p).items():
        assert certificate.status is Verdict.OPTIMAL
        assert certificate.proven, s
        best = min(f.minimize(S).value for S in combinations(range(len(f.features)), s))
        assert_allclose(certificate.lower_bound, best, rtol=1e-7)


def without_each(f, S):
    """Return the minimum over S without each feature."""
    return np.array([f.minimize(np.delete(S, j)).value for j in range(len(S))])


def test_removal_bounds_hold_and_are_close(rng):
    """Also with a dependent column, whose removal costs nothing."""
    X = rng.standard_normal((100, 5))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    y = (X[:, 0] + rng.standard_normal(100) > 0).astype(float)
    for ridge in (0.0, 1.0):
        f = Logistic(X, y, fit_intercept=True, ridge=ridge)
        x = f.minimize(range(6))
        here, without = f.removal_bounds(x)
        values = without_each(f, x.support)
        assert x.value - 1e-6 <= here <= x.value + 1e-9
        assert (without <= values + 1e-9).all()
        assert_allclose(without, values, rtol=1e-3)


class TestWide:
    """More features than a matrix is made of."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(import_module("ellzero.certificates.choice"), "LARGEST_MATRIX", 3)

    @pytest.mark.parametrize("seed", range(20))
    def test_bounds_and_proofs_hold(self, seed):
        rng = np.random.default_rng(seed)
        n, s = int(rng.integers(8, 14)), int(rng.integers(1, 5))
        X = rng.standard_normal((30, n)) + rng.standard_normal((30, 1)) * (seed % 3)
        y = X[:, :3].sum(axis=1) + rng.standard_normal(30)
        X[:, 2] *= bool(seed % 7)
        f = lz.LeastSquares(
            X,
            y,
            fit_intercept=bool(seed % 2),
            ridge=10 ** rng.uniform(-3, 1.5),
            forced=[] if seed % 5 else [1],
        )
        best = min(f.minimize(S).value for S in combinations(f.features.choosable.tolist(), s))
        found = lz.certify(f, lz.omp(f, s))
        assert found.lower_bound <= best * (1 + 1e-9)
        assert found.status is Verdict.OPTIMAL
        reached = found.value if found.better is None else found.better.value
        assert reached <= best * (1 + 1e-8)

    def test_without_a_ridge_there_is_none(self):
        X = np.random.default_rng(0).standard_normal((30, 8))
        f = lz.LeastSquares(X, X[:, 0] + 0.1 * X[:, 1] ** 2)
        found = lz.certify(f, lz.omp(f, 2))
        assert found.status is Verdict.NO_BOUND
        assert "a bound needs a ridge" in str(found)

    def test_many_features_left_are_said(self, monkeypatch):
        monkeypatch.setattr("ellzero.certificates.wide_proof.LARGEST_TREE", 5)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((30, 20))
        f = lz.LeastSquares(X, rng.standard_normal(30), ridge=1.0)
        found = lz.certify(f, lz.solve(f, 4))
        assert found.status is Verdict.UNDIVIDED
        assert 0 < found.lower_bound < found.value


@pytest.mark.parametrize("seed", range(12))
def test_features_that_a_ridge_makes_useless(seed):
    """What leaving them out costs is too small to be computed, and must not count as infinite."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 9))
    X[:, 5:] *= 1e-7
    f = LeastSquares(X, X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(40), ridge=1.0)
    ranked = sorted(combinations(range(9), 3), key=lambda S: f.minimize(S).value)
    best = f.minimize(ranked[0]).value
    for S in (ranked[0], ranked[len(ranked) // 3]):
        found = certify(f, solution_on(f, S))
        assert found.lower_bound <= best + found.margin
        assert found.proven == (found.value <= best + found.margin)
        assert not np.intersect1d(found.proven_in, found.proven_out).size
        assert len(found.proven_in) <= 3


@pytest.mark.parametrize("seed", range(30))
def test_separable_classes_and_near_copies(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 5))
    X[:, 4] = X[:, 3] + 1e-3 * rng.standard_normal(30)
    f = Logistic(X, X[:, 0] + X[:, 1] + 0.3 * X[:, 2] > 0)
    ranked = sorted(combinations(range(5), 2), key=lambda S: f.minimize(S).value)
    best = f.minimize(ranked[0]).value
    found = certify(f, solution_on(f, ranked[1]))
    assert found.lower_bound <= best + found.margin
    assert not found.proven or found.value <= best + found.margin


def solution_on(f, S):
    """A solution that is the minimiser over S, good or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lz.ompr(f, len(S), start=list(S), max_iter=0)


def test_words_where_the_value_is_zero_or_below():
    f = Quadratic(np.eye(3), [1.0, 2.0, 3.0], 0.5)
    found = certify(f, solution_on(f, [0]))
    assert found.better is not None
    assert "better by" in str(found)
    g = Quadratic(np.eye(3), [1.0, 2.0, 3.0])
    assert certify(g, lz.solve(g, 2)).proven


def test_an_empty_path_is_refused():
    f = Quadratic(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="the path is empty"):
        certify(f, lz.Path([]))


def test_a_ridge_without_known_smoothness():
    t = np.array([3.0, -1.0, 0.5])
    f = lz.from_callables(
        lambda x: np.sum((x - t) ** 2), lambda x: 2 * (x - t), 3, hessian=lambda x: 2 * np.eye(3)
    ).ridged(1.0)
    assert certify(f, lz.solve(f, 1)).proven


OPTIONS = {"sample_weight": None, "fit_intercept": False, "forced": [], "ridge": 0.0}


@pytest.mark.parametrize("apart", [1e-4, 1e-6, 1e-7, 1e-9])
def test_near_copies_are_told_apart_by_the_rows(apart):
    """y follows their difference, of which moments know little or nothing."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 6))
    X[:, 5] = X[:, 4] + apart * rng.standard_normal(30)
    y = 2 * (X[:, 5] - X[:, 4]) / apart + X[:, 0] + rng.standard_normal(30)
    f = LeastSquares(X, y)
    for s in (2, 3):
        values = enumerated(X, y, s, OPTIONS)
        assert min(values, key=values.get)[-2:] == (4, 5)
        assert_sound(certify(f, lz.omp(f, s)), values)
    assert certify(f, lz.solve(f, 1)).proven


@pytest.mark.parametrize("forced", [[0], [0, 1]])
def test_near_copies_of_forced_features(forced):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 5))
    X[:, 1:3] = X[:, [0]] + 1e-8 * rng.standard_normal((30, 2))
    y = (X[:, 2] - X[:, 0]) * 1e8 + rng.standard_normal(30)
    options = OPTIONS | {"forced": forced}
    f = LeastSquares(X, y, forced=forced)
    found = certify(f, lz.omp(f, 2))
    assert found.status is not Verdict.NO_BOUND
    assert_sound(found, enumerated(X, y, 2, options))


def test_three_columns_two_of_which_nearly_span_the_third():
    """All together are exactly dependent; the best pair is one that moments take for one column."""
    rng = np.random.default_rng(3)
    a, b, c, other = rng.standard_normal((4, 30))
    X = np.column_stack([a, a + 1e-7 * (b + c), b + c, other, other])
    y = b + c + 0.1 * other + a + rng.standard_normal(30)
    f = LeastSquares(X, y)
    for s in (1, 2, 3):
        found = certify(f, lz.omp(f, s))
        best = min(enumerated(X, y, s, OPTIONS).values())
        assert 0.999999 * best < found.lower_bound <= best + found.margin
        assert not found.proven or found.value <= best + found.margin
        assert not {3, 4} & set(found.proven_in.tolist())


def test_dependent_moments_prove_nothing(rng):
    X = rng.standard_normal((30, 4))
    X[:, 3] = X[:, 2]
    y = X[:, 0] + rng.standard_normal(30)
    statistics = lz.Statistics.from_arrays(X, y)
    singular = Quadratic(X.T @ X, X.T @ y)
    for f in (LeastSquares.from_statistics(statistics), singular):
        found = certify(f, lz.solve(f, 2))
        assert found.status is Verdict.NO_BOUND
        assert found.lower_bound == f.floor
        assert "rows" in str(found)


def test_the_margin_knows_the_size_of_a_quadratic_without_a_constant():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 5))
    A[:, 4] = A[:, 3] + 1e-3 * rng.standard_normal(9)
    y = rng.standard_normal(9)
    for size in (1e-6, 1.0, 1e6):
        with_constant = Quadratic(A.T @ A, A.T @ y * size, 0.5 * size**2 * y @ y)
        without = Quadratic(A.T @ A, A.T @ y * size)
        margins = [certify(f, lz.solve(f, 2)).margin for f in (with_constant, without)]
        assert margins[0] / 30 < margins[1] < 30 * margins[0]
        assert margins[1] > 1e-9 * size**2  # ill-conditioned: more than the usual 1e-10


@pytest.mark.parametrize("classes", [2, 3])
def test_zero_columns_and_copies_of_classes(classes):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((50, 5))
    X[:, 1], X[:, 4] = 0.0, X[:, 0]
    labels = np.digitize(X[:, 0] + X[:, 2] + rng.standard_normal(50), [-0.5, 0.7][: classes - 1])
    make = Logistic if classes == 2 else lz.Multinomial
    for ridge in (0.0, np.array([0.0, 1.0, 0.0, 1.0, 0.0])):
        f = make(X, labels, ridge=ridge, fit_intercept=True)
        x = f.minimize(range(5))
        here, without = f.removal_bounds(x)
        assert here <= x.value
        assert (without <= without_each(f, x.support) + 1e-9).all()
        assert without[2] > here + 1
        found = certify(f, lz.solve(f, 2))
        assert found.proven
        assert not {0, 4} & set(found.proven_in.tolist())


def test_no_bound_without_a_minimiser():
    """exp(−x) comes as close to zero as one likes: what was reached is no bound."""
    f = lz.from_callables(
        lambda x: float(np.exp(-x).sum()),
        lambda x: -np.exp(-x),
        2,
        hessian=lambda x: np.diag(np.exp(-x)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = certify(f, lz.solve(f, 1))
    assert found.lower_bound <= 1.0
    assert not found.proven


def test_the_time_limit_is_kept_inside_the_root():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 280)) @ (np.eye(280) + 0.1 * rng.standard_normal((280, 280)))
    f = LeastSquares(X, X[:, :9].sum(axis=1) + 20 * rng.standard_normal(400))
    clock = import_module("time").thread_time()
    found = certify(f, lz.omp(f, 12), time_limit=0.3)
    assert import_module("time").thread_time() - clock < 1.5
    assert found.status is Verdict.TIME_LIMIT
    assert 0 <= found.lower_bound <= found.value


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_estimators_notice_other_data(alpha):
    from scipy import sparse

    rng = np.random.default_rng(5)
    X = (rng.standard_normal((60, 5)) * [1, 50, 1, 1, 0.01]).astype(np.float32)
    y = X[:, 0] + 0.02 * X[:, 1] + rng.standard_normal(60)
    weight = rng.uniform(0.5, 2, 60)
    model = lz.SparseRegressor(2, alpha=alpha).fit(X, y, weight)
    for same in (X, X.astype(float), sparse.csr_matrix(X)):
        assert model.certify(same, y, weight).proven
    for other in ((X, y, None), (2 * X[:, ::-1], y, weight), (X, 0.999 * y, weight)):
        with pytest.raises(ValueError, match="X, y, sample_weight: expected the data of fit"):
            model.certify(*other)
    labels = y > 0
    classifier = lz.SparseClassifier(2).fit(X, labels)
    assert classifier.certify(X, labels).proven
    with pytest.raises(ValueError, match="expected the data of fit"):
        classifier.certify(X[:50], labels[:50])


# features of several columns, and objectives that tell a proof nothing about themselves


class Bare(Objective):
    """What a subclass must write, and no more: ‖Ax − t‖₄⁴ + ½ ridge ‖x‖² over blocks."""

    def __init__(self, A, t, features, ridge=0.0):
        self.A, self.t, self.features, self.d = A, t, features, ridge
        self.floor, self.resolution = 0.0, 1e-9

    def at(self, x):
        x = self.point(x)
        value = ((self.A @ x.x - self.t) ** 4).sum() + 0.5 * self.d * x.coef @ x.coef
        return replace(x, value=float(value))

    def gradient(self, x):
        x = self.point(x).x
        return self.A.T @ (4 * (self.A @ x - self.t) ** 3) + self.d * x

    def minimize(self, S, start=None, below=np.inf):
        S = np.sort(np.asarray(S, dtype=np.intp))
        T = self.features.coordinates(S)
        A, u = self.A[:, T], np.zeros(len(T))
        for _ in range(60 if len(T) else 0):
            left = A @ u - self.t
            H = (A.T * 12 * left**2) @ A + (self.d + 1e-12) * np.eye(len(T))
            u = u - np.linalg.solve(H, A.T @ (4 * left**3) + self.d * u)
        return self.at(Iterate(self.features, S, u, np.nan))


class BareWithRidge(Bare):
    """The same, telling its ridge and an upper bound on its curvature near where it is asked."""

    @property
    def ridge(self):
        return np.full(len(self.features), self.d)

    def smoothness(self, k):
        return 12 * np.abs(self.t).max() ** 2 * np.linalg.norm(self.A, 2) ** 2 + self.d


def on(f, S):
    """Return the minimiser over S as a solution."""
    x = f.minimize(S)
    model = f.refit(x)
    return Solution(
        x.support, model.features, model.coef, len(f.features), model.value, lz.Status.COMPLETE, 0
    )


@pytest.mark.parametrize("make", [Bare, BareWithRidge])
@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize("sizes", [[1] * 6, [2, 1, 3, 1, 2, 2]])
def test_an_objective_of_three_methods_is_taken_at_its_word(make, ridge, sizes, rng):
    features = Features(sizes)
    A = rng.standard_normal((30, features.n_coordinates))
    f = make(A, A[:, :4].sum(axis=1) + rng.standard_normal(30), features, ridge)
    for s in (1, 3, 5):
        values = {S: f.minimize(S).value for S in combinations(range(6), s)}
        best, worst = min(values, key=values.get), max(values, key=values.get)
        found = certify(f, on(f, best))
        assert found.proven
        assert_sound(found, values)
        assert not certify(f, on(f, worst)).proven


def quadratic_of_blocks(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 6)
    features = Features(sizes, forced=[4] if seed % 3 == 0 else [])
    A = rng.standard_normal((30, features.n_coordinates)) + rng.standard_normal((30, 1))
    if seed % 4 == 1:
        A[:, features.coordinates(np.array([2]))] = 0.0
    A[:, features.coordinates(features.forced)] = 0.0
    t = A[:, :5].sum(axis=1) + 2 * rng.standard_normal(30)
    moments, scale, unit = unit_moments(A.T @ A, A.T @ t, 0.5 * t @ t)
    return Quadratic.of(moments, features, scale, unit, ridge=float(seed % 2))


@pytest.mark.parametrize("seed", range(8))
def test_features_of_several_columns(seed):
    f = quadratic_of_blocks(seed)
    choosable = f.features.choosable.tolist()
    for s in (1, 2, 4):
        values = {S: f.minimize(S).value for S in combinations(choosable, s)}
        found = certify(f, on(f, min(values, key=values.get)))
        if found.status is Verdict.NO_BOUND:  # it cannot tell what the forced feature hides
            assert len(f.features.forced)
            continue
        assert found.proven
        assert_sound(found, values)
        ranked = sorted(values, key=values.get)
        worse = certify(f, on(f, ranked[len(ranked) // 2]))
        assert_sound(worse, values)


def test_dependent_blocks_prove_nothing(rng):
    A = rng.standard_normal((30, 6))
    A[:, 5] = A[:, 0] + A[:, 1]
    moments, scale, unit = unit_moments(A.T @ A, A.T @ A.sum(axis=1), 20.0)
    f = Quadratic.of(moments, Features([2, 2, 2]), scale, unit)
    found = certify(f, on(f, [1]))
    assert found.status is Verdict.NO_BOUND
    assert "dependent" in str(found)


def test_wide_blocks_are_refused(monkeypatch):
    monkeypatch.setattr(import_module("ellzero.certificates.choice"), "LARGEST_MATRIX", 3)
    f = quadratic_of_blocks(3)
    found = certify(f, on(f, f.features.choosable[:2]))
    assert found.status is Verdict.NO_BOUND
    assert "features of one column each" in str(found)


@pytest.mark.parametrize("sizes", [[1] * 5, [2, 1, 3, 1, 1]])
def test_any_point_gives_a_bound_with_a_ridge(sizes, rng):
    features = Features(sizes)
    A = rng.standard_normal((20, features.n_coordinates))
    f = BareWithRidge(A, rng.standard_normal(20), features, 2.0)
    tested, k = RidgeBound.of(f), np.array([2])
    values = {S: f.minimize(S).value for S in combinations(range(5), 2)}
    states = np.zeros((1, 5), dtype=np.int8)
    for _ in range(20):
        p = rng.standard_normal(features.n_coordinates) * rng.choice([0.0, 0.1, 1.0])
        found = tested.bound(tested.improve(p, states, k, int(rng.integers(5)), np.inf), states, k)
        assert found.node[0] <= min(values.values()) + 1e-9
        for j in range(5):
            inside = [value for S, value in values.items() if j in S]
            outside = [value for S, value in values.items() if j not in S]
            assert found.if_in[0, j] <= min(inside) + 1e-9
            assert found.if_out[0, j] <= min(outside) + 1e-9
