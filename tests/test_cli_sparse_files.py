"""Sparse files: a few bytes that ask for very many features or rows, and what is wide indeed."""

import json
import os
import subprocess

import numpy as np
import pytest
from scipy import sparse

from cli_files import fails, limited, run
from ellzero.cli.model import Model
from ellzero.cli.model_file import to_json
from ellzero.data.io.libsvm import MAX_FEATURES

LIMIT = "; correct the file, or raise the limit with --features N"


@pytest.fixture
def libsvm(tmp_path):
    """Writes a LIBSVM file of 40 rows that ends with these lines."""

    def write(*last, first=1):
        rng = np.random.default_rng(0)
        rows = [
            f"{i % 7} " + " ".join(f"{j}:{v:.3f}" for j, v in enumerate(rng.random(4), first))
            for i in range(40)
        ]
        path = tmp_path / "data.libsvm"
        path.write_text("\n".join([*rows, *last]) + "\n")
        return path

    return write


FAULTS = {
    f"1 {2**31 - 1}:1": f"index 2147483647 is above the limit of 1 000 000 features{LIMIT}",
    f"1 {MAX_FEATURES + 2}:1": f"index 1000002 is above the limit of 1 000 000 features{LIMIT}",
    "1 999999999999:1": "the feature index 999999999999 is above the limit of 2 147 483 647 feat",
    f"1 {'9' * 5000}:1": "99 is above the limit of 2 147 483 647 features; correct the file",
    "1 -3:1": "the feature index -3 is negative; correct the file",
    "1 a:1": "the feature index 'a' is no whole number; correct the file",
    "1 1.5:1": "the feature index '1.5' is no whole number; correct the file",
    "1 2:b": "the value of feature 2 is 'b', which is no number; correct the file",
    "a 2:1": "the target is 'a', which is no number; correct the file",
    "1 3:1 2:1": "the feature index 2 comes after 3; indices must ascend; correct the file",
    "1 2:1 2:1": "the feature index 2 comes after 2; indices must ascend; correct the file",
    "1 2": "'2' must be written as index:value; correct the file",
}


@pytest.mark.parametrize("line", FAULTS, ids=lambda line: line[:20])
def test_a_faulty_line_is_named(line, libsvm, capsys):
    path = libsvm("# nothing", "", line)
    message = fails(capsys, "fit", path, "-s", 1)
    assert message.startswith(f"{path}: cannot be read as libsvm: line 43: ")
    assert FAULTS[line] in message
    assert len(message) < 300


@pytest.mark.parametrize("command", ["fit", "path", "predict"])
def test_features_set_the_limit(command, libsvm, tmp_path, capsys):
    path = libsvm("1 9:1")
    model = tmp_path / "model.json"
    assert run(capsys, "fit", path, "-s", 1, "--out", model)[0] == 0
    arguments = (command, *([model] if command == "predict" else []), path, "--features")
    assert fails(capsys, *arguments, 8) == (
        f"{path}: cannot be read as libsvm: line 41: the feature index 9 is above the limit of 8 "
        f"features{LIMIT}"
    )
    assert run(capsys, *arguments, 9)[0] == 0
    assert "expected a whole number from 1 to" in fails(capsys, *arguments, 0, code=2)
    assert "expected a whole number from 1 to" in fails(capsys, *arguments, 2**31, code=2)


def test_a_file_that_counts_from_zero_has_as_many_features(libsvm, capsys):
    path = libsvm("1 9:1", first=0)
    assert run(capsys, "fit", path, "-s", 1, "--features", 10)[0] == 0


def test_more_features_than_usual_can_be_asked_for(libsvm, capsys, monkeypatch):
    monkeypatch.setattr("ellzero.data.io.libsvm.MAX_FEATURES", 1000)
    path = libsvm("1 2000:1")
    assert "above the limit of 1 000 features" in fails(capsys, "fit", path, "-s", 1)
    code, out, _ = run(capsys, "fit", path, "-s", 1, "--features", 2000)
    assert code == 0
    assert "1 of 2000 features" in out


def test_a_file_may_have_as_many_features_as_numbers(libsvm, capsys, monkeypatch):
    monkeypatch.setattr("ellzero.data.io.libsvm.MAX_FEATURES", 10)
    assert run(capsys, "fit", libsvm("1 161:1"), "-s", 1)[0] == 0
    assert "above the limit of 161 features" in fails(capsys, "fit", libsvm("1 163:1"), "-s", 1)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arff"])
def test_features_are_for_sparse_files(kind, capsys):
    assert fails(capsys, "fit", f"no.{kind}", "--target", "y", "--features", 9, code=2) == (
        f"--features: is for libsvm and npz files, not for {kind}."
    )


def parts(shape, data=(1.0, 2.0, 3.0), indices=(0, 1, 1), indptr=(0, 1, 2, 3), kind=b"csr"):
    return {
        "data": np.array(data),
        "indices": np.array(indices, np.int32),
        "indptr": np.array(indptr, np.int32),
        "shape": np.array(shape),
        "format": kind,
    }


