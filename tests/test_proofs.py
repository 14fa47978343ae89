"""Proven means proven: what is called optimal, against long double where rounding is worst.

`ELLZERO_FUZZ=5000 pytest tests/test_proofs.py -n auto` looks at so many problems of each kind.
"""

import os
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ellzero as lz
import long_double
from ellzero.certificates import Verdict

N_PROBLEMS = int(os.environ.get("ELLZERO_FUZZ", "60"))
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def start_at(f, support):
    return lz.ompr(f, len(support), start=support, max_iter=0)


# by hand


def offset_of_y(rng, X):
    signal = 100 * (X[:, 0] + X[:, 1]) + 100 * rng.standard_normal(200)
    return signal + 1.75e9, {"fit_intercept": True}, [8, 9]


def strong_forced_feature(rng, X):
    return 1e7 * X[:, 0] + X[:, 1] + rng.standard_normal(200), {"forced": [0]}, [8]


def nearly_perfect_fit(rng, X):
    return X[:, 0] + 1e-5 * X[:, 1] + 1e-7 * rng.standard_normal(200), {}, [0, 7]


@pytest.mark.parametrize("make", [offset_of_y, strong_forced_feature, nearly_perfect_fit])
def test_a_bad_model_is_not_proven_where_other_parts_of_y_are_large(make):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 10))
    y, options, support = make(rng, X)
    f = lz.LeastSquares(X, y, **options)
    found = lz.certify(f, start_at(f, support))
    assert not found.proven
    assert found.status is Verdict.OPTIMAL  # the rows tell which model is best
    assert {0, 1} <= {*found.better.support, *f.features.forced}
    assert lz.certify(f, lz.solve(f, len(support))).proven


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e10])
def test_offsets_of_y_cost_no_proof(offset):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 12))
    y = X[:, 3] - X[:, 7] + rng.standard_normal(300) + offset
    f = lz.LeastSquares(X, y, fit_intercept=True)
    for s in (1, 2, 5):
        assert lz.certify(f, lz.solve(f, s)).proven


def test_moments_alone_admit_what_they_cannot_tell():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 10))
    y = X[:, 0] + 1e-5 * X[:, 1] + 1e-7 * rng.standard_normal(200)
    f = lz.LeastSquares.from_statistics(lz.Statistics.from_arrays(X, y))
    assert lz.certify(f, start_at(f, [0, 7])).status is Verdict.UNSURE
    assert lz.solve(f, 2).status is not lz.Status.OPTIMAL


@pytest.mark.parametrize("apart", 10.0 ** -np.arange(6, 12))
@pytest.mark.parametrize("loss", [lz.Logistic, lz.Multinomial])
def test_near_copies_that_separate_the_classes_are_found(loss, apart):
    rng = np.random.default_rng(0)
    X, e = rng.standard_normal((40, 5)), rng.standard_normal(40)
    X[:, 1] = X[:, 0] + apart * e
    p = lz.path(loss(X, (e > 0).astype(float)), range(1, 6))
    assert p[2].support.tolist() == [0, 1]
    assert p[2].value < 1e-8
    values = [p[s].value for s in p]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(values))


@pytest.mark.parametrize("loss", [lz.Logistic, lz.Multinomial])
def test_near_copies_have_the_loss_of_their_difference(loss):
    """The span of x and x + 1e-9 e is that of x and e."""
    rng = np.random.default_rng(0)
    X, e = rng.standard_normal((80, 4)), rng.standard_normal(80)
    y = (e + rng.standard_normal(80) > 0).astype(float)
    apart = np.column_stack([X[:, 0], X[:, 0] + 1e-9 * e, X[:, 2:]])
    there = np.column_stack([X[:, 0], e, X[:, 2:]])
    for support, ridge in (([0, 1], 0.0), ([0, 1, 2], 0.0), ([0, 1], 1e-25)):
        found, wanted = (start_at(loss(A, y, ridge=ridge), support) for A in (apart, there))
        assert_allclose(found.value, wanted.value, rtol=1e-6)


def test_no_proven_feature_is_missing_from_a_better_model():
    X = np.random.default_rng(3).standard_normal((5, 5)) + 1e5
    for seed in range(20):
        y = (np.random.default_rng(seed).random(5) < 0.5).astype(float)
        if len(set(y)) < 2:
            continue
        for loss in (lz.Logistic, lz.LeastSquares):
            f = loss(X, y)
            found = lz.certify(f, start_at(f, [0, 1]))
            if found.better is not None:
                assert set(found.proven_in) <= set(found.better.support)
                assert not set(found.proven_out) & set(found.better.support)


# against long double


def failures(f, losses, null, seed):
    """Say what of a path and of two certificates is not as long double has it."""
    squares = isinstance(f, lz.LeastSquares)
    slack = 1e-26 * null if squares else 3e-9 * null
    path = lz.path(f, sorted(losses))
    for s, found in path.items():
        best, own = min(losses[s].values()), losses[s][tuple(found.support.tolist())]
        if found.status is lz.Status.OPTIMAL:
            if not own <= best * (1 + 1e-4) + slack:
                yield f"path: optimal at {s} with {own:g}, there is {best:g}"
            if not found.value <= best * (1 + 1e-3) + (1e5 if squares else 100) * slack:
                yield f"path: optimal at {s} with a reported {found.value:g}, there is {best:g}"
        if s > 1 and found.value > path[s - 1].value * (1 + 1e-8) + 1e-4 * slack:
            yield f"path: rises at {s} from {path[s - 1].value:g} to {found.value:g}"
    rng = np.random.default_rng(seed)
    s = int(rng.choice(sorted(losses)))
    some = list(losses[s])[rng.integers(len(losses[s]))]
    for given in (start_at(f, list(some)), path[s]):
        yield from false_claims(lz.certify(f, given, s=s, time_limit=10), losses[s], slack)


def false_claims(found, losses, slack):
    """Say what of a certificate is not as long double has it."""
    best = min(losses.values())
    known = min(found.value, np.inf if found.better is None else found.better.value)
    if found.status is Verdict.OPTIMAL and not known <= best * (1 + 2e-3) + slack:
        yield f"certificate: optimal with {known:g}, there is {best:g}"
    if found.proven and not found.value <= best * (1 + 2e-3) + slack:
        yield f"certificate: {found.value:g} is proven, there is {best:g}"
    if not found.lower_bound <= best * (1 + 1e-7) + found.margin + slack:
        yield f"certificate: bound {found.lower_bound:g} above {best:g}"
    for features, inside in ((found.proven_in, False), (found.proven_out, True)):
        for j in features.tolist():
            values = [value for S, value in losses.items() if (j in S) is inside]
            if min(values, default=np.inf) < known * (1 - 1e-6) - slack:
                yield f"certificate: says that {j} is {'out' if inside else 'in'}"


@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_hard_least_squares(seed):
    X, y, options, least = long_double.hard_squares(seed)
    losses, null = long_double.squares(X, y, options, least)
    assert not list(failures(lz.LeastSquares(X, y, **options), losses, null, seed))


@pytest.mark.parametrize("seed", range(N_PROBLEMS // 2))
def test_hard_classes(seed):
    X, y, n_classes, options, least = long_double.hard_classes(seed)
    losses, null = long_double.classes(X, y, n_classes, options, least)
    f = (lz.Logistic if n_classes == 2 else lz.Multinomial)(X, y, **options)
    assert not list(failures(f, losses, null, seed))
