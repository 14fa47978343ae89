"""Limits on BLAS threads end with the call, whatever other threads do at the time."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import permutations
from threading import Barrier, Event

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

import ellzero as lz
from ellzero import LeastSquares, Logistic
from ellzero.objectives.glm.glm import GLM
from ellzero.threads import blas_threads, current_blas_threads
from helpers import blas_now

ORDERS = list(permutations(range(3)))


@pytest.fixture
def workers():
    """Three threads to give work to, one at a time or all at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]


def problem(rng, objective=LeastSquares):
    X = rng.normal(size=(60, 8))
    y = X[:, 0] - 2 * X[:, 3] + rng.normal(size=60)
    return objective(X, y if objective is LeastSquares else y > 0)


@pytest.mark.parametrize("order", ORDERS)
def test_limits_that_end_in_any_order_leave_the_pools_alone(two_threads, workers, order):
    before = threadpool_info()
    blocks = [blas_threads(1) for _ in workers]
    for worker, block in zip(workers, blocks, strict=True):
        worker.submit(block.__enter__).result()
        assert blas_now() == 1
    for k in order:
        assert blas_now() == 1
        workers[k].submit(blocks[k].__exit__, None, None, None).result()
    assert threadpool_info() == before


@pytest.mark.parametrize("order", ORDERS)
def test_limits_of_one_thread_may_end_in_any_order(two_threads, order):
    before = threadpool_info()
    blocks = [blas_threads(1) for _ in order]
    for block in blocks:
        block.__enter__()
    for k in order:
        blocks[k].__exit__(None, None, None)
    assert threadpool_info() == before


@pytest.mark.parametrize("order", ORDERS)
def test_paths_that_end_in_any_order_leave_the_pools_alone(rng, two_threads, order):
    """All three have begun before one may end, and each ends before the next may."""
    before, begun, ended = threadpool_info(), Barrier(3), [Event() for _ in range(4)]
    ended[0].set()

    def search(k):
        turn, is_first = order.index(k), [True]

        def callback(x):
            if is_first.pop() if is_first else False:
                begun.wait(60)
                assert ended[turn].wait(60)

        lz.path(problem(np.random.default_rng(k)), range(1, 4), callback=callback)
        ended[turn + 1].set()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(search, k) for k in range(3)]:
            done.result()
    assert threadpool_info() == before
    assert problem(rng, Logistic).rows.threads == 2


def test_three_paths_at_once_leave_the_pools_alone(two_threads):
    before = threadpool_info()
    for _ in range(30):
        together = Barrier(3)

        def search(k, together=together):
            f = problem(np.random.default_rng(k))
            together.wait(60)
            lz.path(f, range(1, 5))

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(search, range(3)))
        assert threadpool_info() == before


def test_an_objective_remembers_the_threads_of_the_user(rng, two_threads, workers, on_demand):
    block = blas_threads(1)
    workers[0].submit(block.__enter__).result()
    assert (blas_now(), current_blas_threads()) == (1, 2)
    assert problem(rng).moments.columns.threads == 2
    assert problem(rng, Logistic).rows.threads == 2
    workers[0].submit(block.__exit__, None, None, None).result()


def test_an_objective_made_in_a_callback_remembers_the_threads_of_the_user(rng, two_threads):
    made = []
    lz.path(problem(rng), [2], callback=lambda x: made.append(problem(rng, Logistic)))
    assert {f.rows.threads for f in made} == {2}


def test_objectives_of_folds_have_one_thread(rng, two_threads, monkeypatch):
    made = []
    monkeypatch.setattr(
        GLM, "hold", lambda f, rows, *rest, call=GLM.hold: (
            made.append(rows.threads), call(f, rows, *rest)
        ),
    )  # fmt: skip
    X = rng.normal(size=(60, 4))
    with parallel_config("threading", n_jobs=2):
        lz.SparseClassifierCV([1], cv=2, criterion="cv").fit(X, X[:, 0] > 0)
    assert sorted(made) == [1, 1, 2]  # two folds, and all rows


def test_the_lowest_limit_of_all_threads_holds(two_threads, workers):
    mine, other = blas_threads(1), blas_threads(2)
    with mine:
        workers[0].submit(other.__enter__).result()
        assert blas_now() == 1
        with blas_threads(2):  # within one thread the innermost, but the other allows two
            assert blas_now() == 2
        assert blas_now() == 1
    workers[0].submit(other.__exit__, None, None, None).result()
    assert blas_now() == 2


