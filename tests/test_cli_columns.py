"""Columns that are not quite numbers or words, and files that write the same in other ways."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ellzero as lz
from cli_files import fails, mixed, numbers, run


def fitted(capsys, data, *arguments):
    """The document that `fit --json` prints."""
    code, out, err = run(capsys, "fit", data, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def predicted(capsys, model, data):
    code, out, err = run(capsys, "predict", model, data, "--json")
    assert code == 0, err
    return json.loads(out)["predictions"]


@pytest.mark.parametrize("name", ["a", "y"])
def test_very_large_integers_are_numbers(name, tmp_path, rng, capsys):
    frame = mixed(rng)
    frame[name] = [str(10**19 * (i + 1)) for i in range(len(frame))]
    data = tmp_path / "data.csv"
    frame.to_csv(data, index=False)
    document = fitted(capsys, data, "--target", "y", "-s", 2, "--forced", "a")
    assert document["task"] == "regression"
    assert document["fit"]["forced"] == ["a"]


def test_decimals_are_numbers(tmp_path, rng, capsys):
    X, y = numbers(rng)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    for name in "by":
        frame[name] = [Decimal(str(value)) for value in frame[name]]
    frame.to_parquet(tmp_path / "data.parquet")
    document = fitted(capsys, tmp_path / "data.parquet", "--target", "y", "-s", 2)
    assert document["fit"]["loss"] == pytest.approx(lz.SparseRegressor(2).fit(X, y).loss_)


def test_booleans_with_gaps_are_booleans(tmp_path, rng, capsys):
    frame = mixed(rng).assign(flag=[True, False] * 40)
    frame["y"] += 100 * frame["flag"]
    whole, gaps, model = (tmp_path / name for name in ("whole.csv", "gaps.csv", "model.json"))
    frame.to_csv(whole, index=False)
    frame.astype({"flag": object}).mask(frame.index.to_series() == 4).to_csv(gaps, index=False)
    for data in (whole, gaps):
        arguments = ("--target", "y", "-s", 1, "--missing", "impute", "--out", model)
        document = fitted(capsys, data, *arguments)
        assert document["columns"][0]["kind"] == "numeric"
        assert len(predicted(capsys, model, whole)) == 80
        assert np.isfinite(predicted(capsys, model, gaps)).all()


def test_one_is_the_same_category_as_one_point_zero(tmp_path, rng, capsys):
    frame = mixed(rng).drop(columns="colour").assign(code=rng.integers(1, 5, 80))
    frame["y"] = frame["code"] ** 2 + 0.01 * frame["a"]
    kinds = {"int": frame, "float": frame.astype({"code": float})}
    files = []
    for kind, table in kinds.items():
        files += [tmp_path / f"{kind}.csv", tmp_path / f"{kind}.parquet"]
        table.to_csv(files[-2], index=False)
        table.to_parquet(files[-1])
    model = tmp_path / "model.json"
    for data in files:
        arguments = ("--target", "y", "-s", 3, "--categorical", "code", "--out", model)
        levels = fitted(capsys, data, *arguments)["columns"][0]["levels"]
        assert levels == ["1", "2", "3", "4"]
        first, *others = (predicted(capsys, model, other) for other in files)
        assert all(other == first for other in others)


def test_blanks_around_words_do_not_count(tmp_path, rng, capsys):
    frame = mixed(rng)
    frame.loc[::2, "colour"] += " "
    frame.to_csv(tmp_path / "data.csv", index=False)
    document = fitted(capsys, tmp_path / "data.csv", "--target", "y", "-s", 2)
    assert document["columns"][1]["levels"] == ["blue", "green", "red"]


def test_the_entry_that_is_no_number_is_named(tmp_path, rng, capsys):
    frame = mixed(rng)
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    frame.to_csv(data, index=False)
    run(capsys, "fit", data, "--target", "y", "-s", 2, "--out", model)
    frame["a"] = frame["a"].astype(object)
    frame.loc[7, "a"] = "much"
    frame.to_csv(data, index=False)
    assert fails(capsys, "predict", model, data) == (
        "the data do not fit the model: column 'a' must hold numbers, not 'much' in row 8"
    )


@pytest.mark.parametrize("classes", [[0.5, 1.5], [0.0, 1.0], [3, 7], ["a", "b"], [False, True]])
def test_classes_of_every_kind(classes, tmp_path, rng, capsys):
    X, y = numbers(rng)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=np.array(classes)[(y > 5).astype(int)])
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    frame.to_csv(data, index=False)
    document = fitted(capsys, data, "--target", "y", "-s", 2, "--out", model)
    assert document["task"] == "classification"
    given = [type(label)(name) for name, label in zip(document["classes"], classes, strict=True)]
    assert given == classes
    assert set(predicted(capsys, model, data)) == set(document["classes"])


# forced features


def test_of_two_levels_each_can_be_forced(tmp_path, rng, capsys):
    frame = mixed(rng).replace({"colour": {"blue": "green"}})
    frame.to_csv(tmp_path / "data.csv", index=False)
    for name in ("colour", "colour=red", "colour=green"):
        arguments = (tmp_path / "data.csv", "--target", "y", "-s", 1, "--forced", name)
        assert fitted(capsys, *arguments)["fit"]["forced"] == ["colour=red"]


def test_forced_levels_that_depend_on_each_other(tmp_path, rng, capsys):
    """All levels, or all but one: the same predictions."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    mixed(rng).to_csv(data, index=False)
    found = []
    for forced in (["colour"], ["colour=red", "colour=blue"]):
        arguments = ("--target", "y", "-s", 1, "--exclude", "b", "c", "--forced", *forced)
        fitted(capsys, data, *arguments, "--out", model)
        found.append(predicted(capsys, model, data))
    np.testing.assert_allclose(*found, rtol=1e-9)


