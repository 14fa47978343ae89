"""What an A/B run makes of its measurements; the times themselves are not tested."""

import json
import math
from itertools import groupby

import numpy as np
import pytest

reason = "benchmarks are imported from the root of the repository"
pytest.importorskip("benchmarks", reason=reason)

from benchmarks import refit  # noqa: E402
from benchmarks.ab import compare, worker  # noqa: E402
from benchmarks.ab.jobs import GROUPS, all_jobs  # noqa: E402
from benchmarks.judge import Judge  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
Y = 3 * X[:, 4] - X[:, 1] + 0.1 * RNG.standard_normal(60)
CLASSES = np.digitize(Y + RNG.standard_normal(60), [-1.0, 1.0]).astype(float)


def row(s, support, value=1.0, **proof):
    return {"s": s, "support": support, "value": value, **proof}


def proof(gap, bound):
    return {"gap": gap, "bound": bound, "margin": 1e-9, "better": None}


def unasked(support):
    raise AssertionError("equal supports are not judged")


def record(name, base, head, group="arht", **losses):
    kept = compare.compare_rows([row(1, [0])], [row(1, [0])], unasked, 1.0) | losses
    both = {"base": base, "head": head}
    about = {"group": group, "name": name, "status": "ok"}
    return {**about, "times": both, "cpu": both, "losses": kept}


def test_means_and_ratios():
    assert compare.geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert compare.geometric_mean([1.0, 8.0]) == pytest.approx(math.sqrt(8))
    assert math.isnan(compare.geometric_mean([]))
    assert compare.ratios(record("a", [2.0, 4.0, 9.0], [1.0, 8.0, 9.0])) == {
        "shortest": 0.5,
        "median": 2.0,
        "cpu": 0.5,
    }


def test_times_are_settled_when_the_three_shortest_agree():
    times = [5.0, 1.0, 1.01, 9.0, 1.015]
    assert compare.is_settled(times, [1.01, 1.0, 1.0])
    assert not compare.is_settled(times, [1.0, 1.0])
    assert not compare.is_settled(times, [1.0, 1.01, 1.1, 1.1, 1.1])
    assert not compare.is_settled(times, [1.1, 1.1, 1.1])


def test_equal_supports_are_equal_and_their_values_are_compared():
    found = compare.compare_rows([row(1, [3], 2.0)], [row(1, [3], 2.5)], unasked, 1e-9)
    assert (found["worse"], found["better"], found["worst"]) == (0, 0, 0.0)
    assert found["value_difference"] == pytest.approx(0.25)


def test_other_supports_are_judged():
    losses = {(0,): 4.0, (1,): 5.0, (0, 1): 2.0, (0, 2): 1.0, (0, 1, 2): 1.0, (0, 1, 3): 1 + 1e-12}
    base = [row(1, [0]), row(2, [0, 1]), row(3, [0, 1, 2]), row(4, [0])]
    head = [row(1, [1]), row(2, [0, 2]), row(3, [0, 1, 3]), row(5, [0])]
    found = compare.compare_rows(base, head, lambda S: losses[tuple(S)], 1e-9)
    assert (found["sizes"], found["worse"], found["better"]) == (3, 1, 1)
    assert found["excess"] == {1: 0.25, 2: -0.5}
    assert found["worst"] == 0.25
    assert found["other_supports"] == 3
    assert (found["only_base"], found["only_head"]) == ([4], [5])


def test_a_loss_of_zero_is_compared_with_the_floor():
    assert compare.relative(1e-6, 0.0, 1e-3) == pytest.approx(1e-3)
    assert compare.relative(-3.0, -2.0, 1e-3) == -0.5


def test_a_larger_gap_is_worse():
    base = [row(1, [0], **proof(0.0, 1.0)), row(2, [0, 1], **proof(math.inf, -math.inf))]
    head = [row(1, [0], **proof(0.1, 0.9)), row(2, [0, 1], **proof(math.inf, -math.inf))]
    found = compare.compare_rows(base, head, unasked, 1e-9)
    assert (found["worse"], found["worst"], found["refuted"]) == (1, 0.1, [])


