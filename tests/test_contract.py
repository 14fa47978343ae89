"""One contract, kept by every objective; the literal problem of each case is the truth."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ellzero import LeastSquares, Objective, Quadratic, Statistics, from_callables, from_jax
from ellzero.core import Iterates
from ellzero.linalg import solve_each
from ellzero.objectives.glm import GeneralizedLinear
from ellzero.objectives.losses import SquaredLoss
from ellzero.supports import dense, magnitudes
from helpers import hessian_of, largest_eigenvalue, objective_of
from reference import Problem, random_problem

PLAIN = {}
ALL = {"weighted": True, "fit_intercept": True, "forced": (1, 4), "ridge": 0.3}


def from_statistics(p):
    stats = Statistics.from_arrays(p.X, p.y, p.sample_weight)
    return LeastSquares.from_statistics(
        stats, fit_intercept=p.fit_intercept, forced=sorted(p.forced), ridge=p.ridge
    )


def glm(p):
    return GeneralizedLinear(
        p.X,
        p.y,
        SquaredLoss(),
        sample_weight=p.sample_weight,
        fit_intercept=p.fit_intercept,
        forced=sorted(p.forced),
        ridge=p.ridge,
    )


def quadratic(p):
    return Quadratic(p.X.T @ p.X, p.X.T @ p.y, 0.5 * p.y @ p.y)


def callables(p, **options):
    curvature = 1.0 if p.loss == "squares" else 0.25
    return from_callables(
        lambda x: p.value(x, 0.0),
        lambda x: p.gradient(x, 0.0),
        p.n,
        smoothness=curvature * np.linalg.eigvalsh(p.X.T @ p.X)[-1],
        **options,
    )


def callables_with_hessian(p):
    return callables(p, hessian=lambda x: hessian_of(p, x))


def jax(p):
    np_ = pytest.importorskip("jax.numpy", reason="from_jax needs the extra jax")
    sign = 1 - 2 * p.y
    return from_jax(
        lambda x: np_.logaddexp(0.0, sign * (p.X @ x)).sum(),
        p.n,
        smoothness=np.linalg.eigvalsh(p.X.T @ p.X)[-1] / 4,
    )


DATA_FORMS = ("dense", "csr", "csc", "float32", "lazy")
SQUARES = [*DATA_FORMS, from_statistics, glm]
CASES = [
    *(("squares", form, options) for form in SQUARES for options in (PLAIN, ALL)),
    *(
        (loss, form, options)
        for loss in ("logistic", "multinomial")
        for form in DATA_FORMS
        for options in (PLAIN, ALL)
    ),
    *(("squares", form, PLAIN) for form in (quadratic, callables)),
    *(("logistic", form, PLAIN) for form in (callables, callables_with_hessian, jax)),
]


def is_closed_form(case):
    loss, form, _ = case
    return loss == "squares" and form not in (glm, callables)


def has_hessian(case):
    return case[1] is not callables


def holds_gram(case):
    return is_closed_form(case) and case[1] != "lazy"


@dataclass
class Case:
    """An objective, the same function written down literally, and what to expect of it."""

    f: Objective
    truth: Problem
    tol: float  # of a minimum, relative to f(0)
    closed_form: bool
    rng: np.random.Generator

    @property
    def scale(self):
        return self.truth.profile(self.truth.zero).value

    def close(self, a, b, tol=None):
        assert_allclose(a, b, rtol=0, atol=self.scale * (tol or self.tol))

    def points(self):
        """From dense to sparse."""
        free = np.array(self.truth.outside())
        for k in np.linspace(len(free), 1, 4).astype(int):
            x = self.truth.zero.copy()
            S = self.rng.choice(free, k, replace=False)
            x[S] = self.rng.normal(size=x[S].shape)
            yield x

    def supports(self, *sizes):
        for k in sizes:
            yield np.sort(self.rng.choice(self.truth.outside(), k, replace=False))

    def ridges(self):
        return self.rng.uniform(0, 3, self.truth.n)


def name_of(case):
    loss, form, options = case
    form = form if isinstance(form, str) else form.__name__
    return f"{loss}-{form}-{'all' if options else 'plain'}"


def only(condition):
    """The cases that a test can be asked of."""
    cases = [case for case in CASES if condition(case)]
    return pytest.mark.parametrize("case", cases, indirect=True, ids=name_of)


@pytest.fixture(params=CASES, ids=name_of)
def case(request, rng):
    loss, form, options = request.param
    problem = random_problem(3, loss, "correlated", **options)
    if form == "float32":
        problem.X = problem.X.astype(np.float32).astype(float)
    if form == "lazy":
        request.getfixturevalue("lazy_gram")
        form = "dense"
    return Case(
        f=objective_of(problem, form) if isinstance(form, str) else form(problem),
        truth=problem,
        tol=1e-7 if form is callables else 1e-9,
        closed_form=is_closed_form(request.param),
        rng=rng,
    )


def test_value_is_the_literal_one(case):
    for x in case.points():
        case.close(case.f.value(x), case.truth.profile(x).value)
        assert case.f.at(x).value == case.f.value(x)


def test_forced_coefficients_of_x_do_not_matter(case):
    for x in case.points():
        other = x.copy()
        other[sorted(case.truth.forced)] = 7.0
        assert case.f.value(other) == case.f.value(x)
        assert_allclose(case.f.gradient(other), case.f.gradient(x))


def test_gradient_is_the_slope_of_value(case):
    h = 1e-5
    for x in case.points():
        steps = h * np.eye(x.size).reshape(x.size, *x.shape)
        slopes = [(case.f.value(x + e) - case.f.value(x - e)) / (2 * h) for e in steps]
        assert_allclose(case.f.gradient(x).ravel(), slopes, rtol=1e-6, atol=1e-6 * case.scale)


def test_gradient_is_the_literal_one(case):
    for x in case.points():
        fit = case.truth.profile(x)
        g = case.truth.gradient(fit.x, fit.intercept)
        case.close(case.f.gradient(x), g)
        assert not case.f.gradient(x)[sorted(case.truth.forced)].any()


def test_is_convex_along_segments(case):
    f = case.f
    for x, z in zip(case.points(), case.points(), strict=True):
        case.close(min(f.value(z) - f.value(x) - np.vdot(f.gradient(x), z - x), 0), 0, 1e-12)
        for t in (0.1, 0.5, 0.9):
            chord = (1 - t) * f.value(x) + t * f.value(z)
            assert f.value((1 - t) * x + t * z) <= chord + 1e-12 * case.scale


def test_minimize_leaves_no_slope_on_the_support(case):
    for S in case.supports(0, 1, 2, 4):
        cold = case.f.minimize(S)
        warm = case.f.minimize(S, case.f.at(next(case.points())))
        for x in (cold, warm):
            assert x.support.tolist() == S.tolist()
            case.close(case.f.gradient(x)[S], 0, 10 * case.tol)
            case.close(case.f.gradient(x.x)[S], 0, 10 * case.tol)
            case.close(x.value, case.truth.fit(S).value)
            case.close(x.value, case.f.value(x.x))


def test_minimize_does_not_depend_on_the_order_of_the_support(case):
    (S,) = case.supports(4)
    assert case.f.minimize(S[::-1]).support.tolist() == S.tolist()
    case.close(case.f.minimize(S[::-1]).value, case.f.minimize(S).value, 1e-14)


def test_ridged_adds_the_term_to_value_and_gradient(case):
    d = case.ridges()
    g = case.f.ridged(d)
    d[sorted(case.truth.forced)] = 0.0
    for x in case.points():
        case.close(g.value(x), case.f.value(x) + 0.5 * np.sum(d * (x**2).T))
        case.close(g.gradient(x), case.f.gradient(x) + (d * x.T).T)


def test_ridged_minimises_with_the_term_and_leaves_f_alone(case):
    d = case.ridges()
    for S in case.supports(1, 3):
        before = case.f.minimize(S).value
        case.close(case.f.ridged(d).minimize(S).value, case.truth.fit(S, extra_ridge=d).value)
        twice = case.f.ridged(d / 2).ridged(d / 2)
        case.close(twice.minimize(S).value, case.truth.fit(S, extra_ridge=d).value)
        assert case.f.minimize(S).value == before


def test_many_at_once_are_as_one_by_one(case):
    f, supports = case.f, np.full((5, 4), -1)
    for row, S in zip(supports, case.supports(3, 1, 3, 2, 3), strict=True):
        row[: len(S)] = S
    ridges = np.array([[0.0, 0.0, 0.0], [0.7, 0.0, 0.7], [0.1, 0.2, 0.3], [0.0, 1.0, 1.0]])
    ridges = np.pad(ridges[[0, 1, 2, 3, 1]], [(0, 0), (0, 1)], constant_values=9.0)
    some = f.minimize_each(supports, 0 * ridges, iterates(f, supports))
    found = f.minimize_each(supports, ridges, some)
    for row, ridge, x in zip(supports, ridges, found, strict=True):
        S, d = row[row >= 0], np.zeros(f.n_features)
        d[S] = ridge[: len(S)]
        assert x.support.tolist() == S.tolist()
        case.close(x.value, case.truth.fit(S, extra_ridge=d).value)
        case.close(x.value, f.ridged(d).value(x))
    each = [f.largest_outside(x.support, magnitudes(f.gradient(x))) for x in found]
    assert f.at_hand(supports).shape == (5,)
    assert f.steepest(found).tolist() == each
    assert not found.coef[supports < 0].any()


def iterates(f, supports):
    """Where to begin: at zero."""
    coef = np.zeros((*supports.shape, *f.per_feature))
    return Iterates(supports, coef, np.zeros(len(supports)), f.n_features)


def test_many_supports_of_many_sizes_on_wide_data(rng, lazy_gram):
    f = LeastSquares(rng.standard_normal((40, 60)), rng.standard_normal(40))
    supports = np.full((150, 12), -1)
    for row in supports:
        s = rng.integers(1, 13)
        row[:s] = np.sort(rng.choice(60, s, replace=False))
    assert not f.at_hand(supports[:1]).any()
    found = f.minimize_each(supports, np.ones(supports.shape), iterates(f, supports))
    steepest = f.steepest(found)
    assert f.at_hand(supports).all()
    g = f.ridged(1.0)
    for x, i in zip(found, steepest, strict=True):
        alone = g.minimize(x.support)
        assert_allclose(x.coef, alone.coef, rtol=1e-9)
        assert_allclose(x.value, alone.value, rtol=1e-12)
        assert i == f.largest_outside(x.support, magnitudes(f.gradient(alone)))


@pytest.mark.parametrize("held", [[], [3, 5], [3, 5, 8, 13, 21], range(30)])
def test_blocks_of_wide_data_whichever_rows_are_held(rng, lazy_gram, held):
    X = rng.standard_normal((40, 30))
    gram = LeastSquares(X, rng.standard_normal(40)).gram
    for some in np.array_split(np.array(held, dtype=np.intp), 3):
        gram.rows(some)
    unit = X / np.linalg.norm(X, axis=0)
    for supports in ([[3, 5, 9], [5, 8, 9]], [[3, 5, 9], [7, 8, 9]], [[9, 9, 9], [13, 3, 5]]):
        blocks = gram.blocks(np.array(supports))
        for S, block in zip(supports, blocks, strict=True):
            assert_allclose(block, unit[:, S].T @ unit[:, S], atol=1e-14)
    assert len(gram._exact) == len(held)


def test_a_singular_support_among_many():
    f = Quadratic([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 1.0, 2.0])
    supports = np.array([[0, 2, -1], [0, 1, -1], [0, -1, -1]])
    found = f.minimize_each(supports, np.zeros((3, 3)), iterates(f, supports))
    assert_allclose(found.coef, [[1.0, 2.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    indefinite = np.array([np.eye(2), [[1.0, 1.1], [1.1, 1.0]]])
    assert solve_each(indefinite, np.ones((2, 2)))[1].tolist() == [True, False]


def test_where_all_gradients_are_zero_no_forced_feature_is_steepest():
    f = LeastSquares(np.eye(4), np.zeros(4), forced=[0])
    assert f.steepest(iterates(f, np.array([[1]]))) == [2]


def test_ridged_takes_one_number_for_all(case):
    (S,) = case.supports(3)
    one, each = case.f.ridged(0.7), case.f.ridged(np.full(case.truth.n, 0.7))
    assert one.minimize(S).value == each.minimize(S).value


def test_smoothness_bounds_every_block_of_the_hessian(case):
    points, each = [case.truth.zero, *case.points()], int(np.prod(case.truth.row))
    d = case.ridges()
    d[sorted(case.truth.forced)] = 0.0
    for x in points[:1] if case.truth.loss == "squares" else points:
        H = hessian_of(case.truth, x)
        for k in (1, 2, 3, case.truth.n):
            assert case.f.smoothness(k) >= largest_eigenvalue(H, k, each) * (1 - 1e-10)
            ridged = largest_eigenvalue(H + np.diag(d.repeat(each)), k, each)
            assert case.f.ridged(d).smoothness(k) >= ridged * (1 - 1e-10)


@only(holds_gram)
def test_smoothness_of_a_held_gram_matrix_is_exact_up_to_two(case):
    H = hessian_of(case.truth, np.zeros(case.truth.n))
    for k in (1, 2):
        assert_allclose(case.f.smoothness(k), largest_eigenvalue(H, k), rtol=1e-9)


@only(lambda case: not has_hessian(case))
def test_without_a_hessian_there_is_no_quadratic_model(case):
    assert case.f.quadratic_model(case.f.minimize([])) is None


@only(has_hessian)
def test_quadratic_model_has_value_slope_and_curvature(case):
    (S,) = case.supports(3)
    for x in (case.f.minimize(S), *map(case.f.at, case.points())):
        model = case.f.quadratic_model(x)
        assert model.forced == case.f.forced
        case.close(model.value(x.x), case.f.value(x.x))
        case.close(model.gradient(x.x), case.f.gradient(x.x))
        H = hessian_of(case.truth, x.x)
        for z in case.points():
            bend = model.gradient(z) - model.gradient(x.x)
            assert_allclose(bend.ravel(), H @ (z - x.x).ravel(), rtol=1e-6, atol=1e-8 * case.scale)


def test_insertion_values(case):
    n = case.truth.n
    for S in case.supports(0, 1, 3):
        found = case.f.insertion_values(S, case.f.minimize(S))
        free = case.truth.outside(S)
        true = np.full(n, np.inf)
        true[free] = [case.truth.fit([*S, i]).value for i in free]
        assert np.isinf(np.delete(found, free)).all()
        assert (found <= true + case.tol * case.scale).all()
        case.close(found.min(), true.min())
        assert np.argmin(found) == np.argmin(true)
        if case.closed_form:
            case.close(found[free], true[free])


def test_insertion_values_below_a_value_are_still_exact(case):
    (S,) = case.supports(2)
    true = min(case.truth.fit([*S, i]).value for i in case.truth.outside(S))
    case.close(case.f.insertion_values(S, below=true + 0.01 * case.scale).min(), true)
    nothing_below = case.f.insertion_values(S, below=0.5 * true)
    assert nothing_below.min() >= 0.5 * true


def test_removal_values(case):
    for S in case.supports(1, 2, 4):
        true = [case.truth.fit(set(S.tolist()) - {j}).value for j in S.tolist()]
        case.close(case.f.removal_values(S, case.f.minimize(S)), true)


def test_exchange_values(case):
    for S in case.supports(1, 3):
        found = case.f.exchange_values(S, case.f.minimize(S))
        assert found.shape == (len(S), case.truth.n)
        free = case.truth.outside(S)
        true = np.array([[case.truth.fit([*set(S) - {j}, i]).value for i in free] for j in S])
        found = found[:, free]
        assert (found <= true + case.tol * case.scale).all()
        best = np.unravel_index(np.argmin(true), true.shape)
        assert np.unravel_index(np.argmin(found), found.shape) == best
        case.close(found.min(), true.min())
        if case.closed_form:
            case.close(found, true)


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_exchange_values_of_a_singular_support(loss):
    """With a feature and its copy in S, one of them can go at no cost."""
    p = random_problem(3, loss)
    twin = Problem(np.hstack([p.X, p.X[:, :1]]), p.y, loss)
    f = objective_of(twin)
    S = [0, 2, p.n]
    assert_allclose(f.minimize(S).value, twin.fit(S).value, rtol=1e-9)
    free = twin.outside(S)
    found = f.exchange_values(np.array(S), f.minimize(S))[:, free]
    true = np.array([[twin.fit([*set(S) - {j}, i]).value for i in free] for j in S])
    assert np.unravel_index(np.argmin(found), found.shape)[1] == np.argmin(true.min(axis=0))
    assert_allclose(found.min(), true.min(), rtol=1e-9)


@only(lambda case: not is_closed_form(case))
def test_only_a_quadratic_has_a_least_squares_form(case):
    with pytest.raises(NotImplementedError):
        case.f.least_squares_form(np.arange(case.truth.n))


@only(is_closed_form)
def test_least_squares_form(case):
    zero = np.zeros(case.truth.n)
    for x in case.points():
        for S in (np.arange(case.truth.n), np.flatnonzero(x)):
            A, t = case.f.least_squares_form(S)
            gained = 0.5 * (np.sum((A @ x[S] - t) ** 2) - np.sum(t**2))
            case.close(gained, case.f.value(x) - case.f.value(zero))


def test_lower_bound_is_one(case):
    everything = case.truth.fit(case.truth.outside()).value
    bound = case.f.lower_bound()
    assert np.isfinite(bound)
    assert bound <= everything + 1e-12 * case.scale
    assert case.f.ridged(1.0).lower_bound() >= bound


@only(lambda case: holds_gram(case) or not is_closed_form(case))
def test_lower_bound_is_the_minimum_where_that_can_be_had(case):
    everything = case.truth.fit(case.truth.outside()).value
    case.close(case.f.lower_bound(), everything)


@only(has_hessian)
def test_lower_bound_of_the_quadratic_model_is_one(case):
    for x in case.points():
        model = case.f.quadratic_model(case.f.at(10 * x))
        minimum = model.minimize(np.array(case.truth.outside())).value
        assert model.lower_bound() <= minimum + 1e-9 * abs(minimum)


def test_complete_recomputes_a_minimiser_from_the_data(case):
    p = case.truth
    for S in case.supports(0, 2, 4):
        model = case.f.complete(case.f.minimize(S))
        assert model.attained
        x = dense(model.features, model.coef, p.n)
        case.close(model.value, p.value(x, model.intercept))
        case.close(model.value, p.fit(S).value)
        assert model.features.tolist() == [*p.forced, *sorted(S.tolist())]
        assert p.fit_intercept or not np.any(model.intercept)


def test_complete_leaves_a_point_that_is_no_minimiser_where_it_is(case):
    free = case.truth.outside()
    for x in case.points():
        model = case.f.complete(case.f.at(x))
        found = dense(model.features, model.coef, case.truth.n)
        assert_allclose(found[free], x[free], rtol=1e-14)
        case.close(model.value, case.truth.value(found, model.intercept))
        case.close(model.value, case.truth.profile(x).value)


def test_what_may_enter(case):
    (S,) = case.supports(3)
    assert np.flatnonzero(case.f.outside(S)).tolist() == case.truth.outside(S)
    assert case.f.n_choosable == len(case.truth.outside())
    scores = np.arange(case.truth.n)[::-1].astype(float)
    assert case.f.largest_outside(S, scores) == case.truth.outside(S)[0]
    assert case.f.largest_outside(S, 0 * scores) == case.truth.outside(S)[0]


def test_wrong_number_of_coefficients(case):
    with pytest.raises(ValueError, match="x: expected"):
        case.f.value(np.zeros((case.truth.n + 1, *case.truth.row)))
    with pytest.raises(ValueError, match="x: expected"):
        case.f.value(np.zeros((case.truth.n, 7)))
