"""Several classes: what is special about rows of coefficients, beside the contract."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import ellzero as lz
from ellzero import Logistic, Multinomial, Status
from helpers import METHODS, objective_of
from reference import Problem, best_subset, random_problem, softmax

METHODS = {
    **{name: method for name, method in METHODS.items() if name != "lasso"},
    "iht": lambda f, s, **options: lz.iht(f, s, tol=1e-5, **options),
    "auto": lz.solve,
}


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


def classes(seed, m=240, n=7, C=4, planted=(1, 4, 6)):
    """Data in which some of the features tell C classes apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) + 0.5 * rng.normal(size=(m, 1))
    coef = np.zeros((n, C))
    coef[list(planted)] = rng.normal(size=(len(planted), C))
    y = (softmax(X @ coef).cumsum(axis=1) < rng.random((m, 1))).sum(axis=1)
    return X, y


def probabilities(solution, X):
    return softmax(X @ solution.x + solution.intercept)


# what a solution is


def test_every_method_gives_rows(method):
    X, y = classes(0, m=120)
    f = Multinomial(X, y, fit_intercept=True, forced=[2])
    before = f.minimize([]).value
    for s in (1, 2, 4):
        found = method(f, s)
        assert found.x.shape == (7, 4)
        assert found.intercept.shape == (4,)
        assert len(found.support) <= s
        rows = set(np.flatnonzero(np.abs(found.x).any(axis=1)).tolist())
        assert rows == {2, *found.support.tolist()}
        assert all(step.coef.shape == (3 * len(step.support),) for step in found.trace)
        assert found.value < before
        before = found.value
        assert "features" in repr(found)


def test_values_fall_along_every_path(method):
    X, y = classes(1, m=120)
    f = Multinomial(X, y, fit_intercept=True)
    values = [method(f, s).value for s in range(1, 8)]
    assert (np.diff(values) < 0).all()


def test_lasso_is_refused():
    X, y = classes(0)
    with pytest.raises(ValueError, match=r"lasso: .*own several"):
        lz.lasso(Multinomial(X, y), 2)


def test_a_point_to_start_from():
    X, y = classes(0)
    f = Multinomial(X, y)
    x = np.zeros((7, 4))
    x[[2, 3], 1] = 1.0
    assert lz.ompr(f, 2, start=x).trace[0].support.tolist() == [2, 3]
    assert lz.iht(f, 2, start=x).value <= f.value(x)
    for start in (np.zeros(7), np.zeros((7, 3))):
        with pytest.raises(ValueError, match="start: expected"):
            lz.ompr(f, 2, start=start)


def test_rows_and_intercept_sum_to_zero_from_any_start():
    X, y = classes(2)
    for ridge in (0.0, 2.0):
        f = Multinomial(X + 3, y, fit_intercept=True, forced=[0], ridge=ridge)
        cold = f.refit(f.minimize([1, 4]))
        warm = f.refit(f.minimize([1, 4], f.at(np.full((7, 4), 5.0))))
        for model in (cold, warm):
            assert_allclose(model.coef.sum(axis=1), 0, atol=1e-12)
            assert_allclose(model.intercept.sum(), 0, atol=1e-12)
        assert_allclose(warm.coef, cold.coef, atol=1e-8)
        assert_allclose(warm.intercept, cold.intercept, atol=1e-8)


def test_best_subset_is_found(method):
    for seed in range(3):
        p = random_problem(seed, "multinomial", fit_intercept=True)
        best = best_subset(p, 2)
        found = method(objective_of(p), 2)
        assert found.value >= best.value * (1 - 1e-10)
        if method in (lz.solve, lz.exchange):
            assert set(found.support.tolist()) == best.support
            assert_allclose(found.value, best.value, rtol=1e-9)


# other ways to say the same


