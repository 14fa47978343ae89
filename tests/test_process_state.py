"""What a call changes in the process ends with the call, whatever runs beside it."""

import io
import locale
import multiprocessing
import os
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import permutations
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_info

import ellzero as lz
from cli_files import numbers, write
from ellzero import LeastSquares, Logistic
from ellzero.cli.main import main
from ellzero.progress import progress

ORDERS = list(permutations(range(3)))


def state():
    """Return what a call might change in the process and what can be compared."""
    return {
        "pools": threadpool_info(),
        "environment": dict(os.environ),
        "filters": list(warnings.filters),
        "showing": warnings.showwarning,
        "signals": {s: signal.getsignal(s) for s in signal.valid_signals()},
        "streams": [(s, s.errors, s.encoding) for s in (sys.stdin, sys.stdout, sys.stderr)],
        "hooks": (sys.excepthook, threading.excepthook, sys.gettrace()),
        "limit": sys.getrecursionlimit(),
        "locale": locale.setlocale(locale.LC_ALL),
        "folder": os.getcwd(),
        "errors": (np.geterr(), np.get_printoptions()),
        "random": (random.getstate(), repr(np.random.get_state())),  # noqa: NPY002
        "start": multiprocessing.get_start_method(allow_none=True),
    }


CALLS = {
    "path": lambda f, X, y: lz.path(f, range(1, 4)),
    "solve": lambda f, X, y: lz.solve(f, 2, "lasso"),
    "certify": lambda f, X, y: lz.certify(f, lz.path(f, range(1, 3))),
    "fit": lambda f, X, y: lz.SparseRegressor(2).fit(X, y).predict(X),
    "folds": lambda f, X, y: lz.SparseRegressorCV(range(1, 3), cv=2, method="els").fit(X, y),
    "parallel folds": lambda f, X, y: lz.SparseRegressorCV([1, 2], cv=2, n_jobs=2).fit(X, y),
    "parallel sizes": lambda f, X, y: lz.path(f, [1, 2], "els", n_jobs=2),
    "parallel restarts": lambda f, X, y: lz.arht(f, 2, n_runs=2, n_jobs=2),
    "logistic": lambda f, X, y: lz.certify(g := Logistic(X, y > 0, ridge=1.0), lz.solve(g, 2)),
    "classes": lambda f, X, y: lz.SparseClassifierCV([1, 2], cv=2).fit(X, np.digitize(y, [-1, 1])),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_the_process_as_it_was(rng, two_threads, name):
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    f = LeastSquares(X, y)
    multiprocessing.set_start_method(None, force=True)  # another test may have asked for it
    before = state()
    with parallel_config("threading"):
        CALLS[name](f, X, y)
    now = state()
    if name.startswith("parallel"):  # the pools of joblib fix it
        now["start"] = before["start"]
    assert now == before


def test_the_command_line_leaves_the_process_as_it_was(rng, two_threads, tmp_path, capsys):
    data = write("csv", tmp_path, *numbers(rng), list("abcdef"))
    for arguments in (
        ["fit", str(data), "--target", "y", "-s", "2", "--certify", "9"],
        ["fit", str(data), "--target", "y", "--cv", "3"],
        ["path", str(data), "--target", "y"],
        ["fit", str(data), "--target", "no"],
    ):
        before = state()
        assert main(arguments) == ("no" in arguments)
        assert state() == before
    assert "x1" not in capsys.readouterr().err


def test_commands_at_once_leave_the_process_as_it_was(rng, tmp_path, capsys):
    data = write("csv", tmp_path, *numbers(rng), list("abcdef"))
    before, together = state(), Barrier(3)

    def command(s):
        together.wait(60)
        return main(["fit", str(data), "--target", "y", "-s", s])

    for _ in range(3):
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(command, "123")) == [0, 0, 0]
        assert state() == before


def test_a_bar_leaves_the_streams_of_the_process_alone(monkeypatch):
    pytest.importorskip("rich", reason="draws the bar")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    before = sys.stdout
    with progress("reading", 3) as advance:
        advance(1)
        assert (sys.stdout, sys.stderr) == (before, terminal)
    assert "reading" in terminal.getvalue()


def test_a_stdout_that_nobody_reads_stays_what_it_is(rng, tmp_path, monkeypatch):
    data = write("csv", tmp_path, *numbers(rng), list("abcdef"))
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert main(["fit", str(data), "--target", "y", "-s", "2"]) == 1
        with pytest.raises(BrokenPipeError):
            os.write(writer, b"more")


# warnings


def fit_that_waits(k, begun, ended, order):
    """Fit in a thread, where warnings are ignored, and end in turn."""
    turn, waited = order.index(k), []

    def callback(x):
        if not waited:
            waited.append(True)
            begun.wait(60)
            assert ended[turn].wait(60)

    rng = np.random.default_rng(k)
    X = rng.normal(size=(40, 5))
    model = lz.SparseRegressor(2, method="omp", options={"callback": callback})
    model.fit(X, X[:, 0] + rng.normal(size=40))
    ended[turn + 1].set()


@pytest.mark.parametrize("order", ORDERS)
def test_fits_that_end_in_any_order_leave_the_filters_of_warnings_alone(order):
    before, begun, ended = list(warnings.filters), Barrier(3), [Event() for _ in range(4)]
    ended[0].set()
    threads = [Thread(target=fit_that_waits, args=(k, begun, ended, order)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


@pytest.mark.parametrize("first", ["the user", "the fit"])
def test_filters_of_the_user_beside_a_fit(first):
    """A block of the user overlaps with a fit in another thread."""
    before, begun, ended = list(warnings.filters), Barrier(2), [Event() for _ in range(2)]
    other = Thread(target=fit_that_waits, args=(0, begun, ended, (0,)))
    block = warnings.catch_warnings()
    if first == "the user":
        block.__enter__()
        other.start()
        begun.wait(60)
        block.__exit__(None, None, None)
        ended[0].set()
        other.join()
    else:
        other.start()
        begun.wait(60)
        block.__enter__()
        ended[0].set()
        other.join()
        block.__exit__(None, None, None)
    assert warnings.filters == before


def test_a_fit_ignores_no_warnings_of_another_thread(rng):
    X = rng.normal(size=(60, 8))
    begun, ended = Barrier(2), [Event() for _ in range(2)]
    other = Thread(target=fit_that_waits, args=(0, begun, ended, (0,)))
    other.start()
    begun.wait(60)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        lz.iht(LeastSquares(X, X[:, 0] - X[:, 3]), 2, max_iter=1)
    ended[0].set()
    other.join()


def test_warnings_of_scikit_learn_inside_the_lasso_are_silent(rng, monkeypatch):
    """The filter names the module to which scikit-learn attributes them."""
    monkeypatch.setattr(
        "ellzero.methods.lasso.Lasso",
        lambda alpha, **given: Lasso(alpha, **(given | {"max_iter": 1})),
    )
    X = rng.normal(size=(50, 20)) + 9 * rng.normal(size=(50, 1))
    lz.lasso(LeastSquares(X, X[:, 0] + rng.normal(size=50)), 3)
    monkeypatch.setattr("ellzero.methods.lasso.warning_filter", lambda *_: nullcontext())
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        lz.lasso(LeastSquares(X, X[:, 0] + rng.normal(size=50)), 3)
