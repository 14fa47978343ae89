"""`python -m benchmarks.wide`: sparse data with a million features, time and peak memory.

Words by Zipf's law. Every piece of work has a process of its own, whose peak is told; what a
process takes that has only loaded the data is the first line.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import ellzero as lz

Work = Callable[[Any, Any, Any, int], Any]


def write(folder: Path, m: int, n: int) -> None:
    rng = np.random.default_rng(0)
    share = np.cumsum(1 / (np.arange(n) + 10.0))
    words = np.searchsorted(share, rng.random(100 * m) * share[-1])
    X = sparse.coo_matrix((np.ones(100 * m), (rng.integers(0, m, 100 * m), words)), shape=(m, n))
    X = X.tocsc()
    X.data = np.log1p(X.data)
    S = rng.choice(n // 50, 60, replace=False)
    eta = X[:, S] @ (rng.choice([-1, 1], 60) * rng.uniform(1, 3, 60))
    sparse.save_npz(folder / "X.npz", X, compressed=False)
    y = eta + 0.5 * rng.standard_normal(m)
    np.savez(folder / "y.npz", y=y, classes=rng.random(m) < 1 / (1 + np.exp(0.3 - 3 * eta)))


def least_squares(X: Any, y: Any, classes: Any, s: int) -> Any:
    return lz.path(lz.LeastSquares(X, y, fit_intercept=True), range(1, s + 1))


def logistic(X: Any, y: Any, classes: Any, s: int, method: str = "auto") -> Any:
    return lz.path(lz.Logistic(X, classes, fit_intercept=True, ridge=1e-3), range(1, s + 1), method)


WORK: dict[str, Work] = {
    "loaded": lambda X, y, classes, s: X,
    "path(LeastSquares)": least_squares,
    "SparseRegressor": lambda X, y, classes, s: lz.SparseRegressor(s).fit(X, y),
    "path(Logistic)": logistic,
    "SparseClassifier": lambda X, y, classes, s: lz.SparseClassifier(s).fit(X, classes),
    "path(Logistic, 'omp')": lambda X, y, classes, s: logistic(X, y, classes, s, "omp"),
}


def work(name: str, folder: Path, s: int) -> dict[str, float]:
    X = sparse.load_npz(folder / "X.npz")
    with np.load(folder / "y.npz") as file:
        y, classes = file["y"], file["classes"]
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = WORK[name](X, y, classes, s)
    seconds = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    del kept
    return {"cpu_seconds": seconds, "peak_gb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.wide", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        name, folder = args.work[0], Path(args.work[1])
        if name == "write":
            write(folder, args.rows, args.columns)
        else:
            sys.stdout.write(json.dumps(work(name, folder, args.size)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ("write", *WORK):  # a process inherits the peak of the one that starts it
            command = [sys.executable, "-m", "benchmarks.wide", *sys.argv[1:], "--work", name]
            done = subprocess.run([*command, folder], capture_output=True, text=True, check=True)
            if name in WORK:
                took = json.loads(done.stdout)
                print(f"{name:24} {took['cpu_seconds']:7.1f} CPU s {took['peak_gb']:6.2f} GB")


if __name__ == "__main__":
    main()
