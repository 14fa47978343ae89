"""A data set as the experiments see it: the paper's matrix, its column of ones forced."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import ellzero as lz
from ellzero.datasets import Preprocessing, load, locate
from ellzero.experiments.figures import METHODS, Settings
from ellzero.objectives.minimisers import lower_bound

Folder = str | Path | None


class Problem:
    """One data set: its objective, and what several runs share."""

    def __init__(self, name: str, settings: Settings, data_home: Folder = None):
        data = load(name, data_home=data_home, download=False, rows="paper", sample=True)
        rows = np.arange(len(data.y))
        if settings.rows is not None and settings.rows < len(rows):
            rows = np.sort(np.random.default_rng(0).permutation(rows)[: settings.rows])
        preprocessing = Preprocessing()
        A = preprocessing.fit_transform(data.X.iloc[rows])
        b = data.y[rows][preprocessing.complete(data.X.iloc[rows])]
        self.name, self.rows = name, len(b)
        self.features = preprocessing.get_feature_names_out()
        objective = lz.Logistic if data.task == "binary" else lz.LeastSquares
        self.f: lz.Objective = objective(A, b, forced=[A.shape[1] - 1])
        self.largest = settings.sparsities(name)[-1]

    @cached_property
    def greedy(self) -> tuple[lz.Iterate, ...]:
        """What OMP has after 0, 1, 2, ... features: the start of every local search."""
        return lz.omp(self.f, self.largest - 1).trace

    @cached_property
    def lower(self) -> float:
        return lower_bound(self.f)


def fetch(name: str, data_home: Folder = None, download: bool = True) -> tuple[Path, ...]:
    """The files of a data set, or of a sample of it; the whole is downloaded if there is neither.

    Raises FileNotFoundError where that cannot be done, saying which file to put where.
    """
    if not locate(name, data_home=data_home, sample=True):
        load(name, data_home=data_home, download=download)
    return locate(name, data_home=data_home, sample=True)


def fingerprints(name: str, settings: Settings, files: tuple[Path, ...]) -> dict[str, str]:
    """For each method, a hash of all that its results on the data set depend on."""
    data = hashlib.sha256()
    for file in files:
        for block in _blocks(file):
            data.update(block)
    common = {
        "data": data.hexdigest(),
        "rows": settings.rows,
        "preprocessing": Preprocessing().get_params(),
        "version": lz.__version__,
    }
    return {method: _digest({**common, **_options(method, name, settings)}) for method in METHODS}


def _options(method: str, name: str, settings: Settings) -> dict[str, Any]:
    options = {"method": method, **METHODS[method]}
    if method == "ellzero":  # one search over all sizes: each depends on the largest
        options["largest"] = settings.sparsities(name)[-1]
    return options


def _digest(entries: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]


def _blocks(file: Path, size: int = 1 << 20) -> Iterator[bytes]:
    with open(file, "rb") as stream:
        while block := stream.read(size):
            yield block
