"""What the command line says of tables it cannot use: one line that says what to do."""

import gzip

import numpy as np
import pandas as pd
import pytest

from cli_files import fails, mixed, numbers, run, write


@pytest.fixture
def table(tmp_path, rng):
    """Writes a CSV file of a changed table; returns the arguments that fit it."""

    def write(change=lambda frame: frame, name="data.csv"):
        frame = change(mixed(rng))
        path = tmp_path / name
        frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
        return ("fit", path, "--target", "y", "-s", 2)

    return write


def test_a_wrong_name_gets_a_hint(table, capsys):
    arguments = table()
    assert fails(capsys, *arguments, "--exclude", "color") == (
        "--exclude: there is no column 'color'; did you mean 'colour'?"
    )
    assert fails(capsys, *arguments, "--weights", "zzz") == (
        "--weights: there is no column 'zzz'; there are 'a', 'b', 'c', 'colour', 'y'."
    )
    assert fails(capsys, *arguments, "--forced", "colour=rod") == (
        "--forced: there is no feature 'colour=rod'; did you mean 'colour=red'?"
    )
    assert fails(capsys, *arguments, "--categorical", "y").startswith("--categorical: there is no")


def test_the_target_must_be_said(table, capsys):
    data = table()[1]
    assert fails(capsys, "fit", data) == "--target: say which column is to be predicted."


def test_an_unknown_ending(tmp_path, capsys):
    path = tmp_path / "data.xyz"
    path.write_text("a,y\n1,2\n")
    assert fails(capsys, "fit", path, "--target", "y") == (
        f"{path}: the ending of the name does not say what it is; name one with --format: "
        "csv, tsv, parquet, libsvm, npz, arff."
    )
    assert "a feature" not in fails(capsys, "fit", path, "--target", "y", "--format", "npz")


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert "No such file" in fails(capsys, "fit", tmp_path / "no.csv", "--target", "y")


def test_too_many_features(table, capsys):
    message = fails(capsys, *table()[:-1], 10)
    assert message.startswith("sparsity: cannot select 10 features, X has only 6 feature(s)")


def test_infinite_numbers(table, capsys):
    def change(frame):
        frame.loc[[1, 2], "a"] = np.inf
        return frame

    assert fails(capsys, *table(change)) == (
        "column 'a' has 2 infinite values; correct or --exclude it."
    )


def test_a_few_words_among_numbers(table, capsys):
    def change(frame):
        frame["a"] = frame["a"].astype(object)
        frame.loc[4, "a"] = "1,5"
        return frame

    arguments = table(change)
    assert fails(capsys, *arguments) == (
        "column 'a' holds numbers, and 1 other word such as '1,5' in row 5; correct them, or say "
        "--categorical or --exclude."
    )
    assert run(capsys, *arguments, "--exclude", "a")[0] == 0


def test_words_that_name_rows(table, capsys):
    arguments = table(lambda frame: frame.assign(name=[f"n{i}" for i in range(len(frame))]))
    assert fails(capsys, *arguments) == (
        "column 'name' has 80 different words in 80 rows: it seems to name the rows; --exclude it, "
        "or say --categorical if you mean it."
    )
    assert run(capsys, *arguments, "--categorical", "name")[0] == 0


def test_dates_are_no_features(table, capsys):
    arguments = table(lambda f: f.assign(day=pd.Timestamp("2020-01-01")), "data.parquet")
    message = fails(capsys, *arguments)
    assert message.startswith("column 'day' holds datetime64[")
    assert message.endswith("make numbers of it, or --exclude it.")


def test_text_is_no_target_of_a_regression(table, capsys):
    arguments = table(lambda frame: frame.assign(y="word"))
    assert fails(capsys, *arguments, "--task", "regression") == (
        "--task: the target 'y' holds text such as 'word'; use --task classification, or correct "
        "it."
    )
    assert fails(capsys, *arguments).startswith("y: has only one class, 'word'")


@pytest.mark.parametrize("change", [lambda w: w - 2, lambda w: w * 0, lambda w: w / 0])
def test_weights_must_be_weights(change, table, capsys):
    with np.errstate(divide="ignore"):
        arguments = table(lambda frame: frame.assign(w=change(np.ones(len(frame)))))
    assert fails(capsys, *arguments, "--weights", "w") == (
        "--weights: 'w' must hold finite numbers of at least 0, not all 0."
    )


def test_nothing_is_left(table, capsys):
    assert fails(capsys, *table(lambda frame: frame.assign(c=np.nan)), "--missing", "drop") == (
        "no row is left once those with missing values are dropped."
    )
    assert fails(capsys, *table(lambda frame: frame.assign(c=np.nan)), "--missing", "impute") == (
        "column 'c' is empty; --exclude it."
    )
    assert fails(capsys, *table(), "--exclude", "a", "b", "c", "colour") == (
        "no column is left to choose features from."
    )


