"""Folds, sizes and restarts in parallel: the same digits under every joblib backend."""

import warnings
from functools import partial
from threading import Barrier, Lock, current_thread
from time import sleep

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ellzero import (
    LeastSquares,
    Logistic,
    SparseClassifierCV,
    SparseRegressorCV,
    arht,
    arht_robust,
    from_callables,
    omp,
    path,
)
from ellzero.data.design import Design
from ellzero.parallel import in_shares, workers
from ellzero.threads import in_parts
from helpers import blas_now, scores, values

# JAX, where another test has loaded it, warns of every fork
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

BACKENDS = ["threading", "loky", "multiprocessing", "dask"]  # and Ray's: test_ray.py
SIZES = range(1, 3)


@pytest.fixture(params=BACKENDS)
def backend(request):
    """A block in which joblib runs two tasks at a time on this backend."""
    name, options = request.param, {}
    if name == "dask":
        distributed = pytest.importorskip("distributed", reason="Dask's backend")
        with (
            distributed.Client(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
            ),
            parallel_config("dask", n_jobs=2),
        ):
            yield name
        return
    if name == "loky":
        options["inner_max_num_threads"] = 1
    with parallel_config(name, n_jobs=2, **options):
        yield name


def data(rng, m=120, n=12):
    X = rng.normal(size=(m, n))
    y = X[:, 0] - 2 * X[:, 3] + X[:, 5] + rng.normal(size=m)
    return X, y


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kind", [SparseRegressorCV, SparseClassifierCV])
def test_folds(rng, backend, kind, form):
    X, y = data(rng)
    target = y if kind is SparseRegressorCV else y > 0
    found = kind(SIZES, cv=3, method="omp").fit(form(X), target)
    with parallel_config("sequential"):
        wanted = kind(SIZES, cv=3, method="omp", n_jobs=1).fit(form(X), target)
    np.testing.assert_array_equal(scores(found), scores(wanted))
    np.testing.assert_array_equal(found.coef_, wanted.coef_)


@pytest.mark.parametrize("objective", [LeastSquares, Logistic])
def test_sizes_and_restarts(rng, backend, objective):
    X, y = data(rng)
    f = objective(X, y if objective is LeastSquares else y > 0, fit_intercept=True, ridge=1e-3)
    tasks = [(s, seed) for s in SIZES for seed in range(2)]
    found = Parallel()(delayed(arht)(f, s, n_runs=2, random_state=seed) for s, seed in tasks)
    for (s, seed), solution in zip(tasks, found, strict=True):
        alone = arht(f, s, n_runs=2, random_state=seed)
        np.testing.assert_array_equal(solution.x, alone.x)
        assert solution.value == alone.value


@pytest.mark.parametrize("objective", [LeastSquares, Logistic])
def test_paths(rng, backend, objective, on_demand):
    X, y = data(rng)
    f = objective(X, y if objective is LeastSquares else y > 0, fit_intercept=True, ridge=1e-3)
    alone = path(f, SIZES, "arht", n_runs=2, random_state=0)
    found = path(f, SIZES, "arht", n_runs=2, random_state=0, n_jobs=2)
    assert list(found) == list(SIZES)
    for s in SIZES:
        np.testing.assert_array_equal(found[s].x, alone[s].x)
        assert found[s].value == alone[s].value


@pytest.mark.parametrize("objective", [LeastSquares, Logistic])
def test_restarts_of_one_search(rng, backend, objective):
    """Seven runs that end in different models, in three groups."""
    X = rng.normal(size=(60, 25)) + 2 * rng.normal(size=(60, 1))
    y = X @ rng.normal(size=25) + 3 * rng.normal(size=60)
    f = objective(X, y if objective is LeastSquares else y > 0, fit_intercept=True, ridge=1.0)
    options = {"start": "first", "n_runs": 7, "random_state": 0}
    for method in (arht, partial(arht_robust, opt=0.01)):
        alone, found = method(f, s=8, **options), method(f, s=8, **options, n_jobs=3)
        assert len(set(values(alone))) > 1
        for ours, theirs in zip(found.trace, alone.trace, strict=True):
            assert ours.support.tolist() == theirs.support.tolist()
            np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-8)


@pytest.mark.parametrize("n_jobs", [0, 2.0, "all", True])
def test_n_jobs_is_a_number_of_workers(rng, n_jobs):
    f = LeastSquares(*data(rng))
    for call in (partial(arht, f, 2), partial(path, f, SIZES, "els")):
        with pytest.raises(ValueError, match="n_jobs: expected None or a whole number"):
            call(n_jobs=n_jobs)


def test_workers_may_write_to_what_an_objective_remembers(rng, on_demand):
    """What is as large as this, joblib maps into the memory of its processes."""
    X = rng.normal(size=(60, 12_000))
    y = X[:, 0] + X[:, 7] + rng.normal(size=60)
    alone = path(LeastSquares(X, y), [2, 14], "els")
    found = path(LeastSquares(X, y), [2, 14], "els", n_jobs=2)
    for s in alone:
        np.testing.assert_array_equal(found[s].x, alone[s].x)
    runs = {"random_state": 0, "n_runs": 2}
    found = arht(LeastSquares(X, y), 5, **runs, n_jobs=2)
    np.testing.assert_array_equal(found.x, arht(LeastSquares(X, y), 5, **runs).x)


def test_warnings_of_workers_arrive(rng):
    X, y = data(rng)
    with pytest.warns(ConvergenceWarning, match="iht: .*raise max_iter"):
        path(LeastSquares(X, y), [2, 3], "iht", max_iter=1, n_jobs=2)


