"""Small tables for the tests of the command line, in every format it reads."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from ellzero.cli.main import main

FORMULAS = [
    "=HYPERLINK(1)",
    '=HYPERLINK("http://example.org?x="&A1,"click")',
    "+1+1",
    "-2+3|cmd",
    "-",
    "+",
    "@SUM(1;2)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1+1",
    "-1,5",
    "-1e5x",
    "'=1",
    "''@x",
]
"""Text that a spreadsheet would run."""

NUMBERS = ["-1.5", "+1", "-1e-07", "+.5", "-2."]
"""Text that a spreadsheet takes for a number."""

WORDS = ["a", "1=1", "'quoted'", "a\nb", 'say "x"', "x;=1", "x,y", "", " =1", "no-yes", "ab@c.de"]
"""Text that is neither."""


def numbers(rng, m=60, n=6):
    """y depends on x1 and x4 alone."""
    X = rng.standard_normal((m, n)).round(6)
    y = (3 * X[:, 1] - 2 * X[:, 4] + 0.1 * rng.standard_normal(m) + 5).round(6)
    return X, y


def mixed(rng, m=80):
    """Numbers and words; the target depends on one of each."""
    colour = rng.choice(["red", "green", "blue"], m)
    X = rng.standard_normal((m, 3)).round(6)
    y = 10 * (colour == "red") + X[:, 0] + 0.01 * rng.standard_normal(m)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "colour": colour, "y": y})


def _csv(path, X, y, names, **options):
    pd.DataFrame(X, columns=names).assign(y=y).to_csv(path, index=False, **options)


def write(kind, folder, X, y, names):
    """A file of that kind and the name of its target there."""
    path = folder / f"data.{kind}"
    if kind in ("csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zip"):
        _csv(path, X, y, names)
    elif kind in ("tsv", "tsv.gz"):
        _csv(path, X, y, names, sep="\t")
    elif kind == "parquet":
        pd.DataFrame(X, columns=names).assign(y=y).to_parquet(path)
    elif kind in ("libsvm", "svm.gz"):
        content = io.BytesIO()
        dump_svmlight_file(X, y, content, zero_based=False)
        packed = gzip.compress(content.getvalue()) if kind == "svm.gz" else content.getvalue()
        path.write_bytes(packed)
    elif kind == "npz":
        np.savez(path, X=X, y=y, feature_names=np.array(names))
    elif kind == "sparse.npz":
        A = sparse.csr_matrix(X)
        parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape}
        np.savez(path, y=y, feature_names=np.array(names), format=b"csr", **parts)
    elif kind == "arff":
        head = "".join(f"@attribute {name} numeric\n" for name in [*names, "y"])
        lines = "\n".join(",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist())
        path.write_text(f"@relation r\n{head}@data\n{lines}\n")
    return path


def run(capsys, *arguments):
    """Exit code, stdout and stderr of a command."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *arguments, code=1):
    """The one line that a failing command writes."""
    given, out, err = run(capsys, *arguments)
    assert given == code, err
    assert out == ""
    lines = err.splitlines()
    assert lines[-1].startswith("ellzero: error: ")
    assert not any("error" in line for line in lines[:-1])
    return lines[-1].removeprefix("ellzero: error: ")


LIMITED = """
import os, resource, sys
name, amount, *command = sys.argv[1:]
resource.setrlimit(getattr(resource, name), (int(amount), int(amount)))
os.execv(sys.executable, [sys.executable, "-m", "ellzero", *command])
"""


def limited(name, amount):
    """The beginning of a command line that runs ellzero under a limit of POSIX."""
    return [sys.executable, "-c", LIMITED, name, str(amount)]
