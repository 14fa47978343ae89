"""One contract, kept by every objective; the literal problem of each case is the truth."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import block_diag, helmert

from ellzero import LeastSquares, Objective, Quadratic, Statistics, from_callables, from_jax
from ellzero.core import Features, Move
from ellzero.linalg import solve_each
from ellzero.objectives.minimisers import lower_bound, minimize_each
from ellzero.objectives.moments.held import unit_moments
from ellzero.supports import dense
from helpers import hessian_of, largest_eigenvalue, objective_of
from reference import Problem, random_problem

PLAIN = {}
ALL = {"weighted": True, "fit_intercept": True, "forced": (1, 4), "ridge": 0.3}


def from_statistics(p):
    stats = Statistics.from_arrays(p.X, p.y, p.sample_weight)
    return LeastSquares.from_statistics(
        stats, fit_intercept=p.fit_intercept, forced=sorted(p.forced), ridge=p.ridge
    )


def from_rows(p):
    return objective_of(p).exact()


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


DATA_FORMS = ("dense", "csr", "csc", "float32", "on demand")
CASES = [
    *(
        ("squares", form, options)
        for form in (*DATA_FORMS, from_statistics)
        for options in (PLAIN, ALL)
    ),
    *(
        (loss, form, options)
        for loss in ("logistic", "multinomial")
        for form in DATA_FORMS
        for options in (PLAIN, ALL)
    ),
    *(("squares", form, PLAIN) for form in (quadratic, callables)),
    ("squares", from_rows, PLAIN),
    ("squares", from_rows, {**ALL, "ridge": 0.0}),
    *(("logistic", form, PLAIN) for form in (callables, callables_with_hessian, jax)),
]


def is_closed_form(case):
    loss, form, _ = case
    return loss == "squares" and form not in (callables, from_rows)


def has_hessian(case):
    return case[1] not in (callables, from_rows)


def holds_gram(case):
    return is_closed_form(case) and case[1] != "on demand"


def takes_ridge(case):
    return case[1] is not from_rows


def reports(case):
    """Rows stand for a least squares objective, which reports by itself."""
    return case[1] is not from_rows


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

    @property
    def basis(self):
        """For each coordinate of a feature, what it adds to the numbers that the truth knows."""
        classes = self.truth.zero.shape[1:]
        return helmert(*classes) if classes else np.ones((1, 1))

    def coordinates(self, x):
        """The coordinates of what the truth calls x."""
        return (x.reshape(self.truth.n, -1) @ self.basis.T).ravel()

    def natural(self, v):
        """What the truth calls the point with these coordinates."""
        return (v.reshape(self.truth.n, -1) @ self.basis).reshape(self.truth.zero.shape)

    def close(self, a, b, tol=None):
        assert_allclose(a, b, rtol=0, atol=self.scale * (tol or self.tol))

    def points(self):
        """From dense to sparse, as the truth knows them."""
        free = np.array(self.truth.outside())
        for k in np.linspace(len(free), 1, 4).astype(int):
            x = self.truth.zero.copy()
            S = self.rng.choice(free, k, replace=False)
            x[S] = self.rng.normal(size=x[S].shape)
            yield self.natural(self.coordinates(x))

    def supports(self, *sizes):
        for k in sizes:
            yield np.sort(self.rng.choice(self.truth.outside(), k, replace=False))

    def ridges(self):
        return self.rng.uniform(0, 3, self.truth.n)

    def hessian(self, x):
        H, B = hessian_of(self.truth, x), block_diag(*[self.basis] * self.truth.n)
        return B @ H @ B.T


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
    if form == "on demand":
        request.getfixturevalue("on_demand")
        form = "dense"
    return Case(
        f=objective_of(problem, form) if isinstance(form, str) else form(problem),
        truth=problem,
        tol=1e-7 if form is callables else 1e-9,
        closed_form=is_closed_form(request.param),
        rng=rng,
    )


# value and gradient


def test_value_is_the_literal_one(case):
    for x in case.points():
        case.close(case.f.value(case.coordinates(x)), case.truth.profile(x).value)
        at = case.f.at(case.coordinates(x))
        case.close(at.value, case.f.value(at))
        assert not at.minimizer


def test_forced_coefficients_of_x_do_not_matter(case):
    for x in case.points():
        other = x.copy()
        other[sorted(case.truth.forced)] = 7.0
        a, b = case.coordinates(other), case.coordinates(x)
        assert case.f.value(a) == case.f.value(b)
        assert_allclose(case.f.gradient(a), case.f.gradient(b))


def test_gradient_is_the_slope_of_value(case):
    h = 1e-5
    for x in map(case.coordinates, case.points()):
        steps = h * np.eye(len(x))
        slopes = [(case.f.value(x + e) - case.f.value(x - e)) / (2 * h) for e in steps]
        assert_allclose(case.f.gradient(x), slopes, rtol=1e-6, atol=1e-6 * case.scale)


def test_gradient_is_the_literal_one(case):
    for x in case.points():
        fit = case.truth.profile(x)
        g = case.truth.gradient(fit.x, fit.intercept)
        found = case.natural(case.f.gradient(case.coordinates(x)))
        case.close(found, g)
        assert not found[sorted(case.truth.forced)].any()


def test_is_convex_along_segments(case):
    f = case.f
    for x, z in zip(case.points(), case.points(), strict=True):
        x, z = case.coordinates(x), case.coordinates(z)
        case.close(min(f.value(z) - f.value(x) - f.gradient(x) @ (z - x), 0), 0, 1e-12)
        for t in (0.1, 0.5, 0.9):
            chord = (1 - t) * f.value(x) + t * f.value(z)
            assert f.value((1 - t) * x + t * z) <= chord + 1e-12 * case.scale


# minima


def test_minimize_leaves_no_slope_on_the_support(case):
    for S in case.supports(0, 1, 2, 4):
        cold = case.f.minimize(S)
        warm = case.f.minimize(S, case.f.at(case.coordinates(next(case.points()))))
        for x in (cold, warm):
            assert x.support.tolist() == S.tolist()
            assert x.minimizer
            T = case.f.features.coordinates(S)
            case.close(case.f.gradient(x)[T], 0, 10 * case.tol)
            case.close(case.f.gradient(x.x)[T], 0, 10 * case.tol)
            case.close(x.value, case.truth.fit(S).value)
            case.close(x.value, case.f.value(x.x))


def test_minimize_does_not_depend_on_the_order_of_the_support(case):
    (S,) = case.supports(4)
    assert case.f.minimize(S[::-1]).support.tolist() == S.tolist()
    case.close(case.f.minimize(S[::-1]).value, case.f.minimize(S).value, 1e-14)


def test_minimize_that_stops_early_is_never_below_the_minimum(case):
    for S in case.supports(2, 4):
        start, minimum = case.f.minimize(S[:1]), case.truth.fit(S).value
        for below in (0.5 * minimum, 0.99 * minimum, 1.01 * minimum):
            found = case.f.minimize(S, start, below)
            assert found.value >= minimum - case.tol * case.scale
            if below > minimum:
                case.close(found.value, minimum)


@only(takes_ridge)
def test_ridged_adds_the_term_to_value_and_gradient(case):
    d = case.ridges()
    g = case.f.ridged(d)
    d[sorted(case.truth.forced)] = 0.0
    for x in map(case.coordinates, case.points()):
        each = np.repeat(d, case.f.features.sizes)
        case.close(g.value(x), case.f.value(x) + 0.5 * np.sum(each * x**2))
        case.close(g.gradient(x), case.f.gradient(x) + each * x)


@only(takes_ridge)
def test_ridged_minimises_with_the_term_and_leaves_f_alone(case):
    d = case.ridges()
    for S in case.supports(1, 3):
        before = case.f.minimize(S).value
        case.close(case.f.ridged(d).minimize(S).value, case.truth.fit(S, extra_ridge=d).value)
        twice = case.f.ridged(d / 2).ridged(d / 2)
        case.close(twice.minimize(S).value, case.truth.fit(S, extra_ridge=d).value)
        assert case.f.minimize(S).value == before


@only(takes_ridge)
def test_ridged_takes_one_number_for_all(case):
    (S,) = case.supports(3)
    one, each = case.f.ridged(0.7), case.f.ridged(np.full(case.truth.n, 0.7))
    assert one.minimize(S).value == each.minimize(S).value


@only(takes_ridge)
def test_many_at_once_are_as_one_by_one(case):
    f, supports = case.f, list(case.supports(3, 1, 3, 2, 3))
    numbers = [[0.0, 0.0, 0.0], [0.7], [0.1, 0.2, 0.3], [0.0, 1.0], [0.7, 0.0, 0.7]]
    found = minimize_each(f, supports, [np.array(d) for d in numbers])
    for S, ridge, x in zip(supports, numbers, found, strict=True):
        d = np.zeros(case.truth.n)
        d[S] = ridge
        assert x.support.tolist() == S.tolist()
        case.close(x.value, case.truth.fit(S, extra_ridge=d).value)
        case.close(x.value, f.ridged(d).value(x))
    slopes = [f.features.norms(f.gradient(x)) for x in found]
    each = [
        int(np.where(f.features.outside(x.support), g, -1.0).argmax())
        for x, g in zip(found, slopes, strict=True)
    ]
    assert f.steepest(found) == each


def test_many_supports_of_many_sizes_on_wide_data(rng, on_demand):
    f = LeastSquares(rng.standard_normal((40, 60)), rng.standard_normal(40))
    sizes = rng.integers(1, 13, 150)
    supports = [np.sort(rng.choice(60, s, replace=False)) for s in sizes]
    found = minimize_each(f, supports, [np.ones(s) for s in sizes])
    g = f.ridged(1.0)
    for x, i in zip(found, f.steepest(found), strict=True):
        alone = g.minimize(x.support)
        assert_allclose(x.coef, alone.coef, rtol=1e-9)
        assert_allclose(x.value, alone.value, rtol=1e-12)
        slopes = np.where(f.features.outside(x.support), np.abs(f.gradient(alone)), -1.0)
        assert i == slopes.argmax()


def test_a_singular_support_among_many():
    f = Quadratic([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 1.0, 2.0])
    supports = [np.array(S) for S in ([0, 2], [0, 1], [0])]
    found = minimize_each(f, supports, [np.zeros(len(S)) for S in supports])
    assert_allclose(np.concatenate([x.coef for x in found]), [1.0, 2.0, 0.5, 0.5, 1.0])
    indefinite = np.array([np.eye(2), [[1.0, 1.1], [1.1, 1.0]]])
    assert solve_each(indefinite, np.ones((2, 2)))[1].tolist() == [True, False]


def test_where_all_gradients_are_zero_no_forced_feature_is_steepest():
    f = LeastSquares(np.eye(4), np.zeros(4), forced=[0])
    assert f.steepest([f.minimize([1])]) == [2]


def test_lower_bound_is_one(case):
    everything = case.truth.fit(case.truth.outside()).value
    bound = lower_bound(case.f)
    assert np.isfinite(bound)
    assert bound <= everything + 1e-12 * case.scale


# curvature


@only(takes_ridge)
def test_smoothness_bounds_every_block_of_the_hessian(case):
    points, each = [case.truth.zero, *case.points()], len(case.basis)
    d = case.ridges()
    d[sorted(case.truth.forced)] = 0.0
    for x in points[:1] if case.truth.loss == "squares" else points:
        H = case.hessian(x)
        for k in (1, 2, 3, case.truth.n):
            assert case.f.smoothness(k) >= largest_eigenvalue(H, k, each) * (1 - 1e-10)
            ridged = largest_eigenvalue(H + np.diag(d.repeat(each)), k, each)
            assert case.f.ridged(d).smoothness(k) >= ridged * (1 - 1e-10)


@only(holds_gram)
def test_smoothness_of_held_moments_is_exact_up_to_two(case):
    H = hessian_of(case.truth, np.zeros(case.truth.n))
    for k in (1, 2):
        assert_allclose(case.f.smoothness(k), largest_eigenvalue(H, k), rtol=1e-9)


@only(lambda case: not has_hessian(case))
def test_without_second_derivatives_there_is_no_quadratic_model(case):
    assert case.f.quadratic(case.f.minimize([])) is None


@only(has_hessian)
def test_the_quadratic_model_has_value_slope_and_curvature(case):
    (S,) = case.supports(3)
    for x in (case.f.minimize(S), *(case.f.at(case.coordinates(x)) for x in case.points())):
        model = case.f.quadratic(x)
        assert model.features.forced.tolist() == case.f.features.forced.tolist()
        assert model.resolution > 0
        case.close(model.value(x.x), case.f.value(x.x))
        case.close(model.gradient(x.x), case.f.gradient(x.x))
        H = case.hessian(case.natural(x.x))
        for z in map(case.coordinates, case.points()):
            bend = model.gradient(z) - model.gradient(x.x)
            assert_allclose(bend, H @ (z - x.x), rtol=1e-6, atol=1e-8 * case.scale)


# neighbours


def test_insertions(case):
    n = case.truth.n
    for S in case.supports(0, 1, 3):
        near = case.f.neighbourhood(case.f.minimize(S))
        case.close(near.x.value, case.truth.fit(S).value)
        found, free = near.insertions(), case.truth.outside(S)
        true = np.full(n, np.inf)
        true[free] = [case.truth.fit([*S, i]).value for i in free]
        assert np.isinf(np.delete(found, free)).all()
        assert (found >= true - case.tol * case.scale).all()
        case.close(found.min(), true.min())
        assert np.argmin(found) == np.argmin(true)
        if case.closed_form:
            case.close(found[free], true[free])


def test_insertions_below_a_value_are_still_exact(case):
    (S,) = case.supports(2)
    true = min(case.truth.fit([*S, i]).value for i in case.truth.outside(S))
    near = case.f.neighbourhood(case.f.minimize(S))
    case.close(near.insertions(below=true + 0.01 * case.scale).min(), true)
    assert near.insertions(below=0.5 * true).min() >= 0.5 * true


def test_removals(case):
    for S in case.supports(1, 2, 4):
        true = [case.truth.fit(set(S.tolist()) - {j}).value for j in S.tolist()]
        case.close(case.f.neighbourhood(case.f.minimize(S)).removals(), true)


def test_the_best_exchange(case):
    for S in case.supports(1, 3):
        start, free = case.f.minimize(S), case.truth.outside(S)
        move = case.f.neighbourhood(start).best_exchange()
        true = {(j, i): case.truth.fit([*set(S) - {j}, i]).value for i in free for j in S.tolist()}
        (j, i), best = min(true.items(), key=lambda item: item[1])
        if best < start.value - case.tol * case.scale:
            assert (move.leaves, move.enters) == (j, i)
            case.close(move.value, best)
        else:
            assert move.value >= start.value - case.tol * case.scale


def test_moves_lead_to_minimisers(case):
    """Whole moves and half moves, one after the other."""
    (S,) = case.supports(3)
    near, now = case.f.neighbourhood(case.f.minimize(S)), set(S.tolist())
    for _ in range(3):
        i = int(case.rng.choice(case.truth.outside(now)))
        j = int(case.rng.choice(sorted(now)))
        for move in (Move(enters=i), Move(leaves=j), Move(enters=j, leaves=i), Move(i, j)):
            near = near.moved(move)
            now = (now - {move.leaves}) | ({move.enters} - {-1})
            assert set(near.x.support.tolist()) == now
            assert near.x.support.tolist() == sorted(now)
            case.close(near.x.value, case.truth.fit(now).value)
            case.close(near.x.value, case.f.value(near.x))


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_the_neighbourhood_of_a_singular_support(loss):
    """With a feature and its copy in S, one of them can go at no cost."""
    p = random_problem(3, loss)
    twin = Problem(np.hstack([p.X, p.X[:, :1]]), p.y, loss)
    f = objective_of(twin)
    S = [0, 2, p.n]
    assert_allclose(f.minimize(S).value, twin.fit(S).value, rtol=1e-9)
    near = f.neighbourhood(f.minimize(S))
    true = {(j, i): twin.fit([*set(S) - {j}, i]).value for i in twin.outside(S) for j in S}
    move = near.best_exchange()
    assert move.enters == min(true, key=true.get)[1]
    assert_allclose(move.value, min(true.values()), rtol=1e-9)
    assert_allclose(near.removals(), [twin.fit({*S} - {j}).value for j in S], rtol=1e-9)


# what is reported, and how points are given


@only(reports)
def test_refit_recomputes_a_minimiser_from_the_data(case):
    p = case.truth
    for S in case.supports(0, 2, 4):
        model = case.f.refit(case.f.minimize(S))
        assert model.attained
        x = dense(model.features, model.coef, p.n)
        case.close(model.value, p.value(x, model.intercept))
        case.close(model.value, p.fit(S).value)
        assert model.features.tolist() == [*p.forced, *sorted(S.tolist())]
        assert p.fit_intercept or not np.any(model.intercept)


@only(reports)
def test_refit_leaves_a_point_that_is_no_minimiser_where_it_is(case):
    free = case.truth.outside()
    for x in case.points():
        model = case.f.refit(case.f.at(case.coordinates(x)))
        found = dense(model.features, model.coef, case.truth.n)
        assert_allclose(found[free], x[free], rtol=1e-12, atol=1e-14)
        case.close(model.value, case.truth.value(found, model.intercept))
        case.close(model.value, case.truth.profile(x).value)


def test_what_may_enter(case):
    (S,) = case.supports(3)
    features = case.f.features
    assert np.flatnonzero(features.outside(S)).tolist() == case.truth.outside(S)
    assert features.choosable.tolist() == case.truth.outside()
    assert len(features) == case.truth.n


def test_wrong_number_of_coefficients(case):
    with pytest.raises(ValueError, match="x: expected"):
        case.f.value(np.zeros(case.f.features.n_coordinates + 1))
    with pytest.raises(ValueError, match="x: expected"):
        case.f.value(np.zeros((case.truth.n, 7)))


@only(is_closed_form)
def test_least_squares_form(case):
    zero = np.zeros(case.truth.n)
    for x in case.points():
        for S in (np.arange(case.truth.n), np.flatnonzero(x)):
            A, t = case.f.least_squares_form(S)
            gained = 0.5 * (np.sum((A @ x[S] - t) ** 2) - np.sum(t**2))
            case.close(gained, case.f.value(x) - case.f.value(zero))


# features that own blocks of unequal sizes


@pytest.fixture(params=[(1, 1, 1, 1, 1, 1), (2, 1, 3, 1, 2, 1), (3, 3, 3), (1, 4, 2)])
def blocks(request, rng):
    """A quadratic, its features, and the same as least squares written down."""
    features = Features(request.param)
    n = features.n_coordinates
    A, t = rng.standard_normal((30, n)), rng.standard_normal(30)
    A[:, 1] += A[:, 0]
    moments, scale, unit = unit_moments(A.T @ A, A.T @ t, 0.5 * float(t @ t))
    ridge = rng.uniform(0, 0.5, len(features))

    def least(S):
        T = features.coordinates(np.array(sorted(S), dtype=np.intp))
        d = np.repeat(ridge, features.sizes)[T]
        whole, target = np.vstack([A[:, T], np.diag(np.sqrt(d))]), np.append(t, np.zeros(len(T)))
        z = np.linalg.lstsq(whole, target, rcond=None)[0] if len(T) else np.empty(0)
        return 0.5 * float(np.sum((whole @ z - target) ** 2))

    return Quadratic.of(moments, features, scale, unit, ridge), least


def test_blocks_have_the_closed_forms_of_single_features(blocks):
    f, least = blocks
    n = len(f.features)
    for S in ([], [0], [0, 2], [1, 2]):
        near = f.neighbourhood(f.minimize(S))
        assert_allclose(near.x.value, least(S))
        free = [i for i in range(n) if i not in S]
        assert_allclose(near.insertions()[free], [least([*S, i]) for i in free])
        assert_allclose(near.removals(), [least({*S} - {j}) for j in S])
        swaps = {(i, j): least({*S, i} - {j}) for i in free for j in S}
        move = near.best_exchange()
        if swaps and min(swaps.values()) < near.x.value:
            assert (move.enters, move.leaves) == min(swaps, key=swaps.get)
            assert_allclose(move.value, min(swaps.values()))
        for i in free:
            assert_allclose(near.moved(Move(enters=i)).x.value, least([*S, i]))


def test_blocks_are_measured_by_their_norms(blocks):
    f, _ = blocks
    x = f.minimize([0, 1, 2])
    parts = np.split(x.x, f.features.starts[1:-1])
    norms = [np.linalg.norm(part) for part in parts]
    assert_allclose(f.features.norms(x.x), norms)
    assert x.smallest == int(np.argmin(norms[:3]))
    slopes = [np.linalg.norm(part) for part in np.split(f.gradient(x), f.features.starts[1:-1])]
    if len(f.features) > 3:
        assert f.steepest([x]) == [3 + int(np.argmax(slopes[3:]))]
    (found,) = minimize_each(f, [np.array([0, 2])], [np.array([0.3, 0.0])])
    d = np.zeros(len(f.features))
    d[0] = 0.3
    assert_allclose(found.value, f.ridged(d).minimize([0, 2]).value)
    assert_allclose(replace(found, value=np.nan).x, f.ridged(d).minimize([0, 2]).x)