@pytest.mark.parametrize("ridge", [0.3, 5.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scikit_learn_agrees(ridge, fit_intercept):
    X, y = classes(3)
    w = np.random.default_rng(1).uniform(0.2, 3, len(y))
    theirs = LogisticRegression(
        C=1 / ridge, tol=1e-10, max_iter=10_000, solver="newton-cg", fit_intercept=fit_intercept
    ).fit(X, y, sample_weight=w)
    f = Multinomial(X, y, sample_weight=w, fit_intercept=fit_intercept, ridge=ridge)
    ours = lz.omp(f, 7)
    assert_allclose(probabilities(ours, X), theirs.predict_proba(X), atol=1e-6)
    assert_allclose(ours.x, theirs.coef_.T, atol=1e-6)
    assert_allclose(ours.intercept, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_two_classes_are_logistic_with_half_the_ridge(ridge):
    """x is (−β/2, β/2) for the β of `Logistic`: ½ ridge ‖x‖² is ½ (ridge/2) β²."""
    X, y = classes(4, C=2)
    options = {"fit_intercept": True, "forced": [3]}
    f, g = Multinomial(X, y, ridge=ridge, **options), Logistic(X, y, ridge=ridge / 2, **options)
    for s in (1, 3, 6):
        two, one = lz.solve(f, s), lz.solve(g, s)
        assert two.support.tolist() == one.support.tolist()
        assert_allclose(two.value, one.value, rtol=1e-10)
        assert_allclose(two.x, np.outer(one.x, [-0.5, 0.5]), atol=1e-8)
        assert_allclose(two.intercept, one.intercept * np.array([-0.5, 0.5]), atol=1e-8)
        assert_allclose(f.smoothness(s), 2 * g.smoothness(s), rtol=1e-9)


def test_names_of_classes_do_not_matter(method):
    X, y = classes(5, m=120)
    order = np.array([2, 0, 3, 1])
    a = method(Multinomial(X, y, fit_intercept=True, ridge=0.1), 3)
    b = method(Multinomial(X, order[y], fit_intercept=True, ridge=0.1), 3)
    assert a.support.tolist() == b.support.tolist()
    assert_allclose(a.value, b.value, rtol=1e-10)
    assert_allclose(a.x, b.x[:, order], atol=1e-8)
    assert_allclose(a.intercept, b.intercept[order], atol=1e-8)


def test_units_of_columns_do_not_matter_to_fits():
    X, y = classes(6)
    units = 10.0 ** np.arange(-150, 151, 50)
    a = Multinomial(X, y, fit_intercept=True).minimize([0, 3, 6])
    b = Multinomial(X * units, y, fit_intercept=True).minimize([0, 3, 6])
    assert_allclose(a.value, b.value, rtol=1e-12)
    assert_allclose(a.coef, b.coef * np.repeat(units[[0, 3, 6]], 3), rtol=1e-8)


def test_labels_may_be_floats_or_booleans():
    X, y = classes(4, C=2)
    a, b, c = (Multinomial(X, z).minimize([1]).value for z in (y, y.astype(float), y > 0))
    assert a == b == c


# where no minimiser exists


def three_clouds(gap):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.arange(60) % 3
    X[:, 0] += gap * np.array([0, 1, 0])[y]
    X[:, 1] += gap * np.array([0, 0, 1])[y]
    return X, y


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_separable_classes_are_reported(fit_intercept):
    X, y = three_clouds(20.0)
    X[:, :2] -= 7.0
    f = Multinomial(X, y, fit_intercept=fit_intercept)
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        found = lz.omp(f, 2)
    assert found.status is Status.NO_MINIMISER
    assert np.isfinite(found.x).all()
    assert 0 <= found.value < 1e-6


def test_one_class_that_can_be_told_from_the_others_is_reported():
    """The other two overlap, so that the value stays above 0."""
    X, y = three_clouds(20.0)
    f = Multinomial(X[:, [0, 2, 3]], y, fit_intercept=True)
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        found = lz.omp(f, 1)
    assert found.status is Status.NO_MINIMISER
    assert found.value > 10
    assert lz.omp(f.ridged(0.1), 1).status is Status.COMPLETE


def test_a_class_without_weight_is_reported():
    X, y = classes(0)
    f = Multinomial(X, y, sample_weight=(y < 3).astype(float), fit_intercept=True)
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        found = lz.omp(f, 2)
    three = lz.omp(Multinomial(X[y < 3], y[y < 3], fit_intercept=True), 2)
    assert_allclose(found.value, three.value, rtol=1e-6)


def test_overlapping_classes_are_not():
    X, y = three_clouds(1.0)
    assert lz.omp(Multinomial(X, y, fit_intercept=True), 4).status is Status.COMPLETE


def test_nothing_overflows():
    X, y = classes(0)
    f = Multinomial(1e8 * X, y)
    x = np.full((7, 4), 1e8) * np.arange(4)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.isfinite(f.value(x))
        assert np.isfinite(f.gradient(x)).all()
        assert np.isfinite(f.minimize([0, 1], f.point(x)).value)


# what y may be

Y = np.arange(12) % 3
BAD_LABELS = {
    "one class": (0 * Y, "at least two"),
    "nothing": ([], "at least two"),
    "negative": (Y - 1, "got -1"),
    "a gap": (np.where(Y == 1, 3, Y), "no row has the class 1"),
    "from one": (Y + 1, "no row has the class 0"),
    "fractions": (Y / 2, "got 0.5 in row 1"),
    "NaN": (np.where(Y == 1, np.nan, Y), "got nan in row 1"),
    "text": (Y.astype(str), "encode"),
    "objects": (Y.astype(object), "encode"),
    "too few": (Y[:-1], "shape"),
    "a table": (Y[:, None], "shape"),
}


@pytest.mark.parametrize(("y", "match"), BAD_LABELS.values(), ids=BAD_LABELS.keys())
def test_bad_labels(y, match):
    with pytest.raises((TypeError, ValueError), match=f"y: .*{match}"):
        Multinomial(np.random.default_rng(0).normal(size=(12, 2)), y)


# the search


def by_refits(f, sizes):
    """Forward selection in which every candidate is refitted."""
    x, values = f.minimize([]), []
    for _ in sizes:
        new = np.flatnonzero(f.features.outside(x.support))
        x = min((f.minimize([*x.support, i], x) for i in new), key=lambda x: x.value)
        values.append(x.value)
    return np.array(values)


@pytest.mark.parametrize("seed", range(4))
def test_a_path_is_as_good_as_forward_selection_by_refits(seed):
    p = random_problem(seed, "multinomial", "equicorrelated", fit_intercept=True)
    f = objective_of(p)
    sizes = range(1, p.n)
    found = np.array([found.value for found in lz.path(f, sizes).values()])
    assert (found <= by_refits(f, sizes) * (1 + 1e-9)).all()


def test_the_best_supports_of_all_sizes_are_found():
    X, y = classes(10, n=6, planted=(1, 4, 5))
    f = Multinomial(X, y, fit_intercept=True)
    for s, found in lz.path(f, range(1, 7)).items():
        best = min(f.minimize(S).value for S in combinations(range(6), s))
        assert_allclose(found.value, best, rtol=1e-9)


def test_letters(data_folder):
    """26 classes: a path is as good as forward selection by refits, and better than OMP."""
    pandas = pytest.importorskip("pandas", reason="Parquet files need pandas")
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    frame = pandas.read_parquet(data_folder / "letter.parquet").iloc[::20]
    y = np.unique(frame["target"], return_inverse=True)[1]
    f = Multinomial(frame.drop(columns="target").to_numpy(float), y, fit_intercept=True)
    sizes = range(1, 7)
    found = np.array([found.value for found in lz.path(f, sizes).values()])
    assert (found <= by_refits(f, sizes) * (1 + 1e-9)).all()
    greedy = np.array([found.value for found in lz.path(f, sizes, "omp").values()])
    assert (found <= greedy * (1 + 1e-9)).all()


def test_a_literal_problem_has_the_same_values():
    p = random_problem(1, "multinomial", weighted=True, fit_intercept=True, forced=(0,), ridge=0.2)
    f = objective_of(p)
    for S in ([], [1], [2, 3, 5]):
        model, fit = f.refit(f.minimize(S)), p.fit(S)
        assert_allclose(model.value, fit.value, rtol=1e-10)
        assert_allclose(model.coef, fit.x[model.features], atol=1e-8)
        assert_allclose(model.intercept, fit.intercept, atol=1e-8)
    assert isinstance(p, Problem)
