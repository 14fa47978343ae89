"""Generalised linear models, against literal problems, brute force, and other forms of the same."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import ellzero as lz
from ellzero.core import Move
from ellzero.objectives.glm import model as models
from ellzero.objectives.glm import products
from ellzero.objectives.glm.families import LogisticLoss, SoftmaxLoss, SquaredLoss
from ellzero.objectives.glm.glm import GLM
from ellzero.objectives.glm.newton import newton, newton_step
from ellzero.objectives.glm.products import curved_square, weighted_square
from reference import multinomial_curvature, random_problem

ALL = {"weighted": True, "fit_intercept": True, "forced": (1, 4), "ridge": 0.3}
FORMS = {"dense": np.asarray, "csr": sparse.csr_matrix, "float32": np.float32}
CASES = [
    (loss, form, options)
    for loss in ("logistic", "multinomial", "squares")
    for form in FORMS
    for options in ({}, ALL)
]


def name_of(case):
    return f"{case[0]}-{case[1]}-{'all' if case[2] else 'plain'}"


def objective_of(p, form="dense"):
    options = {
        "sample_weight": p.sample_weight,
        "fit_intercept": p.fit_intercept,
        "forced": sorted(p.forced),
        "ridge": p.ridge,
    }
    X = FORMS[form](p.X)
    if p.loss == "squares":
        return GLM(X, p.y, SquaredLoss(), **options)
    return (lz.Logistic if p.loss == "logistic" else lz.Multinomial)(X, p.y, **options)


class Case:
    """An objective, the same function written down literally, and points and supports to try."""

    def __init__(self, loss, form, options, rng):
        self.truth = random_problem(3, loss, "correlated", **options)
        if form == "float32":
            self.truth.X = self.truth.X.astype(np.float32).astype(float)
        self.f, self.rng = objective_of(self.truth, form), rng
        self.scale = self.truth.profile(self.truth.zero).value

    def close(self, a, b, tol=1e-9):
        assert_allclose(a, b, rtol=0, atol=tol * self.scale)

    def points(self):
        """Natural coefficients with rows that sum to zero, from dense to sparse."""
        free = np.array(self.truth.outside())
        for k in np.linspace(len(free), 1, 4).astype(int):
            x = self.truth.zero.copy()
            S = self.rng.choice(free, k, replace=False)
            x[S] = self.rng.normal(size=x[S].shape)
            yield x - (x.mean(axis=1, keepdims=True) if x.ndim > 1 else 0.0)

    def supports(self, *sizes):
        for k in sizes:
            yield np.sort(self.rng.choice(self.truth.outside(), k, replace=False))

    def reduced(self, x):
        return self.f.family.reduced(x).ravel()


@pytest.fixture(params=CASES, ids=name_of)
def case(request, rng):
    return Case(*request.param, rng)


# the contract


def test_values_and_gradients_are_the_literal_ones(case):
    for x in case.points():
        fit = case.truth.profile(x)
        point = case.f.at(x)
        case.close(point.value, fit.value)
        case.close(case.f.value(case.reduced(x)), fit.value)
        g = case.truth.gradient(fit.x, fit.intercept)
        case.close(case.f.gradient(point), case.reduced(g))
        case.close(case.f.gradient(x), case.reduced(g))


def test_a_gradient_is_the_slope_of_values(case):
    x = case.f.at(next(case.points())).x
    steps = 1e-5 * np.eye(len(x))[case.rng.choice(len(x), 4, replace=False)]
    slopes = [(case.f.value(x + e) - case.f.value(x - e)) / 2e-5 for e in steps]
    case.close(steps / 1e-5 @ case.f.gradient(x), slopes, 1e-6)


def test_minimisers_are_the_literal_ones_from_any_start(case):
    for S in case.supports(0, 1, 2, 4):
        cold = case.f.minimize(S[::-1])
        warm = case.f.minimize(S, case.f.at(next(case.points())))
        far = case.f.minimize(S, case.f.at(1e8 * next(case.points())))
        for x in (cold, warm, far):
            assert x.support.tolist() == S.tolist()
            case.close(x.value, case.truth.fit(S).value)
            case.close(x.value, case.f.value(x.x))
            T = case.f.features.coordinates(S)
            case.close(case.f.gradient(x)[T], 0)


def test_a_fit_is_given_up_only_where_it_is_in_vain(case):
    (S,) = case.supports(3)
    start, best = case.f.minimize([]), case.f.minimize(S)
    assert case.f.minimize(S, start, best.value - 0.5 * case.scale).value >= best.value - 1e-9
    case.close(case.f.minimize(S, start, best.value + 1e-3 * case.scale).value, best.value)


def test_ridged_adds_a_term_for_each_feature(case):
    d = case.rng.uniform(0, 3, case.truth.n)
    g = case.f.ridged(d)
    free = np.where(case.f.features.free, d, 0.0)
    for x in case.points():
        case.close(g.value(x), case.f.value(x) + 0.5 * np.sum(free * (x**2).T))
    for S in case.supports(1, 3):
        case.close(g.minimize(S).value, case.truth.fit(S, extra_ridge=d).value)
        case.close(case.f.minimize(S).value, case.truth.fit(S).value)


def test_models_are_of_second_order(case):
    (S,) = case.supports(3)
    for x in (case.f.minimize(S), *map(case.f.at, case.points())):
        model = case.f.quadratic(x)
        assert model.resolution == case.f.resolution
        case.close(model.value(x.x), case.f.value(x.x))
        case.close(model.gradient(x.x), case.f.gradient(x.x))
        own = case.f.ridged(model.ridge - case.f.ridge)  # stiffness of sparse features
        step = (
            1e-4
            * case.rng.normal(size=len(x.x))
            * case.f.features.per_coordinate(case.f.features.free.astype(float))
        )
        bend = own.gradient(x.x + step) - own.gradient(x.x - step)
        curved = model.gradient(x.x + step) - model.gradient(x.x - step)
        assert_allclose(curved, bend, rtol=1e-3, atol=1e-9 * case.scale)


def test_a_model_predicts_intercept_and_forced_coefficients(case):
    (S,) = case.supports(3)
    x = case.f.minimize(S)
    model = case.f.quadratic(x)
    assert_allclose(model.minimize(S).nuisance, x.nuisance, atol=1e-7)
    near = model.minimize(S[:2])
    at = case.f.linear(near)
    penalty = np.diag(case.f.penalty(near.support))
    loss = case.f.rows.loss(near.support)(at.B)[0] + 0.5 * np.sum(at.B * (penalty @ at.B))
    assert loss < 2 * case.f.value(near.x) - 0.99 * near.value + 1e-6 * case.scale


def test_insertions_removals_and_exchanges_are_refits(case):
    for S in case.supports(1, 3):
        near = case.f.neighbourhood(case.f.minimize(S))
        free = case.truth.outside(S)
        true = np.full(case.truth.n, np.inf)
        true[free] = [case.truth.fit([*S, i]).value for i in free]
        found = near.insertions()
        assert (found >= true - 1e-9 * case.scale).all()
        case.close(found.min(), true.min())
        assert np.argmin(found) == np.argmin(true)
        case.close(near.removals(), [case.truth.fit(set(S.tolist()) - {j}).value for j in S])
        swaps = {(i, j): case.truth.fit([*set(S.tolist()) - {j}, i]).value for i in free for j in S}
        best = min(swaps, key=swaps.get)
        move = near.best_exchange()
        if swaps[best] < near.x.value - 1e-9 * case.scale:
            assert (move.enters, move.leaves) == best
            case.close(near.moved(Move(*best)).x.value, swaps[best])
        else:
            assert move.value == np.inf


def test_smoothness_bounds_the_growth_of_gradients(case):
    f = case.f
    for k in (1, 2, 4):
        rho = f.smoothness(k)
        for x in case.points():
            (S,) = case.supports(k)
            step = np.zeros(f.features.n_coordinates)
            T = f.features.coordinates(S)
            step[T] = 0.3 * case.rng.normal(size=len(T))
            start = f.at(x)
            grown = f.value(start.x + step) - start.value - f.gradient(start) @ step
            assert grown <= 0.5 * rho * step @ step * (1 + 1e-9)


def test_bounds_of_removals_are_bounds_and_close(case):
    for S in case.supports(0, 1, 3, 5):
        x = case.f.minimize(S)
        here, without = case.f.removal_bounds(x)
        slack = 1e-11 * case.scale
        assert x.value - slack <= here <= x.value
        true = np.array([case.truth.fit(set(S.tolist()) - {j}).value for j in S.tolist()])
        assert (without <= true + 1e-12 * case.scale).all()
        assert (without >= here).all()
        if len(S):
            asked = np.array([len(S) - 1])
            some = case.f.removal_bounds(x, asked)[1]
            case.close(some[asked], without[asked], 1e-12)
            assert (some[:-1] == here).all()


def test_a_refit_recomputes_a_minimiser_from_the_data(case):
    p = case.truth
    for S in case.supports(0, 2, 4):
        x = case.f.minimize(S)
        model = case.f.refit(x)
        full = p.zero.copy()
        full[model.features] = model.coef
        case.close(model.value, p.value(full, model.intercept))
        case.close(model.value, p.fit(S).value)
        assert model.attained
        assert model.features.tolist() == [*sorted(p.forced), *S.tolist()]
        assert p.fit_intercept or not np.any(model.intercept)
        assert case.f.rounding(x) <= 10 * case.f.resolution
        assert not case.f.reaches_floor(x)


def test_a_refit_leaves_a_point_that_is_no_minimiser_where_it_is(case):
    for x in case.points():
        model = case.f.refit(case.f.at(x))
        full = case.truth.zero.copy()
        full[model.features] = model.coef
        free = case.f.features.free
        assert_allclose(full[free], x[free], atol=1e-12)
        case.close(model.value, case.truth.profile(x).value)


def test_objectives_survive_pickling(case):
    (S,) = case.supports(2)
    assert pickle.loads(pickle.dumps(case.f)).minimize(S).value == case.f.minimize(S).value


def test_points_of_other_shapes_are_refused(case):
    n, K = case.truth.n, case.f.family.n_outputs
    for shape in ((n * K + 1,), (n, 7), (n, K, 2)):
        with pytest.raises(ValueError, match="x: expected"):
            case.f.at(np.zeros(shape))


# bounds under strain


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-7, 1e-9])
def test_bounds_hold_between_near_copies(rng, loss, noise):
    X = rng.standard_normal((120, 6))
    X[:, 1] = X[:, 0] + noise * X[:, 1]
    y = np.digitize(
        X[:, 0] + X[:, 2] + rng.logistic(size=120), [0] if loss == "logistic" else [-1, 1]
    )
    f = (lz.Logistic if loss == "logistic" else lz.Multinomial)(X, y, fit_intercept=True)
    null = f.minimize([]).value
    for S in ([0, 1], [0, 1, 2], [0, 1, 2, 4]):
        x = f.minimize(S)
        here, without = f.removal_bounds(x)
        assert here <= x.value
        true = [f.minimize(np.delete(S, j)).value for j in range(len(S))]
        assert (without <= np.array(true) + 1e-12 * null).all()


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_near_copies_are_told_apart(rng, loss):
    """The difference of two columns, 1e-8 of their length, explains y."""
    X = rng.standard_normal((300, 4))
    hidden = rng.standard_normal(300)
    X[:, 1] = X[:, 0] + 1e-8 * hidden
    y = np.digitize(2 * hidden + rng.logistic(size=300), [0] if loss == "logistic" else [-1, 1])
    K = lz.Logistic if loss == "logistic" else lz.Multinomial
    f, g = K(X, y), K(np.column_stack([X[:, 0], hidden]), y)
    x, truth = f.minimize([0, 1]), g.minimize([0, 1])
    assert_allclose(x.value, truth.value, rtol=1e-5)
    assert f.rounding(x) <= 10 * f.resolution
    assert f.minimize([0]).value > 1.2 * x.value


def test_copies_that_rounding_hides_are_in_doubt(rng):
    X = rng.standard_normal((200, 3))
    X[:, 1] = X[:, 0] * (1 + 1e-13 * rng.standard_normal(200))
    y = X[:, 0] + rng.logistic(size=200) > 0
    f = lz.Logistic(X, y)
    x = f.minimize([0, 1])
    assert f.rounding(x) >= 0.99 * x.value
    assert f.rounding(f.minimize([0, 2])) <= 10 * f.resolution


# where no minimiser exists


@pytest.mark.parametrize("K", [lz.Logistic, lz.Multinomial])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_separable_classes_have_no_minimiser(rng, K, fit_intercept):
    X = rng.standard_normal((80, 4))
    y = (X[:, 1] > 0).astype(int)
    f = K(X, y, fit_intercept=fit_intercept)
    x = f.minimize([1, 2])
    assert 0 <= x.value < 1e-6
    assert not f.refit(x).attained
    assert f.reaches_floor(x)
    g = f.ridged(0.1)
    assert g.refit(g.minimize([1, 2])).attained
    assert not g.reaches_floor(g.minimize([1, 2]))
    y[:10] = 1 - y[:10]
    h = K(X, y, fit_intercept=fit_intercept)
    assert h.refit(h.minimize([1, 2])).attained


def test_quasi_separable_classes_have_no_minimiser():
    X = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.5], [1.0, 0.2], [2.0, -0.3]])
    y = np.array([0, 1, 1, 1, 1])
    f = lz.Logistic(X, y)
    x = f.minimize([0, 1])
    assert x.value > 0.1
    assert not f.refit(x).attained
    assert f.refit(f.minimize([1])).attained


def test_a_class_without_weight(rng):
    X, y = rng.standard_normal((150, 5)), np.arange(150) % 3
    f = lz.Multinomial(X, y, sample_weight=(y < 2).astype(float), fit_intercept=True)
    two = lz.Logistic(X[y < 2], y[y < 2], fit_intercept=True)
    x = f.minimize([1, 3])
    assert_allclose(x.value, two.minimize([1, 3]).value, rtol=1e-6)
    assert not f.refit(x).attained
    assert np.isfinite(f.neighbourhood(x).insertions()[[0, 2, 4]]).all()


# extremes


@pytest.mark.parametrize("K", [lz.Logistic, lz.Multinomial])
def test_units_of_columns_do_not_matter(rng, K):
    X, y = rng.standard_normal((100, 7)), np.arange(100) % 2
    units = 10.0 ** np.arange(-150, 151, 50)
    f, g = K(X, y, fit_intercept=True), K(X * units, y, fit_intercept=True)
    x, z = f.minimize([0, 3, 6]), g.minimize([0, 3, 6])
    assert_allclose(z.value, x.value, rtol=1e-12)
    assert_allclose(z.coef * units[[0, 3, 6]], x.coef, rtol=1e-8)
    a, b = f.neighbourhood(x), g.neighbourhood(z)
    assert_allclose(b.insertions(), a.insertions(), rtol=1e-10)
    assert_allclose(g.removal_bounds(z)[1], f.removal_bounds(x)[1], rtol=1e-10)


@pytest.mark.parametrize("K", [lz.Logistic, lz.Multinomial])
def test_nothing_overflows(rng, K):
    X, y = rng.standard_normal((100, 5)), np.arange(100) % 2
    f = K(1e8 * X, y)
    x = 1e8 * np.arange(5.0)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.isfinite(f.value(x))
        assert np.isfinite(f.gradient(x)).all()
        assert np.isfinite(f.quadratic(f.at(x)).value(x))
        found = f.minimize([0, 1], f.at(x))  # all losses are saturated there
    assert_allclose(found.value, K(X, y).minimize([0, 1]).value, rtol=1e-12)


@pytest.mark.parametrize("K", [lz.Logistic, lz.Multinomial])
def test_columns_that_say_nothing(rng, K):
    X, y = rng.standard_normal((100, 5)), np.arange(100) % 2
    X[:, 1], X[:, 2], X[:, 3] = 0.0, 7.0, X[:, 0]
    f = K(X, y, fit_intercept=True)
    x = f.minimize([0, 1, 2, 3])
    assert_allclose(x.value, f.minimize([0]).value, rtol=1e-13)
    assert_allclose(f.neighbourhood(x).removals(), x.value, rtol=1e-9)
    assert f.refit(x).attained
    g = K(X, y, fit_intercept=True, forced=[0, 3])
    assert_allclose(g.minimize([]).value, x.value, rtol=1e-13)


# wide data


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("options", [{}, ALL])
def test_models_on_demand_are_those_that_are_held(rng, monkeypatch, form, options):
    case = Case("logistic", form, options, rng)
    (S,) = case.supports(2)
    x = case.f.minimize(S)
    held = case.f.quadratic(x)
    monkeypatch.setattr(models, "LARGEST_MODEL", 0)
    monkeypatch.setattr(models, "LARGEST_SPARSE_MODEL", 0)
    made = case.f.quadratic(x)
    assert type(made.moments) is not type(held.moments)
    a, b = held.neighbourhood(x), made.neighbourhood(x)
    assert_allclose(b.insertions(), a.insertions(), rtol=1e-10)
    assert b.best_exchange()[:2] == a.best_exchange()[:2]
    near, other = held.minimize(S[:1]), made.minimize(S[:1])
    assert_allclose(other.coef, near.coef, rtol=1e-8)
    assert_allclose(other.nuisance, near.nuisance, rtol=1e-8, atol=1e-10)


def test_smoothness_on_demand_is_a_bound(rng, monkeypatch):
    case = Case("logistic", "dense", ALL, rng)
    exact = [case.f.smoothness(k) for k in (1, 2, 3)]
    monkeypatch.setattr("ellzero.objectives.glm.glm.LARGEST_BOUND", 0)
    found = [case.f.smoothness(k) for k in (1, 2, 3)]
    assert_allclose(found[0], exact[0], rtol=1e-10)
    assert (np.array(found) >= np.array(exact) * (1 - 1e-10)).all()


def test_a_model_of_some_features_has_the_values_of_the_whole(rng, monkeypatch):
    X = rng.standard_normal((200, 20))
    y = np.digitize(X[:, 2] + X[:, 9] + X[:, 11] + rng.logistic(size=200), [-1, 0, 1])
    f = lz.Multinomial(X, y, fit_intercept=True, forced=[0])
    x = f.minimize([2, 9])
    whole = f.quadratic(x)
    monkeypatch.setattr(models, "MOST_COORDINATES", 24)
    part = f.quadratic(x)
    a, b = whole.neighbourhood(x).insertions(), part.neighbourhood(x).insertions()
    told = b < x.value - f.resolution
    assert told.sum() == 6
    assert_allclose(b[told], a[told], rtol=1e-10)
    assert np.argmin(a) == np.argmin(b) == 11
    assert_allclose(part.value(x), x.value, rtol=1e-12)
    assert_allclose(part.gradient(x)[f.features.coordinates(x.support)], 0, atol=1e-8)
    near = part.minimize([2, 3, 11])
    assert np.isfinite(near.coef).all()
    assert np.isfinite(near.nuisance).all()
    assert f.neighbourhood(x).best_exchange().enters == 11


# two classes and several


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_two_classes_are_logistic_with_half_the_ridge(rng, ridge):
    """x is (−β/2, β/2) for the β of `Logistic`: ½ ridge ‖x‖² is ½ (ridge/2) β²."""
    X = rng.standard_normal((100, 6))
    y = X[:, 1] + rng.logistic(size=100) > 0
    options = {"fit_intercept": True, "forced": [3]}
    f, g = (
        lz.Multinomial(X, y, ridge=ridge, **options),
        lz.Logistic(X, y, ridge=ridge / 2, **options),
    )
    two, one = f.refit(f.minimize([1, 4])), g.refit(g.minimize([1, 4]))
    assert_allclose(two.value, one.value, rtol=1e-10)
    assert_allclose(two.coef, np.outer(one.coef, [-0.5, 0.5]), atol=1e-8)
    assert_allclose(two.intercept, one.intercept * np.array([-0.5, 0.5]), atol=1e-8)
    assert_allclose(f.smoothness(2), 2 * g.smoothness(2), rtol=1e-9)


def test_means_of_rows_do_not_matter(rng):
    X, y = rng.standard_normal((100, 6)), np.arange(100) % 4
    f = lz.Multinomial(X, y, ridge=2.0)
    x = rng.normal(size=(6, 4))
    assert_allclose(f.value(x + np.arange(6.0)[:, None]), f.value(x), rtol=1e-12)
    model = f.refit(f.minimize([1, 4]))
    assert_allclose(model.coef.sum(axis=1), 0, atol=1e-12)
    assert_allclose(np.sum(model.intercept), 0, atol=1e-12)


@pytest.mark.parametrize("method", [lz.omp, lz.ompr, lz.els, lz.exchange])
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_methods_do_not_fall_below_the_best_subset(method, loss):
    for seed in range(3):
        p = random_problem(seed, loss, fit_intercept=True)
        f = objective_of(p)
        best = min(f.minimize(S).value for S in combinations(range(p.n), 2))
        found = method(f, 2)
        assert found.value >= best * (1 - 1e-10)
        assert found.x.shape == (p.n, *p.row)


# losses, sums and Newton's method


LOSSES = {
    "logistic": (LogisticLoss(), lambda rng: rng.integers(0, 2, 40)),
    "softmax": (SoftmaxLoss(4), lambda rng: rng.integers(0, 4, 40)),
    "squared": (SquaredLoss(), lambda rng: rng.standard_normal(40)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_of_losses(rng, loss):
    family, draw = LOSSES[loss]
    y = family.target(draw(rng).astype(float))
    eta = rng.standard_normal((40, family.n_outputs))
    _, slopes, second = family.taylor(eta, y)
    D = np.einsum("kr,rab->kab", second(), family.forms)
    for a, e in enumerate(1e-5 * np.eye(family.n_outputs)):
        up, down = family.taylor(eta + e, y), family.taylor(eta - e, y)
        assert_allclose(slopes[:, a], (up.value - down.value) / 2e-5, atol=1e-8)
        assert_allclose(D[:, a], (up.slopes - down.slopes) / 2e-5, atol=1e-8)
    assert (np.linalg.eigvalsh(D) <= family.curvature + 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_at_least_what_its_dual_says(rng, loss):
    """ℓ(η) ≥ q·η − ℓ*(q), with equality where q is the slope at η."""
    family, draw = LOSSES[loss]
    y = family.target(draw(rng).astype(float))
    eta = rng.standard_normal((40, family.n_outputs))
    value, slopes, second = family.taylor(eta, y)
    moves = 0.3 * rng.standard_normal((40, 3, family.n_outputs))
    moves[:, 0] = 0.0
    D = np.einsum("kr,rab->kab", second(), family.forms)
    q = slopes[:, None] + np.einsum("kab,kpb->kpa", D, moves)
    conjugate = family.dual(eta, y, moves)
    assert_allclose(value, (q[:, 0] * eta).sum(axis=1) - conjugate[:, 0], atol=1e-12)
    other = rng.standard_normal((40, family.n_outputs))
    least = np.einsum("kpa,ka->kp", q, other) - conjugate
    assert (family.taylor(other, y).value[:, None] >= least - 1e-12).all()


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_saturated_losses_keep_their_digits(loss):
    family = LOSSES[loss][0]
    y = family.target(np.array([1.0, 1.0]))
    x = np.zeros((2, 4)) if loss == "softmax" else np.zeros(2)
    if loss == "softmax":
        x[:, 1] = [50.0, 500.0]
    else:
        x[:] = [50.0, 500.0]
    value, slopes, second = family.taylor(family.reduced(x), y)
    others = 3 if loss == "softmax" else 1
    assert_allclose(value, others * np.exp([-50.0, -500.0]), rtol=1e-10)
    lengths = np.sqrt(others * (others + 1)) if loss == "softmax" else 1.0
    unit = np.exp([[-50.0], [-500.0]])  # squares of slopes would vanish
    assert_allclose(np.linalg.norm(slopes / unit, axis=1), lengths, rtol=1e-10)
    assert (np.trace(np.einsum("kr,rab->kab", second(), family.forms), axis1=1, axis2=2) > 0).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 5, 36])
def test_weighted_squares(rng, monkeypatch, n, order, threads):
    monkeypatch.setattr(products, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(products, "SHARED_FROM", 1)
    A, weight = np.array(rng.standard_normal((1003, n)), order=order), rng.random(1003)
    weight[::5] = 0.0
    expected = A.T @ (weight[:, None] * A)
    assert_allclose(weighted_square(A, weight, threads), expected, atol=1e-11)
    assert_allclose(weighted_square(sparse.csr_matrix(A), weight), expected, atol=1e-11)


@pytest.mark.parametrize(("n", "C"), [(1, 5), (2, 7), (6, 3), (4, 2)])
def test_curved_squares(rng, n, C):
    """For few columns of many classes, and the other way round."""
    A, t, w = rng.standard_normal((60, n)), rng.standard_normal((60, C)), rng.random(60)
    family = SoftmaxLoss(C)
    y = family.target(np.zeros(60))
    D = w[:, None] * family.taylor(family.reduced(t), y).second()
    basis = np.kron(np.eye(n), family.basis)
    expected = basis @ multinomial_curvature(t, w, A, A) @ basis.T
    assert_allclose(curved_square(A, D, family.forms), expected, atol=1e-12)


def test_newton_minimises_and_tells_of_escapes(rng):
    A = rng.standard_normal((50, 5))

    def look(u):
        t = A @ u

        def derivatives():
            return A.T @ np.sinh(t) - 1.0, A.T @ (np.cosh(t)[:, None] * A)

        return float(np.cosh(t).sum() - u.sum()), derivatives

    found = newton(look, np.zeros(5), tol=1e-10)
    assert found.converged
    assert found.pivot > 1e-3
    assert_allclose(A.T @ np.sinh(A @ found.u), np.ones(5), atol=1e-9)
    early = newton(look, np.zeros(5), 1e-10, below=found.value - 1.0)
    assert not early.u.any()


def test_a_damped_step_has_no_pivot():
    step, pivot = newton_step(np.array([1.0, 1.0]), np.ones((2, 2)))
    assert pivot == 0.0
    assert_allclose(step.sum(), -1.0, rtol=1e-6)
