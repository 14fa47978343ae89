"""Fixtures for every test file."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import golden.real
from ellzero.objectives import least_squares
from ellzero.objectives.glm import glm, model


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def two_threads():
    """The user lets BLAS use two threads.

    A thread that has ended says so: from threadpoolctl 3.8 on, while one is in such a block no
    other thread can set a number.
    """
    with ThreadPoolExecutor(1) as pool:
        limits = pool.submit(threadpool_limits, 2, "blas").result()
    yield
    with ThreadPoolExecutor(1) as pool:
        pool.submit(limits.restore_original_limits).result()


@pytest.fixture
def on_demand(monkeypatch):
    """Treat every problem as too wide for its moments to be held."""
    monkeypatch.setattr(least_squares, "LARGEST_HELD", 0)
    monkeypatch.setattr(model, "LARGEST_MODEL", 0)
    monkeypatch.setattr(model, "LARGEST_SPARSE_MODEL", 0)
    monkeypatch.setattr(glm, "LARGEST_BOUND", 0)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets: $ELLZERO_DATA, or shared/data beside the checkout."""
    if reason := golden.real.missing_folder():
        pytest.skip(reason)
    return golden.real.data_folder()
