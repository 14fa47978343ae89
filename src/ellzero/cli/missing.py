"""Missing values: an error that says where they are, or rows dropped, or gaps filled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ellzero.data.io.columns import is_number
from ellzero.data.io.table import Table
from ellzero.wording import LONGEST_LIST, shown

MISSING = ("error", "drop", "impute")

Fills = dict[str, float | str]
"""By column, what stands for a missing entry."""


def complete(features: Table, own: Any, missing: str) -> tuple[Table, Any, Fills, int]:
    """Return features and own columns without gaps, what fills the gaps, and how many were filled.

    own : the frame of the target and the weights, which are never imputed
    """
    rows, columns = features.where(np.isnan)
    in_matrix = np.bincount(columns, minlength=len(features.matrix_names)).tolist()
    counts = {**own.isna().sum(), **features.frame.isna().sum()}
    counts |= dict(zip(features.matrix_names, in_matrix, strict=True))
    _refuse({name: int(n) for name, n in counts.items() if n}, len(own), missing)

    keep = own.notna().all(axis=1).to_numpy(bool)
    if missing == "drop":
        keep = keep & features.frame.notna().all(axis=1).to_numpy(bool)
        keep[rows] = False
    if not keep.any():
        raise ValueError(
            "no row is left once those with missing values are dropped; --exclude columns that "
            "miss many, or say --missing impute."
        )
    features, own = features.rows(keep), own[keep]
    if missing != "impute":
        return features, own, {}, 0
    fills = {name: _fill(column) for name, column in features.frame.items()}
    n_gaps = int(features.frame.isna().to_numpy().sum())
    frame = features.frame.fillna(fills) if n_gaps else features.frame
    matrix = features.matrix
    if matrix is not None:
        medians = [_median(features, j) for j in range(matrix.shape[1])]
        fills |= dict(zip(features.matrix_names, medians, strict=True))
        _, columns = features.where(np.isnan)
        matrix = matrix.copy()
        matrix.data[np.isnan(matrix.data)] = np.array(medians)[columns]
        n_gaps += len(columns)
    return replace(features, frame=frame, matrix=matrix), own, fills, n_gaps


def _refuse(counts: dict[str, int], n_rows: int, missing: str) -> None:
    for name, n in counts.items():
        if n == n_rows:
            raise _empty(name)
    if missing == "error" and counts:
        found = [f"'{shown(name)}' {n}" for name, n in list(counts.items())[:LONGEST_LIST]]
        rest = len(counts) - LONGEST_LIST
        more = f" and {rest} more columns" if rest > 0 else ""
        raise ValueError(
            f"values are missing: {', '.join(found)}{more}; choose --missing drop (those "
            "rows) or --missing impute (medians and the most frequent words)."
        )


def _empty(name: str) -> ValueError:
    return ValueError(f"column '{shown(name)}' is empty; --exclude it, or choose another.")


def _fill(column: Any) -> float | str:
    if column.isna().all():
        raise _empty(column.name)
    return float(column.median()) if is_number(column) else str(column.mode()[0])


def _median(table: Table, j: int) -> float:
    """Return the median of a column of the matrix, with the zeros that are not stored."""
    stored = table.matrix.data[slice(*table.matrix.indptr[j : j + 2])]
    n_zeros = table.n_rows - len(stored)
    if n_zeros > len(stored):
        return 0.0
    entries = np.concatenate([stored[~np.isnan(stored)], np.zeros(n_zeros)])
    if not len(entries):
        raise _empty(table.matrix_names[j])
    return float(np.median(entries))
