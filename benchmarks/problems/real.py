"""Public data sets, read from the folder of Parquet files named by ELLZERO_DATA.

Preprocessing follows the paper: categorical columns one-hot, every column scaled to unit
Euclidean norm, not centred; the intercept is the solvers' own and always in. Columns that are
constant are left out: beside an intercept they can change no loss, and some peers divide by
their spread.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.base import Problem, Task

IDENTIFIERS = ["block_id", "patientId"]  # name a group of rows; not features


def _folder() -> Path | None:
    folder = os.environ.get("ELLZERO_DATA")
    return Path(folder) if folder else None


def _missing(file: str) -> str:
    folder = _folder()
    if folder is None:
        return "ELLZERO_DATA is not set"
    return "" if (folder / f"{file}.parquet").exists() else f"no {file}.parquet in ELLZERO_DATA"


def _table(file: str) -> tuple[Any, np.ndarray]:
    import pandas as pd

    folder = _folder()
    assert folder is not None
    frame = pd.read_parquet(folder / f"{file}.parquet").drop(columns=IDENTIFIERS, errors="ignore")
    target = frame.pop("target")
    if file == "letter":  # no binary target of its own: the first half of the alphabet or not
        return frame, (target.astype(str) <= "M").to_numpy(float)
    return frame, target.to_numpy(float)


def numeric(file: str, task: Task) -> tuple[np.ndarray, np.ndarray]:
    frame, y = _table(file)
    X = np.ascontiguousarray(frame.to_numpy(float))
    X = X[:, np.ptp(X, axis=0) > 0]
    X /= np.linalg.norm(X, axis=0)
    return X, (y > 0).astype(float) if task == "logistic" else y


def one_hot(file: str, absent: str = "?") -> tuple[Any, np.ndarray]:
    """Numbers as they are, every level of every string column but `absent` as a 0/1 column."""
    from scipy import sparse

    frame, y = _table(file)
    blocks = []
    for _, column in frame.items():
        if column.dtype.kind in "iuf":
            blocks.append(sparse.csc_matrix(column.to_numpy(float)[:, None]))
            continue
        text = column.astype(str).to_numpy()
        levels = [level for level in np.unique(text) if level != absent]
        blocks += [sparse.csc_matrix((text == level)[:, None].astype(float)) for level in levels]
    X = sparse.csc_matrix(sparse.hstack(blocks))
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
    return sparse.csc_matrix(X @ sparse.diags(1 / norm)), (y > 0).astype(float)


def _real(
    file: str, task: Task, stop: int, *, name: str = "", quick: bool = False, note: str = "",
    family: Any = "quality",
) -> Problem:  # fmt: skip
    make = partial(one_hot, file) if file == "census" else partial(numeric, file, task)
    return Problem(
        name or file,
        task,
        tuple(range(1, stop + 1)),
        make,
        note,
        family,
        quick,
        missing=partial(_missing, file),
    )


LABELS = "least squares on the 0/1 label"
PROBLEMS = [
    _real("kddcup04_bio", "logistic", 30, family="time"),
    _real("census", "logistic", 20, family="time", note="one-hot, sparse, `?` dropped"),
    _real("kddcup04_bio", "logistic", 40, name="kddcup04_bio-to-40"),
    _real("census", "logistic", 40, name="census-to-40", note="one-hot, sparse, `?` dropped"),
    _real("cal_housing", "least_squares", 8, quick=True),
    _real("comp_activ_harder", "least_squares", 12, quick=True),
    _real("year_sample10000", "least_squares", 40, note="10 000 of 515 345 rows"),
    _real("slice_first682", "least_squares", 40, note="the first 682 of 53 500 rows"),
    _real("letter", "logistic", 16, note="A–M against N–Z"),
    _real("ijcnn1", "logistic", 22),
    _real("riboflavin", "least_squares", 20, quick=True),
    _real("trim32_500", "least_squares", 20),
    _real("leukemia", "least_squares", 20, note=LABELS),
    _real("colon", "least_squares", 20, note=LABELS),
    _real("leukemia", "logistic", 5, name="leukemia-logit", note="separable from a few genes on"),
    _real("colon", "logistic", 8, name="colon-logit", note="separable from a few genes on"),
]
