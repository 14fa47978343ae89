"""What every method returns, and how the driver runs, stops and reports."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import ellzero as lz
from ellzero import LeastSquares, Solution, Status
from helpers import METHODS, assert_falls, objective_of, values
from reference import random_problem

OPTIONS = {"fit_intercept": True, "forced": (1, 4), "weighted": True}


@pytest.fixture(params=["squares", "logistic"])
def problem(request):
    return random_problem(9, request.param, **OPTIONS)


@pytest.fixture
def f(problem):
    return objective_of(problem)


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


def stop_after(k):
    """A callback that stops the run at the k-th iterate."""
    seen = []
    return lambda iterate: seen.append(iterate) or len(seen) == k


# the result


def test_solution_is_consistent(method, f, problem):
    for s in (1, 3):
        found = method(f, s)
        assert isinstance(found, Solution)
        assert found.x.shape == (problem.n,)
        assert 0 < len(found.support) <= s
        assert found.support.tolist() == sorted(set(found.support.tolist()))
        assert found.n_iter == len(found.trace) - 1
        assert isinstance(found.value, float)
        assert isinstance(found.intercept, float)
        assert found.status in set(Status) - {Status.STOPPED, Status.MAX_ITER}
        assert_allclose(found.value, problem.value(found.x, found.intercept), rtol=1e-12)


def test_forced_features_and_intercept_are_in_the_model_and_not_in_the_support(method, f, problem):
    found = method(f, 3)
    for step in found.trace:
        assert not {1, 4} & set(step.support.tolist())
        assert len(step.support) <= 3
    used = set(np.flatnonzero(found.x).tolist())
    assert used == set(found.support.tolist()) | {1, 4}
    assert found.intercept != 0
    slopes = problem.X.T @ (problem.sample_weight * residual(problem, found))
    assert_allclose(slopes[[1, 4]], 0, atol=1e-8 * found.value)


def residual(problem, found):
    t = problem.X @ found.x + found.intercept
    return t - problem.y if problem.loss == "squares" else 1 / (1 + np.exp(-t)) - problem.y


def test_supports_never_grow_beyond_s(method, f):
    for s in (1, 2, 5):
        assert all(len(step.support) <= s for step in method(f, s).trace)


@pytest.mark.parametrize("name", ["omp", "ompr", "els", "exchange", "iht", "arht"])
def test_values_fall_where_the_paper_proves_it(name, f):
    start = {"start": "first"} if name in ("ompr", "els", "exchange", "arht") else {}
    found = METHODS[name](f, 3, **start)
    run = values(found)
    assert_falls(run, slack=1e-12 * run[0] if name == "iht" else 0.0)
    assert_allclose(run[-1], found.value, rtol=1e-9)


def test_ompr_stops_where_its_own_swap_does_not_help(f, problem):
    found = lz.ompr(f, 3, start="first")
    S = set(found.support.tolist())
    g = np.abs(problem.gradient(found.x, found.intercept))
    i = max(problem.outside(S), key=lambda i: g[i])
    j = min(S, key=lambda j: abs(found.x[j]))
    assert problem.fit((S | {i}) - {j}).value >= found.value * (1 - 1e-12)


def test_a_method_knows_its_name(method, f):
    assert method(f, 2).method in METHODS


def test_solution_cannot_be_changed(f):
    found = lz.omp(f, 2)
    with pytest.raises(FrozenInstanceError):
        found.value = 0.0
    for array in (found.x, found.support, found.features, found.coef):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        found.trace[0].value = 0.0
    assert isinstance(found.trace, tuple)


def test_solution_survives_copies(f):
    found = lz.exchange(f, 2)
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert repr(other) == repr(found)
        assert other.x.tolist() == found.x.tolist()
        assert other.status is found.status


def test_a_path_holds_no_array_of_all_features(rng):
    X, n = sparse.random(40, 50_000, density=1e-3, format="csc", random_state=rng), 50_000
    y = rng.normal(size=40)
    for f in (LeastSquares(X, y, forced=[n - 1]), lz.Logistic(X, y > 0, ridge=1.0)):
        path = lz.path(f, range(1, 4))
        assert len(pickle.dumps(path)) < n
        assert path[3].x.shape == path[3].shape == (n,)
        assert {*path[3].features.tolist()} == {*path[3].support.tolist(), *f.features.forced}
        assert path[3].coef.tolist() == path[3].x[path[3].features].tolist()


def test_repr_shows_what_matters():
    found = lz.omp(LeastSquares(np.eye(3), [3.0, 0.5, -2.0]), 2)
    assert repr(found) == (
        "Solution of omp with 2 features\n"
        "  value     0.125\n"
        "  features  0: 3., 2: -2.\n"
        "  intercept 0.\n"
        "  status    COMPLETE: the support reached the size asked for (2 iterations)"
    )


def test_repr_of_many_features_is_short():
    found = lz.omp(LeastSquares(np.eye(30), np.arange(1.0, 31.0)), 25)
    assert "15 more" in repr(found)
    assert len(repr(found)) < 500


def test_iterates_say_what_happened(f):
    found = lz.omp(f, 2)
    assert [step.note[0] for step in found.trace] == ["s", "+", "+"]
    assert repr(found.trace[1]).startswith(f"Iterate({found.trace[1].support.tolist()}, value=")
    swapped = lz.exchange(f, 2, start="first")
    added, dropped = swapped.trace[1].note.split()
    assert int(added[1:]) in swapped.trace[1].support
    assert int(dropped[1:]) in swapped.trace[0].support


def test_statuses_explain_themselves():
    assert len({status.value for status in Status}) == len(Status)
    assert all(str(status) == status.value and " " in status.value for status in Status)


# the driver


def test_callback_sees_every_iterate(method, f):
    seen = []
    found = method(f, 3, callback=seen.append)
    assert seen == list(found.trace)


@pytest.mark.parametrize("k", [1, 2])
def test_callback_stops_the_run(method, f, k):
    found = method(f, 3, callback=stop_after(k), **start_of(method))
    assert found.status is Status.STOPPED
    assert len(found.trace) == k
    assert_allclose(found.value, min(values(found)), rtol=1e-9)


def start_of(method):
    """A start that is not already the end."""
    searches = [METHODS[name] for name in ("ompr", "els", "exchange", "arht")]
    return {"start": "first"} if method in searches else {}


def test_iteration_limit_is_a_status_and_a_warning(method, f):
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
        found = method(f, 3, max_iter=0, **start_of(method))
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 0
    assert len(caught) == 1


def test_the_warning_points_at_the_caller(f):
    with pytest.warns(ConvergenceWarning) as caught:
        lz.omp(f, 3, max_iter=1)
    assert caught[0].filename == __file__


def test_a_limit_that_is_just_enough_is_not_reached(f):
    """Three insertions are what s = 3 takes; all the methods end of themselves in time."""
    assert lz.omp(f, 3, max_iter=3).status is Status.COMPLETE
    free = lz.exchange(f, 3, start="first")
    assert lz.exchange(f, 3, start="first", max_iter=free.n_iter).status is free.status


def test_no_limit_is_none(f):
    assert lz.iht(f, 2, max_iter=None).status is Status.FIXED_POINT


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_does_no_damage(method, f, error):
    def interrupt(_):
        raise error

    before = method(f, 3)
    with pytest.raises(error):
        method(f, 3, callback=interrupt)
    again = method(f, 3)
    assert again.support.tolist() == before.support.tolist()
    assert again.value == before.value
    assert [step.note for step in again.trace] == [step.note for step in before.trace]


def test_an_interrupt_inside_f_does_no_damage():
    p = random_problem(3)
    calls = []

    def value(x):
        calls.append(x)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return p.value(x, 0.0)

    f = lz.from_callables(value, lambda x: p.gradient(x, 0.0), p.n)
    with pytest.raises(KeyboardInterrupt):
        lz.omp(f, 3)
    clean = lz.from_callables(lambda x: p.value(x, 0.0), lambda x: p.gradient(x, 0.0), p.n)
    assert lz.omp(f, 3).value == lz.omp(clean, 3).value


def test_runs_do_not_change_f(method, f, problem):
    """No answer depends on what was asked before."""
    alone = method(objective_of(problem), 3)
    for s in (5, 1, 4):
        method(f, s)
    after = method(f, 3)
    assert after.support.tolist() == alone.support.tolist()
    assert_allclose(after.value, alone.value, rtol=1e-12)


def test_a_callback_may_use_f(f):
    heard = []
    asked = lz.exchange(f, 3, start="first", callback=lambda x: heard.append(f.gradient(x)))
    quiet = lz.exchange(f, 3, start="first")
    assert asked.value == quiet.value
    assert len(heard) == len(asked.trace)


def test_the_answer_is_the_best_iterate_not_the_last(f):
    """A step that is too long makes IHT climb."""
    step = 50 / f.smoothness(6)
    with pytest.warns(ConvergenceWarning):
        found = lz.iht(f, 3, step=step, max_iter=5)
    run = values(found)
    assert run[-1] > min(run)
    assert_allclose(found.value, min(run), rtol=1e-9)


@pytest.mark.parametrize("name", [*METHODS, "arht_core", "arht_robust"])
def test_signature_and_docstring_are_the_methods_own(name):
    function = getattr(lz, name)
    parameters = inspect.signature(function).parameters
    assert list(parameters)[:2] == ["f", "s"]
    assert {"callback", "max_iter"} <= set(parameters)
    assert function.__name__ == name
    assert function.__doc__


# the starts


def test_a_start_may_be_a_solution_an_iterate_or_a_mask(f):
    first = lz.exchange(f, 3, start="first")
    mask = np.zeros(len(f.features), dtype=bool)
    mask[first.support] = True
    for start in (first, first.trace[-1], mask, first.support, tuple(first.support.tolist())):
        found = lz.ompr(f, 3, start=start)
        assert found.trace[0].support.tolist() == first.support.tolist()


def test_a_small_start_is_completed_as_omp_does(f):
    greedy = lz.omp(f, 4)
    begun = lz.ompr(f, 4, start=greedy.trace[2].support)
    assert begun.trace[0].support.tolist() == greedy.support.tolist()


def test_first_skips_forced_features(f):
    assert lz.els(f, 4, start="first").trace[0].support.tolist() == [0, 2, 3, 5]


def test_iht_begins_where_it_is_told(f):
    x = np.zeros(len(f.features))
    x[[2, 3, 5]] = 1.0, -2.0, 0.5
    found = lz.iht(f, 2, start=x)
    assert found.trace[0].support.tolist() == [2, 3]
    assert_allclose(found.trace[0].coef, [1.0, -2.0])
    assert lz.iht(f, 2).trace[0].support.size == 0


def test_a_callback_ends_a_randomised_search_between_runs(f):
    calls = []
    found = lz.arht(f, 3, random_state=0, callback=lambda x: calls.append(x) or len(calls) == 3)
    assert found.status is Status.STOPPED
    assert len(calls) == len(found.trace) == 3


def test_a_callback_ends_a_path_of_any_method(f):
    assert list(lz.path(f, range(1, 4), "ompr", callback=lambda x: True)) == [1]
    stopped = lz.path(f, range(1, 4), callback=lambda x: True)
    assert list(stopped) == [1, 2, 3]
    assert stopped[3].value <= stopped[2].value <= stopped[1].value
