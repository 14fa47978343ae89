"""ARHT: its promises and its two settings; the theorem itself is in test_theorems.py."""

from math import ceil, log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import ellzero as lz
import reference
from ellzero import LeastSquares, Quadratic, Status
from ellzero.algorithms import states as arht_states
from ellzero.algorithms.arht import Search
from ellzero.algorithms.runs import parted
from ellzero.algorithms.states import States
from ellzero.objectives.lazy_gram import LazyGram
from helpers import assert_falls, at_most, objective_of, supports, values
from reference import random_problem

SETTINGS = ("practical", "theoretical")


@pytest.fixture(params=["squares", "logistic"])
def f(request):
    return objective_of(random_problem(8, request.param, "correlated", fit_intercept=True))


def trace_of(solution):
    return [(*step.support.tolist(), step.note, step.value) for step in solution.trace]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("start", ["omp", "first", [5, 6, 7]])
def test_is_never_worse_than_its_start(f, setting, start):
    found = lz.arht(f, 3, start=start, setting=setting, n_runs=3, random_state=0)
    at_start = lz.ompr(f, 3, start=start, max_iter=None).trace[0]
    assert supports(found)[0] == set(at_start.support.tolist())
    assert found.value <= at_start.value * (1 + 1e-12)
    assert_falls(values(found))
    assert found.status is Status.SEARCH_ENDED


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_good_start_is_kept(f, setting):
    best = lz.exchange(f, 3)
    found = lz.arht(f, 3, start=best, setting=setting, n_runs=3, random_state=0)
    assert found.value <= best.value * (1 + 1e-12)


@pytest.mark.parametrize("method", [lz.arht_core, lz.arht_robust, lz.arht])
def test_same_seed_same_trace(f, method):
    target = () if method is lz.arht else (f.lower_bound(),)
    first, second, other = (
        method(f, 3, *target, start="first", random_state=seed, n_runs=4) for seed in (5, 5, 6)
    )
    assert trace_of(first) == trace_of(second)
    if method is lz.arht_core:
        assert trace_of(first) != trace_of(other)


def test_random_state_may_be_a_generator(f):
    for make in (np.random.default_rng, np.random.RandomState):
        a, b = (
            lz.arht_core(f, 3, f.lower_bound(), start="first", random_state=make(3))
            for _ in range(2)
        )
        assert trace_of(a) == trace_of(b)


