"""Statistics of rows that come in batches or from files, of which a part is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ellzero.data.design import Design, check_target, check_weight
from ellzero.data.io.pieces import Piece
from ellzero.data.io.rows import Roles, rows_of
from ellzero.objectives.moments.shards import Fingerprint
from ellzero.objectives.moments.statistics import (
    Shift,
    Statistics,
    checked_moments,
    merged,
    origin,
)
from ellzero.supports import Vector

Names = tuple[str, ...] | None
T = TypeVar("T")


class RunningSum:
    """Statistics of the rows so far, about a point near them: a large offset costs no digits."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._about: Shift | None = None
        self._sum: Statistics | None = None

    def add(self, design: Design, y: Vector, w: Vector | None, names: Names) -> None:
        """Count rows in; features that are new were zero in the rows before."""
        m, n = design.shape
        self.n_rows += m
        if self._sum is not None:
            self._widen(n, names)
        if w is not None and not w.any():
            design.check_finite()
            return
        if self._about is None:
            self._about = _near(design, y)
        part = replace(checked_moments(design, y, w, self._about), feature_names=names)
        self._sum = part if self._sum is None else merged(self._sum, part)

    def _widen(self, n: int, names: Names) -> None:
        assert self._sum is not None
        assert self._about is not None
        known = self._sum.feature_names
        if names != known and names is not None and known is not None:
            about = replace(self._sum, mean=self._about[0]).aligned(names).mean
            self._about = about, self._about[1]
            self._sum = self._sum.aligned(names)
        elif n != len(self._sum.mean):
            raise ValueError(f"X: has {n} columns, batches before it {len(self._sum.mean)}.")

    def statistics(self, source: str) -> Statistics:
        if self._sum is None or self._about is None:
            raise ValueError(f"{source}: there is no row with a positive weight.")
        mean, mean_y = self._about[0] + self._sum.mean, self._about[1] + self._sum.mean_y
        return replace(self._sum, mean=mean, mean_y=mean_y, n_rows=self.n_rows)


def _near(design: Design, y: Vector) -> Shift:
    """Return a point near the rows; sparse columns are near zero."""
    n = design.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.zeros(n) if design.is_sparse else design.X.mean(axis=0, dtype=np.float64)
        middle = x, float(y.mean())
    return middle if np.isfinite(x).all() and np.isfinite(middle[1]) else origin(n)


def summed(batches: Iterable[Any], feature_names: Names) -> Statistics:
    """Return the statistics of batches (X, y) or (X, y, sample_weight)."""
    if not isinstance(batches, Iterable):
        raise TypeError(f"batches: expected several (X, y), got {type(batches).__name__}.")
    total, fingerprint = RunningSum(), Fingerprint()
    names = feature_names
    for k, batch in enumerate(batches):
        try:
            if _is_empty(batch):
                continue
            design, y, w = _checked(batch)
            if feature_names is None and not total.n_rows:
                names = design.names
            _check_names(design, names, by_user=feature_names is not None)
            total.add(design, y, w, names)
        except (TypeError, ValueError) as error:
            raise type(error)(f"batch {k}: {error}") from error
        rows = fingerprint.sample(len(y))
        sampled = design.X[rows].toarray() if design.is_sparse else design.X[rows]
        fingerprint.update(np.column_stack([sampled, y[rows], *([] if w is None else [w[rows]])]))
    return replace(total.statistics("batches"), shards=frozenset([fingerprint.digest()]))


def summed_files(pieces: Iterable[Piece], roles: Roles) -> Statistics:
    """Return the statistics of all pieces; the rows of each file make a shard."""
    total = RunningSum()
    shards: dict[Path, Fingerprint] = {}
    for rows in rows_of(_read_ahead(pieces), roles):
        fingerprint = shards.setdefault(rows.file, Fingerprint())
        if not len(rows.y):
            continue
        try:
            w = check_weight(rows.w, len(rows.y), some=False)
            total.add(Design(rows.X), rows.y, w, rows.names)
        except ValueError as error:
            raise ValueError(f"{rows.file}: {error}") from error
        fingerprint.update(*rows.sample(fingerprint.sample(len(rows.y))))
    return replace(total.statistics("the files"), shards=_distinct(shards))


def _distinct(shards: dict[Path, Fingerprint]) -> frozenset[str]:
    """Return the fingerprints of all files that have rows, or say which two have the same."""
    seen: dict[str, Path] = {}
    for file, fingerprint in shards.items():
        if not fingerprint.n_rows:
            continue
        twin = seen.setdefault(fingerprint.digest(), file)
        if twin is not file:
            raise ValueError(f"{file}: has the same rows as {twin}; leave one of them out.")
    return frozenset(seen)


def _read_ahead(pieces: Iterable[T]) -> Iterator[T]:
    """Yield the pieces; the next one is read while one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        waiting = iter(pieces)
        coming = reader.submit(next, waiting, None)
        while (piece := coming.result()) is not None:
            coming = reader.submit(next, waiting, None)
            yield piece


def _is_empty(batch: Any) -> bool:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise TypeError("expected (X, y) or (X, y, sample_weight).")
    return np.shape(batch[0])[:1] == np.shape(batch[1]) == (0,)


def _checked(batch: Any) -> tuple[Design, Vector, Vector | None]:
    X, y, *weight = batch
    design = Design(X)
    m = design.shape[0]
    w = check_weight(weight[0], m, some=False) if weight else None
    return design, check_target(y, m), w


def _check_names(design: Design, names: Names, by_user: bool) -> None:
    n = design.shape[1]
    if by_user and names is not None and len(names) != n:
        raise ValueError(f"feature_names: {len(names)} names for the {n} columns of X.")
    if not by_user and design.names != names:
        raise ValueError(f"X: its columns are {design.names}, those of batches before {names}.")