@pytest.mark.parametrize("method", ["auto", "omp"])
def test_one_run_for_all_sizes_is_not_divided(rng, method):
    with pytest.raises(ValueError, match=f"n_jobs: '{method}' makes .* cannot be divided"):
        path(LeastSquares(*data(rng)), SIZES, method, n_jobs=2)


def test_a_callback_needs_one_process(rng):
    with pytest.raises(ValueError, match="callback: with n_jobs"):
        path(LeastSquares(*data(rng)), SIZES, "els", n_jobs=2, callback=lambda x: False)


def test_threads_share_one_limit_of_blas(rng):
    """The fold that began first ends first, and must not lift the limit of the other."""
    together, order, seen = Barrier(2), [], []

    def meet(model, X, y):
        order.append(current_thread())
        first = order[0] is current_thread()
        together.wait(60)
        sleep(0.0 if first else 0.5)
        seen.append(blas_now())
        return 0.0

    X, y = data(rng)
    with threadpool_limits(2, "blas"):
        before = blas_now()
        with parallel_config("threading", n_jobs=2):
            SparseRegressorCV([1], cv=2, scoring=meet).fit(X, y)
        assert seen == [1, 1]
        assert blas_now() == before


def test_a_run_limits_blas_from_its_start_to_its_end(rng):
    seen = []
    with threadpool_limits(2, "blas"):
        before = blas_now()
        omp(LeastSquares(*data(rng)), 3, callback=lambda x: seen.append(blas_now()))
        assert seen == [1, 1, 1, 1]
        assert blas_now() == before


@pytest.mark.parametrize("loss", [LeastSquares, Logistic])
@pytest.mark.parametrize("method", ["auto", "omp", "exchange", "arht", "iht", "lasso"])
def test_a_path_limits_blas_for_all_it_does(rng, method, loss, monkeypatch):
    """Threads of BLAS, once woken, spin and take the processor from the next path."""
    seen = []

    def noted(name, call):
        def method(f, *args):
            seen.append((name, blas_now()))
            return call(f, *args)

        return method

    for name in ("smoothness", "minimize", "refit"):
        monkeypatch.setattr(loss, name, noted(name, getattr(loss, name)))
    X, y = data(rng)
    with threadpool_limits(2, "blas"):
        before = blas_now()
        path(loss(X, y if loss is LeastSquares else y > 0), [1, 3], method)
        assert "refit" in dict(seen)
        assert {threads for _, threads in seen} == {1}
        assert blas_now() == before


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_folds_share_one_copy_of_the_data(rng, form, monkeypatch):
    """Every task of processes is handed the whole X, which joblib maps into their memory once."""
    handed = []

    class Listening(Parallel):
        def __call__(self, tasks):
            tasks = list(tasks)
            handed.extend(arguments[3][0] for _, arguments, _ in tasks)
            return super().__call__(tasks)

    monkeypatch.setattr("ellzero.parallel.Parallel", Listening)
    X, y = data(rng)
    SparseClassifierCV(SIZES, cv=3, method="omp").fit(form(X), y > 0)
    assert len(handed) == 3
    assert all(X is handed[0] for X in handed)


def test_threads_leave_the_filters_of_warnings_alone():
    before = list(warnings.filters)
    for _ in range(5):
        together = Barrier(2)

        def share(tasks, together=together):
            together.wait()
            sleep(0.02 * tasks[0])
            return tasks

        with parallel_config("threading"):
            assert list(in_shares(share, [0, 1], workers(2, 2))) == [0, 1]
        assert warnings.filters == before


def test_an_objective_that_stays_in_its_process():
    lock = Lock()

    def value(x):
        with lock:
            return float(x @ x) - x[0]

    f = from_callables(value, lambda x: 2 * x - np.eye(4)[0], 4)
    with parallel_config("loky"), pytest.raises(TypeError, match="n_jobs: f cannot be sent to"):
        path(f, [1, 2], "ompr", n_jobs=2, start="first")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [2, 3, 20])
def test_threads_share_the_columns_of_a_design(rng, threads, dtype, monkeypatch):
    monkeypatch.setattr("ellzero.data.design.SHARED_FROM", 0)
    monkeypatch.setattr("ellzero.data.design.WIDE", 0)
    design, w = Design(rng.normal(3.0, 1.0, (50, 17)).astype(dtype)), rng.random(50)
    for V in (w, rng.normal(size=(50, 4))):
        assert_allclose(design.transposed_times(V, threads), design.X.T @ V, rtol=1e-12)
    for alone, shared in zip(
        design.means_and_norms(w, True), design.means_and_norms(w, True, threads), strict=True
    ):
        assert_allclose(shared, alone, rtol=1e-12)


def test_threads_share_the_columns_of_wide_data(rng, on_demand, monkeypatch):
    monkeypatch.setattr("ellzero.data.design.SHARED_FROM", 0)
    monkeypatch.setattr("ellzero.data.design.WIDE", 0)
    X, y = rng.normal(size=(40, 60)), rng.normal(size=40)
    with threadpool_limits(1, "blas"):
        alone = LeastSquares(X, y, fit_intercept=True)
    with threadpool_limits(2, "blas"):
        shared = LeastSquares(X, y, fit_intercept=True)
    assert shared.moments.columns.threads == 2
    found, again = path(alone, SIZES), path(shared, SIZES)
    for s in SIZES:
        assert again[s].support.tolist() == found[s].support.tolist()
        assert again[s].value == pytest.approx(found[s].value)


def test_threads_do_not_warn_where_the_caller_does_not():
    def work(part):
        np.full(3, 1e200) ** 2

    with pytest.warns(RuntimeWarning, match="overflow"):
        in_parts(work, 4, 2, 2)
    with np.errstate(over="ignore"):
        in_parts(work, 4, 2, 2)