def test_without_random_state_it_still_runs(f):
    assert lz.arht(f, 3, n_runs=2).value <= lz.omp(f, 3).value * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_restart_z_is_the_literal_run_with_child_z_of_the_seed(loss):
    """So it hangs neither on the order of restarts nor on what is remembered from others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 25)) + 1.5 * rng.normal(size=(60, 1))
    signal = X[:, :6] @ rng.choice([-1, 1], 6)
    noisy = signal + rng.normal(size=60)
    y = noisy if loss == "squares" else rng.random(60) < 1 / (1 + np.exp(-0.4 * signal))
    problem = reference.Problem(X, y, loss, ridge=0.1)
    f = objective_of(problem)
    S, opt = range(19, 25), f.lower_bound()
    runs = lz.arht_robust(f, 6, opt, start=list(S), random_state=1, n_runs=6).trace
    assert len({x.value for x in runs}) > 2
    for z in reversed(range(6)):
        rng = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(z,)))
        steps = reference.arht_core(problem, 6, opt, f.smoothness(1), S, rng)
        best = min(steps, key=lambda step: step.value)
        assert set(runs[z].support.tolist()) == best.support


def test_a_first_run_is_the_core_run(f):
    opt = f.lower_bound()
    core = lz.arht_core(f, 3, opt, start="first", random_state=9)
    robust = lz.arht_robust(f, 3, opt, start="first", random_state=9, n_runs=1)
    assert robust.value == core.value
    assert robust.support.tolist() == core.support.tolist()


def test_more_runs_are_never_worse(f):
    opt = f.lower_bound()
    runs = [lz.arht_robust(f, 3, opt, start="first", random_state=9, n_runs=k) for k in (1, 4, 9)]
    assert_falls([run.value for run in runs])
    assert [len(run.trace) for run in runs] == [1, 4, 9]


def test_runs_end_at_the_target(f):
    reached = lz.arht(f, 3, start="first", random_state=0).value
    for method in (lz.arht_core, lz.arht_robust):
        found = method(f, 3, 1.5 * reached, start="first", random_state=0)
        assert found.status is Status.TARGET_REACHED
        assert found.value <= 1.5 * reached


def test_practical_runs_20_times_and_stops_when_half_is_free(f):
    opt = f.lower_bound()
    assert len(lz.arht_robust(f, 4, opt, start="first", random_state=0).trace) == 20
    for seed in range(20):
        steps = lz.arht_core(f, 4, opt, start="first", random_state=seed).trace
        freed = {int(step.note.split()[1]) for step in steps if step.note.startswith("free")}
        assert len(freed & set(steps[-1].support.tolist())) == 2


def test_theoretical_runs_are_as_many_as_the_theorem_says(f):
    B = f.lower_bound()
    span = log((f.value(np.zeros(f.n_features)) - B) / 0.01)
    found = lz.arht_robust(f, 3, B - 1, setting="theoretical", epsilon=0.01, random_state=0)
    assert len(found.trace) == ceil(5 * log(6 * f.n_features * span))


def test_a_theoretical_run_goes_on_until_all_of_the_support_is_free(f):
    found = lz.arht_core(
        f, 3, f.lower_bound() - 1, setting="theoretical", epsilon=1e-9, random_state=0
    )
    freed = {int(step.note.split()[1]) for step in found.trace if step.note.startswith("free")}
    assert freed >= set(found.trace[-1].support.tolist())


def test_a_theoretical_run_has_all_its_steps():
    """T = 2s log((f(0) − B)/ε) = 4 steps from x⁰ to x⁴: here two swaps, then two are set free."""
    f = Quadratic(np.eye(4), [0.1, 0.1, 2.0, 1.0], 2.51)
    found = lz.arht_core(
        f, 2, 0.0, start="first", setting="theoretical", rho=1e-6, epsilon=2.51 / np.e, lower=0.0
    )
    assert [step.note.split()[0][0] for step in found.trace] == ["s", "+", "+", "f", "f"]


@pytest.mark.parametrize(("setting", "level"), [("practical", 1), ("theoretical", 2)])
def test_rho_is_the_certified_smoothness_unless_given(f, setting, level):
    assert Search(f, 3, setting=setting).rho == f.smoothness(level)
    options = {"start": "first", "random_state": 0, "setting": setting, "epsilon": 1e-3}
    default, certified, small = (
        lz.arht_core(f, 3, f.lower_bound(), **options, **rho)
        for rho in ({}, {"rho": f.smoothness(level)}, {"rho": 1e-3})
    )
    assert trace_of(default) == trace_of(certified)
    assert trace_of(default) != trace_of(small)
    found = lz.path(f, [3], "arht", random_state=0, setting=setting, n_runs=3)[3]
    given = lz.arht(f, 3, random_state=0, setting=setting, n_runs=3, rho=f.smoothness(level))
    # OMP's supports are minimised over from other starts, which may show in the last digit
    assert [step[:-1] for step in trace_of(found)] == [step[:-1] for step in trace_of(given)]
    assert_allclose([x.value for x in found.trace], [x.value for x in given.trace], rtol=1e-13)


def test_rho_is_that_of_the_papers_experiments_on_columns_of_unit_norm():
    problem = random_problem(8, kind="correlated")
    f = LeastSquares(problem.X / np.linalg.norm(problem.X, axis=0), problem.y)
    assert_allclose(Search(f, 3).rho, 1.0)


def test_the_same_state_is_not_computed_twice():
    asked = []

    class Counting(LeastSquares):
        def minimize_each(self, supports, ridges, starts):
            asked.extend((*S.tolist(), d.tobytes()) for S, d in zip(supports, ridges, strict=True))
            return super().minimize_each(supports, ridges, starts)

    problem = random_problem(8, kind="correlated")
    lz.arht(Counting(problem.X, problem.y), 3, start="first", random_state=0)
    assert len(asked) > 6
    assert len(asked) == len(set(asked))
    asked.clear()
    lz.path(Counting(problem.X, problem.y), range(1, 6), "arht", random_state=0)
    assert len(asked) > 20
    assert len(asked) == len(set(asked))


def test_sampling_is_proportional_to_the_square(rng):
    f = Quadratic(np.eye(4), [0.5, 1.0, 2.0, 3.0], 8.0)
    start = f.minimize([1, 2, 3])
    states = States(f, 1e-9, s=5, like=start)
    state = states.start(start)

    def drawn(count):
        assert states.look(np.array([state])).all()
        return states.sample(np.repeat(state, count), rng.random(count)).tolist()

    shares = np.bincount(drawn(14_000)) / 14_000
    assert_allclose(shares, np.array([0, 1, 4, 9]) / 14, atol=0.02)
    for i, left in ((3, {1, 2}), (1, {2}), (2, {-1})):
        (state,) = states.freed(np.array([state]), np.array([i]))
        assert set(drawn(100)) == left


def test_rounding_does_not_draw_what_is_free_or_outside():
    f = Quadratic(np.eye(4), [0.5, 1.0, 2.0, 3.0], 8.0)
    start = f.minimize([1, 2, 3])
    states = States(f, 1e-9, s=5, like=start)
    state = np.array([states.start(start)])
    states.look(state)
    assert states.sample(state, np.array([1.0])) == [3]
    state = states.freed(state, np.array([3]))
    assert states.sample(state, np.array([1.0])) == [2]


def test_a_feature_set_free_is_still_free_when_it_comes_back():
    f = Quadratic(np.eye(3), [3.0, 1.0, 4.0])
    start = f.minimize([0, 1])
    states = States(f, rho=1.0, s=2, like=start)
    state = np.array([states.start(start)])
    states.look(state)
    state = states.freed(state, np.array([1]))
    for S, coef in (([0, 1], [1.5, 1.0]), ([0, 2], [1.5, 2.0]), ([1, 2], [1.0, 2.0])):
        states.look(state)
        (x,) = states.iterates(states.states["x"][state])
        assert x.support.tolist() == S
        assert_allclose(x.coef, coef)
        state = states.states["new"][state]


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20])
def test_a_tiny_epsilon_ends(epsilon):
    f = objective_of(random_problem(8))
    with at_most(5):
        found = lz.arht(f, 3, epsilon=epsilon, n_runs=1, random_state=0)
    assert found.value <= lz.omp(f, 3).value


def test_a_lower_bound_above_everything_ends_at_once(f):
    found = lz.arht(f, 3, lower=1e9, random_state=0)
    assert len(found.trace) == 1


def test_regularised_objectives_share_what_they_remember():
    """Otherwise every set R that ARHT meets would keep columns of its own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8))
    f = lz.Logistic(X, rng.random(50) < 0.5)
    g = f.ridged(1.0)
    x = g.minimize([1, 2])
    assert g._last is f._last
    np.testing.assert_allclose(f.gradient(x), lz.Logistic(X, f.y).gradient(x.x), atol=1e-9)
    assert abs(g.gradient(x)[[1, 2]]).max() < 1e-6


