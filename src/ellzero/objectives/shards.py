"""Shards: telling apart what was read, and keeping statistics in files."""

from __future__ import annotations

import zipfile
import zlib
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.files import check_writable, replacing

FORMAT, VERSION = "ellzero statistics", 1

LOOKED_AT = 1024
"""Of so many rows at the start all are looked at ..."""

STRIDE = 64
"""... and later every so many-th, which costs next to nothing beside the moments."""


class Fingerprint:
    """A hash of a sample of rows, by their order and not by the batches they came in."""

    def __init__(self) -> None:
        self._numbers, self._words = blake2b(digest_size=16), blake2b(digest_size=16)
        self.n_rows = 0

    def sample(self, n_rows: int) -> NDArray[np.intp]:
        """Which of the next rows are looked at."""
        rows = np.arange(self.n_rows, self.n_rows + n_rows)
        chosen = np.flatnonzero((rows < LOOKED_AT) | (rows % STRIDE == 0))
        self.n_rows += n_rows
        return chosen

    def update(self, numbers: NDArray[Any], words: str = "") -> None:
        """The sampled rows: numbers, and what is written in them."""
        self._numbers.update(np.ascontiguousarray(numbers, dtype=np.float64).tobytes())
        self._words.update(words.encode())

    def digest(self) -> str:
        whole = self._numbers.digest() + self._words.digest() + str(self.n_rows).encode()
        return blake2b(whole, digest_size=16).hexdigest()


def write_fields(path: Path, fields: dict[str, Any]) -> None:
    """The fields of statistics as plain arrays; the file appears only once it is whole."""
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
    """The fields that `write_fields` wrote, or an error that says what is wrong with the file."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (
        ValueError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        AttributeError,
        NotImplementedError,  # of zipfile: what a damaged entry seems to ask for
    ) as error:
        raise ValueError(f"{path}: is not a whole file of statistics ({error}).") from error
    if str(arrays.pop("format", "")) != FORMAT:
        raise ValueError(f"{path}: was not written by Statistics.save.")
    version = int(arrays.pop("version", 0))
    if version != VERSION:
        raise ValueError(
            f"{path}: has version {version} of the format, but this ellzero reads {VERSION}."
        )
    try:
        return _fields(arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: is damaged ({error}).") from error


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
