"""Archives of NumPy arrays, and the dense or sparse matrix in them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.data.io import libsvm
from ellzero.data.io.columns import check_names
from ellzero.wording import counted, grouped

SAVED_BY_SCIPY = ("data", "indices", "indptr", "shape", "format", "_is_array")


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name. Refuses pickled objects: they could do harm."""
    with path.open("rb") as stream:
        # NumPy takes what begins otherwise for a pickle
        if stream.read(2) != b"PK" or not zipfile.is_zipfile(stream):
            raise ValueError("it is no archive of arrays as numpy.savez makes them")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as file:
            return {name: _array(file, name) for name in file.files}


def _array(file: Any, name: str) -> NDArray[Any]:
    try:
        return file[name]
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError(
            f"{name!a} holds Python objects, which could do harm; save numbers or text"
        ) from None


def npz_matrix(path: Path, features: int | None) -> tuple[Any, list[str], dict[str, NDArray[Any]]]:
    """Return the matrix in an archive, the names of its columns, and columns beside it.

    The matrix is the array `X`, or the arrays of a sparse matrix as SciPy saves it.

    features : the most features that a sparse matrix may have; None means the usual limit
    """
    arrays = load_arrays(path)
    names = arrays.pop("feature_names", None)
    if "indptr" in arrays:
        stored = {name: arrays.pop(name) for name in SAVED_BY_SCIPY if name in arrays}
        if stored.get("format", np.array(0)).dtype.kind not in "SU":
            raise ValueError("'format' must be text, such as 'csr'")
        _check_shape(stored.get("shape"), stored.get("data"), bool(arrays), features)
        X = sparse.load_npz(path)
        X.check_format(full_check=True)  # an index out of bounds would be followed
        X = X.tocsc()
        X.sum_duplicates()
    elif "X" in arrays:
        X = arrays.pop("X")
    else:
        raise ValueError("there is no array 'X' in it")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"'X' must be a matrix of numbers; its shape is {X.shape}, of {X.dtype}")
    for name, array in arrays.items():
        if array.shape != X.shape[:1]:
            raise ValueError(f"{name!a} must have one entry for each of the {X.shape[0]} rows of X")
    given = [f"f{j}" for j in range(X.shape[1])] if names is None else np.ravel(names).tolist()
    if len(given) != X.shape[1]:
        raise ValueError(f"there are {counted(X.shape[1], 'column')} and {len(given)} names")
    given = [str(name) for name in given]
    check_names([*arrays, *given])
    return X, given, arrays


def _check_shape(shape: Any, data: Any, has_columns: bool, features: int | None) -> None:
    """Refuse the shape of a sparse matrix that asks for more than the file holds.

    has_columns : whether other arrays in the file say how many rows there are
    """
    if shape is None or shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise ValueError("'shape' must be two whole numbers: of the rows and the columns")
    if data is None:
        raise ValueError("there is no array 'data' in it")
    n_rows, n_columns = shape.tolist()
    most = libsvm.most_features(data.size, features)
    if n_columns > most:
        raise ValueError(
            f"its shape has {counted(n_columns, 'feature')}, above the limit of {grouped(most)}; "
            f"{libsvm.RAISE_LIMIT}"
        )
    if n_rows > max(libsvm.MAX_FEATURES, data.size) and not has_columns:
        raise ValueError(
            f"its shape has {counted(n_rows, 'row')}, but it stores only "
            f"{counted(data.size, 'number')}"
        )
