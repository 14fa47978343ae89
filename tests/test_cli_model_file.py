"""Model files: what is written is read back the same, and a stranger's file can do no harm."""

import copy
import json

import numpy as np
import pytest

from cli_files import fails, run
from ellzero.cli.model_file import LARGEST_FILE, load, to_json

GOOD = {
    "schema": "ellzero.model",
    "version": 1,
    "ellzero": "0.1.0",
    "task": "classification",
    "target": "y",
    "classes": ["no", "yes"],
    "columns": [
        {"name": "age", "kind": "numeric", "missing": 30.5},
        {"name": "colour", "kind": "categorical", "levels": ["blue", "red"], "missing": None},
    ],
    "terms": [
        {"column": "age", "coefficients": [0.5]},
        {"column": "colour", "level": "red", "coefficients": [-1.25]},
    ],
    "intercept": [0.1],
    "fit": {},
}


def changed(*path, to):
    """The good document with one entry changed, or removed where `to` is Ellipsis."""
    document = copy.deepcopy(GOOD)
    place = document
    for key in path[:-1]:
        place = place[key]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return json.dumps(document)


@pytest.fixture
def model_file(tmp_path):
    def write(text):
        path = tmp_path / "model.json"
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        return path

    return write


def test_the_round_trip(model_file):
    model = load(model_file(json.dumps(GOOD)))
    assert to_json(model, {}) == GOOD
    assert model.coefficients.tolist() == [[0.5, -1.25]]
    estimator = model.estimator()
    X = np.array([[30.0, 1.0], [-9.0, 0.0]])
    assert estimator.predict(X).tolist() == ["yes", "no"]
    np.testing.assert_allclose(estimator.decision_function(X), [13.85, -4.4], rtol=1e-14)


WRONG = {
    "'schema' must be 'ellzero.model'": changed("schema", to="other"),
    "reads version 1 of the format, the file has 2": changed("version", to=2),
    "reads version 1 of the format, the file has True": changed("version", to=True),
    "the file has '1'": changed("version", to="1"),
    "the file has inf": changed("version", to=7).replace("7", "1" * 5000),
    "the file has None": changed("version", to=...),
    "'task' must be one of": changed("task", to="ranking"),
    "'target' must be text": changed("target", to=3),
    "'classes' must be a list": changed("classes", to="ab"),
    "'classes' must be 2 to 10000 of them": changed("classes", to=["a"]),
    "'classes' must all be text, or all numbers": changed("classes", to=["a", 1]),
    "all numbers.": changed("classes", to=[["a"], ["b"]]),
    "'classes' has a class twice": changed("classes", to=["a", "a"]),
    "a class is too large a number": changed("classes", to=[1, 2**64]),
    "'classes' must be empty for a regression": changed("task", to="regression"),
    "'columns' must be a list": changed("columns", to={}),
    "'columns' must hold objects": changed("columns", to=[1]),
    "'columns' has a name twice": changed("columns", to=[GOOD["columns"][0]] * 2),
    "the 'name' of a column must be text": changed("columns", 0, "name", to=None),
    "column 'age': 'kind' must be numeric or categorical": changed("columns", 0, "kind", to="x"),
    "column 'age': 'missing' must be a number": changed("columns", 0, "missing", to="x"),
    "'levels' must be a list of words": changed("columns", 1, "levels", to=[1]),
    "column 'colour': 'levels' must be": changed("columns", 1, "levels", to=[]),
    "'levels' has a level twice": changed("columns", 1, "levels", to=["red", "red"]),
    "'missing' must be one of its levels": changed("columns", 1, "missing", to="pink"),
    "'terms' must be a list": changed("terms", to=...),
    "a term is of column 'x', which 'columns' has not": changed("terms", 0, "column", to="x"),
    "column 'colour' has no level 'pink'": changed("terms", 1, "level", to="pink"),
    "column 'colour' has no level '['red']'": changed("terms", 1, "level", to=["red"]),
    "column 'colour' has no level 'None'": changed("terms", 1, "level", to=...),
    "column 'age' is numeric and has no levels": changed("terms", 0, "level", to="red"),
    "'terms' has a term twice": changed("terms", to=[GOOD["terms"][0]] * 2),
    "'coefficients' must be a list of 1 number(s)": changed("terms", 0, "coefficients", to=[1, 2]),
    "an entry of 'coefficients' must be a number": changed("terms", 0, "coefficients", to=["1"]),
    "an entry of 'coefficients' must be a number.": changed("terms", 0, "coefficients", to=[True]),
    "an entry of 'coefficients' must be finite": changed("terms", 0, "coefficients", to=[10**400]),
    "'intercept' must be a list": changed("intercept", to=0.1),
    "it holds NaN": changed("terms", 0, "coefficients", to=[float("nan")]),
    "it holds -Infinity": changed("intercept", to=[-float("inf")]),
    "an entry of 'intercept' must be finite": changed("intercept", to=[7]).replace("7", "1e999"),
    "it must be a JSON object": "[]",
    "it is no JSON (Expecting value": "no JSON",
    "a key stands twice in one object": '{"schema": "ellzero.model", "schema": "other"}',
    "it is nested too deeply": "[" * 200_000,
    "it is not UTF-8 text": b"\xff\xfe{}",
}


@pytest.mark.parametrize("reason", WRONG)
def test_what_is_wrong_is_said(reason, model_file, tmp_path, capsys):
    path = model_file(WRONG[reason])
    message = fails(capsys, "predict", path, tmp_path / "data.csv")
    assert message.startswith(f"{path}: is no model: ")
    assert reason in message


def test_a_file_too_large_is_not_read(tmp_path, capsys):
    path = tmp_path / "model.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    assert fails(capsys, "predict", path, path) == f"{path}: is no model: larger than 64 MB."


@pytest.mark.parametrize("classes", [[0, 1], [False, True], [0.5, 1.5], ["a", "b"], [-1, 0, 1]])
def test_classes_of_every_type_come_back(classes, model_file, tmp_path, capsys):
    document = json.loads(changed("classes", to=classes))
    if len(classes) > 2:
        for term in document["terms"]:
            term["coefficients"] *= 3
        document["intercept"] = [0.0, 1.0, 2.0]
    path = model_file(json.dumps(document))
    (tmp_path / "data.csv").write_text("age,colour\n40,blue\n,red\n")
    code, out, _ = run(capsys, "predict", path, tmp_path / "data.csv", "--json")
    assert code == 0
    predictions = json.loads(out)
    assert predictions["predictions"] == [classes[-1]] * 2
    assert predictions["classes"] == classes
    assert np.sum(predictions["probabilities"], axis=1) == pytest.approx([1, 1])


def test_a_model_without_features_predicts_its_intercept(model_file, tmp_path, capsys):
    document = {**GOOD, "task": "regression", "classes": [], "columns": [], "terms": []}
    path = model_file(json.dumps(document))
    (tmp_path / "data.csv").write_text("a\n1\n2\n")
    out = run(capsys, "predict", path, tmp_path / "data.csv")[1]
    assert out == "prediction\n0.1\n0.1\n"
