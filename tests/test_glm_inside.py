"""What the smooth problems inside generalised linear models are solved with."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import ellzero as lz
from ellzero.core import Objective
from ellzero.objectives import products
from ellzero.objectives.glm import GeneralizedLinear
from ellzero.objectives.local_model import local_model
from ellzero.objectives.newton import newton, solver_of, updated
from ellzero.objectives.products import weighted_square


@pytest.fixture
def f(rng):
    X = rng.standard_normal((80, 6))
    return lz.Logistic(X, (X[:, 1] + rng.standard_normal(80) > 0).astype(float), fit_intercept=True)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 5, 36, 37])
def test_weighted_squares(rng, monkeypatch, n, order, threads):
    monkeypatch.setattr(products, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(products, "SMALL_PRODUCT", 5_000)
    monkeypatch.setattr(products, "SHARED_FROM", 1)
    A, weight = np.array(rng.standard_normal((1003, n)), order=order), rng.random(1003)
    weight[::5] = 0.0
    expected = A.T @ (weight[:, None] * A)
    assert_allclose(weighted_square(A, weight, threads), expected, atol=1e-11)
    assert_allclose(weighted_square(sparse.csr_matrix(A), weight), expected, atol=1e-11)
    assert_allclose(weighted_square(A.astype(np.float32), weight, threads), expected, atol=1e-4)
    if threads > 1:
        assert (weighted_square(A, weight, threads) == weighted_square(A, weight)).all()


def test_an_updated_inverse_knows_the_last_step_and_stays_symmetric(rng):
    B = rng.standard_normal((9, 4))
    (solve, _), moved = solver_of(B.T @ B), rng.standard_normal(4)
    turned = moved + 0.1 * rng.standard_normal(4)
    better = updated(solve, moved, turned)
    assert_allclose(better(turned), moved)
    inverse = np.array([better(e) for e in np.eye(4)])
    assert_allclose(inverse, inverse.T)
    assert (np.linalg.eigvalsh(inverse) > 0).all()
    assert updated(solve, moved, -moved) is solve


def test_a_kept_hessian_leads_to_the_minimum(rng):
    A = rng.standard_normal((50, 5))
    hessians = []

    def hessian(u):
        hessians.append(u)
        return A.T @ (np.cosh(A @ u)[:, None] * A)

    found = newton(
        lambda u: float(np.cosh(A @ u).sum() - u.sum()),
        lambda u: A.T @ np.sinh(A @ u) - 1.0,
        hessian,
        np.zeros(5),
        tol=1e-10,
    )
    assert found.converged
    assert_allclose(A.T @ np.sinh(A @ found.u), np.ones(5), atol=1e-9)
    assert len(hessians) == 1


def test_a_fit_is_given_up_at_once_where_the_model_was_about_right(f):
    start, S = f.minimize([1]), np.array([1, 4])
    best, first = f.minimize(S, start), f.value(start)
    assert f.minimize_below(S, start, best.value - 1, expected=first - 0.1) is None
    assert f.minimize_below(S, start, best.value + 1e-3, expected=best.value).value == best.value
    values = []
    value = f._problem.value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f._problem, "value", lambda *a: (values.append(0), value(*a))[1])
        f.minimize_below(S, start, first - 0.2, expected=first - 0.1)
    assert len(values) == 1


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"forced": [0], "ridge": 0.3}])
def test_a_model_in_single_precision_is_nearly_the_same(rng, monkeypatch, options):
    X = rng.standard_normal((300, 40))
    X[:, 7] = 0.0
    y = (X[:, 1] + rng.standard_normal(300) > 0).astype(float)
    f = lz.Logistic(X, y, sample_weight=rng.random(300), **options)
    x = f.minimize([1, 4])
    expected = local_model(f, x)
    monkeypatch.setattr("ellzero.objectives.local_model.SINGLE_FROM", 1)
    found = local_model(f, x)
    S = np.array([1, 4, 9, 20])
    assert found.gram.matrix.tobytes() != expected.gram.matrix.tobytes()
    assert_allclose(found.gram.matrix, expected.gram.matrix, atol=1e-6)
    assert_allclose(found.minimize(S).coef, expected.minimize(S).coef, rtol=1e-5)
    assert_allclose(found.minimize(S).nuisance, expected.minimize(S).nuisance, rtol=1e-5)


@pytest.mark.parametrize("close", ["columns", "to the mean"])
def test_what_single_precision_would_not_tell_apart_is_made_in_double(rng, monkeypatch, close):
    X = rng.standard_normal((300, 40))
    if close == "columns":
        X[:, 5] = X[:, 2] + 1e-4 * X[:, 5]
    else:
        X[:, 5] *= 1e-4
        X[:3, 5] = 1e4  # far from where the losses are curved
    y = (X[:, 1] + rng.standard_normal(300) > 0).astype(float)
    weight = np.ones(300)
    weight[:3] = 1e-12
    f = lz.Logistic(X, y, fit_intercept=True, sample_weight=weight)
    x = f.minimize([1, 4])
    expected = local_model(f, x)
    monkeypatch.setattr("ellzero.objectives.local_model.SINGLE_FROM", 1)
    assert (local_model(f, x).gram.matrix == expected.gram.matrix).all()


def test_a_column_whose_rows_are_saturated_is_not_lost(monkeypatch):
    monkeypatch.setattr("ellzero.objectives.local_model.SINGLE_FROM", 1)
    rng = np.random.default_rng(4)
    X = rng.uniform(-0.01, 0.01, (2000, 48))
    X[:, 1] = 0.0
    y = (X[:, 0] + 1e-3 * rng.standard_normal(2000) > 0).astype(float)
    X[:2, 1] = 1.0
    f = lz.Logistic(X, y)
    coef = np.array([0.0, -300.0])  # their losses are curved by 1e-130, others by 1/4
    x = f.at(np.concatenate([coef, np.zeros(46)]))
    assert local_model(f, x).gram.diagonal[1] == 1.0


def test_the_copy_in_single_precision_is_not_pickled(f):
    size = len(pickle.dumps(f))
    assert f.design.single.dtype == np.float32
    assert len(pickle.dumps(f)) == size
    assert pickle.loads(pickle.dumps(f)).design.single.dtype == np.float32


def test_any_objective_gives_up_at_once_where_the_model_was_about_right(f, monkeypatch):
    start, S = f.minimize([1]), np.array([1, 4])
    first, best = f.value(start), f.minimize(S)
    below = Objective.minimize_below
    found = below(f, S, start, best.value + 1e-3, expected=best.value)
    assert_allclose(found.value, best.value)
    monkeypatch.setattr(type(f), "minimize", None)
    assert below(f, S, start, first - 0.2, expected=first - 0.1) is None


def test_a_minimiser_is_reported_without_being_sought_again(f, monkeypatch):
    x = f.minimize([1, 4])
    again = f.complete(x.noted("as found"))
    sought = []
    minimize = GeneralizedLinear._minimize
    monkeypatch.setattr(
        GeneralizedLinear, "_minimize", lambda *args: sought.append(args) or minimize(*args)
    )
    assert_allclose(f.complete(x).coef, again.coef)
    assert not sought


@pytest.mark.parametrize("other", ["ridge", "data"])
def test_a_minimiser_of_another_f_is_sought_again(f, rng, other):
    x = f.minimize([1, 4])
    if other == "ridge":
        g = f.ridged(5.0)
    else:
        g = lz.Logistic(rng.standard_normal((80, 6)), f.y, fit_intercept=True)
    model, expected = g.complete(x), g.minimize([1, 4])
    assert_allclose(model.coef, expected.coef)
    assert_allclose(model.value, expected.value)