def test_a_bound_above_a_known_value_is_found():
    base, head = row(1, [0], 1.0, **proof(0.0, 1.0)), row(1, [0], 1.0, **proof(0.0, 1.1))
    assert compare.compare_rows([base], [head], unasked, 1e-9)["refuted"] == [1]
    better = base | {"value": 2.0, "bound": 1.5, "better": 1.0}
    assert compare.compare_rows([better], [base | {"value": 2.0}], unasked, 1e-9)["refuted"] == [1]


def test_table():
    records = [
        record("fast", [1e-3], [2e-3], worse=1, worst=0.01),
        record("slow", [20.0], [5.0], only_base=[3], refuted=[2]),
        {"group": "large", "name": "lost", "status": "timeout", "why": "head: over 120 s"},
    ]
    text = compare.table(records, GROUPS)
    lines = text.splitlines()
    fast, slow, lost = (next(r for r in lines if word in r) for word in ("fast", "slow", "lost"))
    numbers = ["2.000", "2.000", "2.000", "1", "1", "0", "0.01"]
    assert fast.split() == ["fast", "1", "ms", "2", "ms", *numbers]
    assert "only base has s = 3; WRONG BOUND at s = 2" in slow
    assert lost.split(maxsplit=1)[1] == "timeout: head: over 120 s"
    means = [r.split()[-7:] for r in lines if "geometric mean of 2" in r]
    assert means == 2 * [["0.707", "0.707", "0.707", "2", "1", "0", "0.01"]]
    assert "Not measured: 1 of 3 jobs; their lines say why." in text
    assert "A lower bound is above a known value: slow." in text
    assert next(r for r in lines if "largest" in r).endswith("fast")


def test_times_have_units():
    assert [compare.seconds(t) for t in (12.34, 0.012345, 4.56e-5)] == [
        "12.3 s",
        "12.3 ms",
        "45.6 µs",
    ]


@pytest.mark.parametrize("task", ["least_squares", "logistic", "multinomial"])
def test_null_loss_is_the_judges(task):
    y = {"least_squares": Y, "logistic": (Y > 0.3).astype(float), "multinomial": CLASSES}[task]
    assert compare.null_loss(y, task) == pytest.approx(Judge(X, y, task).null, rel=1e-9)


def test_jobs():
    jobs = all_jobs()
    names = [job.id for job in jobs]
    assert len(set(names)) == len(names)
    assert {job.group for job in jobs} == set(GROUPS)
    assert all(job.call["kind"] in worker.CALLS for job in jobs)
    assert json.loads(json.dumps([job.call for job in jobs])) == [job.call for job in jobs]
    order = [job.problem.name for job in jobs]
    assert len(list(groupby(order))) == len(set(order))  # data are made once


CALLS = [
    {"kind": "path", "sizes": [1, 2], "method": "auto", "options": {}},
    {"kind": "solve", "s": 2, "method": "omp", "options": {}},
    {"kind": "algorithm", "s": 2, "method": "exchange", "options": {}},
    {"kind": "fit", "estimator": "SparseRegressor", "options": {"sparsity": 2}},
    {"kind": "certify", "sizes": [2], "time_limit": 60.0},
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call["kind"])
def test_worker(call):
    done = worker.turn({"objective": "LeastSquares", **call}, X, Y, 0.0, 5)
    last = done["rows"][-1]
    assert len(done["times"]) == len(done["cpu"]) == 1
    assert (last["s"], last["support"]) == (2, [1, 4])
    assert last["value"] == pytest.approx(Judge(X, Y, "least_squares").loss([1, 4]))
    assert last.get("gap", 0.0) == 0.0
    assert json.loads(json.dumps(done)) == done


def test_softmax_refit():
    S = [1, 4]
    done = worker.turn(
        {"kind": "path", "objective": "Multinomial", "sizes": [2], "method": "auto", "options": {}},
        X, CLASSES, 0.0, 1,
    )["rows"][0]  # fmt: skip
    assert refit.multinomial(X[:, done["support"]], CLASSES).loss == pytest.approx(
        done["value"], rel=1e-9
    )
    two = (CLASSES > 0).astype(float)
    assert refit.multinomial(X[:, S], two).loss == pytest.approx(
        refit.logistic(X[:, S], two).loss, rel=1e-9
    )
    assert refit.multinomial(X, np.digitize(X[:, 0], [-0.5, 0.5])).loss < 1e-8 * len(X)