BROKEN = {
    "csv: a longer row": (b"a,y\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
    "csv: only longer rows": (b"a,y\n1,2,3\n1,2,3\n", "Length of header"),
    "csv: a name twice": (b"a,a,y\n1,2,3\n", "more than one column is called 'a'"),
    "csv: no name": (b"a,,y\n1,2,3\n", "column 2 has no name in the first line"),
    "csv: nothing": (b"", "No columns to parse from file"),
    "csv: not text": (b"\xff\xfe\x00a", "is not UTF-8 text: "),
    "csv.gz: cut": (gzip.compress(b"a,y\n1,2\n" * 1000)[:-20], "cannot be read as csv: "),
    "parquet: text": (b"a,y\n1,2\n", "cannot be read as parquet: "),
    "npz: text": (b"a,y\n1,2\n", "cannot be read as npz: "),
    "libsvm: text": (b"a,y\n1,2\n", "cannot be read as libsvm: "),
    "arff: text": (b"a,y\n1,2\n", "cannot be read as arff: "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(case, tmp_path, capsys):
    content, reason = BROKEN[case]
    path = tmp_path / f"data.{case.split(':')[0]}"
    path.write_bytes(content)
    message = fails(capsys, "fit", path, "--target", "y", "-s", 1)
    assert message.startswith(f"{path}: ")
    assert reason in message


def test_an_npz_file_must_hold_what_it_says(tmp_path, capsys):
    path = tmp_path / "data.npz"
    for arrays, reason in (
        ({"y": np.ones(3)}, "there is no array 'X' in it"),
        ({"X": np.ones(3), "y": np.ones(3)}, "'X' must be a matrix of numbers"),
        ({"X": np.ones((3, 2)), "y": np.ones(4)}, "'y' must have one entry for each of the 3 rows"),
        ({"X": np.ones((3, 2)), "feature_names": ["a"]}, "there are 2 columns and 1 names"),
        ({"X": np.array([[{}]], dtype=object)}, "Object arrays cannot be loaded"),
    ):
        np.savez(path, **arrays)
        assert reason in fails(capsys, "fit", path, "-s", 1)


def test_a_sparse_npz_file_with_indices_out_of_bounds(tmp_path, capsys):
    path = tmp_path / "data.npz"
    parts = {"data": np.ones(3), "indices": [0, 10**6, 1], "indptr": [0, 1, 2, 3], "shape": (3, 2)}
    np.savez(path, y=np.arange(3.0), format=b"csr", **parts)
    message = fails(capsys, "fit", path, "-s", 1)
    assert message.startswith(f"{path}: cannot be read as npz: ")
    assert "ind" in message


def test_categories_cannot_be_sparse(tmp_path, capsys):
    path = tmp_path / "data.libsvm"
    path.write_text("1 1:2\n0 1:3\n")
    assert fails(capsys, "fit", path, "--categorical", "f1") == (
        "--categorical: the columns of a sparse matrix can only be numbers."
    )


def test_a_separator_of_its_own(tmp_path, rng, capsys):
    path = tmp_path / "data.csv"
    mixed(rng).to_csv(path, index=False, sep=";")
    assert run(capsys, "fit", path, "--target", "y", "-s", 2, "--separator", ";")[0] == 0
    assert "there is no column 'y'" in fails(capsys, "fit", path, "--target", "y")
    other = tmp_path / "data.npz"
    np.savez(other, X=np.eye(3), y=np.ones(3))
    assert fails(capsys, "fit", other, "--separator", ";") == "--separator: a npz file has none."


def test_where_to_write_is_checked_first(table, tmp_path, capsys):
    arguments = table()
    assert (
        fails(capsys, *arguments, "--out", tmp_path)
        == f"{tmp_path} is a folder; name a file in it."
    )
    nowhere = tmp_path / "no" / "model.json"
    assert fails(capsys, *arguments, "--out", nowhere) == (
        f"there is no folder {nowhere.parent} to write model.json to."
    )


def test_a_file_that_is_read_is_not_written(tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    before = data.read_bytes()
    for command in ("fit", "path"):
        message = fails(capsys, command, data, "--target", "y", "--out", data)
        assert "--out: " in message
        assert "is the file that is read; name another one" in message
    assert data.read_bytes() == before


@pytest.mark.parametrize("folds", [0, 1])
@pytest.mark.parametrize("command", ["fit", "path"])
def test_too_few_folds(command, folds, tmp_path, rng, capsys):
    X, y = numbers(rng)
    data = write("csv", tmp_path, X, y, list("abcdef"))
    message = fails(capsys, command, data, "--target", "y", "--cv", folds)
    assert f"--cv: expected at least 2 folds, got {folds}" in message