def test_a_thread_of_the_user_that_controls_the_number(workers):
    """From threadpoolctl 3.8 on, what other threads set has no effect then."""
    user, other = workers[:2]
    limits = user.submit(threadpool_limits, 2, "blas").result()
    mine, block = blas_threads(1), blas_threads(1)
    user.submit(mine.__enter__).result()
    other.submit(block.__enter__).result()
    user.submit(mine.__exit__, None, None, None).result()
    assert blas_now() == 1
    other.submit(block.__exit__, None, None, None).result()
    assert blas_now() == 2
    user.submit(limits.restore_original_limits).result()


def test_limits_of_the_user_within_a_call_are_his(rng, two_threads):
    seen = []

    def callback(x):
        with threadpool_limits(3, "blas"):
            lz.solve(problem(rng), 1)
            seen.append((blas_now(), current_blas_threads()))
        seen.append((blas_now(), current_blas_threads()))

    lz.omp(problem(rng), 1, callback=callback)
    assert seen == [(3, 3), (1, 2)] * 2
    assert blas_now() == 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_errors_end_limits(rng, two_threads, workers, error):
    before = threadpool_info()

    def fail(x):
        raise error

    def call(method):
        with pytest.raises(error):
            lz.path(problem(np.random.default_rng(0)), [1, 2], method, callback=fail)

    for method in ("auto", "omp", "arht", "lasso"):
        for done in [worker.submit(call, method) for worker in workers]:
            done.result()
        assert threadpool_info() == before
    assert current_blas_threads() == 2


def test_an_interrupt_while_a_limit_ends(two_threads, monkeypatch):
    before, block = threadpool_info(), blas_threads(1)
    block.__enter__()
    with monkeypatch.context() as patch:
        patch.setattr("ellzero.threads._leave_control", interrupt_once := Interrupt())
        with pytest.raises(KeyboardInterrupt):
            block.__exit__(None, None, None)
    assert interrupt_once.calls == 2
    assert threadpool_info() == before
    assert current_blas_threads() == 2


class Interrupt:
    calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            raise KeyboardInterrupt


def test_a_block_that_is_thrown_away_ends(two_threads):
    def steps():
        with blas_threads(1):
            yield

    running = steps()
    next(running)
    assert blas_now() == 1
    del running
    gc.collect()
    assert blas_now() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("holder", ["this thread", "another"])
def test_a_forked_child_has_the_threads_of_the_user(two_threads, workers, holder):
    """The thread that holds the limit is not in the child, or never ends its block there."""
    block = blas_threads(1)
    run = (lambda call, *a: call(*a)) if holder == "this thread" else (
        lambda call, *a: workers[0].submit(call, *a).result()
    )  # fmt: skip
    run(block.__enter__)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = [blas_now(), current_blas_threads()]
            A = np.ones((300, 300))
            with blas_threads(1):
                found += [blas_now(), int((A @ A)[0, 0])]
            os.write(writer, repr([*found, blas_now()]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as answer:
        assert (status, answer.read()) == (0, "[2, 2, 1, 300, 2]")
    assert blas_now() == 1
    run(block.__exit__, None, None, None)
    assert blas_now() == 2


class Library:
    """A BLAS library in which every thread has a number of its own."""

    def __init__(self):
        self.numbers = threading.local()

    @property
    def num_threads(self):
        return getattr(self.numbers, "now", 8)

    def set_num_threads(self, number):
        self.numbers.now = number


class Controller:
    def __init__(self):
        self.lib_controllers = [Library()]

    def limit(self, limits):
        return ExitStack()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("own", [(8, 8, 8), (8, 4, 1)])
def test_libraries_in_which_threads_have_their_own_number(workers, order, own, monkeypatch):
    controller = Controller()
    (blas,) = controller.lib_controllers
    monkeypatch.setattr("ellzero.threads._controller", lambda: controller)
    monkeypatch.setattr("ellzero.threads._is_shared", {})
    for worker, number in zip(workers, own, strict=True):
        worker.submit(blas.set_num_threads, number).result()
    blocks = [blas_threads(1) for _ in workers]
    for worker, block in zip(workers, blocks, strict=True):
        worker.submit(block.__enter__).result()

    def seen(worker):
        return worker.submit(lambda: (blas.num_threads, current_blas_threads())).result()

    assert [seen(worker) for worker in workers] == [(1, number) for number in own]
    for k in order:
        workers[k].submit(blocks[k].__exit__, None, None, None).result()
        assert seen(workers[k]) == (own[k], own[k])