SHAPES = {
    "many features": (parts((3, 2**40)), "has 1 099 511 627 776 features, above the limit of 1 0"),
    "features above the limit": (parts((3, 10**6 + 1)), f"limit of 1 000 000{LIMIT}"),
    "many rows": (
        parts((2**40, 3), kind=b"csc"),
        "its shape has 1 099 511 627 776 rows, but it stores only 3 numbers",
    ),
    "negative": (parts((3, -2)), "'shape' must be two whole numbers"),
    "three": (parts((3, 2, 2)), "'shape' must be two whole numbers"),
    "fractions": (parts((3.0, 2.0)), "'shape' must be two whole numbers"),
    "a word": (parts("x"), "'shape' must be two whole numbers"),
    "too large": (parts((3, 2**64)), "'shape' holds Python objects"),
    "an index too large": (parts((3, 2), indices=(0, 5, 1)), "cannot be read as npz"),
    "a negative index": (parts((3, 2), indices=(0, -5, 1)), "cannot be read as npz"),
    "a negative pointer": (parts((3, 2), indptr=(0, -1, 2, 3)), "cannot be read as npz"),
    "pointers too large": (parts((3, 2), indptr=(0, 1, 2, 2**30)), "cannot be read as npz"),
    "few pointers": (parts((5, 2)), "cannot be read as npz"),
    "a format that is a number": (parts((3, 2), kind=1), "'format' must be text"),
    "no data": ({k: v for k, v in parts((3, 2)).items() if k != "data"}, "no array 'data' in it"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_of_sparse_matrices(case, tmp_path, capsys):
    arrays, reason = SHAPES[case]
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    message = fails(capsys, "fit", path, "--target", "y", "-s", 1)
    assert message.startswith(f"{path}: cannot be read as npz: ")
    assert reason in message


def test_features_set_the_limit_of_npz_files(tmp_path, rng, capsys):
    path = tmp_path / "data.npz"
    A = sparse.random(30, 50, 0.2, format="csr", random_state=0)
    np.savez(path, y=rng.random(30), **parts(A.shape, A.data, A.indices, A.indptr))
    message = fails(capsys, "fit", path, "--features", 49, "-s", 1)
    assert message.endswith(f"its shape has 50 features, above the limit of 49{LIMIT}")
    assert run(capsys, "fit", path, "--features", 50, "-s", 1)[0] == 0


# memory


def under_limit(megabytes, *arguments):
    """The exit code and stderr of a command that may have so much memory."""
    pytest.importorskip("resource", reason="limits of memory are POSIX's")
    done = subprocess.run(
        [*limited("RLIMIT_AS", megabytes << 20), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return done.returncode, done.stderr


def test_a_small_file_takes_little_memory(libsvm):
    path = libsvm(f"1 {2**31 - 1}:1")
    code, err = under_limit(3000, "fit", path, "-s", 1)
    assert code == 1
    assert err.splitlines()[-1].endswith(LIMIT)


def test_wide_files_stay_sparse(libsvm, tmp_path):
    """40 rows of a million features take 320 MB when dense, and several times as much in a fit."""
    path, model = libsvm(f"1 {MAX_FEATURES}:1"), tmp_path / "model.json"
    for arguments in (("fit", path, "-s", 2, "--out", model), ("predict", model, path)):
        code, err = under_limit(3000, *arguments)
        assert code == 0, err


# wide models


def wide_model(n_features):
    """The file of a model with features f1, f2, ..."""
    from ellzero.cli.design import Column, Term

    terms = [Term(Column(f"f{j}")) for j in range(1, n_features + 1)]
    coefficients = np.arange(1.0, n_features + 1)[None]
    model = Model("regression", "target", terms, coefficients, np.zeros(1), [])
    return json.dumps(to_json(model, {}))


def test_few_missing_columns_are_looked_for(tmp_path, capsys, monkeypatch):
    """The search for the name that was meant takes longer than anything else."""
    searches = []
    monkeypatch.setattr(
        "ellzero.cli.model.closest", lambda name, known: searches.append(name) or "other"
    )
    model, data = tmp_path / "model.json", tmp_path / "data.csv"
    model.write_text(wide_model(3000))
    data.write_text("a,b\n1,2\n")
    message = fails(capsys, "predict", model, data)
    assert message.startswith("the data do not fit the model: there is no column 'f1' (did you me")
    assert message.endswith("no column 'f8' (did you mean 'other'?); and 2 992 more faults")
    assert searches == [f"f{j}" for j in range(1, 9)]


def test_wide_models_predict_sparse_files(libsvm, tmp_path, capsys):
    """The matrix of the model's columns would take 5 GB if it were dense."""
    path, model = tmp_path / "data.libsvm", tmp_path / "model.json"
    path.write_text("\n".join(["1 1:2 3:-1 9000:0.5", "2 10000:1", *["3"] * 60_000]))
    model.write_text(wide_model(10_000))
    code, out, _ = run(capsys, "predict", model, path, "--json")
    assert code == 0
    assert json.loads(out)["predictions"][:4] == [2 - 3 + 4500, 10_000, 0, 0]
    assert under_limit(3000, "predict", model, path, "--out", tmp_path / "out.csv")[0] == 0


def test_gaps_and_infinite_numbers_of_sparse_files_do_not_fit(libsvm, tmp_path, capsys):
    model = tmp_path / "model.json"
    model.write_text(wide_model(3))
    assert fails(capsys, "predict", model, libsvm("1 1:nan 3:inf")) == (
        "the data do not fit the model: column 'f1' has 1 missing value, which the model does not "
        "impute; column 'f3' has 1 infinite value"
    )


def test_a_model_of_many_levels_is_quick(tmp_path, capsys):
    """Each of its terms takes one step, and not one for every level."""
    from ellzero.cli.design import Column, Term

    column = Column("word", tuple(f"w{j}" for j in range(30_000)))
    terms = [Term(column, level) for level in column.levels]
    model = Model("regression", "y", terms, np.arange(30_000.0)[None], np.zeros(1), [])
    path, data = tmp_path / "model.json", tmp_path / "data.csv"
    path.write_text(json.dumps(to_json(model, {})))
    data.write_text("word\nw7\nw29999\n")
    assert run(capsys, "predict", path, data)[1] == "prediction\n7.0\n29999.0\n"
