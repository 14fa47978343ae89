"""Read the real data sets, where the folder that holds them is there."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[2]
IDENTIFIERS = ["patientId", "block_id"]


def data_folder() -> Path:
    """Return the folder of real data sets: $ELLZERO_DATA, or shared/data beside the checkout."""
    return Path(os.environ.get("ELLZERO_DATA") or ROOT.parent / "shared" / "data")


def missing_folder() -> str:
    """Return what to do about the missing folder, "" if it is there."""
    folder = data_folder()
    if folder.is_dir():
        return ""
    return f"no real data: {folder} is not there (set ELLZERO_DATA to their folder)"


def missing(file: str) -> str:
    """Return why a data set cannot be read, "" if it can."""
    folder = data_folder()
    if reason := missing_folder():
        return reason
    for package in ("pandas", "pyarrow"):
        if find_spec(package) is None:
            return f"Parquet files need {package}"
    return "" if (folder / f"{file}.parquet").exists() else f"no {file}.parquet in {folder}"


def read(file: str, every: int = 1, positive: tuple[Any, ...] = ()) -> tuple[Any, np.ndarray, dict]:
    """Return one row in `every`, with columns of unit norm and without constant columns.

    Words become indicators, in a sparse matrix, and `?` is a missing word. With `positive`, y is 1
    where the target is one of these values and 0 elsewhere.
    """
    import pandas

    frame = pandas.read_parquet(data_folder() / f"{file}.parquet")[::every]
    frame = frame.drop(columns=IDENTIFIERS, errors="ignore")
    target = frame.pop("target")
    y = target.isin(positive) if positive else target
    words = frame.select_dtypes(["object", "string", "category"]).columns
    X: Any = pandas.get_dummies(frame, columns=list(words), dtype=float)
    X = X.loc[:, ~X.columns.str.endswith("_?")].to_numpy(float)
    X = X[:, np.ptp(X, axis=0) > 0]
    X = np.ascontiguousarray(X / np.linalg.norm(X, axis=0))
    return sparse.csc_array(X) if len(words) else X, y.to_numpy(float), {}
