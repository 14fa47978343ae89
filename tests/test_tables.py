"""Statistics of tables in files: Parquet and CSV, categories, weights and missing values."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ellzero import LeastSquares, Statistics, path
from ellzero.data.io import pieces

pa = pytest.importorskip("pyarrow", reason="tables in files")
pandas = pytest.importorskip("pandas", reason="tables to compare with")
from pyarrow import parquet  # noqa: E402

M = 500


@pytest.fixture
def frame(rng):
    table = pandas.DataFrame(rng.normal((0, 10, 1e6), size=(M, 3)), columns=["a", "b", "c"])
    table["count"] = rng.integers(0, 9, M)
    table["small"] = rng.normal(size=M).astype(np.float32)
    table["flag"] = rng.random(M) < 0.5
    table["y"] = table.a + 2 * table.flag + rng.normal(size=M)
    table["w"] = rng.integers(1, 4, M).astype(float)
    table["city"] = np.where(np.arange(M) < 400, "Rome", rng.choice(["Oslo", "Bern"], M))
    return table


NUMBERS = ["a", "b", "c", "count", "small", "flag"]


def encoded(frame, names):
    """The columns that names such as `a` and `city=Oslo` stand for."""
    columns = []
    for name in names:
        column, _, level = name.partition("=")
        columns.append(frame[column] == level if level else frame[column])
    return np.column_stack(columns).astype(float)


def assert_is(found, frame, names, weighted=False):
    X = encoded(frame, names)
    true = Statistics.from_arrays(X, frame.y.to_numpy(), frame.w if weighted else None)
    assert found.feature_names == tuple(names)
    norms = np.sqrt(np.diag(true.xx))
    norms[norms == 0] = 1.0  # a level that does not occur
    assert found.n_rows == true.n_rows
    assert_allclose(found.weight, true.weight)
    assert_allclose(found.mean, true.mean, rtol=1e-12, atol=1e-12)
    assert_allclose(found.xx / norms / norms[:, None], true.xx / norms / norms[:, None], atol=1e-10)
    assert_allclose(found.xy / norms, true.xy / norms, atol=1e-9)
    assert_allclose([found.mean_y, found.yy], [true.mean_y, true.yy], rtol=1e-10)


def write(frame, file, kind="parquet", **options):
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), file, **options)
    else:
        frame = frame.astype({name: float for name in ("flag", "small") if name in frame})
        frame.to_csv(file, index=False, sep="\t" if "tsv" in file.name else ",")
    return file


@pytest.fixture(params=["t.parquet", "t.csv", "t.tsv.gz", "t.csv.xz", "t.csv.zip"])
def reader(request, tmp_path):
    """Writes a frame to a file, in pieces, and reads its statistics."""
    kind = "parquet" if "parquet" in request.param else "csv"

    def read(frame, columns, target="y", **options):
        how = {"row_group_size": 70} if kind == "parquet" else {}
        file = write(frame, tmp_path / request.param, kind, **how)
        method = Statistics.from_parquet if kind == "parquet" else Statistics.from_csv
        return method(file, columns, target, **options)

    return read


@pytest.mark.parametrize("piece", [1, 2000, 1 << 25])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_file_in_pieces_of_any_size(frame, reader, piece, weighted, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", piece)
    names = [*NUMBERS, "city=Bern", "city=Oslo", "city=Rome"]
    options = {"weight": "w"} if weighted else {}
    found = reader(frame, [*NUMBERS, "city"], categorical=["city"], **options)
    assert_is(found, frame, names, weighted)


def test_all_columns_but_target_and_weight(frame, reader):
    table = frame.drop(columns="city")
    assert_is(reader(table, None, weight="w"), table, NUMBERS, weighted=True)


def test_levels_that_are_given_keep_their_order(frame, reader):
    levels = ["Rome", "Oslo", "Paris", "Bern"]
    found = reader(frame, ["city", "a"], categorical={"city": levels})
    assert_is(found, frame, [*(f"city={level}" for level in levels), "a"])
    with pytest.raises(ValueError, match=r"column 'city' has 'Oslo', not among the levels given"):
        reader(frame, ["city"], categorical={"city": ["Rome", "Bern"]})


def test_shards_with_different_levels_add_up_once_aligned(frame, tmp_path):
    first, second = frame[:400], frame[400:]  # Oslo and Bern come late
    parts = [
        Statistics.from_parquet(
            write(part, tmp_path / f"{k}.parquet"), ["city", "a"], "y", categorical=["city"]
        )
        for k, part in enumerate((first, second))
    ]
    with pytest.raises(ValueError, match=r"first lacks 'city=Bern', 'city=Oslo' and the second"):
        parts[0] + parts[1]
    names = ["city=Bern", "city=Oslo", "city=Rome", "a"]
    assert_is(parts[0].aligned(names) + parts[1].aligned(names), frame, names)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_folders_and_partitions(frame, tmp_path, kind):
    method = Statistics.from_parquet if kind == "parquet" else Statistics.from_csv
    for (city, count), part in frame.groupby(["city", "count"]):
        folder = tmp_path / f"city={city}" / f"count={count}"
        write(part.drop(columns=["city", "count"]), folder / f"part.{kind}", kind)
    (tmp_path / "_SUCCESS").touch()
    found = method(tmp_path, ["a", "city", "count"], "y", categorical=["city"])
    names = ["a", "city=Bern", "city=Oslo", "city=Rome", "count"]
    assert_is(found, frame, names)
    assert len(found.shards) == len(frame.groupby(["city", "count"]))


def test_the_same_file_twice(frame, tmp_path):
    for name in ("x", "copy of x"):
        write(frame, tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match="has the same rows as"):
        Statistics.from_parquet(tmp_path, ["a"], "y")
    (tmp_path / "x.parquet").unlink()
    write(frame[:100], tmp_path / "z.parquet")
    whole = Statistics.from_parquet(tmp_path, ["a"], "y")
    with pytest.raises(ValueError, match="the same rows"):
        whole + Statistics.from_parquet(tmp_path / "z.parquet", ["a"], "y")


def test_files_without_rows_are_no_shards(frame, tmp_path):
    parts = []
    for k, rows in enumerate((slice(0, 50), slice(50, None))):
        write(frame[rows], tmp_path / str(k) / "rows.parquet")
        write(frame[:0], tmp_path / str(k) / "empty.parquet")
        parts.append(Statistics.from_parquet(tmp_path / str(k), ["a"], "y"))
    assert_is(parts[0] + parts[1], frame, ["a"])


def test_a_shard_is_known_again_in_another_format(frame, tmp_path):
    options = {"categorical": ["city"]}
    a = Statistics.from_parquet(write(frame, tmp_path / "t.parquet"), ["a", "city"], "y", **options)
    file = write(frame, tmp_path / "t.csv", "csv")
    b = Statistics.from_csv(file, ["a", "city"], "y", **options)
    assert a.shards == b.shards
    renamed = frame.assign(city=frame.city.replace("Oslo", "Lima"))
    c = Statistics.from_csv(write(renamed, file, "csv"), ["a", "city"], "y", **options)
    assert c.shards != a.shards


@pytest.mark.parametrize(
    ("column", "value"), [("b", None), ("y", None), ("w", None), ("city", None)]
)
def test_missing_values(frame, reader, column, value):
    frame.loc[[77, 300], column] = value
    options = {"weight": "w", "categorical": ["city"]}
    with pytest.raises(ValueError, match=rf"column '{column}' has no value in row 77\b"):
        reader(frame, ["a", "b", "city"], **options)
    found = reader(frame, ["a", "b", "city"], missing="drop", **options)
    names = ["a", "b", "city=Bern", "city=Oslo", "city=Rome"]
    assert_is(found, frame.drop(index=[77, 300]), names, weighted=True)


def test_a_missing_value_is_placed_in_its_row_group(frame, tmp_path):
    frame.loc[77, "b"] = np.nan
    file = write(frame, tmp_path / "t.parquet", row_group_size=50)
    with pytest.raises(ValueError, match=r"t\.parquet: column 'b' .* row 77 \(row group 1\)"):
        Statistics.from_parquet(file, ["a", "b"], "y")


def test_infinite_values_are_never_dropped(frame, reader):
    frame.loc[5, "b"] = np.inf
    with pytest.raises(ValueError, match=r"column 'b' in row 5.* is infinite"):
        reader(frame, ["a", "b"], missing="drop")


def test_errors_say_what_to_do(frame, reader):
    with pytest.raises(ValueError, match=r"has no column 'nothing'; its columns are "):
        reader(frame, ["a", "nothing"])
    with pytest.raises(ValueError, match=r"categorical="):
        reader(frame, ["a", "city"])
    with pytest.raises(ValueError, match="sample_weight: negative"):
        reader(frame.assign(w=-1.0), ["a"], weight="w")
    with pytest.raises(ValueError, match="there is no row"):
        reader(frame.assign(w=0.0), ["a"], weight="w")
    with pytest.raises(ValueError, match="'error' or 'drop'"):
        reader(frame, ["a"], missing="skip")
    with pytest.raises(ValueError, match="among the features"):
        reader(frame, ["a", "y"])
    with pytest.raises(ValueError, match="'city' not among columns"):
        reader(frame, ["a"], categorical=["city"])
    with pytest.raises(ValueError, match="among the features"):
        reader(frame, None, categorical=["y"])
    with pytest.raises(ValueError, match="one name or more"):
        reader(frame, [])
    with pytest.raises(ValueError, match="one name or more"):
        reader(frame, ["a", "a"])
    with pytest.raises(ValueError, match="a level of 'city' stands there twice"):
        reader(frame, ["city"], categorical={"city": ["Rome", "Rome"]})
    with pytest.raises(TypeError, match="several names"):
        reader(frame, "a")


def test_files_that_are_not_there_or_not_tables(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        Statistics.from_parquet(tmp_path / "none.parquet", None, "y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no file in this folder"):
        Statistics.from_parquet(tmp_path / "empty", None, "y")
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(ValueError, match=r"text\.parquet"):
        Statistics.from_parquet(tmp_path / "text.parquet", None, "y")
    with gzip.open(tmp_path / "cut.csv.gz", "wt") as file:
        file.write("a,y\n" + "1,2\n" * 5000)
    whole = (tmp_path / "cut.csv.gz").read_bytes()
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises((ValueError, OSError), match=r"cut\.csv\.gz|runcated"):
        Statistics.from_csv(tmp_path / "cut.csv.gz", None, "y")
    write(frame[["a", "y"]], tmp_path / "two" / "1.parquet")
    write(frame[["a", "b", "y"]][5:], tmp_path / "two" / "2.parquet")
    with pytest.raises(ValueError, match="not those of the files before: 'b'"):
        Statistics.from_parquet(tmp_path / "two", None, "y")


def test_a_path_from_a_file_is_that_of_the_data(frame, reader):
    columns = ["a", "b", "c", "count", "flag"]
    stats = reader(frame, columns, weight="w")
    found = path(LeastSquares.from_statistics(stats, fit_intercept=True), range(1, 4))
    X = frame[columns].astype(float)
    f = LeastSquares(X, frame.y, sample_weight=frame.w, fit_intercept=True)
    for s, wanted in path(f, range(1, 4)).items():
        assert found[s].feature_names == tuple(columns)
        assert_allclose(found[s].x, wanted.x, rtol=1e-8, atol=1e-12)
        assert_allclose(found[s].intercept, wanted.intercept, rtol=1e-8)
        assert_allclose(found[s].value, wanted.value, rtol=1e-10)


def test_memory_does_not_grow_with_the_file(rng, tmp_path):
    """Also where the whole file is one row group: a process of its own sees all."""
    m, n = 2_000_000, 5
    columns = {f"x{j}": rng.normal(size=m) for j in range(n)}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=m)
    code = (
        "import sys, tracemalloc, pandas, pyarrow\n"  # importing them takes 20 MB
        "from ellzero import Statistics\n"
        "from ellzero.data.io import pieces\n"
        "pieces.PIECE_BYTES = 1 << 20\n"
        "tracemalloc.start()\n"
        "Statistics.from_parquet(sys.argv[1], None, 'x0')\n"
        "arrows = pyarrow.default_memory_pool().max_memory()\n"
        "sys.stdout.write(f'{arrows} {tracemalloc.get_traced_memory()[1]}')"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    arrows, ours = map(int, done.stdout.split())
    assert arrows < 8 * m * n / 2
    assert ours < 8 * m * n / 4
