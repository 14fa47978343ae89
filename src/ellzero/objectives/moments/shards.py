"""Shards: tell apart which rows were read, and keep statistics in files."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.data.io.npz import load_arrays
from ellzero.data.io.packed import content_errors
from ellzero.files import check_writable, replacing

FORMAT, VERSION = "ellzero statistics", 1

ROWS_HASHED_FIRST = 1024
"""Rows at the start of a shard that are all hashed."""

ROWS_PER_HASHED = 64
"""Of later rows, one in this many is hashed: it costs next to nothing beside the moments."""


class Fingerprint:
    """A hash of a sample of rows, by their order and not by the batches they came in."""

    def __init__(self) -> None:
        self._numbers, self._words = blake2b(digest_size=16), blake2b(digest_size=16)
        self.n_rows = 0

    def sample(self, n_rows: int) -> NDArray[np.intp]:
        """Count the next rows in, and return which of them to hash."""
        rows = np.arange(self.n_rows, self.n_rows + n_rows)
        chosen = np.flatnonzero((rows < ROWS_HASHED_FIRST) | (rows % ROWS_PER_HASHED == 0))
        self.n_rows += n_rows
        return chosen

    def update(self, numbers: NDArray[Any], words: str = "") -> None:
        """Hash the sampled rows: their numbers, and the words in them."""
        self._numbers.update(np.ascontiguousarray(numbers, dtype=np.float64).tobytes())
        self._words.update(words.encode())

    def digest(self) -> str:
        whole = self._numbers.digest() + self._words.digest() + str(self.n_rows).encode()
        return blake2b(whole, digest_size=16).hexdigest()


def write_fields(path: Path, fields: dict[str, Any]) -> None:
    """Write the fields of statistics as plain arrays; the file appears only once it is whole."""
    names, shards = fields.pop("feature_names"), sorted(fields.pop("shards"))
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in fields.items()}
    arrays |= {"format": FORMAT, "version": VERSION, "shards": np.array(shards, dtype="U32")}
    if names is not None:
        arrays["feature_names"] = np.array(names, dtype=str)
    try:
        check_writable(path)
    except OSError as error:
        raise type(error)(f"path: {error}") from None
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)


def read_fields(path: Path) -> dict[str, Any]:
    """Return the fields that `write_fields` wrote, or say what is wrong with the file."""
    with content_errors(lambda reason: f"{path}: is not a whole file of statistics ({reason})."):
        arrays = load_arrays(path)
    if str(arrays.pop("format", "")) != FORMAT:
        raise ValueError(f"{path}: was not written by Statistics.save.")
    version = int(arrays.pop("version", 0))
    if version != VERSION:
        raise ValueError(
            f"{path}: has version {version} of the format, but this ellzero reads {VERSION}."
        )
    with content_errors(lambda reason: f"{path}: is damaged ({reason})."):
        return _fields(arrays)


def _fields(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    names = arrays.pop("feature_names", None)
    shards = arrays.pop("shards")
    n = len(arrays["mean"])
    shapes: dict[str, tuple[int, ...]] = {"mean": (n,), "xy": (n,), "xx": (n, n)}
    fields: dict[str, Any] = {
        "feature_names": None if names is None else tuple(names.tolist()),
        "shards": frozenset(shards.tolist()),
    }
    for name in ("n_rows", "weight", "mean", "mean_y", "xx", "xy", "yy"):
        value = arrays[name]
        if value.shape != shapes.get(name, ()) or value.dtype.kind not in "fi":
            raise ValueError(f"{name} has shape {value.shape} and type {value.dtype}")
        if not np.isfinite(value).all():
            raise ValueError(f"{name} has NaN or infinite values")
        fields[name] = value if value.ndim else value.item()
    if names is not None and names.shape != (n,):
        raise ValueError(f"{len(names)} names for {n} features")
    return fields
