"""Rows in batches: the statistics are those of all rows at once, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from ellzero import LeastSquares, Statistics, path

M, N = 300, 6


def data(rng, offset=0.0, dtype=float):
    X = (rng.normal(size=(M, N)) * [1, 1, 5, 0.2, 1, 3] + offset).astype(dtype)
    y = X @ [1, 0, 1, 0, -1, 2] + rng.normal(size=M) + offset
    return X, y, rng.integers(0, 4, M).astype(float)


def assert_same(found, true, tol=1e-10):
    """Moments to `tol` of the norms involved."""
    norms = np.sqrt(np.diag(true.xx))
    norms[norms == 0] = 1.0
    assert found.n_rows == true.n_rows
    assert_allclose(found.weight, true.weight, rtol=1e-13)
    assert_allclose(found.mean, true.mean, rtol=1e-13, atol=1e-13)
    assert_allclose(found.mean_y, true.mean_y, rtol=1e-13, atol=1e-13)
    assert_allclose(found.xx / norms / norms[:, None], true.xx / norms / norms[:, None], atol=tol)
    assert_allclose(found.xy / norms / true.yy**0.5, true.xy / norms / true.yy**0.5, atol=tol)
    assert_allclose(found.yy, true.yy, rtol=tol)


CUTS = {
    "one": [],
    "empty batches": [0, 0, 100, 100, M],
    "one row each": range(1, M),
    "one row first": [1],
    "uneven": [7, 8, 200],
}


def batches(cuts, *arrays):
    return zip(*(np.split(a, list(cuts)) for a in arrays), strict=True)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_any_batching_gives_the_statistics_of_the_whole(rng, cuts, weighted, offset):
    X, y, w = data(rng, offset)
    arrays = (X, y, w) if weighted else (X, y)
    found = Statistics.from_batches(batches(cuts, *arrays))
    assert_same(found, Statistics.from_arrays(*arrays))


@pytest.mark.parametrize("kind", [np.float32, int, bool])
def test_numbers_of_other_types(rng, kind):
    X, y, _ = data(rng, 100.0)
    X = X.astype(kind) if kind is not bool else X > 100
    assert_same(
        Statistics.from_batches(batches([9, 50], X, y)), Statistics.from_arrays(X.astype(float), y)
    )


def test_sparse_batches(rng):
    X, y, w = data(rng)
    X[X < 1] = 0
    parts = [(sparse.csr_matrix(X[k]), y[k], w[k]) for k in (slice(0, 50), slice(50, None))]
    assert_same(Statistics.from_batches(parts), Statistics.from_arrays(X, y, w))


def test_a_first_batch_far_from_the_rest_costs_no_digits(rng):
    X, y, _ = data(rng)
    X[0] += 1e8
    found = Statistics.from_batches(batches([1], X, y))
    assert_same(found, Statistics.from_arrays(X, y))


def test_names_come_along(rng):
    pandas = pytest.importorskip("pandas", reason="frames")
    X, y, _ = data(rng)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    stats = Statistics.from_batches([(frame[:100], y[:100]), (frame[100:], y[100:])])
    assert stats.feature_names == tuple("abcdef")
    f = LeastSquares.from_statistics(stats, fit_intercept=True)
    found, wanted = path(f, range(1, 4)), path(LeastSquares(frame, y, fit_intercept=True), [3])
    assert wanted[3].feature_names == found[3].feature_names == tuple("abcdef")
    assert "f: " in repr(found[3])
    assert set(found.to_frame().feature) <= set("abcdef")
    assert_allclose(found[3].x, wanted[3].x, rtol=1e-9)
    assert_allclose(found[3].intercept, wanted[3].intercept, rtol=1e-9)
    with pytest.raises(ValueError, match="batch 1: X: its columns are"):
        Statistics.from_batches([(frame, y), (frame[list("bacdef")], y)])


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, "no row with a positive weight"),
        ([(np.ones((0, 2)), [])], ValueError, "no row"),
        ([(np.ones((2, 2)), [1, 2], [0, 0])], ValueError, "no row with a positive weight"),
        ([np.ones((2, 2))], TypeError, r"batch 0: expected \(X, y\)"),
        ([(np.eye(2), [1, 2]), (np.eye(3), [1, 2, 3])], ValueError, "batch 1: X: has 3 columns"),
        ([(np.eye(2), [1, 2]), (np.eye(2), [1])], ValueError, "batch 1: y: expected one"),
        ([(np.eye(2), [1, 2]), ([[1, np.nan]], [1])], ValueError, "batch 1: X: column 1 has 1 NaN"),
        ([(np.eye(2), [1, 2], [0, -1])], ValueError, "batch 0: sample_weight: negative in row 1"),
        ([([[1, np.nan]], [1], [0])], ValueError, "batch 0: X: column 1"),
    ],
)
def test_errors_name_the_batch(parts, error, message):
    with pytest.raises(error, match=message):
        Statistics.from_batches(parts)


def test_memory_is_that_of_a_batch():
    rows, n_batches = 2000, 60
    whole = rows * n_batches * 50 * 8

    def made():
        for seed in range(n_batches):
            X = np.random.default_rng(seed).normal(size=(rows, 50))
            yield X, X[:, 0]

    tracemalloc.start()
    try:
        Statistics.from_batches(made())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < whole / 8


# shards


def test_a_shard_is_not_added_twice(rng):
    X, y, w = data(rng)
    first = Statistics.from_batches(batches([100], X[:200], y[:200], w[:200]))
    again = Statistics.from_batches(batches([3, 9], X[:200], y[:200], w[:200]))
    second = Statistics.from_batches([(X[200:], y[200:], w[200:])])
    assert_same(first + second, Statistics.from_arrays(X, y, w))
    for whole in (first, first + second):
        with pytest.raises(ValueError, match="the same rows"):
            whole + again
    reweighted = Statistics.from_batches([(X[:200], y[:200], 2 * w[:200])])
    assert (first + reweighted).weight == pytest.approx(3 * w[:200].sum())


def test_a_late_row_makes_another_shard(rng):
    X, y = rng.normal(size=(2000, 2)), rng.normal(size=2000)
    a = Statistics.from_batches([(X, y)])
    X[1984] += 1  # of the rows after the first 1024 every 64th is looked at
    assert a.shards.isdisjoint(Statistics.from_batches([(X, y)]).shards)
    assert a.shards.isdisjoint(Statistics.from_batches([(X[:-1], y[:-1])]).shards)


def test_different_features_are_named():
    def stats(names):
        return Statistics.from_batches(
            [(np.eye(len(names)), range(len(names)))], feature_names=names
        )

    with pytest.raises(ValueError, match=r"the first lacks 'd' and the second lacks 'a', 'b'"):
        stats("abc") + stats("cd")
    with pytest.raises(ValueError, match=r"another order \('b' and 'c' in place 1\)"):
        stats("abc") + stats("acb")
    with pytest.raises(ValueError, match="only one of them has names"):
        stats("ab") + Statistics.from_arrays(np.eye(2), [1, 2])
    with pytest.raises(ValueError, match="lack 'c'"):
        stats("abc").aligned("ab")
    with pytest.raises(ValueError, match="twice"):
        stats("ab").aligned("abb")


def test_aligned_adds_features_that_were_zero(rng):
    X, y, w = data(rng, 1e3)
    wide = np.insert(X, 2, 0.0, axis=1)[:, ::-1]
    stats = Statistics.from_batches([(X, y, w)], feature_names="abcdef")
    assert_same(stats.aligned("fedc0ba"), Statistics.from_arrays(wide, y, w), 1e-12)


# files of statistics


@pytest.fixture
def saved(rng, tmp_path):
    X, y, w = data(rng)
    stats = Statistics.from_batches([(X, y, w)], feature_names="abcdef")
    stats.save(tmp_path / "part.stats")
    return stats, tmp_path / "part.stats"


def test_what_is_saved_is_loaded(saved, rng):
    stats, file = saved
    loaded = Statistics.load(file)
    assert_same(loaded, stats, 0)
    assert loaded.feature_names == stats.feature_names
    assert loaded.shards == stats.shards
    assert [p.name for p in file.parent.iterdir()] == ["part.stats"]
    unnamed = Statistics.from_arrays(np.eye(3), [1, 2, 3])
    unnamed.save(file)
    assert Statistics.load(file).feature_names is None
    assert not Statistics.load(file).shards


def test_where_nothing_can_be_saved_is_named(saved):
    stats, file = saved
    with pytest.raises(
        FileNotFoundError, match=r"path: there is no folder .*new to write a\.stats"
    ):
        stats.save(file.parent / "new" / "a.stats")
    with pytest.raises(IsADirectoryError, match=r"path: .* is a folder; name a file in it"):
        stats.save(file.parent)


def test_a_failed_save_leaves_what_was_there(saved, monkeypatch):
    stats, file = saved
    before = file.read_bytes()

    def full(handle, **arrays):
        handle.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        stats.save(file)
    assert file.read_bytes() == before
    assert len(list(file.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(format="else"), "was not written by"),
        (lambda a: a.pop("format"), "was not written by"),
        (lambda a: a.update(version=99), "version 99 of the format"),
        (lambda a: a.pop("xy"), "damaged"),
        (lambda a: a.update(xx=a["xx"][:2]), "xx has shape"),
        (lambda a: a.update(yy=np.nan), "yy has NaN"),
        (lambda a: a.update(mean=a["mean"].astype(str)), "mean has shape"),
        (lambda a: a.update(feature_names=a["feature_names"][:2]), "2 names for 6"),
    ],
)
def test_foreign_and_damaged_files_are_refused(saved, change, message):
    _, file = saved
    with np.load(file) as whole:
        arrays = dict(whole)
    change(arrays)
    with file.open("wb") as handle:
        np.savez(handle, **arrays)
    with pytest.raises(ValueError, match=message):
        Statistics.load(file)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04 no archive"])
def test_other_files_are_refused(tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole file of statistics"):
        Statistics.load(file)


def test_cut_and_flipped_files_are_refused(saved):
    _, file = saved
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a whole file"):
        Statistics.load(file)
    at = whole.index(b"xx.npy") + 400
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ValueError, match="not a whole file"):
        Statistics.load(file)
    at = whole.rindex(b"PK\x01\x02") + 8  # flags that promise a kind of archive nobody reads
    file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    with pytest.raises(ValueError, match="not a whole file"):
        Statistics.load(file)


def test_one_thing_is_no_batches():
    with pytest.raises(TypeError, match="batches: expected several"):
        Statistics.from_batches(3)


def test_pickles_are_never_opened(saved):
    _, file = saved
    with np.load(file) as whole:
        arrays = dict(whole)
    arrays["feature_names"] = np.array([print] * 6, dtype=object)
    with file.open("wb") as handle:
        np.savez(handle, **arrays)
    with pytest.raises(ValueError, match="not a whole file"):
        Statistics.load(file)
