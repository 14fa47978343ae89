"""Public data sets, read from the folder named by ELLZERO_DATA.

Preprocessing is the paper's (`ellzero.datasets.Preprocessing`), but the intercept is the solvers'
own and always in, and constant columns are left out: beside an intercept they can change no loss,
and some peers divide by their spread.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.base import Problem, Task

# read by ellzero.datasets; all else is a Parquet file with a column `target`
PAPER = {"kddcup04_bio", "cal_housing", "census", "comp_activ_harder", "ijcnn1", "letter"}


def _folder() -> Path | None:
    folder = os.environ.get("ELLZERO_DATA")
    return Path(folder) if folder else None


def _missing(file: str) -> str:
    folder = _folder()
    if folder is None:
        return "ELLZERO_DATA is not set"
    if file in PAPER:
        from ellzero.datasets import locate

        return "" if locate(file, data_home=folder) else f"no {file} in ELLZERO_DATA"
    return "" if (folder / f"{file}.parquet").exists() else f"no {file}.parquet in ELLZERO_DATA"


def _table(file: str) -> tuple[Any, np.ndarray]:
    folder = _folder()
    assert folder is not None
    if file in PAPER:
        from ellzero.datasets import load

        data = load(file, data_home=folder, download=False)
        return data.X, data.y
    import pandas as pd

    frame = pd.read_parquet(folder / f"{file}.parquet").drop(columns="patientId", errors="ignore")
    target = frame.pop("target")
    return frame, target.to_numpy(float)


def matrix(file: str, task: Task) -> tuple[Any, np.ndarray]:
    from ellzero.datasets import Preprocessing

    frame, y = _table(file)
    A = Preprocessing(ones=False).fit_transform(frame)
    if isinstance(A, np.ndarray):
        A = np.ascontiguousarray(A[:, np.ptp(A, axis=0) > 0])
    return A, (y > 0).astype(float) if task == "logistic" else y


def _real(
    file: str, task: Task, stop: int, *, name: str = "", quick: bool = False, note: str = "",
    family: Any = "quality", full: bool = True, patience: float = 1.0,
) -> Problem:  # fmt: skip
    return Problem(
        name or file,
        task,
        tuple(range(1, stop + 1)),
        partial(matrix, file, task),
        note,
        family,
        quick,
        full,
        patience,
        partial(_missing, file),
    )


LABELS = "least squares on the 0/1 label"
PROBLEMS = [
    _real("kddcup04_bio", "logistic", 30, family="time", patience=2.5),
    _real(
        "census", "logistic", 20, family="time", note="one-hot, sparse, `?` dropped", patience=8.0
    ),
    _real("kddcup04_bio", "logistic", 40, name="kddcup04_bio-to-40", patience=1.5),
    _real(
        "census",
        "logistic",
        40,
        name="census-to-40",
        note="one-hot, sparse, `?` dropped",
        patience=5.0,
    ),
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