# missing entries of sparse files


@pytest.fixture(params=["npz", "libsvm"])
def gaps(request, tmp_path, rng):
    """The dense matrix with two gaps, the target, and the sparse file of them."""
    X, y = numbers(rng)
    X *= abs(X) > 0.5
    X[:, 0] += 10  # hardly any zeros: a median that is not zero
    X[3, 0], X[7, 2] = np.nan, np.nan
    data = tmp_path / f"data.{request.param}"
    if request.param == "npz":
        A = sparse.csr_matrix(X)
        names = [f"f{j}" for j in range(1, 7)]
        parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape}
        np.savez(data, y=y, feature_names=names, format=b"csr", **parts)
    else:
        lines = (" ".join(f"{j + 1}:{x[j]}" for j in np.flatnonzero(x)) for x in X)
        data.write_text("".join(f"{t} {line}\n" for t, line in zip(y, lines, strict=True)))
    return X, y, data


def test_gaps_in_sparse_files_are_refused_by_name(gaps, capsys):
    message = fails(capsys, "fit", gaps[2], "-s", 2)
    assert message.startswith("values are missing: 'f1' 1, 'f3' 1; choose --missing drop")


def test_rows_of_sparse_files_can_be_dropped(gaps, capsys):
    X, y, data = gaps
    told = fitted(capsys, data, "-s", 2, "--missing", "drop")["fit"]
    keep = np.isfinite(X).all(axis=1)
    assert told["rows_dropped"] == 2
    assert told["loss"] == pytest.approx(lz.SparseRegressor(2).fit(X[keep], y[keep]).loss_)


def test_gaps_in_sparse_files_can_be_imputed(gaps, tmp_path, capsys):
    X, y, data = gaps
    model = tmp_path / "model.json"
    arguments = ("-s", 2, "--forced", "f1", "f3", "--missing", "impute", "--out", model)
    document = fitted(capsys, data, *arguments)
    medians = np.nanmedian(X, axis=0)
    filled = np.where(np.isnan(X), medians, X)
    expected = lz.SparseRegressor(2, forced=[0, 2]).fit(filled, y)
    assert document["fit"]["values_imputed"] == 2
    assert document["fit"]["loss"] == pytest.approx(expected.loss_)
    fills = {column["name"]: column["missing"] for column in document["columns"]}
    assert fills["f1"] == medians[0]
    assert fills["f3"] == medians[2] == 0
    np.testing.assert_allclose(predicted(capsys, model, data), expected.predict(filled))


def test_infinite_entries_of_sparse_files(tmp_path, capsys):
    data = tmp_path / "data.libsvm"
    data.write_text("1 1:2 2:inf\n2 1:3\n3 2:1\n")
    assert fails(capsys, "fit", data, "-s", 1, "--missing", "drop") == (
        "column 'f2' has 1 infinite or very large value; correct or --exclude it."
    )


# folds


def test_classes_with_few_rows(tmp_path, rng, capsys):
    frame = mixed(rng).assign(y=["rare", *"pq" * 39, "p"])
    data = tmp_path / "data.csv"
    frame.to_csv(data, index=False)
    arguments = ("fit", data, "--target", "y", "-s", 1, "--cv", 3)
    code, _, err = run(capsys, *arguments)
    assert code == 0
    assert "warning: class 'rare' has only 1 row, so not all of the 3 folds have one\n" in err
    assert fails(capsys, *arguments[:-1], 60) == (
        "--cv: 60 folds are more than the 40 rows of the largest class."
    )
    frame.replace({"y": {"q": "p"}}).to_csv(data, index=False)
    assert fails(capsys, *arguments) == (
        "--cv: class 'rare' has only 1 row; folds need one to fit and test."
    )


def test_classes_that_can_be_separated(tmp_path, rng, capsys):
    frame = mixed(rng)
    frame["y"] = np.where(frame["a"] > 0, "p", "q")
    frame.to_csv(tmp_path / "data.csv", index=False)
    code, _, err = run(capsys, "fit", tmp_path / "data.csv", "--target", "y", "--alpha", 0)
    assert code == 0
    assert "say --alpha 1 or another ridge above 0" in err
    assert "Sparse" not in err
