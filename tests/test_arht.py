"""ARHT: its promises and its two settings; the theorem itself is in test_theorems.py."""

from math import ceil, log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import ellzero as lz
import reference
from ellzero import LeastSquares, Quadratic, Status
from ellzero.methods import states as arht_states
from ellzero.objectives.minimisers import lower_bound, minimize_each
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
    target = () if method is lz.arht else (lower_bound(f),)
    first, second, other = (
        method(f, 3, *target, start="first", random_state=seed, n_runs=4) for seed in (5, 5, 6)
    )
    assert trace_of(first) == trace_of(second)
    if method is lz.arht_core:
        assert trace_of(first) != trace_of(other)


def test_random_state_may_be_a_generator(f):
    for make in (np.random.default_rng, np.random.RandomState):
        a, b = (
            lz.arht_core(f, 3, lower_bound(f), start="first", random_state=make(3))
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
    S, opt = range(19, 25), lower_bound(f)
    runs = lz.arht_robust(f, 6, opt, start=list(S), random_state=1, n_runs=6).trace
    assert len({x.value for x in runs}) > 2
    for z in reversed(range(6)):
        rng = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(z,)))
        steps = reference.arht_core(problem, 6, opt, f.smoothness(1), S, rng)
        best = min(steps, key=lambda step: step.value)
        assert set(runs[z].support.tolist()) == best.support


@pytest.mark.parametrize("loss", ["squares", "logistic"])
@pytest.mark.parametrize("seed", range(6))
def test_every_step_of_the_core_is_that_of_the_literal_twin(loss, seed):
    kind = ("gaussian", "correlated", "equicorrelated")[seed % 3]
    problem = random_problem(seed, loss, kind, ridge=0.1, fit_intercept=bool(seed % 2))
    f, rng = objective_of(problem), np.random.default_rng(seed)
    for s in (2, 4):
        S, opt = rng.choice(problem.n, s, replace=False), lower_bound(f)
        for z, (factor, setting) in enumerate([(1e-3, "practical"), (1.0, "theoretical")]):
            found = lz.arht_core(f, s, opt, start=S, setting=setting, rho=0.7, random_state=seed)
            draws = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
            steps = reference.arht_core(
                problem, s, opt, 0.7, S, draws, factor, half_stop=not z, max_iter=found.n_iter
            )
            assert supports(found) == [set(step.support) for step in steps]
            assert_allclose(values(found), [step.value for step in steps], rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_that_of_the_literal_twin(seed):
    kind = ("gaussian", "correlated", "equicorrelated")[seed % 3]
    problem = random_problem(seed, kind=kind, fit_intercept=bool(seed % 2))
    f = objective_of(problem)
    rho, lower = f.smoothness(1), lower_bound(f)
    for s in (2, 3, 5):
        start = lz.omp(f, s)
        epsilon = 1e-3 * (start.value - lower)
        steps = reference.arht(problem, s, rho, epsilon, start.support, seed, lower)
        found = lz.arht(f, s, random_state=seed)
        assert set(found.support.tolist()) == set(steps[-1].support)
        assert_allclose(found.value, steps[-1].value, rtol=1e-9)


def test_a_first_run_is_the_core_run(f):
    opt = lower_bound(f)
    core = lz.arht_core(f, 3, opt, start="first", random_state=9)
    robust = lz.arht_robust(f, 3, opt, start="first", random_state=9, n_runs=1)
    assert robust.value == core.value
    assert robust.support.tolist() == core.support.tolist()


def test_more_runs_are_never_worse(f):
    opt = lower_bound(f)
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
    opt = lower_bound(f)
    assert len(lz.arht_robust(f, 4, opt, start="first", random_state=0).trace) == 20
    for seed in range(20):
        steps = lz.arht_core(f, 4, opt, start="first", random_state=seed).trace
        freed = {int(step.note.split()[1]) for step in steps if step.note.startswith("free")}
        assert len(freed & set(steps[-1].support.tolist())) == 2


def test_theoretical_runs_are_as_many_as_the_theorem_says(f):
    B = lower_bound(f)
    span = log((f.value(np.zeros(len(f.features))) - B) / 0.01)
    found = lz.arht_robust(f, 3, B - 1, setting="theoretical", epsilon=0.01, random_state=0)
    assert len(found.trace) == ceil(5 * log(6 * len(f.features) * span))


def test_a_theoretical_run_goes_on_until_all_of_the_support_is_free(f):
    found = lz.arht_core(
        f, 3, lower_bound(f) - 1, setting="theoretical", epsilon=1e-9, random_state=0
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
    options = {"start": "first", "random_state": 0, "setting": setting, "epsilon": 1e-3}
    default, certified, small = (
        lz.arht_core(f, 3, lower_bound(f), **options, **rho)
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
    options = {"start": "first", "random_state": 0}
    assert trace_of(lz.arht(f, 3, **options)) == trace_of(lz.arht(f, 3, rho=1.0, **options))


class Rough(Quadratic):
    """A quadratic that does not tell its smoothness."""

    def smoothness(self, k):
        return np.inf


def test_rho_is_asked_for_where_the_smoothness_is_not_known():
    f = Rough(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="smoothness: unknown"):
        lz.arht(f, 2)
    assert lz.arht(f, 2, rho=1.0).support.tolist() == [1, 2]


def test_the_same_state_is_not_computed_twice():
    asked = []

    class Counting(LeastSquares):
        def minimize_stack(self, supports, ridges):
            asked.extend((*S.tolist(), d.tobytes()) for S, d in zip(supports, ridges, strict=True))
            return super().minimize_stack(supports, ridges)

    problem = random_problem(8, kind="correlated")
    lz.arht(Counting(problem.X, problem.y), 3, start="first", random_state=0)
    assert len(asked) > 6
    assert len(asked) == len(set(asked))
    asked.clear()
    lz.path(Counting(problem.X, problem.y), range(1, 6), "arht", random_state=0)
    assert len(asked) > 20
    assert len(asked) == len(set(asked))


def test_sampling_is_proportional_to_the_square():
    f = Quadratic(np.eye(4), [0.5, 1.0, 2.0, 3.0], 8.0)
    options = {"start": [1, 2, 3], "rho": 1e-9, "lower": 0.0}
    freed = [
        [step.note for step in lz.arht_core(f, 3, 0.0, random_state=seed, **options).trace[1:]]
        for seed in range(1400)
    ]
    firsts = [notes[0] for notes in freed]
    shares = [firsts.count(f"free {i}") / len(firsts) for i in range(4)]
    assert_allclose(shares, np.array([0, 1, 4, 9]) / 14, atol=0.04)
    assert all(len(set(notes)) == len(notes) == 2 for notes in freed)  # then half is free


def test_a_feature_set_free_is_still_free_when_it_comes_back():
    """With 1 free, the state at {0, 1} is left for {0, 2}. There 0 is smaller and 1 comes back."""
    f = Quadratic(np.eye(3), [3.0, 1.0, 4.0], 13.0)
    states = arht_states.States(f, rho=1.0)
    state = states.start(np.array([0, 1]))
    states.explore([state])
    state = states.freed(state, 0.95)
    for S, coef in (([0, 1], [1.5, 1.0]), ([0, 2], [1.5, 2.0]), ([1, 2], [1.0, 2.0])):
        states.explore([state])
        assert state.x.support.tolist() == S
        assert_allclose(state.x.coef, coef)
        state = state.swap


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20])
def test_a_tiny_epsilon_ends(epsilon):
    f = objective_of(random_problem(8))
    with at_most(5):
        found = lz.arht(f, 3, epsilon=epsilon, n_runs=1, random_state=0)
    assert found.value <= lz.omp(f, 3).value


def test_a_lower_bound_above_everything_ends_at_once(f):
    found = lz.arht(f, 3, lower=1e9, random_state=0)
    assert len(found.trace) == 1


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
    sizes = [1, 2, 4, len(g.features.choosable)]
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


@pytest.mark.usefixtures("on_demand")
def test_states_may_be_forgotten_on_the_way(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300)) + rng.normal(size=(80, 1))
    y = X[:, :8] @ rng.choice([-1.0, 1.0], 8) + rng.normal(size=80)
    options = {"random_state": 0, "start": "first"}
    found = lz.path(LeastSquares(X, y), [4, 6, 8], "arht", **options)
    monkeypatch.setattr(arht_states, "STATES_AT_MOST", 20)
    for s, solution in lz.path(LeastSquares(X, y), [4, 6, 8], "arht", **options).items():
        assert_same_search(found[s], solution)


