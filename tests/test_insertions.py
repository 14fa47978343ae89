"""Insertions into one support after the other: updated, and as exact as made anew."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ellzero as lz
from ellzero.linalg import inverse_of
from ellzero.objectives import insertions, products
from ellzero.objectives.insertions import WORN, Insertions
from ellzero.supports import swapped, without


@pytest.fixture(autouse=True)
def small_updates_pay(monkeypatch):
    monkeypatch.setattr(insertions, "WORTH", 1)


@pytest.fixture(params=["dense", "lazy", "long"])
def form(request, monkeypatch):
    if request.param != "dense":
        request.getfixturevalue("lazy_gram")
    if request.param == "long":
        monkeypatch.setattr(insertions, "LONG", 1)


def data(rng, noise=None):
    """Where noise is given, half of the columns are near copies of the others."""
    X = rng.normal(size=(80, 40)) + rng.normal(size=(80, 1))
    if noise is not None:
        X[:, ::2] = X[:, 1::2] + noise * rng.normal(size=(80, 20))
    return X, X[:, :9].sum(axis=1) + rng.normal(size=80)


def walk(f, rng, steps):
    """Supports that differ by a swap, now and then by a removal or an insertion, or altogether."""
    S = f.choosable[:12]
    for k in range(steps):
        yield S
        outside = rng.permutation(np.setdiff1d(f.choosable, S))
        if k % 50 == 49:
            S = outside[:12]
            continue
        leaves, enters = (True, True) if rng.random() < 0.9 else rng.permutation([True, False])
        if leaves and len(S) > 6:
            S = without(S, rng.choice(S))
        if enters and len(S) < 12:
            S = rng.permutation(np.append(S, outside[0]))


@pytest.mark.parametrize(
    "options", [{}, {"ridge": 0.3}, {"ridge": 1e40}, {"forced": [1, 25], "fit_intercept": True}]
)
def test_values_are_the_same_all_along(rng, form, options):
    f = lz.LeastSquares(*data(rng), **options)
    values = f.successive_insertion_values()
    for S in walk(f, rng, 200):
        assert_allclose(values(S), f.insertion_values(S), rtol=1e-12)


@pytest.mark.parametrize("noise", [None, 0.0, 1e-5, 1e-2])
def test_updates_lose_no_more_than_is_allowed(rng, form, noise):
    f = lz.LeastSquares(*data(rng, noise))
    left, updates = Insertions(f.gram, f._penalty, f.c), 0
    for S in walk(f, rng, 200):
        found, true = left(S), Insertions(f.gram, f._penalty, f.c)(S)
        updates += left._lost > 0
        inverse, outside = inverse_of(f._block(S)), f.outside(S)
        lost = WORN + (WORN if inverse is None else np.trace(inverse))
        close = {"rtol": 0, "atol": lost * np.finfo(float).eps}
        assert_allclose(found.value, true.value, **close)
        assert_allclose(found.r[outside], true.r[outside], **close)
        assert_allclose(found.d[outside], true.d[outside], **close)
    assert updates > (150 if noise is None else 20)


def test_a_step_makes_only_the_rows_that_differ(rng, monkeypatch):
    f = lz.LeastSquares(*data(rng))
    made, combined = [], f.gram.combined
    monkeypatch.setattr(f.gram, "combined", lambda S, A: (made.append(len(A)), combined(S, A))[1])
    values = f.successive_insertion_values()
    S = np.arange(10)
    for T in (S, swapped(S, 3, 30), S[::-1], np.arange(11), np.arange(9), np.arange(1, 10), S + 20):
        values(T)
    assert made == [10, 2, 2, 11, 9, 2, 10]


def test_a_swap_asks_for_one_long_row(rng, monkeypatch):
    monkeypatch.setattr(insertions, "LONG", 1)
    f = lz.LeastSquares(*data(rng))
    asked, rows = [], f.gram.rows
    monkeypatch.setattr(f.gram, "rows", lambda S: (asked.append(S.tolist()), rows(S))[1])
    values = f.successive_insertion_values()
    S = np.arange(10)
    for k in range(4):
        values(np.append(S[k:], 20 + np.arange(k)))
    assert [len(T) for T in asked] == [10, 11, 1, 1]
    assert asked[2:] == [[21], [22]]


def test_supports_of_two_runs_do_not_meet(rng):
    f = lz.LeastSquares(*data(rng))
    g = f.ridged(2.0)
    runs = [(h, h.successive_insertion_values()) for h in (f, f, g)]
    for k in range(10):
        for step, (h, values) in enumerate(runs):
            S = np.arange(k, k + 10 + step)
            assert_allclose(values(S), h.insertion_values(S), rtol=1e-12)


@pytest.mark.parametrize("n_combinations", [0, 1, 2, 5, 17])
def test_products_in_parts_are_products(rng, monkeypatch, n_combinations):
    monkeypatch.setattr(products, "SMALL_PRODUCT", 150)
    for k in (3, 80):
        A, rows = rng.normal(size=(n_combinations, k)), rng.normal(size=(k, 41))
        assert_allclose(products.product(A, rows), A @ rows, rtol=1e-12)


def test_els_goes_the_way_of_the_literal_algorithm(rng, form):
    f = lz.LeastSquares(*data(rng, 0.3), fit_intercept=True)
    found = lz.els(f, 12, start=range(20, 32))
    assert len(found.trace) > 8
    for x, then in zip(found.trace, found.trace[1:], strict=False):
        rest = without(x.support, x.smallest)
        values = f.insertion_values(rest)
        values[x.smallest] = np.inf
        assert_array_equal(then.support, np.sort(np.append(rest, np.argmin(values))))