@pytest.fixture(params=["squares", "logistic", "multinomial"])
def g(request):
    return objective_of(random_problem(3, request.param, "correlated", ridge=0.1, forced=(1,)))


def assert_same_search(found, other):
    assert [step[:-1] for step in trace_of(found)] == [step[:-1] for step in trace_of(other)]
    assert_allclose(values(found), values(other), rtol=1e-9)
    assert found.status is other.status


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("start", ["omp", "first"])
def test_a_path_has_what_its_sizes_have_alone(g, setting, start):
    options = {"setting": setting, "start": start, "n_runs": 4, "random_state": 0}
    sizes = [1, 2, 4, g.n_choosable]
    found = lz.path(g, sizes, "arht", **options)
    assert list(found) == sizes
    for s in sizes:
        assert_same_search(found[s], lz.arht(g, s, **options))


def test_a_run_is_told_once_however_many_guesses_it_serves(f):
    """Of one restart only: another guess is a step where it leads another way."""
    found = lz.arht(f, 4, start="first", random_state=3, n_runs=1)
    opts = [float(step.note.split()[0].removeprefix("opt=")) for step in found.trace[1:]]
    ways = [lz.arht_core(f, 4, opt, start="first", random_state=3) for opt in opts]
    assert len({tuple(trace_of(way)) for way in ways}) == len(ways)


