"""What the command line says of tables it cannot use: one line that says what to do."""

import gzip
import os

import numpy as np
import pandas as pd
import pytest

from cli_files import fails, mixed, run


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
    assert fails(capsys, *arguments, "--exclude", "A").endswith("did you mean 'a'?")
    assert fails(capsys, *arguments, "--weights", "zzz") == (
        "--weights: there is no column 'zzz'; there are 'a', 'b', 'c', 'colour', 'y'."
    )
    assert fails(capsys, *arguments, "--forced", "colour=rod") == (
        "--forced: there is no feature 'colour=rod'; did you mean 'colour=red'?"
    )


def test_files_that_are_not_there_and_folders(tmp_path, capsys):
    no = tmp_path / "no.csv"
    assert fails(capsys, "fit", no, "--target", "y") == f"{no}: No such file or directory."
    for folder in (tmp_path, tmp_path / "data.csv"):
        folder.mkdir(exist_ok=True)
        message = f"{folder} is a folder; name a file in it."
        assert fails(capsys, "fit", folder, "--target", "y") == message
    assert fails(capsys, "report", tmp_path) == f"{tmp_path}: Is a directory."


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/null")
def test_what_can_be_read_only_once_is_no_table(capsys):
    assert fails(capsys, "fit", "/dev/null", "--format", "csv", "--target", "y") == (
        "/dev/null: is a pipe or a device; write what it gives to a file first."
    )


