"""Run the calls of one side, in the environment of that side: `python -m benchmarks.ab.worker`.

Orders come in and answers go out as lines of JSON. What a library prints goes to standard error.
Only NumPy, `benchmarks.store` and the public interface of ellzero are imported here, because the
same file has to work with every revision of ellzero.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import ellzero as lz
from benchmarks import store

Call = dict[str, Any]
Row = dict[str, Any]
Run = Callable[[], Any]


def objective(call: Call, X: Any, y: np.ndarray) -> Any:
    """Set up the objective of a call. Every objective has an intercept."""
    kind = call["objective"]
    labels = y.astype(int) if kind == "Multinomial" else y
    return getattr(lz, kind)(X, labels, fit_intercept=True)


def path(call: Call, X: Any, y: np.ndarray) -> Run:
    """Time the objective and the path together: both are what a user waits for."""
    sizes, method = call["sizes"], call["method"]
    return lambda: lz.path(objective(call, X, y), sizes, method, **call["options"])


def solve(call: Call, X: Any, y: np.ndarray) -> Run:
    s, method = call["s"], call["method"]
    return lambda: {s: lz.solve(objective(call, X, y), s, method, **call["options"])}


def algorithm(call: Call, X: Any, y: np.ndarray) -> Run:
    s, run = call["s"], getattr(lz, call["method"])
    return lambda: {s: run(objective(call, X, y), s, **call["options"])}


def fit(call: Call, X: Any, y: np.ndarray) -> Run:
    make = getattr(lz, call["estimator"])
    return lambda: make(**call["options"]).fit(X, y)


def certify(call: Call, X: Any, y: np.ndarray) -> Run:
    """Time the proof alone. The objective is new in every run, so that nothing is cached in it."""
    f = objective(call, X, y)
    found = lz.path(f, call["sizes"])
    return lambda: (found, lz.certify(f, found, time_limit=call["time_limit"]))


CALLS: dict[str, Callable[[Call, Any, np.ndarray], Run]] = {
    "path": path, "solve": solve, "algorithm": algorithm, "fit": fit, "certify": certify,
}  # fmt: skip


def rows(kind: str, result: Any) -> list[Row]:
    """Return the support and the reported value of every size, and what is proven about it."""
    if kind == "fit":
        s = getattr(result, "sparsity_", result.sparsity)
        return [{"s": int(s), "support": result.support_.tolist(), "value": float(result.loss_)}]
    found, proofs = result if kind == "certify" else (result, {})
    answer = []
    for s, solution in found.items():
        row = {"s": s, "support": solution.support.tolist(), "value": float(solution.value)}
        if s in proofs:
            proof = proofs[s]
            row |= {"gap": proof.gap, "bound": proof.lower_bound, "margin": proof.margin}
            row["better"] = None if proof.better is None else float(proof.better.value)
        answer.append(row)
    return answer


def turn(call: Call, X: Any, y: np.ndarray, seconds: float, most: int) -> dict[str, Any]:
    """Repeat the call until the seconds or the number of calls is used up."""
    times: list[float] = []
    cpu: list[float] = []
    gc.collect()
    while not times or (sum(times) < seconds and len(times) < most):
        run = CALLS[call["kind"]](call, X, y)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        result = run()
        times.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - cpu_begin)
    return {"times": times, "cpu": cpu, "rows": rows(call["kind"], result)}


def about() -> dict[str, Any]:
    """Describe the environment of this side."""
    packages = ("numpy", "scipy", "scikit-learn")
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "ellzero": str(Path(lz.__file__).parent),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "blas": sorted({f"{p['internal_api']} {p['version']}" for p in pools}),
        "blas_threads": max((pool["num_threads"] for pool in pools), default=1),
    }


def main() -> None:
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    X, y = None, np.empty(0)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "load":
                X = None  # frees the memory of the last problem first
                X, y = store.load(Path(order["folder"]))
                answer: dict[str, Any] = {}
            elif order["do"] == "run":
                answer = turn(order["call"], X, y, order["seconds"], order["most"])
            else:
                answer = about()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        channel.write(json.dumps(answer) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
