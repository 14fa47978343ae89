"""Fixtures for every test file."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import golden.real
from ellzero.objectives import glm, least_squares


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
def lazy_gram(monkeypatch):
    """Treat every problem as too wide for a Gram matrix."""
    for module in (least_squares, glm):
        monkeypatch.setattr(module, "LARGEST_GRAM", 0)
    monkeypatch.setattr("ellzero.objectives.lazy_gram.PANELS_FROM", 0)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets: $ELLZERO_DATA, or shared/data beside the checkout."""
    if reason := golden.real.missing_folder():
        pytest.skip(reason)
    return golden.real.data_folder()
