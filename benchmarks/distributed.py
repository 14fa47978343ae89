"""What a pass costs on a local Dask cluster: ``python -m benchmarks.distributed [--rows N]``."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from benchmarks.facts import machine
from ellzero.distributed import SparseClassifier, SparseRegressor, passes

RESULTS = Path(__file__).parent / "results" / "distributed.json"
SPARSITY = 2


def block(shape: tuple[int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def data(rows: int, features: int, partitions: int) -> tuple[Any, Any, Any]:
    """X, numbers and classes, made on the workers and kept there."""
    chunk = rows // partitions
    make = dask.delayed(block, pure=True)
    parts = [make((chunk, features + 1), seed) for seed in range(partitions)]
    T = da.concatenate([da.from_delayed(p, (chunk, features + 1), float) for p in parts])
    X, noise = T[:, :-1], T[:, -1]
    y = X[:, :SPARSITY].sum(axis=1) + noise
    kept = dask.persist(X, y, (y > 0).astype(int))
    wait(kept)
    return kept


@contextmanager
def watched() -> Iterator[list[dict[str, Any]]]:
    """Every pass with its name, tasks and seconds."""
    seen: list[dict[str, Any]] = []
    original = passes.computed

    def computed(total: Any) -> Any:
        begin = time.perf_counter()
        answer = original(total)
        seconds = time.perf_counter() - begin
        name = total.key.removeprefix("ellzero-").split("-")[0]
        own = sum(str(key).startswith(total.key.rsplit("-level", 1)[0]) for key in total.dask)
        seen.append({"pass": name, "tasks": own, "seconds": seconds})
        return answer

    passes.computed = computed
    try:
        yield seen
    finally:
        passes.computed = original


def fit(
    workers: int, rows: int, features: int, partitions: int, method: str
) -> Iterator[dict[str, Any]]:
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "ellzero.distributed.glm")
        X, numbers, classes = data(rows, features, partitions)
        for kind, y in ((SparseRegressor, numbers), (SparseClassifier, classes)):
            with watched() as seen:
                begin = time.perf_counter()
                model = kind(SPARSITY, method=method).fit(X, y)
                seconds = time.perf_counter() - begin
            assert model.support_.tolist() == list(range(SPARSITY)), model.support_
            yield {
                "estimator": kind.__name__,
                "method": method,
                "workers": workers,
                "rows": rows,
                "features": features,
                "partitions": partitions,
                "seconds": seconds,
                "passes": summarised(seen),
            }


def summarised(seen: list[dict[str, Any]]) -> dict[str, Any]:
    """By kind of pass: how many, how long the middle one took, and the tasks of one."""
    kinds = sorted({one["pass"] for one in seen})
    return {
        kind: {
            "count": sum(one["pass"] == kind for one in seen),
            "median_seconds": float(np.median([o["seconds"] for o in seen if o["pass"] == kind])),
            "tasks": max(o["tasks"] for o in seen if o["pass"] == kind),
        }
        for kind in kinds
    }


HEADER = (
    f"{'':<18}{'workers':>8}{'rows':>9}{'parts':>6}{'seconds':>9}  passes: count × median (tasks)"
)


def line(run: dict[str, Any]) -> str:
    shown = ", ".join(
        f"{kind} {p['count']} × {1e3 * p['median_seconds']:.0f} ms ({p['tasks']})"
        for kind, p in run["passes"].items()
    )
    return (
        f"{run['estimator']:<18}{run['workers']:>8}{run['rows']:>9}{run['partitions']:>6}"
        f"{run['seconds']:>9.2f}  {shown}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of the strong scaling")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--method", default="omp", help="omp has few passes of every kind")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    facts, runs = machine(), []
    r = chosen.rows
    print(HEADER)
    plans = {
        "strong": [(1, r, 16), (2, r, 16)],  # the same rows, more workers
        "weak": [(1, r // 2, 8), (2, r, 16)],  # as many rows for every worker
        "tasks": [(2, r // 4, 64)],  # more and smaller partitions
    }
    for scaling, sizes in plans.items():
        for workers, rows, partitions in sizes:
            for run in fit(workers, rows, chosen.features, partitions, chosen.method):
                runs.append({"scaling": scaling, **run})
                print(line(run), flush=True)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps({"machine": facts, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
