"""One problem's data on disk, so that every process works on the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


def save(folder: Path, X: Any, y: np.ndarray) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "y.npy", np.asarray(y, dtype=float))
    if sparse.issparse(X):
        sparse.save_npz(folder / "X.npz", sparse.csc_matrix(X), compressed=False)
    else:
        np.save(folder / "X.npy", np.ascontiguousarray(X, dtype=float))


def load(folder: Path, mmap: bool = False) -> tuple[Any, np.ndarray]:
    y = np.load(folder / "y.npy")
    if (folder / "X.npz").exists():
        return sparse.load_npz(folder / "X.npz"), y
    return np.load(folder / "X.npy", mmap_mode="r" if mmap else None), y


def nbytes(X: Any) -> int:
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)