def test_names_that_are_numbers_are_said(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text("1,2,3\n2,3,5\n4,1,6\n5,2,8\n")
    code, _, err = run(capsys, "fit", data, "--target", 3, "-s", 1)
    assert code == 0
    assert f"warning: the first line of {data} is taken for names, and all of them are num" in err


def test_features_of_the_same_name(table, capsys):
    arguments = table(lambda frame: frame.rename(columns={"a": "colour=red"}))
    assert fails(capsys, *arguments) == (
        "more than one feature is called 'colour=red'; rename a column."
    )


def test_more_than_there_is(table, capsys):
    arguments = table()
    assert fails(capsys, *arguments[:-1], 10) == "--sparsity: cannot choose 10 of 6 features."
    assert fails(capsys, *arguments, "--cv", 81) == "--cv: 81 folds are more than the 80 rows."
    assert fails(capsys, *arguments, "--forced", "a", "b", "c", "colour") == (
        "--forced: all features are forced, so there is none to choose."
    )


@pytest.mark.parametrize("value", [np.inf, 1e200])
def test_infinite_and_very_large_numbers(value, table, capsys):
    def change(name):
        def changed(frame):
            frame.loc[[1, 2], name] = value
            return frame

        return changed

    assert fails(capsys, *table(change("a"))) == (
        "column 'a' has 2 infinite or very large values; correct or --exclude it."
    )
    assert fails(capsys, *table(change("y"))) == (
        "--target: 'y' has infinite or very large values; delete those rows."
    )


def test_a_few_words_among_numbers(table, capsys):
    def change(frame):
        frame["a"] = frame["a"].astype(object)
        frame.loc[4, "a"] = "1.5m"
        return frame

    arguments = table(change)
    assert fails(capsys, *arguments) == (
        "column 'a' holds numbers, and 1 other word such as '1.5m' in row 5 (correct them); "
        "--exclude it, or say --categorical if they are categories."
    )
    assert run(capsys, *arguments, "--exclude", "a")[0] == 0


def test_words_that_name_rows(table, capsys):
    arguments = table(lambda frame: frame.assign(name=[f"n{i}" for i in range(len(frame))]))
    assert fails(capsys, *arguments) == (
        "column 'name' has 80 different words in 80 rows, as if to name them; --exclude it, or say "
        "--categorical if they are categories."
    )
    assert run(capsys, *arguments, "--categorical", "name")[0] == 0


TIMES = pd.date_range("2020-01-01", periods=80)
DATES = {
    "days": (TIMES.astype(str), "data.csv"),
    "days of a few years": (["2020-01-01", "2021-01-01"] * 40, "data.csv"),
    "European": (TIMES.strftime("%d.%m.%Y"), "data.csv"),
    "American": (TIMES.strftime("%m/%d/%y 10:30"), "data.csv"),
    "timestamps": (TIMES, "data.parquet"),
    "dates": (TIMES.date, "data.parquet"),
    "spans": (TIMES - TIMES[0], "data.parquet"),
}


@pytest.mark.parametrize("case", DATES)
def test_dates_are_neither_features_nor_classes(case, table, capsys):
    values, name = DATES[case]
    message = fails(capsys, *table(lambda f: f.assign(a=values), name))
    assert message.startswith("column 'a' holds dates such as '")
    assert message.endswith("--exclude it, or say --categorical if they are categories.")
    message = fails(capsys, *table(lambda f: f.assign(y=values), name))
    assert message.startswith("--target: 'y' holds dates such as '")
    assert message.endswith(
        "' (make numbers of them, such as days since 1970); say --task classification if they are "
        "classes."
    )


def test_decimal_commas(table, capsys):
    plain = table()
    expected = run(capsys, *plain)[1]

    def commas(frame):
        return frame.assign(**{n: [str(v).replace(".", ",") for v in frame[n]] for n in "abcy"})

    arguments = table(lambda frame: commas(pd.read_csv(plain[1])))
    assert fails(capsys, *arguments).startswith("column 'a' holds numbers with commas such as '")
    arguments = (*arguments, "--exclude", "a", "b", "c")
    message = fails(capsys, *arguments)
    assert message.startswith("--target: 'y' holds numbers with commas such as '")
    assert "' (write points, or say --decimal ,); " in message
    assert run(capsys, *arguments[:-4], "--decimal", ",")[1] == expected


def test_a_target_of_many_words(table, capsys):
    arguments = table(lambda frame: frame.assign(y=[f"w{i}" for i in range(80)]))
    assert fails(capsys, *arguments) == (
        "--target: 'y' has 80 different words in 80 rows, as if to name them; say --task "
        "classification if they are classes."
    )
    arguments = table(lambda frame: frame.head(6).assign(y=[*"abcdea"]))
    assert fails(capsys, *arguments).startswith("--target: 'y' has 5 different words in 6 rows")
    assert run(capsys, *arguments, "--task", "classification")[0] == 0


def test_numbers_that_are_no_classes(table, capsys):
    assert fails(capsys, *table(), "--task", "classification") == (
        "--task: the target 'y' has 80 different numbers in 80 rows, too many for classes; say "
        "--task regression."
    )


@pytest.mark.parametrize("value", [3, 0.5, "word", True])
def test_a_target_that_never_changes(value, table, capsys):
    assert fails(capsys, *table(lambda frame: frame.assign(y=value))) == (
        f"--target: 'y' is '{value}' in all rows, so there is nothing to explain; choose another "
        "column."
    )


def test_text_is_no_target_of_a_regression(table, capsys):
    arguments = table(lambda frame: frame.assign(y=["word", "other"] * 40))
    assert fails(capsys, *arguments, "--task", "regression") == (
        "--target: 'y' holds text such as 'word'; say --task classification if they are classes."
    )


@pytest.mark.parametrize("change", [lambda w: w - 2, lambda w: w * 0, lambda w: w / 0])
def test_weights_must_be_weights(change, table, capsys):
    with np.errstate(divide="ignore"):
        arguments = table(lambda frame: frame.assign(w=change(np.ones(len(frame)))))
    assert fails(capsys, *arguments, "--weights", "w") == (
        "--weights: 'w' must hold finite numbers of at least 0, not all 0."
    )


@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_empty_columns(missing, table, capsys):
    for name in "cy":
        arguments = table(lambda frame, name=name: frame.assign(**{name: np.nan}))
        assert fails(capsys, *arguments, "--missing", missing) == (
            f"column '{name}' is empty; --exclude it, or choose another."
        )


def test_nothing_is_left(table, capsys):
    def change(frame):
        frame.loc[:40, "a"], frame.loc[40:, "b"] = np.nan, np.nan
        return frame

    assert fails(capsys, *table(change), "--missing", "drop") == (
        "no row is left once those with missing values are dropped; --exclude columns that miss "
        "many, or say --missing impute."
    )
    assert fails(capsys, *table(), "--exclude", "a", "b", "c", "colour") == (
        "no column is left to choose features from."
    )


BROKEN = {
    "csv: a longer row": (b"a,y\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
    "csv: only longer rows": (b"a,y\n1,2,3\n1,2,3\n", "more entries than its first line"),
    "csv: a name twice": (b"a,a,y\n1,2,3\n", "more than one column is called 'a'"),
    "csv: no name": (b"a,,y\n1,2,3\n", "column 2 has no name in the first line"),
    "csv: nothing": (b"", "it is empty"),
    "csv.zip: nothing": (b"PK\5\6" + bytes(18), "it is empty"),
    "csv: gzip": (gzip.compress(b"a,y\n1,2\n"), "is not text; say what it is by the ending"),
    "csv: no rows": (b"a,y\n", "it has no rows"),
    "csv: semicolons": (b"a;y\n1;2\n", "say --separator ';'"),
    "csv: tabs": (b"a\ty\n1\t2\n", "say --separator tab"),
    "tsv: commas": (b"a,y\n1,2\n", "say --separator ','"),
    "csv: Latin 1": ("größe,y\n1,2\n".encode("latin1"), "`iconv -f LATIN1 -t UTF-8`"),
    "csv: UTF-16": ("a,y\n1,2\n".encode("utf-16"), "`iconv -f UTF-16 -t UTF-8`"),
    "csv: no mark": ("a,y\n1,2\n".encode("utf-16-le"), "`iconv -f UTF-16 -t UTF-8`"),
    "csv.gz: Latin 1": (gzip.compress("ä,y\n1,2\n".encode("latin1")), "`iconv -f LATIN1"),
    "csv.gz: cut": (gzip.compress(b"a,y\n1,2\n" * 1000)[:-20], "cannot be read as csv: "),
    "parquet: text": (b"a,y\n1,2\n", "cannot be read as parquet: "),
    "npz: text": (b"a,y\n1,2\n", "it is no archive of arrays"),
    "libsvm: text": (b"a,y\n1,2\n", "cannot be read as libsvm: "),
    "arff: text": (b"a,y\n1,2\n", "cannot be read as arff: "),
    "arff: a carriage return": (
        b"@relation r\n@attribute a numeric\n@attribute y numeric\n@data\n1,2\n3\r4,5\n",
        "cannot be read as arff: ",
    ),
    "npz: a directory too large": (
        b"PK\5\6" + bytes(6) + b"\1\0\xff\xff\xff\x0f" + bytes(6),
        "cannot be read as npz: ",
    ),
    "npz: a pickle before an archive": (b"text" + b"PK\5\6" + bytes(18), "no archive of arrays"),
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
        ({"X": np.array([[{}]], dtype=object)}, "'X' holds Python objects"),
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
