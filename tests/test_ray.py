"""Folds, sizes and restarts on Ray's joblib backend: one test, so that Ray starts once."""

import gc

import numpy as np
import pytest
from joblib import parallel_config

from ellzero import Logistic, SparseRegressorCV, arht, path
from helpers import scores, values

# JAX, where another test has loaded it, warns of every fork
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")


@pytest.fixture
def ray_backend(monkeypatch):
    """A block in which joblib's tasks go to two workers of a Ray that is ours alone."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # no token in the home folder
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        register_ray()
        with parallel_config("ray", n_jobs=2):
            yield
    finally:
        ray.shutdown()
        gc.collect()  # Ray does not wait for its processes, which is noticed only here


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_answers_on_ray_are_those_of_one_process(rng, ray_backend):
    X = rng.normal(size=(120, 12))
    y = X[:, 0] - 2 * X[:, 3] + X[:, 5] + rng.normal(size=120)
    runs = {"n_runs": 4, "random_state": 0, "start": "first"}
    f = Logistic(X, y > 0, ridge=1e-3)
    alone, found = (path(f, [1, 2], "arht", **runs, n_jobs=n_jobs) for n_jobs in (1, 2))
    for s in alone:
        np.testing.assert_array_equal(found[s].x, alone[s].x)
    alone, found = (arht(f, 3, **runs, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_allclose(values(found), values(alone), rtol=1e-12)
    alone, found = (SparseRegressorCV([1, 2], cv=2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(scores(found), scores(alone))
