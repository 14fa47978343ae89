"""Rows that come in batches, of which one at a time is in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ellzero.objectives.design import Design, check_target, check_weight
from ellzero.objectives.shards import Fingerprint
from ellzero.objectives.statistics import (
    Shift,
    Statistics,
    checked_moments,
    merged,
    origin,
)
from ellzero.supports import Vector

Names = tuple[str, ...] | None


class RunningSum:
    """Statistics of the rows so far, about a point near them: a large offset costs no digits."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._about: Shift | None = None
        self._sum: Statistics | None = None

    def add(self, design: Design, y: Vector, w: Vector | None, names: Names) -> None:
        """Count rows in; features that were not known before were zero."""
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
    """A point near the rows; sparse columns are near zero."""
    n = design.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.zeros(n) if design.is_sparse else design.X.mean(axis=0, dtype=np.float64)
        middle = x, float(y.mean())
    return middle if np.isfinite(x).all() and np.isfinite(middle[1]) else origin(n)


def summed(batches: Iterable[Any], feature_names: Names) -> Statistics:
    """The statistics of batches (X, y) or (X, y, sample_weight)."""
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