def test_any_other_objective_is_searched_alike():
    """One support after the other, instead of stacks with closed forms."""

    class Other(lz.Objective):
        def __init__(self, f):
            self.f, self.features, self.resolution = f, f.features, f.resolution

        def at(self, x):
            return self.f.at(x)

        def gradient(self, x):
            return self.f.gradient(x)

        def minimize(self, S, start=None, below=np.inf):
            return self.f.minimize(S)

        def ridged(self, d):
            return Other(self.f.ridged(d))

    for seed in range(4):
        f = objective_of(random_problem(seed, kind="correlated", forced=(1,)))
        options = {"start": "first", "random_state": 0, "rho": 1.0, "lower": lower_bound(f)}
        assert_same_search(lz.arht(Other(f), 3, **options), lz.arht(f, 3, **options))


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_minimising_many_at_once_is_minimising_each(ridge, rng):
    f = objective_of(random_problem(5, kind="scaled", ridge=ridge, forced=(2,)))
    supports = [np.sort(rng.choice(f.features.choosable, k, replace=False)) for k in (3, 1, 5, 3)]
    ridges = [rng.choice([0.0, 2.0], len(S)) for S in supports]
    for S, d, x in zip(supports, ridges, minimize_each(f, supports, ridges), strict=True):
        each = np.zeros(len(f.features))
        each[S] = d
        other = f.ridged(each).minimize(S)
        assert x.support.tolist() == S.tolist()
        assert_allclose(x.coef, other.coef, rtol=1e-9)
        assert_allclose(x.value, other.value, rtol=1e-12)


def test_the_lower_bound_is_the_minimum_where_it_is_affordable(rng):
    X, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    f = LeastSquares(X, y)
    assert_allclose(lower_bound(f), f.minimize(np.arange(6)).value)
    assert lower_bound(LeastSquares(rng.normal(size=(20, 3100)), y[:20])) == 0.0
    quadratic = Quadratic(np.eye(3), [1.0, 2.0, 3.0])
    assert_allclose(lower_bound(quadratic), -7.0)
    few = lz.Logistic(rng.normal(size=(5, 9)), [0, 1, 0, 1, 1])
    assert lower_bound(few) == 0.0


def test_a_path_on_columns_of_zeros():
    f = LeastSquares(np.zeros((6, 3)), np.arange(6.0))
    found = lz.path(f, [1, 2], "arht", random_state=0)
    assert [found[s].value for s in found] == [lz.arht(f, s).value for s in (1, 2)]