def test_a_generator_is_asked_for_a_seed_at_each_size(f):
    found = lz.path(f, [2, 3], "arht", n_runs=2, random_state=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for s in (2, 3):
        assert_same_search(found[s], lz.arht(f, s, n_runs=2, random_state=rng))


@pytest.mark.parametrize("calls", [1, 2, 7, 20])
def test_a_callback_ends_all_sizes_of_a_path(f, calls):
    seen = []

    def enough(x):
        seen.append(x)
        return len(seen) == calls

    found = lz.path(f, [2, 3, 4], "arht", random_state=0, callback=enough)
    assert len(seen) == calls
    assert list(found) == [2, 3, 4]
    assert all(found[s].status is Status.STOPPED for s in found)
    told = {(len(x.support), id(x)) for x in seen}
    for s, solution in found.items():
        assert solution.trace[0].note == "start"
        assert {(s, id(x)) for x in solution.trace[1:]} <= told
        assert_allclose(solution.value, min(values(solution)))


def test_each_size_of_a_path_has_its_own_limit(f):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        found = lz.path(f, [2, 3], "arht", random_state=0, max_iter=5)
    for s, solution in found.items():
        assert solution.status is Status.MAX_ITER
        assert [step.note[-5:] for step in solution.trace[1:]] == [f"run {z}" for z in range(5)]
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            alone = lz.arht(f, s, random_state=0, max_iter=5)
        assert_same_search(solution, alone)


@pytest.mark.parametrize("later", ["never", "mostly", "by chance"])
def test_the_order_in_which_f_answers_changes_nothing(later):
    rng = np.random.default_rng(0)

    class Slow(LeastSquares):
        def at_hand(self, supports):
            share = {"never": 0.0, "mostly": 0.9, "by chance": 0.5}[later]
            return rng.random(len(supports)) >= share

    problem = random_problem(12, kind="correlated")
    runs = {"start": "first", "random_state": 0, "n_runs": 6}
    found = lz.path(Slow(problem.X, problem.y), [2, 3, 5], "arht", **runs)
    for s, solution in lz.path(
        LeastSquares(problem.X, problem.y), [2, 3, 5], "arht", **runs
    ).items():
        assert_same_search(found[s], solution)


@pytest.fixture
def passes(monkeypatch, lazy_gram):
    """The features whose rows of the Gram matrix each pass over the data made."""
    made = []
    inner = LazyGram._new_coarse
    monkeypatch.setattr(LazyGram, "_new_coarse", lambda self, S: made.append(S) or inner(self, S))
    return made


def test_passes_over_wide_data_are_shared(passes):
    """Runs that need rows of the Gram matrix wait for one another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300)) + rng.normal(size=(80, 1))
    y = X[:, :8] @ rng.choice([-1.0, 1.0], 8) + rng.normal(size=80)
    f = LeastSquares(X, y)
    lz.path(f, range(1, 9), "arht", random_state=0, start="first", rho=f.smoothness(2))
    assert sum(map(len, passes)) > 4 * len(passes)


def test_a_pass_makes_the_rows_of_features_that_omp_may_take_next(passes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300))
    y = X[:, :10].sum(axis=1) + rng.normal(size=80)
    lz.omp(LeastSquares(X, y), 10)
    steepest = np.argsort(-np.abs(X.T @ y))
    assert len(passes[0]) > 8
    assert set(passes[0]) == set(steepest[: len(passes[0])])
    assert len(passes) <= 4


def test_what_is_remembered_may_outgrow_its_room(monkeypatch, lazy_gram):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300)) + rng.normal(size=(80, 1))
    y = X[:, :8] @ rng.choice([-1.0, 1.0], 8) + rng.normal(size=80)
    options = {"random_state": 0, "start": "first"}
    found = lz.path(LeastSquares(X, y), [4, 6, 8], "arht", **options)
    monkeypatch.setattr(arht_states, "ROOM", 0)
    monkeypatch.setattr("ellzero.objectives.kept_rows.ROOM", 1)
    for s, solution in lz.path(LeastSquares(X, y), [4, 6, 8], "arht", **options).items():
        assert_same_search(found[s], solution)


def test_runs_towards_many_targets_go_as_those_towards_one(monkeypatch):
    forks = []

    def counted(runs, threshold, asked):
        after, before, below = parted(runs, threshold, asked)
        forks.append(len(after) - len(runs))
        return after, before, below

    monkeypatch.setattr("ellzero.algorithms.runs.parted", counted)

    def paths():
        for seed in range(12):
            f = objective_of(random_problem(seed, kind="correlated"))
            found = lz.path(f, range(1, 6), "arht", random_state=seed, epsilon=1e-4)
            yield from map(trace_of, found.values())

    together = list(paths())
    assert sum(forks) > 20
    forks.clear()
    monkeypatch.setattr("ellzero.algorithms.arht.TARGETS", 1)
    assert list(paths()) == together
    assert sum(forks) == 0


def test_a_path_on_columns_of_zeros():
    f = LeastSquares(np.zeros((6, 3)), np.arange(6.0))
    found = lz.path(f, [1, 2], "arht", random_state=0)
    assert [found[s].value for s in found] == [lz.arht(f, s).value for s in (1, 2)]
