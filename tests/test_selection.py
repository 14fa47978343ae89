"""`path` and `solve`: one problem at many sizes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import ellzero as lz
import reference
from ellzero import Status
from helpers import METHODS, assert_falls, objective_of
from reference import random_problem

SIZES = range(1, 6)


@pytest.fixture(params=["squares", "logistic"])
def problem(request):
    return random_problem(9, request.param, "equicorrelated", fit_intercept=True, forced=(1,))


@pytest.fixture
def f(problem):
    return objective_of(problem)


def test_a_path_holds_every_size(f, problem):
    path = lz.path(f, [4, 1, 2, 2])
    assert list(path) == [1, 2, 4]
    assert len(path) == 3
    for s, found in path.items():
        assert len(found.support) <= s
        assert 1 not in found.support
        assert_allclose(found.value, problem.fit(found.support).value, rtol=1e-8)
    with pytest.raises(KeyError, match="no solution of size 3"):
        path[3]


def test_values_fall_with_size(f):
    assert_falls([found.value for found in lz.path(f, SIZES).values()])


def test_is_no_worse_than_the_local_searches(f):
    path = lz.path(f, SIZES)
    for s in SIZES:
        for name in ("omp", "ompr"):
            assert path[s].value <= METHODS[name](f, s).value * (1 + 1e-9)


def test_what_is_called_optimal_is(f, problem):
    for s, found in lz.path(f, range(1, 4)).items():
        best = reference.best_subset(problem, s).value
        assert found.value >= best * (1 - 1e-9)
        if found.status is Status.OPTIMAL:
            assert_allclose(found.value, best, rtol=1e-8)


def test_one_size_alone_is_that_size_of_a_path(f):
    path = lz.path(f, SIZES)
    for s in SIZES:
        alone = lz.solve(f, s)
        assert alone.support.tolist() == path[s].support.tolist()
        assert_allclose(alone.value, path[s].value, rtol=1e-12)


def test_same_seed_same_path(f):
    a, b = (lz.path(f, SIZES, random_state=3) for _ in range(2))
    assert repr(a) == repr(b)


@pytest.mark.parametrize("method", ["omp", "ompr", "els", "exchange", "lasso"])
def test_a_method_on_a_path_is_the_method(f, method):
    path = lz.path(f, SIZES, method=method)
    for s in SIZES:
        alone = METHODS[method](f, s)
        assert path[s].support.tolist() == alone.support.tolist()
        assert_allclose(path[s].value, alone.value, rtol=1e-9)
        assert lz.solve(f, s, method=method).support.tolist() == alone.support.tolist()


def test_a_callback_ends_the_search(f):
    seen = []
    path = lz.path(f, SIZES, callback=lambda x: seen.append(x) or len(seen) == 3)
    assert len(seen) == 3
    assert list(path) == list(SIZES)
    assert all(len(found.support) <= s for s, found in path.items())
    assert_falls([found.value for found in path.values()])


def test_repr_and_frame_show_the_path(f):
    pytest.importorskip("pandas")
    path = lz.path(f, [1, 2])
    assert repr(path).startswith("Path of 2 sizes")
    assert len(repr(path).splitlines()) == 4
    names = [f"x{j}" for j in range(len(f.features))]
    frame = path.to_frame(names)
    assert frame["s"].tolist() == [1, 2, 2]
    assert frame["feature"][0] == f"x{path[1].support[0]}"
    assert_allclose(
        frame["coefficient"], [*path[1].x[path[1].support], *path[2].x[path[2].support]]
    )
    for wrong in (names[1:], [*names, "one more"]):
        with pytest.raises(ValueError, match=rf"feature_names: expected {len(names)} names"):
            path.to_frame(wrong)


def test_names_of_a_frame_are_shown(rng):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.normal(size=(30, 3)), columns=["size", "age", "rooms"])
    path = lz.path(lz.LeastSquares(X, 2 * X["age"] + X["rooms"]), [1, 2])
    assert [line.split()[2:] for line in repr(path).splitlines()[2:]] == [["+age"], ["+rooms"]]
    assert path.to_frame()["feature"].tolist() == ["age", "age", "rooms"]


@pytest.mark.parametrize(
    ("sizes", "match"), [([], "sizes: "), ([0], "s: "), ([1, 99], "s: "), ([1.5], "s: ")]
)
def test_bad_sizes(f, sizes, match):
    with pytest.raises((TypeError, ValueError), match=match):
        lz.path(f, sizes)


def test_more_effort_is_never_worse(rng):
    X = rng.normal(size=(80, 40)) + 1.5 * rng.normal(size=(80, 1))
    f = lz.LeastSquares(X, X[:, :8] @ np.tile([1.0, -1.0], 4) + rng.normal(size=80))
    little, much = (lz.path(f, range(1, 11), effort=effort) for effort in (0, 3))
    for s in little:
        assert much[s].value <= little[s].value * (1 + 1e-12)


def test_a_path_reports_what_the_rows_say_even_if_the_moments_cannot():
    """Large offsets and nearly equal columns: the moments alone would lose half the digits."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(200, 1))
    X = common + 1e-3 * rng.normal(size=(200, 5)) + rng.uniform(30, 90, 5)
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.2] + 0.01 * rng.normal(size=200)
    f = lz.LeastSquares(X, y, fit_intercept=True)
    for s, found in lz.path(f, range(1, 6)).items():
        columns = X[:, found.support] - X[:, found.support].mean(0)
        coef, *_ = np.linalg.lstsq(columns, y - y.mean(), rcond=None)
        residual = y - y.mean() - columns @ coef
        np.testing.assert_allclose(
            found.value, 0.5 * residual @ residual, rtol=1e-9, err_msg=str(s)
        )
        np.testing.assert_allclose(found.x[found.support], coef, rtol=1e-8)


def test_a_limit_cuts_the_search_short_and_says_so():
    rng = np.random.default_rng(3)
    X = 0.3 * rng.standard_normal((60, 40)) + rng.standard_normal((60, 1))
    f = lz.LeastSquares(X, X[:, :9] @ rng.standard_normal(9) + rng.standard_normal(60))
    with pytest.warns(ConvergenceWarning, match="auto: the iteration limit.*raise max_iter"):
        short = lz.path(f, range(1, 9), max_iter=3)
    whole = lz.path(f, range(1, 9))
    assert {found.status for found in short.values()} == {Status.MAX_ITER}
    assert_falls([found.value for found in short.values()])
    assert all(short[s].value >= whole[s].value - 1e-9 for s in whole)
    assert any(short[s].value > whole[s].value + 1e-6 for s in whole)
    assert lz.path(f, [8], max_iter=10**6)[8].value == whole[8].value
    with pytest.raises(ValueError, match="max_iter: expected a whole number of at least 0"):
        lz.solve(f, 2, max_iter=-1)


@pytest.mark.filterwarnings("ignore:auto. the iteration limit")
def test_where_rounding_makes_more_features_worse_one_without_effect_is_added():
    """Columns that are equal but for a billionth: one direction more is taken for rounding."""
    rng = np.random.default_rng(0)
    raised = 0
    for _ in range(40):
        X = rng.normal(size=(6, 1)) + 1e-9 * rng.normal(size=(6, 7))
        f = lz.LeastSquares(X, 100 + rng.normal(size=6))
        found = lz.path(f, range(1, 8), max_iter=1)
        values = [solution.value for solution in found.values()]
        assert (np.diff(values) <= f.resolution).all()
        for s, solution in found.items():
            assert len(solution.support) == s
            raised += s > 1 and solution.value == found[s - 1].value
    assert raised
