"""Fixtures for every test file."""

import numpy as np
import pytest

import golden.real
from ellzero.objectives import glm, least_squares


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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
