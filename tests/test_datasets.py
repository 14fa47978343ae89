"""Data sets from files: every format, the checks, the paper's shapes."""

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas", reason="data sets need pandas")
pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")

from data_files import PACKERS, ROWS, original, published, sample_frame, shrunk  # noqa: E402
from ellzero.datasets import NAMES, data_folder, load, loading, locate  # noqa: E402
from ellzero.datasets.registry import ENTRIES  # noqa: E402

FORMS = [
    pytest.param(name, k, id=f"{name}-{'+'.join(part.name for part in source)}")
    for name, entry in ENTRIES.items()
    for k, source in enumerate(entry.sources)
]


@pytest.fixture
def small(monkeypatch):
    """Takes files of a few rows for whole; gives the shrunk entries."""
    entries = {name: shrunk(entry) for name, entry in ENTRIES.items()}
    monkeypatch.setattr(loading, "ENTRIES", entries)
    return entries


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refused(*args, **kwargs):
        raise AssertionError("this test needs no network")

    monkeypatch.setattr("urllib.request.urlopen", refused)
    monkeypatch.delenv("ELLZERO_DATA", raising=False)


def contents(frame, source):
    """The files of a source, by name, with a frame dealt out among them."""
    pieces = np.array_split(np.arange(len(frame)), len(source))
    return {
        part.name: original(frame.iloc[rows], part)
        for part, rows in zip(source, pieces, strict=True)
    }


def check(data, frame, entry):
    assert data.feature_names == entry.features
    assert data.X.index.tolist() == list(range(len(frame)))
    for name in entry.features:
        if name in entry.categorical:
            assert data.X[name].astype(str).tolist() == frame[name].tolist()
        else:
            assert data.X[name].dtype == np.float64
            assert_array_equal(data.X[name], frame[name])
    if entry.positives:
        expected = [float(letter in "ABCDEFGHIJKLM") for letter in frame["target"]]
    elif entry.task == "binary":
        expected = frame["target"] > 0
    else:
        expected = frame["target"]
    assert_allclose(data.y, expected, rtol=1e-15)


@pytest.mark.parametrize(("name", "k"), FORMS)
@pytest.mark.parametrize("suffix", PACKERS)
def test_every_form_of_a_set_gives_the_same(name, k, suffix, small, tmp_path):
    entry = small[name]
    source = entry.sources[k]
    if suffix and source[0].format == "parquet":
        return
    frame = sample_frame(entry)
    for file, content in contents(frame, source).items():
        (tmp_path / f"{file}{suffix}").write_bytes(PACKERS[suffix](file, content))
    data = load(name, data_home=tmp_path, download=False)
    check(data, frame, entry)
    assert data.task == entry.task
    assert source[0].name in data.source
    assert str(locate(name, data_home=tmp_path)[0]) in data.source


PUBLISHED = [
    pytest.param(name, k, j, id=f"{name}-{source[0].downloads[j].file}")
    for name, entry in ENTRIES.items()
    for k, source in enumerate(entry.sources)
    for j in range(len(source[0].downloads))
]


@pytest.mark.parametrize(("name", "k", "j"), PUBLISHED)
def test_files_are_read_as_they_are_published(name, k, j, small, tmp_path):
    source = small[name].sources[k]
    frame = sample_frame(small[name])
    files = contents(frame, source)
    for part in source:
        file = part.downloads[j].file
        own = {part.name: files[part.name]} if j else files
        (tmp_path / file).write_bytes(published(file, own))
    check(load(name, data_home=tmp_path, download=False), frame, small[name])


LINES = {  # as the originals begin
    "cal_housing.data": "-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,"
    "126.000000,8.325200,452600.000000\n",
    "letter-recognition.data": "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n",
    "ijcnn1": "-1 6:1 11:-0.731854 12:0.173431 14:0.00027 22:-0.00081 \n",
    "cpusmall": "90 1:6 2:2 3:1036 4:103 5:114 6:1 7:1 8:172076 9:355965 10:2 11:6527 12:1851864\n",
    "census-income.data": "73, Not in universe, 0, 0, High school graduate, 0, Not in universe, "
    "Widowed, Not in universe or children, Not in universe, White, NA, Female, "
    "Not in universe, Not in universe, Not in labor force, 0, 0, 0, Nonfiler, Not in universe, "
    "Not in universe, Other Rel 18+ ever marr not in subfamily, Other relative of householder, "
    "1700.09, ?, ?, ?, Not in universe under 1 year old, ?, 0, Not in universe, United-States, "
    "United-States, United-States, Native- Born in the United States, 0, Not in universe, 2, 0, "
    "95, - 50000.\n",
}


