"""`ellzero path`, `ellzero demo`, and the results they leave."""

import json

import pytest

import ellzero as lz
from cli_files import mixed, numbers, run, write
from ellzero.report import render


@pytest.fixture
def data(tmp_path, rng):
    X, y = numbers(rng)
    return write("csv", tmp_path, X, y, list("abcdef"))


def test_results_are_those_of_path_and_can_be_rendered(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    results = tmp_path / "results.json"
    arguments = ("--target", "y", "--max", 4, "--methods", "auto", "omp", "--cv", 3)
    code, text, err = run(capsys, "path", data, *arguments, "--out", results)
    assert code == 0, err
    found = json.loads(results.read_text())
    expected = lz.path(lz.LeastSquares(X, y, fit_intercept=True), range(1, 5))
    assert found["losses"]["auto"] == pytest.approx([p.value for p in expected.values()])
    assert [[row["feature"] for row in m["chosen"]] for m in found["models"]] == [
        p.support.tolist() for p in expected.values()
    ]
    lines = text.splitlines()
    assert lines[0] == "regression of y on 60 rows: 6 features"
    assert " ".join(lines[1].split()) == "s loss omp explained fold error came (+) and went (−)"
    assert lines[3].startswith("2 ")
    assert lines[-2] == "loss: half the sum of squared errors; fold error: mean squared error"
    assert lines[-1].startswith("the folds are best with ")
    assert render(found).startswith("<!")


def test_json_is_one_document(data, capsys):
    code, out, _ = run(capsys, "path", data, "--target", "y", "--max", 2, "--json")
    assert code == 0
    assert json.loads(out)["sizes"] == [1, 2]


def test_sizes_end_with_the_features(data, capsys):
    _, text, err = run(capsys, "path", data, "--target", "y", "--max", 40, "--forced", "a")
    assert len(text.splitlines()) == 8
    assert "ellzero: the sizes end at 5, the number of features\n" in err


def test_effort_is_for_auto(data, capsys):
    arguments = ("path", data, "--target", "y", "--max", 2)
    assert run(capsys, *arguments, "--effort", 2, "--methods", "auto", "lasso")[0] == 0


@pytest.mark.parametrize("kind", ["libsvm", "sparse.npz"])
def test_sparse_files(kind, tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write(kind, tmp_path, X * (abs(X) > 0.5), y, list("abcdef"))
    assert run(capsys, "path", data, "--max", 3)[0] == 0


def test_words_and_classes(tmp_path, rng, capsys):
    frame = mixed(rng)
    frame["y"] = (frame["y"] > 5).map({True: "high", False: "low"})
    frame.to_csv(tmp_path / "data.csv", index=False)
    code, text, _ = run(capsys, "path", tmp_path / "data.csv", "--target", "y", "--max", 3)
    assert code == 0
    assert "+colour=red" in text


def test_demo(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    pytest.importorskip("matplotlib")
    code, text, err = run(capsys, "demo", "--picture", picture)
    assert code == 0
    lines = text.splitlines()
    assert len(lines) == 16
    assert lines[1].split()[-1] == "+bmi"
    for line in lines[1:]:
        loss, omp, lasso = map(float, line.split()[2:5])
        assert loss <= min(omp, lasso)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert err == f"ellzero: the picture is in {picture}\n"
