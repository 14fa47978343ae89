"""Gaussian designs with AR(1) columns and coefficients in cancelling pairs.

Neighbouring columns correlate at `rho` and carry opposite signs, so each half of a pair looks
useless without the other: the case that separates a search from a greedy choice.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit

from benchmarks.base import Problem


def design(rng: np.random.Generator, m: int, n: int, rho: float) -> np.ndarray:
    X = np.empty((m, n))
    rows = max(1, 20_000_000 // n)
    for i in range(0, m, rows):
        Z = rng.standard_normal((min(rows, m - i), n))
        Z[:, 1:] *= np.sqrt(1 - rho**2)
        X[i : i + rows] = lfilter([1.0], [1.0, -rho], Z, axis=1)
    return X


def signal(rng: np.random.Generator, X: np.ndarray, k: int) -> np.ndarray:
    """X b of unit variance, for b with k non-zeros in k / 2 nearly cancelling pairs."""
    b = np.zeros(X.shape[1])
    first = 2 * rng.choice(X.shape[1] // 2, k // 2, replace=False)
    size = rng.uniform(0.5, 1.5, k // 2) * rng.choice([-1.0, 1.0], k // 2)
    b[first] = size
    b[first + 1] = -size * rng.uniform(0.8, 1.2, k // 2)
    f = X @ b
    return f / f.std()


def regression(
    m: int, n: int, k: int, rho: float = 0.9, snr: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, m, n])
    X = design(rng, m, n, rho)
    return X, 3.0 + signal(rng, X, k) + rng.standard_normal(m) / np.sqrt(snr)


def classification(
    m: int, n: int, k: int, rho: float = 0.9, strength: float = 2.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, m, n, 1])
    X = design(rng, m, n, rho)
    t = strength * signal(rng, X, k) - 0.5
    return X, (rng.random(m) < expit(t)).astype(float)


def _sizes(stop: int) -> tuple[int, ...]:
    return tuple(range(1, stop + 1))


PROBLEMS = [
    Problem(
        "ls-500000x90",
        "least_squares",
        _sizes(40),
        partial(regression, 500_000, 90, 40),
        patience=3.0,
    ),
    Problem("ls-20000x400", "least_squares", _sizes(40), partial(regression, 20_000, 400, 40)),
    Problem("ls-1000x20000", "least_squares", _sizes(30), partial(regression, 1_000, 20_000, 20)),
    Problem("ls-2000x100000", "least_squares", (20,), partial(regression, 2_000, 100_000, 20)),
    Problem("logit-20000x100", "logistic", _sizes(30), partial(classification, 20_000, 100, 30)),
    Problem(
        "ls-20000x100",
        "least_squares",
        _sizes(20),
        partial(regression, 20_000, 100, 20),
        quick=True,
        full=False,
    ),
    Problem(
        "ls-500x2000",
        "least_squares",
        _sizes(15),
        partial(regression, 500, 2_000, 10),
        quick=True,
        full=False,
    ),
    Problem(
        "logit-3000x50",
        "logistic",
        _sizes(10),
        partial(classification, 3_000, 50, 10),
        quick=True,
        full=False,
    ),
]