@pytest.mark.parametrize("file", LINES)
def test_first_lines_of_the_originals(file, tmp_path, monkeypatch):
    entry = next(e for e in ENTRIES.values() if any(s[0].name == file for s in e.sources))
    monkeypatch.setattr(loading, "ENTRIES", {entry.name: shrunk(entry, 2)})
    (tmp_path / file).write_text(LINES[file] * (1 if file.startswith("census") else 2))
    if file.startswith("census"):
        last = LINES[file].replace("- 50000.", "50000+.").replace("73, ", "40, ")
        (tmp_path / "census-income.test").write_text(last)
    data = load(entry.name, data_home=tmp_path, download=False)
    first = data.X.iloc[0].to_dict()
    if file == "cal_housing.data":
        assert list(first.values()) == [-122.23, 37.88, 41, 880, 129, 322, 126, 8.3252]
        assert data.y[0] == 452600
    elif file == "letter-recognition.data":
        assert list(first.values()) == [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]
        assert data.y[0] == 0
    elif file == "ijcnn1":
        assert (first["f6"], first["f11"], first["f13"], first["f22"]) == (1, -0.731854, 0, -8.1e-4)
        assert data.y[0] == 0
    elif file == "cpusmall":
        assert (first["lread"], first["freeswap"], data.y[0]) == (6, 1851864, 90)
    else:
        assert first["age"] == 73
        assert first["hispanic_origin"] == "NA"
        assert first["migration_code_change_in_msa"] == "?"
        assert first["instance_weight"] == 1700.09
        assert data.X["age"].tolist() == [73, 40]
        assert data.y.tolist() == [0, 1]


# the folder


