"""Today's answers beside those of the golden files; `make golden` rewrites the files.

Single methods and ARHT's traces must be the same, the search may only get better, and proofs must
stay proofs. The rules are in `golden/rules.py`.
"""

import copy

import pytest

from golden.problems import PROBLEMS
from golden.real import missing
from golden.record import FOLDER, read_golden, recording
from golden.rules import Comparison


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_answers_are_as_good_as_the_golden_ones(problem):
    if problem.real and (reason := missing(problem.real)):
        pytest.skip(reason)
    complaints = Comparison(read_golden(problem), recording(problem)).complaints()
    assert not complaints, "\n" + "\n".join(complaints)


def test_every_golden_file_has_its_problem():
    assert {file.stem for file in FOLDER.glob("*.json")} == set(PROBLEMS)


# the rules themselves


@pytest.fixture
def golden():
    """A recording with a row of every kind."""
    path = {"method": "path", "s": 2, "status": "SEARCH_ENDED", "value": 5.0, "support": [1, 4]}
    step = {"method": "arht_core trace", "s": 2, "step": 1, "note": "+4 -3"}
    certificate = {"method": "certificate", "s": 1, "status": "OPTIMAL", "proven": True}
    return {
        "problem": "made-up",
        "data": {"shape": [9, 6], "entries": [0.5, -2.0], "sum_abs_y": 7.0},
        "rows": [
            {**path, "s": 1, "status": "OPTIMAL", "value": 8.0, "support": [2]},
            path,
            {**path, "s": 3, "status": "NO_MINIMISER", "value": 1e-7, "support": [1, 4, 5]},
            {**path, "method": "omp", "status": "COMPLETE", "value": 6.0, "support": [2, 4]},
            {**step, "value": 6.0, "support": [2, 4]},
            {
                **certificate,
                "value": 8.0,
                "lower_bound": 8.0,
                "margin": 1e-10,
                "proven_in": [2],
                "proven_out": [0, 3],
            },
        ],
    }


ROWS = {"optimal": 0, "path": 1, "limit": 2, "omp": 3, "step": 4, "certificate": 5}


def complaints_of(golden, row, change):
    new = copy.deepcopy(golden)
    new["rows"][ROWS[row]].update(change)
    return Comparison(golden, new).complaints()


@pytest.mark.parametrize(
    ("row", "change", "said"),
    [
        ("path", {"value": 5.0 + 1e-7}, "worse: golden value 5.0, new value 5.0000001"),
        ("path", {"value": float("nan")}, "worse"),
        ("path", {"value": 4.0}, "the same support has another value"),
        ("path", {"value": 4.0, "support": [1, 2, 4]}, "has 3 features"),
        ("optimal", {"status": "SEARCH_ENDED"}, "status was OPTIMAL, is SEARCH_ENDED"),
        ("optimal", {"value": 7.0, "support": [3]}, "below the proven minimum"),
        ("limit", {"value": 1e-3}, "worse"),
        ("omp", {"support": [2, 3]}, "golden support [2, 4], new support [2, 3]"),
        ("omp", {"value": 6.0 + 1e-7}, "golden value 6.0, new value 6.0000001"),
        ("omp", {"value": 5.9}, "golden value 6.0, new value 5.9"),
        ("step", {"support": [3, 4]}, "golden support [2, 4], new support [3, 4]"),
        ("step", {"value": 6.1}, "golden value 6.0, new value 6.1"),
        ("step", {"note": "free 4"}, "golden note '+4 -3', new note 'free 4'"),
        ("certificate", {"proven": False, "status": "UNDIVIDED"}, "was proven, is not (UNDIVIDED)"),
        ("certificate", {"lower_bound": 8.1}, "the bound is above a value that is attained"),
        ("certificate", {"lower_bound": 7.9}, "the bound is weaker"),
        ("certificate", {"lower_bound": float("nan")}, "the bound is weaker"),
        ("certificate", {"proven_in": [0]}, "feature 0 was proven out, is proven in"),
        ("certificate", {"proven_out": [2]}, "feature 2 was proven in, is proven out"),
        ("certificate", {"proven_in": [2, 4]}, "feature 4 is proven in, against the best support"),
    ],
)
def test_a_rule_that_is_broken_is_named(golden, row, change, said):
    named = [line for line in complaints_of(golden, row, change) if said in line]
    s = golden["rows"][ROWS[row]]["s"]
    assert named
    assert all(line.startswith("made-up: ") and f"size {s}" in line for line in named)


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("path", {}),
        ("path", {"value": 5.0 * (1 + 1e-11)}),
        ("path", {"value": 4.0, "support": [1, 3]}),
        ("path", {"support": [1, 3]}),
        ("path", {"status": "OPTIMAL"}),
        ("limit", {"value": 2e-6, "support": [0, 4, 5]}),
        ("omp", {"status": "LOCAL_OPTIMUM", "support": [4, 2]}),
        ("step", {"note": "-3 +4"}),
        ("certificate", {"lower_bound": 8.0 - 1e-7}),
        ("certificate", {"proven_in": [], "proven_out": [0, 1, 3, 4, 5]}),
    ],
)
def test_what_the_rules_allow(golden, row, change):
    assert not complaints_of(golden, row, change)


def test_rows_and_data_must_be_the_same(golden):
    fewer, other = copy.deepcopy(golden), copy.deepcopy(golden)
    del fewer["rows"][3]
    other["data"]["entries"][1] += 1e-6
    for old, new, said in (
        (golden, fewer, "made-up: omp, size 2: golden has it, but it is not there any more"),
        (fewer, golden, "made-up: omp, size 2: is not in the golden file"),
        (golden, other, "made-up: the data are not those of the golden file: entries"),
    ):
        (line,) = Comparison(old, new).complaints()
        assert line.startswith(said)


def test_rewriting_keeps_digits_that_rounding_changed(golden):
    new = copy.deepcopy(golden)
    new["rows"][ROWS["omp"]]["value"] *= 1 + 1e-12
    assert Comparison(golden, new).updated() == golden
    assert not Comparison(golden, new).changes()
    new["rows"][ROWS["path"]].update(value=4.0, support=[1, 3])
    changed = Comparison(golden, new)
    assert changed.changes() == {("path", 2, None): "better"}
    assert changed.updated()["rows"] == [*golden["rows"][:1], new["rows"][1], *golden["rows"][2:]]
