"""On real data sets, where their folder is at hand (see the fixture `data_folder`)."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale

import ellzero as lz
from ellzero import LeastSquares, Logistic, Statistics
from helpers import METHODS, assert_falls
from reference import Problem


def load(folder, name):
    pandas = pytest.importorskip("pandas", reason="Parquet files need pandas")
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    frame = pandas.read_parquet(folder / f"{name}.parquet")
    return frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)


@pytest.fixture(scope="module")
def housing(data_folder):
    return load(data_folder, "cal_housing")


@pytest.fixture(scope="module")
def riboflavin(data_folder):
    X, y = load(data_folder, "riboflavin")
    return X[:, :1500], y


def best_subset(f, s):
    return min(f.minimize(list(S)).value for S in combinations(range(len(f.features)), s))


@pytest.mark.parametrize(
    ("name", "scaled"),
    [(name, scaled) for name in METHODS for scaled in (False, True) if scaled or name != "iht"],
)
def test_no_method_beats_the_best_subset_of_cal_housing(housing, name, scaled):
    X, y = housing
    f = LeastSquares(scale(X) if scaled else X, y, fit_intercept=True)
    total = f.value(np.zeros(8))
    for s in range(1, 9):
        found = METHODS[name](f, s)
        assert len(found.support) <= s
        assert best_subset(f, s) * (1 - 1e-9) <= found.value < total
        if s == 8 and name not in ("iht", "lasso"):
            assert_allclose(found.value, best_subset(f, 8), rtol=1e-9)


def test_exchange_leaves_no_improving_swap_on_cal_housing(housing):
    X, y = housing
    f = LeastSquares(X, y, fit_intercept=True)
    for s in range(1, 8):
        S = set(lz.exchange(f, s, start="first").support.tolist())
        value = f.minimize(sorted(S)).value
        swaps = [(S | {i}) - {j} for j in S for i in set(range(8)) - S]
        assert value <= min(f.minimize(sorted(T)).value for T in swaps) * (1 + 1e-12)


def test_values_of_cal_housing_are_those_of_a_plain_fit(housing):
    X, y = housing
    found = lz.els(LeastSquares(X, y, fit_intercept=True), 4)
    A = np.column_stack([np.ones(len(y)), X[:, found.support]])
    z, *_ = np.linalg.lstsq(A / np.linalg.norm(A, axis=0), y)
    residual = y - A / np.linalg.norm(A, axis=0) @ z
    assert_allclose(found.value, 0.5 * residual @ residual, rtol=1e-10)


def test_cal_housing_in_chunks_is_cal_housing(housing):
    X, y = housing
    whole = Statistics.from_arrays(X, y)
    total = sum(
        (Statistics.from_arrays(X[k::7], y[k::7]) for k in range(1, 7)),
        start=Statistics.from_arrays(X[::7], y[::7]),
    )
    assert_allclose(total.xx, whole.xx, rtol=1e-10)
    a, b = (LeastSquares.from_statistics(t, fit_intercept=True) for t in (whole, total))
    for s in (2, 5):
        assert lz.exchange(a, s).support.tolist() == lz.exchange(b, s).support.tolist()


@pytest.mark.parametrize("name", ["omp", "ompr", "els", "exchange"])
def test_riboflavin_is_the_same_without_a_gram_matrix(riboflavin, name, request):
    """71 rows, 1500 genes: wide, correlated, and with offsets."""
    X, y = riboflavin
    whole = METHODS[name](LeastSquares(X, y, fit_intercept=True), 8)
    request.getfixturevalue("on_demand")
    made = METHODS[name](LeastSquares(X, y, fit_intercept=True), 8)
    assert made.support.tolist() == whole.support.tolist()
    assert_allclose(made.value, whole.value, rtol=1e-9)
    assert_allclose(
        [step.value for step in made.trace], [step.value for step in whole.trace], rtol=1e-8
    )


def test_riboflavin_arht_is_no_worse_than_omp(riboflavin):
    X, y = riboflavin
    f = LeastSquares(X, y, fit_intercept=True)
    greedy = lz.omp(f, 8).value
    assert lz.arht(f, 8, n_runs=5, random_state=0).value <= greedy * (1 + 1e-12)
    assert lz.exchange(f, 8).value <= greedy * (1 + 1e-12)


def test_all_of_riboflavin_needs_no_gram_matrix(data_folder):
    X, y = load(data_folder, "riboflavin")
    f = LeastSquares(X, y, fit_intercept=True)
    found = lz.exchange(f, 5)
    problem = Problem(X, y, fit_intercept=True)
    assert_allclose(found.value, problem.fit(found.support).value, rtol=1e-9)


def test_colon_tumours_can_be_told_apart_by_few_genes(data_folder):
    """With s large enough the classes are separable: the value goes to 0, and a warning says so."""
    X, y = load(data_folder, "colon")
    f = Logistic(np.log(X), y, fit_intercept=True)
    falls = [lz.omp(f, s).value for s in (1, 2, 3)]
    assert falls == sorted(falls, reverse=True)
    problem = Problem(np.log(X), y, "logistic", fit_intercept=True)
    found = lz.omp(f, 2)
    assert_allclose(found.value, problem.fit(found.support).value, rtol=1e-8)


# data sets that scikit-learn carries


@pytest.mark.parametrize(
    "name", ["cal_housing", "comp_activ_harder", "year_sample10000", "slice_first682", "trim32_500"]
)
def test_the_search_is_never_above_a_method(data_folder, name):
    X, y = load(data_folder, name)
    f = LeastSquares(X, y, fit_intercept=True)
    never_above(f, range(1, min(len(f.features), 15) + 1))


def never_above(f, sizes):
    values = [found.value for found in lz.path(f, sizes).values()]
    assert_falls(values)
    for rival in ("omp", "ompr", "els", "exchange", "lasso"):
        for s, found in lz.path(f, sizes, method=rival).items():
            assert values[s - 1] <= found.value * (1 + 1e-9), (rival, s)


def test_the_search_on_letter_is_never_above_a_method(data_folder):
    pandas = pytest.importorskip("pandas", reason="Parquet files need pandas")
    frame = pandas.read_parquet(data_folder / "letter.parquet")[:2000]
    early = frame.pop("target").astype(str) <= "M"
    f = Logistic(frame, early.to_numpy(float), fit_intercept=True)
    never_above(f, range(1, 17))


def test_the_search_on_cal_housing_is_exact(housing):
    X, y = housing
    f = LeastSquares(X, y, fit_intercept=True)
    for s, found in lz.path(f, range(1, 9)).items():
        assert found.status is lz.Status.OPTIMAL
        assert_allclose(found.value, best_subset(f, s), rtol=1e-9)


def test_diabetes():
    X, y = load_diabetes(return_X_y=True)
    f = LeastSquares(X, y, fit_intercept=True)
    for s in (3, 5):
        found = lz.exchange(f, s)
        assert_allclose(found.value, best_subset(f, s), rtol=1e-9)


def test_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    f = Logistic(scale(X), y, fit_intercept=True)
    problem = Problem(scale(X), y, "logistic", fit_intercept=True)
    greedy, searched = lz.omp(f, 4), lz.exchange(f, 4)
    assert searched.value < greedy.value
    assert_allclose(searched.value, problem.fit(searched.support).value, rtol=1e-8)