def test_the_folder_is_the_argument_or_the_variable_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "ellzero"
    monkeypatch.setenv("ELLZERO_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    assert data_folder(str(tmp_path)) == tmp_path
    assert data_folder("~/data") == Path.home() / "data"
    monkeypatch.delenv("ELLZERO_DATA")
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_folder() == Path.home() / "Library" / "Caches" / "ellzero"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert data_folder() == tmp_path / "ellzero"


def test_nothing_there_says_which_file_to_put_where(tmp_path):
    with pytest.raises(FileNotFoundError) as info:
        load("ijcnn1", data_home=tmp_path, download=False)
    message = str(info.value)
    assert f"ijcnn1 is not in {tmp_path}" in message
    assert f"{tmp_path / 'ijcnn1.bz2'}  from https://www.csie.ntu.edu.tw/" in message
    assert "ijcnn1.parquet" in message
    assert "ELLZERO_DATA" in message
    assert "sample" not in message
    assert locate("ijcnn1", data_home=tmp_path) == ()


def test_half_a_source_is_none(small, tmp_path):
    source = small["census"].sources[-1]
    files = contents(sample_frame(small["census"]), source)
    (tmp_path / source[0].name).write_bytes(files[source[0].name])
    with pytest.raises(FileNotFoundError, match="census is not in"):
        load("census", data_home=tmp_path, download=False)


# what is no whole file


def measured(entry, source, frame):
    """The entry with this source only, whose check knows the numbers of the frame."""
    pieces = np.array_split(np.arange(len(frame)), len(source))
    parts = []
    for part, rows in zip(source, pieces, strict=True):
        numbers = frame.iloc[rows].select_dtypes("number").to_numpy()
        parts.append(replace(part, log_mean=float(np.log1p(np.abs(numbers)).mean())))
    return replace(entry, sources=(tuple(parts),))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_cut_is_refused(name, small, tmp_path):
    """At many places; also packed, whose sum of bytes comes last."""
    entry = small[name]
    source, frame = entry.sources[2], sample_frame(entry)
    small[name] = measured(entry, source, frame)
    files = contents(frame, source)
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    check(load(name, data_home=tmp_path, download=False), frame, entry)
    file, content = files.popitem()
    for cut in np.linspace(0, len(content) - 25, 15).astype(int):  # not the last digits only
        (tmp_path / file).write_bytes(content[:cut])
        with pytest.raises(ValueError, match=rf"not a whole {file}.*Delete it"):
            load(name, data_home=tmp_path, download=False)
    (tmp_path / file).unlink()
    packed = gzip.compress(content)
    for cut in (1, 10, len(packed) // 2, len(packed) - 1):
        (tmp_path / f"{file}.gz").write_bytes(packed[:cut])
        with pytest.raises(ValueError, match=f"not a whole {file}"):
            load(name, data_home=tmp_path, download=False)


@pytest.mark.parametrize("suffix", list(PACKERS)[1:])
def test_a_flipped_bit_in_a_packed_file_is_noticed(suffix, small, tmp_path):
    part = small["letter"].sources[2][0]
    frame = sample_frame(small["letter"])
    packed = PACKERS[suffix](part.name, original(frame, part))
    flipped = refused = 0
    for place in range(0, len(packed), 7):
        wrong = bytearray(packed)
        wrong[place] ^= 1
        (tmp_path / f"{part.name}{suffix}").write_bytes(wrong)
        flipped += 1
        try:
            data = load("letter", data_home=tmp_path, download=False)
        except ValueError:
            refused += 1
        else:
            check(data, frame, small["letter"])  # a bit that does not matter, such as a date
    assert refused > flipped / 3


@pytest.mark.parametrize("name", ["kddcup04_bio", "cal_housing"])
def test_the_sum_of_bytes_after_an_archive_is_checked(name, small, tmp_path):
    """It lies behind all that reading the one file in the archive needs."""
    part = small[name].sources[2][0]
    file = part.downloads[0].file
    body = published(file, {part.name: original(sample_frame(small[name]), part)})
    wrong = [body[:-4], body[:-8] + bytes(4) + body[-4:]]
    for content in wrong:
        (tmp_path / file).write_bytes(content)
        with pytest.raises(ValueError, match=f"not a whole {part.name}"):
            load(name, data_home=tmp_path, download=False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html><body>Please log in</body></html>\n" * ROWS, "columns, not 17"),
        (b"", "No columns"),
        (b"\x00\x01\x02\xff" * 99, "is not a whole"),
        (b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0\n" * ROWS, "16 columns, not 17"),
        (b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,word\n" * ROWS, "column 'yegvx' is not all"),
        (b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,\n" * ROWS, "'yegvx' is missing"),
        (b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n" * (ROWS + 1), f"{ROWS + 1} rows, not {ROWS}"),
    ],
)
def test_a_file_of_something_else_is_refused(content, reason, small, tmp_path):
    (tmp_path / "letter-recognition.data").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        load("letter", data_home=tmp_path, download=False)


def test_an_archive_without_the_file_is_refused(small, tmp_path):
    (tmp_path / "letter+recognition.zip").write_bytes(PACKERS[".zip"]("other.data", b"1,2"))
    with pytest.raises(ValueError, match=r"there is no letter-recognition\.data in it"):
        load("letter", data_home=tmp_path, download=False)


def test_labels_and_columns_are_checked(small, tmp_path):
    frame = sample_frame(small["census"])
    source = small["census"].sources[-1]
    for file, content in contents(frame, source).items():
        (tmp_path / file).write_bytes(content.replace(b"50000+.", b"70000+."))
    with pytest.raises(ValueError, match=r"'70000\+\.' is no label"):
        load("census", data_home=tmp_path, download=False)
    frame.drop(columns="age").to_parquet(tmp_path / "census.parquet")
    with pytest.raises(ValueError, match="no column 'age'"):
        load("census", data_home=tmp_path, download=False)


def test_other_numbers_are_refused(small, tmp_path):
    frame, source = sample_frame(small["letter"]), small["letter"].sources[2]
    small["letter"] = measured(small["letter"], source, frame)
    path = tmp_path / "letter-recognition.data"
    path.write_bytes(original(frame, source[0]))
    load("letter", data_home=tmp_path, download=False)
    frame.loc[3, "width"] += 1
    path.write_bytes(original(frame, source[0]))
    with pytest.raises(ValueError, match="the numbers are others"):
        load("letter", data_home=tmp_path, download=False)


# arguments


def test_paper_rows(small, tmp_path):
    for name, entry in small.items():
        frame = sample_frame(entry)
        frame.to_parquet(tmp_path / entry.sources[0][0].name)
        first, last = entry.paper_rows
        check(
            load(name, data_home=tmp_path, rows="paper"),
            frame.iloc[first:last].reset_index(drop=True),
            entry,
        )
    first_line_lost = {name for name, entry in small.items() if entry.paper_rows[0]}
    assert first_line_lost == {"kddcup04_bio", "cal_housing", "census", "comp-activ-harder"}


def test_letter_has_two_targets(small, tmp_path):
    frame = sample_frame(small["letter"])
    frame.to_parquet(tmp_path / "letter.parquet")
    data = load("letter", data_home=tmp_path, target="O")
    assert_array_equal(data.y, frame["target"] == "O")
    assert 'target="O"' in data.description
    with pytest.raises(ValueError, match=r"target: expected one of \['A-M', 'O'\] for letter"):
        load("letter", data_home=tmp_path, target="Q")
    with pytest.raises(ValueError, match="target: expected None for year"):
        load("year", data_home=tmp_path, target="O")


@pytest.mark.parametrize("name", ["slice", "year"])
def test_a_sample_is_read_only_when_asked_for(name, small, tmp_path):
    entry = small[name]
    frame = sample_frame(entry)
    (tmp_path / entry.samples[0][0].name).write_bytes(original(frame, entry.samples[0][0]))
    with pytest.raises(FileNotFoundError, match="sample=True reads it"):
        load(name, data_home=tmp_path, download=False)
    data = load(name, data_home=tmp_path, sample=True, rows="paper")
    check(data, frame, entry)
    assert f"a sample of {ROWS} rows" in data.description
    whole = sample_frame(entry, seed=1)
    whole.to_parquet(tmp_path / f"{name}.parquet")
    data = load(name, data_home=tmp_path, sample=True)
    check(data, whole, entry)
    assert "a sample of" not in data.description


def test_names(small, tmp_path):
    sample_frame(small["comp-activ-harder"]).to_parquet(tmp_path / "comp_activ_harder.parquet")
    assert load("comp_activ_harder", data_home=tmp_path).name == "comp-activ-harder"
    with pytest.raises(ValueError, match=r"name: expected one of kddcup04_bio, .*; got 'iris'"):
        load("iris", data_home=tmp_path)
    with pytest.raises(ValueError, match="rows: expected 'all' or 'paper', got 3"):
        load("year", data_home=tmp_path, rows=3)


def test_the_registry_has_the_papers_table():
    """Its rows are what `rows="paper"` leaves of the whole."""
    assert {name: entry.paper_shape for name, entry in ENTRIES.items()} == {
        "kddcup04_bio": (145750, 74),
        "cal_housing": (20639, 8),
        "census": (299284, 401),
        "comp-activ-harder": (8191, 12),
        "ijcnn1": (24995, 22),
        "letter": (20000, 16),
        "slice": (53500, 384),
        "year": (463715, 90),
    }
    for entry in ENTRIES.values():
        for source in entry.sources:
            rows = sum(part.rows for part in source)
            assert len(range(rows)[slice(*entry.paper_rows)]) == entry.paper_shape[0]
        if not entry.categorical:
            assert len(entry.features) == entry.paper_shape[1]


# the real files


@pytest.fixture(scope="module")
def real(data_folder):
    def get(name, **options):
        if not locate(name, data_home=data_folder, sample=True):
            pytest.skip(f"{name} is not in {data_folder}")
        return load(name, data_home=data_folder, download=False, sample=True, **options)

    return get


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_the_papers(real, name):
    data = real(name, rows="paper")
    if "a sample of" in data.description:
        data = replace(data, X=data.X.iloc[:300], y=data.y[:300])
    A, b, prep = data.prepare()
    m, n = ENTRIES[name].paper_shape
    if "a sample of" not in data.description:
        assert len(data.X) == m
    assert A.shape == (len(data.X), n + 1)
    assert len(b) == A.shape[0]
    assert prep.get_feature_names_out()[-1] == "1"
    squares = A.multiply(A) if hasattr(A, "multiply") else A**2
    norms = np.asarray(squares.sum(axis=0)).ravel()
    assert_allclose(norms[norms > 0], 1.0, rtol=1e-11)
    if data.task == "binary":
        ones = {"kddcup04_bio": 1296, "census": 18568, "ijcnn1": 2454, "letter": 9940}
        assert set(b) == {0.0, 1.0}
        assert b.sum() == ones[name]


def test_ones(real):
    assert real("ijcnn1").y.sum() == 4853
    assert real("letter", target="O").y.sum() == 753


@pytest.mark.parametrize("name", ["letter", "ijcnn1", "cal_housing", "comp-activ-harder"])
def test_the_real_values_pass_the_checks_in_every_format(real, name, tmp_path):
    data = real(name)
    entry = ENTRIES[name]
    frame = data.X.assign(target=data.y)
    if name == "letter":
        letters = pd.read_parquet(data.source)["target"].astype(str)
        frame["target"] = letters
    elif name == "ijcnn1":
        frame["target"] = 2 * data.y - 1
    for k, source in enumerate(entry.sources):
        folder = tmp_path / str(k)
        folder.mkdir()
        for file, content in contents(frame, source).items():
            (folder / file).write_bytes(content)
        again = load(name, data_home=folder, download=False)
        pd.testing.assert_frame_equal(again.X, data.X)
        assert_array_equal(again.y, data.y)
        shutil.rmtree(folder)
