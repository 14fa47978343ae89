"""`ellzero fit` and `ellzero predict`: round trips over every format, and what the options do."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import KFold

import ellzero as lz
from cli_files import fails, mixed, numbers, run, write

KINDS = ["csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zip", "tsv", "tsv.gz", "parquet", "libsvm",
         "svm.gz", "npz", "sparse.npz", "arff"]  # fmt: skip


def fitted(capsys, *arguments):
    """The document that `fit --json` prints."""
    code, out, err = run(capsys, "fit", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def predictions(path):
    return pd.read_csv(path)["prediction"].to_numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_model_and_predictions_of_the_estimator(kind, tmp_path, rng, capsys):
    X, y = numbers(rng)
    names = [f"f{j}" for j in range(1, 7)]
    data = write(kind, tmp_path, X, y, names)
    target = "target" if kind in ("libsvm", "svm.gz") else "y"
    model, out = tmp_path / "model.json", tmp_path / "predictions.csv"

    code, shown, _ = run(capsys, "fit", data, "--target", target, "-s", 2, "--out", model)
    assert code == 0
    assert "f2" in shown
    assert "f5" in shown
    assert run(capsys, "predict", model, data, "--out", out)[:2] == (0, "")

    expected = lz.SparseRegressor(2).fit(X, y)
    document = json.loads(model.read_text())
    assert [term["column"] for term in document["terms"]] == ["f2", "f5"]
    assert [term["coefficients"][0] for term in document["terms"]] == pytest.approx(
        expected.coef_[[1, 4]].tolist(), rel=1e-12
    )
    np.testing.assert_allclose(predictions(out), expected.predict(X), rtol=1e-12, atol=1e-12)


def test_libsvm_and_npz_know_their_target(tmp_path, rng, capsys):
    X, y = numbers(rng)
    for kind, target in (("libsvm", "target"), ("npz", "y")):
        data = write(kind, tmp_path, X, y, list("abcdef"))
        assert fitted(capsys, data, "-s", 2)["target"] == target


def test_libsvm_files_that_count_from_zero(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = tmp_path / "data.libsvm"
    lines = (" ".join(f"{j}:{value}" for j, value in enumerate(row)) for row in X.tolist())
    data.write_text("".join(f"{t} {line}\n" for t, line in zip(y, lines, strict=True)))
    document = fitted(capsys, data, "-s", 2)
    assert document["fit"]["candidates"] == 6
    assert [term["column"] for term in document["terms"]] == ["f1", "f4"]


def test_a_libsvm_file_may_end_before_the_features_of_the_model(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("libsvm", tmp_path, X, y, [])
    model = tmp_path / "model.json"
    assert run(capsys, "fit", data, "-s", 2, "--out", model)[0] == 0
    document = json.loads(model.read_text())
    short = tmp_path / "short.libsvm"
    short.write_text("0 2:1.5\n")
    out = run(capsys, "predict", model, short, "--json")[1]
    of_f2 = document["terms"][0]["coefficients"][0]
    assert json.loads(out)["predictions"] == pytest.approx([1.5 * of_f2 + document["intercept"][0]])


def test_words_become_one_column_for_each_level(tmp_path, rng, capsys):
    frame = mixed(rng)
    frame.to_csv(tmp_path / "data.csv", index=False)
    document = fitted(capsys, tmp_path / "data.csv", "--target", "y", "-s", 2)
    assert [(t["column"], t.get("level")) for t in document["terms"]] == [
        ("a", None), ("colour", "red")]  # fmt: skip
    assert document["columns"][1] == {
        "name": "colour",
        "kind": "categorical",
        "levels": ["blue", "green", "red"],
        "missing": None,
    }
    assert document["fit"]["candidates"] == 6
    assert document["fit"]["path"][0]["features"] == ["colour=red"]


def test_two_levels_need_one_column(tmp_path, rng, capsys):
    frame = mixed(rng).replace({"colour": {"blue": "green"}})
    frame.to_csv(tmp_path / "data.csv", index=False)
    document = fitted(capsys, tmp_path / "data.csv", "--target", "y", "-s", 2)
    assert document["fit"]["candidates"] == 4
    assert document["columns"][1]["levels"] == ["green", "red"]
    assert document["terms"][1]["level"] == "red"


def test_many_levels_make_a_sparse_matrix_and_the_same_model(tmp_path, rng, capsys, monkeypatch):
    mixed(rng).to_csv(tmp_path / "data.csv", index=False)
    arguments = (tmp_path / "data.csv", "--target", "y", "-s", 3)
    dense = fitted(capsys, *arguments)
    monkeypatch.setattr("ellzero.cli.design.WIDE", 2)
    wide = fitted(capsys, *arguments)
    assert [t["column"] for t in wide["terms"]] == [t["column"] for t in dense["terms"]]
    assert wide["fit"]["loss"] == pytest.approx(dense["fit"]["loss"], rel=1e-9)


def test_numbers_may_be_names_of_categories(tmp_path, rng, capsys):
    frame = mixed(rng)
    frame["code"] = frame["colour"].map({"red": 7, "green": 8, "blue": 9})
    for data in (tmp_path / "data.csv", tmp_path / "data.parquet"):
        frame = frame.drop(columns="colour", errors="ignore")
        frame.to_csv(data, index=False) if data.suffix == ".csv" else frame.to_parquet(data)
        model = tmp_path / "model.json"
        arguments = ("--target", "y", "-s", 2, "--categorical", "code", "--out", model)
        document = fitted(capsys, data, *arguments)
        assert document["terms"][1]["level"] == "7"
        out = tmp_path / "out.csv"
        assert run(capsys, "predict", model, data, "--out", out)[0] == 0
        assert np.abs(predictions(out) - frame["y"]).max() < 0.1


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_classes_come_with_probabilities(load, tmp_path, capsys):
    bunch = load(as_frame=True)
    X = bunch.data.iloc[:, :8]
    words = bunch.target_names.astype(object)[bunch.target]
    data, model, out = (tmp_path / name for name in ("data.csv", "model.json", "out.csv"))
    X.assign(kind=words).to_csv(data, index=False)
    code, text, err = run(capsys, "fit", data, "--target", "kind", "-s", 2, "--out", model)
    assert code == 0
    assert text.startswith(f"classification of kind on {len(words)} rows: 2 of ")
    assert "the task is classification, for the target 'kind' is text, of " in err
    assert run(capsys, "predict", model, data, "--out", out)[0] == 0

    expected = lz.SparseClassifier(2).fit(X, words)
    given = pd.read_csv(out)
    assert given["prediction"].tolist() == expected.predict(X).tolist()
    assert given.columns[1:].tolist() == [f"probability_{c}" for c in expected.classes_]
    np.testing.assert_allclose(given.iloc[:, 1:], expected.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_the_task_is_guessed_and_said_and_can_be_set(tmp_path, rng, capsys):
    X, y = numbers(rng)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=(y > 5).astype(float))
    frame.to_csv(tmp_path / "data.csv", index=False)
    arguments = ("fit", tmp_path / "data.csv", "--target", "y", "-s", 2, "--json")
    _, out, err = run(capsys, *arguments)
    assert json.loads(out)["classes"] == [0, 1]
    assert err == (
        "ellzero: the task is classification, for the target 'y' has two values; if that is wrong, "
        "say --task regression\n"
    )
    _, out, err = run(capsys, *arguments, "--task", "regression")
    assert json.loads(out)["task"] == "regression"
    assert err == ""


def test_weights_forced_and_exclude(tmp_path, rng, capsys):
    X, y = numbers(rng)
    weight = rng.integers(0, 4, len(y))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, w=weight)
    frame.to_csv(tmp_path / "data.csv", index=False)
    document = fitted(
        capsys, tmp_path / "data.csv", "--target", "y", "-s", 1, "--weights", "w",
        "--forced", "a", "--exclude", "b", "c",
    )  # fmt: skip
    expected = lz.SparseRegressor(1, forced=[0]).fit(X[:, [0, 3, 4, 5]], y, weight)
    assert [term["column"] for term in document["terms"]] == ["a", "e"]
    assert document["fit"]["forced"] == ["a"]
    assert document["fit"]["loss"] == pytest.approx(expected.loss_, rel=1e-12)


def test_a_forced_column_of_words_forces_all_its_levels(tmp_path, rng, capsys):
    mixed(rng).to_csv(tmp_path / "data.csv", index=False)
    arguments = (tmp_path / "data.csv", "--target", "y", "-s", 1, "--forced")
    assert fitted(capsys, *arguments, "colour")["fit"]["forced"] == [
        "colour=blue", "colour=green", "colour=red"]  # fmt: skip
    assert fitted(capsys, *arguments, "colour=red")["fit"]["forced"] == ["colour=red"]


@pytest.fixture
def gaps(tmp_path, rng):
    """A table that misses two numbers, a word and a target, each in a row of its own."""
    frame = mixed(rng)
    frame.loc[[0, 1], "a"] = np.nan
    frame.loc[2, "colour"] = "?"
    frame.loc[3, "y"] = np.nan
    path = tmp_path / "gaps.csv"
    frame.to_csv(path, index=False)
    return path


def test_missing_values_are_an_error_that_names_the_columns(gaps, capsys):
    assert fails(capsys, "fit", gaps, "--target", "y", "-s", 2) == (
        "values are missing: 'y' 1, 'a' 2, 'colour' 1; choose --missing drop (those rows) or "
        "--missing impute (medians and the most frequent words)."
    )


def test_rows_with_missing_values_can_be_dropped(gaps, tmp_path, capsys):
    model = tmp_path / "model.json"
    arguments = ("fit", gaps, "--target", "y", "-s", 2, "--missing", "drop", "--out", model)
    text = run(capsys, *arguments)[1]
    assert text.startswith("regression of y on 76 rows, 4 more rows dropped for missing values: ")
    expected = pd.read_csv(gaps, na_values="?").dropna()
    X = pd.get_dummies(expected.drop(columns="y"), prefix_sep="=", dtype=float)
    best = lz.SparseRegressor(2).fit(X, expected["y"])
    assert json.loads(model.read_text())["fit"]["loss"] == pytest.approx(best.loss_, rel=1e-9)
    assert fails(capsys, "predict", model, gaps) == (
        "the data do not fit the model: column 'a' has 2 missing values, which the model does not "
        "impute; column 'colour' has 1 missing value, which the model does not impute"
    )


def test_missing_values_can_be_imputed_also_in_predictions(gaps, tmp_path, capsys):
    model = tmp_path / "model.json"
    arguments = ("fit", gaps, "--target", "y", "-s", 2, "--missing", "impute", "--out", model)
    text = run(capsys, *arguments)[1]
    assert "on 79 rows, 1 more row dropped for missing values, 3 missing values imputed" in text
    frame = pd.read_csv(gaps, na_values="?")
    usual = frame.dropna(subset="y")[["a", "colour"]]
    columns = json.loads(model.read_text())["columns"]
    assert columns[0]["missing"] == usual["a"].median()
    assert columns[1]["missing"] == usual["colour"].mode()[0]
    out, again = tmp_path / "out.csv", tmp_path / "filled.csv"
    assert run(capsys, "predict", model, gaps, "--out", out)[0] == 0
    filled = frame.fillna({column["name"]: column["missing"] for column in columns})
    filled.to_csv(again, index=False)
    assert run(capsys, "predict", model, again, "--out", tmp_path / "out2.csv")[0] == 0
    np.testing.assert_array_equal(predictions(out), predictions(tmp_path / "out2.csv"))


def test_the_size_can_be_chosen_by_folds_or_criterion(tmp_path, rng, capsys):
    X, y = numbers(rng, m=100)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    arguments = (data, "--target", "y", "-s", 4)
    folds = KFold(4, shuffle=True, random_state=0)
    for extra in (("--cv", 4, "--criterion", "1se"), ("--criterion", "bic")):
        expected = lz.SparseRegressorCV(4, criterion=extra[-1], cv=folds).fit(X, y)
        told = fitted(capsys, *arguments, *extra)["fit"]
        assert told["sparsity"] == expected.sparsity_
        assert told["choice"]["sparsity"] == [1, 2, 3, 4]
        assert told["choice"]["bic"] == pytest.approx(expected.cv_results_["bic"].tolist())
    assert "split3_test_score" in fitted(capsys, *arguments, "--cv", 4)["fit"]["choice"]
    text = run(capsys, "fit", *arguments, "--cv", "--criterion", "1se")[1]
    assert "mean squared error on the folds" in text
    assert text.count("chosen") == 1


def test_criteria_that_are_infinite_are_no_numbers_in_json(tmp_path, rng, capsys):
    """With as many features as rows there is no error left to compare."""
    data = write("csv", tmp_path, rng.standard_normal((5, 6)), np.arange(5), list("abcdef"))
    told = fitted(capsys, data, "--target", "y", "-s", 4, "--criterion", "bic")["fit"]
    assert told["choice"]["bic"][3] is None
    assert told["sparsity"] < 4


def test_method_effort_and_seed_reach_the_search(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    arguments = (data, "--target", "y", "-s", 2)
    assert fitted(capsys, *arguments, "--method", "omp")["fit"]["status"] == "COMPLETE"
    assert fitted(capsys, *arguments, "--effort", 2, "--seed", 3)["fit"]["status"] == "OPTIMAL"


def test_a_link_stays_a_link(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    link, real = tmp_path / "link.json", tmp_path / "real.json"
    link.symlink_to(real)
    assert run(capsys, "fit", data, "--target", "y", "-s", 2, "--out", link)[0] == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["fit"]["sparsity"] == 2


def test_proofs_are_told_to_people_and_machines(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    arguments = ("fit", data, "--target", "y", "-s", 2, "--certify")
    _, text, _ = run(capsys, *arguments)
    assert "proven: this is the best possible 2-feature model, up to rounding" in text
    _, text, _ = run(capsys, *arguments, 5, "--json")
    proof = json.loads(text)["fit"]["certificate"]
    assert proof["proven"]
    assert proof["lower_bound"] == pytest.approx(proof["value"])
    _, text, _ = run(capsys, "path", data, "--target", "y", "--max", 3, "--certify", 5)
    assert [line.split()[3] for line in text.splitlines()[2:-1]] == ["proven"] * 3


def test_people_get_features_neighbours_and_rows(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    code, text, err = run(capsys, "fit", data, "--target", "y", "-s", 2, "--task", "regression")
    assert (code, err) == (0, "")
    lines = text.splitlines()
    assert lines[0].startswith("regression of y on 60 rows: 2 of 6 features, loss ")
    assert [line.split()[0] for line in lines[2:5]] == ["b", "e", "intercept"]
    assert lines[5].startswith("with 1: loss ")
    assert lines[6].startswith("with 3: loss ")
    assert lines[7].startswith("status OPTIMAL: ")
    assert lines[8] == "loss: half the sum of squared errors"


def test_predictions_go_to_stdout_and_extra_columns_are_said(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data, model = write("csv", tmp_path, X, y, list("abcdef")), tmp_path / "model.json"
    run(capsys, "fit", data, "--target", "y", "-s", 2, "--out", model)
    code, out, err = run(capsys, "predict", model, data)
    assert code == 0
    assert out.splitlines()[0] == "prediction"
    assert len(out.splitlines()) == 61
    assert err == "ellzero: 5 columns not used: 'a', 'c', 'd', 'f', 'y'\n"
    document = json.loads(run(capsys, "predict", model, data, "--json")[1])
    assert document["schema"] == "ellzero.predictions"
    assert document["predictions"] == [float(v) for v in out.splitlines()[1:]]


def test_predict_lists_all_that_does_not_fit(tmp_path, rng, capsys):
    frame = mixed(rng)
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    frame.to_csv(data, index=False)
    run(capsys, "fit", data, "--target", "y", "-s", 4, "--forced", "b", "c", "--out", model)
    bad = frame.astype({"b": object}).drop(columns="c")
    bad.loc[3, "b"], bad.loc[4, "colour"], bad.loc[5, "colour"] = "word", "mauve", "pink"
    bad.loc[6, "a"] = np.inf
    bad.to_csv(data, index=False)
    message = fails(capsys, "predict", model, data)
    assert message.startswith("the data do not fit the model: column 'a' has 1 infinite value; ")
    assert "column 'b' must hold numbers, not '" in message
    assert "; there is no column 'c'; " in message
    assert message.endswith("column 'colour' has levels unknown to the model: 'mauve', 'pink'")


def test_real_data_with_words_and_gaps(data_folder, tmp_path, capsys):
    """Census: 28 columns of words; a sample of its rows will do."""
    frame = pd.read_parquet(data_folder / "census.parquet").iloc[::500]
    data, model, out = (tmp_path / name for name in ("census.parquet", "model.json", "out.csv"))
    frame.to_parquet(data)
    arguments = ("--target", "target", "-s", 3, "--missing", "impute", "--out", model)
    assert run(capsys, "fit", data, *arguments)[0] == 0
    assert run(capsys, "predict", model, data, "--out", out)[0] == 0
    right = predictions(out).astype(str) == frame["target"].astype(str).to_numpy()
    assert right.mean() > 0.93
