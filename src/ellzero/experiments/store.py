"""Results on disk: one JSON line each, written through as soon as it is made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ellzero.files import writing


@dataclass(frozen=True)
class Result:
    """The loss of one method on one data set at one sparsity.

    `fingerprint` stands for all that the loss depends on: data, rows, preprocessing, options.
    `seconds` is the processor time of the run behind it, which may have made other results too.
    """

    dataset: str
    method: str
    sparsity: int
    loss: float
    features: tuple[str, ...]
    status: str
    rows: int
    seconds: float
    fingerprint: str

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.dataset, self.method, self.sparsity, self.fingerprint


FIELDS = {field.name for field in fields(Result)}


def read(file: Path) -> dict[tuple[str, str, int, str], Result]:
    """The results in a file, by their keys; lines that were never finished are passed over."""
    if not file.exists():
        return {}
    found = {}
    for line in file.read_bytes().splitlines():
        try:
            entries = json.loads(line)
        except ValueError:
            continue
        if isinstance(entries, dict) and set(entries) == FIELDS:
            result = Result(**{**entries, "features": tuple(entries["features"])})
            found[result.key] = result
    return found


def append(file: Path, results: Iterable[Result]) -> None:
    """Add results, and return when they are on the disk."""
    lines = "".join(json.dumps(asdict(result)) + "\n" for result in results)
    with writing(file), open(file, "a+b") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":  # a run was killed while it wrote
                lines = "\n" + lines
        stream.write(lines.encode())
        stream.flush()
        os.fsync(stream.fileno())
