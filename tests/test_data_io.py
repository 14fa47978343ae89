"""Reading files: what all readers have in common."""

import gzip
import io

import numpy as np
import pytest

from ellzero import Statistics

pd = pytest.importorskip("pandas", reason="tables in files")

from data_files import zipped  # noqa: E402
from ellzero.data.io.columns import as_words, level_codes, word_codes  # noqa: E402
from ellzero.data.io.formats import Options, format_of, read_table  # noqa: E402
from ellzero.data.io.packed import content_errors, opened  # noqa: E402
from ellzero.datasets import Preprocessing  # noqa: E402


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["a", " b ", None, "a"], ["a", "b", None, "a"]),
        (["01", "1.0", "1", "1.50"], ["01", "1", "1", "1.50"]),
        ([1.0, np.nan, 2.5], ["1", None, "2.5"]),
        ([3, 1, 2], ["3", "1", "2"]),
        ([True, False], ["True", "False"]),
        ([[1], [2], None], ["[1]", "[2]", None]),
        (pd.Categorical(["u", None, "v"], ["v", "u", "w"]), ["u", None, "v"]),
        (pd.array([10**17 + 1, None], "Int64"), [str(10**17 + 1), None]),
        (pd.to_datetime(["2020-01-01", None]), ["2020-01-01 00:00:00", None]),
    ],
)
def test_words_of_columns_of_every_kind(entries, words):
    column = pd.Series(entries, index=range(5, 5 + len(entries)), name="c")
    found = as_words(column)
    assert [None if pd.isna(entry) else entry for entry in found] == words
    assert found.index.equals(column.index)
    names, codes = word_codes(column)
    assert {*names} == {*words} - {None}
    levels = sorted({*names})
    expected = [-1 if entry is None else levels.index(entry) for entry in words]
    assert level_codes(names, codes, levels).tolist() == expected


def written(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_levels_are_the_same_for_all_readers(tmp_path):
    text = "code,y\n01, 1\n1.0,2\n 1,4\n?,3\n"
    path = written(tmp_path, text)
    table = read_table(path, "csv", Options(words=["code"]))
    assert Preprocessing(ones=False).fit(table.frame[["code"]]).levels_ == {"code": ["01", "1"]}
    stats = Statistics.from_csv(path, ["code"], "y", categorical=["code"], missing="drop")
    assert stats.feature_names == ("code=01", "code=1")
    assert stats.n_rows == 3
    given = {"code": ["01", 1.0]}
    again = Statistics.from_csv(path, ["code"], "y", categorical=given, missing="drop")
    assert again.shards == stats.shards


FAULTS = {
    "a,b,y\n1,2,3\n1,2,3,4\n": "in line 3, saw 4",
    "a,y\n1,2,3\n1,2,3\n": "more entries than its first line has names",
    "a,y\n1,2\nx,3\n": r"column 'a' holds 'x' in row 1, not a number; name it in categorical=",
    "a,a,y\n1,2,3\n": "more than one column is called 'a'",
    "a;y\n1;2\n": "its first line is one name, 'a;y'; say delimiter=';'",
    "": "it is empty",
    "a,y\n1,2\n3\n": "column 'y' has no value in row 1",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_of_text_in_pieces(text, tmp_path):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=FAULTS[text]) as info:
        Statistics.from_csv(path, ["a"], "y")
    assert str(info.value).startswith(f"{path}: ")


def test_numbers_of_text_are_rounded_correctly(tmp_path, rng):
    values = rng.standard_normal(2000) * 10.0 ** rng.integers(-30, 30, 2000)
    path = written(tmp_path, "".join(["a\n", *(f"{value!r}\n" for value in values.tolist())]))
    np.testing.assert_array_equal(read_table(path, "csv", Options()).column("a"), values)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.csv.zip"])
def test_text_in_another_encoding_is_told_however_it_is_packed(name, tmp_path):
    frame, path = pd.DataFrame({"größe": [1, 2], "y": [1, 2]}), tmp_path / name
    frame.to_csv(path, index=False, encoding="latin1")
    assert format_of(path) == "csv"
    for read in (
        lambda: read_table(path, "csv", Options()),
        lambda: Statistics.from_csv(path, None, "y"),
    ):
        with pytest.raises(ValueError, match="it is not UTF-8 text; convert it, perhaps by `iconv"):
            read()


def test_only_the_start_of_a_packed_file_can_be_read(tmp_path):
    content = gzip.compress(np.random.default_rng(0).bytes(1 << 20))
    (tmp_path / "a.gz").write_bytes(content[:-4])
    with opened(tmp_path / "a.gz", start_only=True) as stream:
        assert len(stream.read(10)) == 10
    with pytest.raises(EOFError), opened(tmp_path / "a.gz") as stream:
        stream.read(10)


def test_a_member_of_an_archive(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"b.csv": b"1", "c.csv": b"2"}))
    with opened(tmp_path / "a.zip", member="c.csv") as stream:
        assert stream.read() == b"2"
    with pytest.raises(ValueError, match=r"there is no d\.csv in it"):
        opened(tmp_path / "a.zip", member="d.csv").__enter__()
    with pytest.raises(ValueError, match="more than one file in it"), opened(tmp_path / "a.zip"):
        pass


def test_errors_about_the_file_itself_pass(tmp_path):
    with pytest.raises(FileNotFoundError) as info, content_errors(lambda reason: "content"):
        (tmp_path / "no").open()
    assert info.value.filename == str(tmp_path / "no")
    with (
        pytest.raises(ValueError, match=r"^it: EOFError$"),
        content_errors(lambda reason: f"it: {reason}"),
    ):
        raise EOFError
    for method in (Statistics.from_csv, Statistics.from_parquet):
        with pytest.raises(FileNotFoundError) as info:
            method(tmp_path / "no", None, "y")
        assert info.value.filename == str(tmp_path / "no")


def test_text_with_its_first_line_larger_than_a_buffer(tmp_path):
    names = [f"column number {j}" for j in range(20_000)]
    lines = io.StringIO()
    pd.DataFrame(np.eye(2, len(names)), columns=names).to_csv(lines, index=False)
    path = tmp_path / "wide.csv.gz"
    path.write_bytes(gzip.compress(lines.getvalue().encode()))
    assert read_table(path, "csv", Options()).columns == names
