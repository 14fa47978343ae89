"""Certificates: a bound is never above the optimum, and a proof is one."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
from ellzero import LeastSquares, Logistic, Quadratic, certify
from ellzero.certificates import Verdict
from ellzero.certificates.diagonal import certified, uniform, weighted
from ellzero.certificates.perspective import IN, OUT, Perspective, weights


def random_problem(seed):
    """Small and awkward: ill-conditioned, rank-deficient, weighted, forced, ridge or none."""
    rng = np.random.default_rng([seed, 17])
    n = int(rng.integers(3, 8))
    m = int(rng.integers(n + 2, 25)) if rng.random() < 0.85 else int(rng.integers(2, n + 1))
    X = rng.standard_normal((m, n))
    kind = seed % 4
    if kind == 1:  # ill-conditioned
        X = X @ (np.ones((n, n)) + 10.0 ** -rng.uniform(1, 4) * rng.standard_normal((n, n)))
    elif kind == 2:  # rank-deficient
        X[:, rng.integers(n)] = X[:, 0] * rng.choice([1.0, -2.0]) + X[:, n - 1] * rng.choice([0, 1])
    elif kind == 3:
        X = X * 10.0 ** rng.integers(-3, 4, n) + rng.choice([0.0, 5.0])
    y = X @ rng.standard_normal(n) * rng.choice([0.1, 1.0]) + rng.standard_normal(m)
    options = {
        "sample_weight": rng.integers(1, 4, m).astype(float) if rng.random() < 0.4 else None,
        "fit_intercept": bool(rng.random() < 0.5),
        "forced": [int(rng.integers(n))] if rng.random() < 0.3 else [],
        "ridge": float(10.0 ** rng.uniform(-3, 2)) if rng.random() < 0.5 else 0.0,
    }
    return X, y, options


def literal_minimum(X, y, S, options):
    """½ Σ w (Xx + a − y)² + ½ ridge ‖x‖² over the columns S, by a least-squares solver."""
    m = len(y)
    w = np.ones(m) if options["sample_weight"] is None else options["sample_weight"]
    A = X[:, list(S)]
    scale = np.where(np.linalg.norm(A, axis=0) > 0, np.linalg.norm(A, axis=0), 1.0)
    rows = np.sqrt(options["ridge"]) * np.diag(1 / scale)
    A = A / scale
    if options["fit_intercept"]:
        A, rows = np.column_stack([A, np.ones(m)]), np.column_stack([rows, np.zeros(len(S))])
    A = np.vstack([np.sqrt(w)[:, None] * A, rows])
    t = np.concatenate([np.sqrt(w) * y, np.zeros(len(S))])
    u = np.linalg.lstsq(A, t, rcond=1e-12)[0]
    return 0.5 * np.sum((A @ u - t) ** 2)


def enumerated(X, y, s, options):
    """The value of every support of size s; forced features are in all."""
    forced = options["forced"]
    free = [j for j in range(X.shape[1]) if j not in forced]
    return {
        S: literal_minimum(X, y, sorted([*S, *forced]), options)
        for size in range(s + 1)
        for S in combinations(free, size)
    }


def assert_sound(certificate, values):
    optimum, slack = min(values.values()), certificate.margin
    assert certificate.lower_bound <= optimum + slack
    if certificate.status in (Verdict.WEAK, Verdict.NO_BOUND):
        assert certificate.advice
        return
    assert certificate.status is Verdict.OPTIMAL
    best = certificate.value if certificate.better is None else certificate.better.value
    assert best <= optimum + slack
    for S in (set(S) for S, value in values.items() if value <= best):
        assert set(certificate.proven_in.tolist()) <= S
        assert not set(certificate.proven_out.tolist()) & S


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_problems(block):
    """Against enumeration; the solution certified is a greedy one, so often not the best."""
    for seed in range(100 * block, 100 * (block + 1)):
        X, y, options = random_problem(seed)
        f = LeastSquares(X, y, **options)
        s = 1 + seed % f.n_choosable
        certificate = certify(f, lz.omp(f, s), s=s)
        values = enumerated(X, y, s, options)
        assert_sound(certificate, values)
