"""One solver on one problem, in a process of its own: `python -m benchmarks.worker`.

Events go out as lines of JSON: `ready`, `solved` (the timed part), `support` for each support
found off the clock, `done`. What a library prints goes to standard error instead.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import store
from benchmarks.base import Solver
from benchmarks.solvers import module_solvers

REPEATS = 5
REPEAT_SECONDS = 3.0  # stop repeating once this much time is spent


class PeakMemory:
    """Peak resident bytes above the level at the start; Linux can reset its high-water mark."""

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._start = self._mark("VmRSS")

    def above_start(self) -> int:
        return max(0, self._mark("VmHWM") - self._start)

    @staticmethod
    def _mark(field: str) -> int:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
            return 1024 * next(int(row.split()[1]) for row in lines if row.startswith(field))
        except (OSError, StopIteration):
            unit = 1 if sys.platform == "darwin" else 1024
            return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def installed_version(package: str) -> str:
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return ""


def run(solver: Solver, job: dict[str, Any], send: Any) -> None:
    X, y = store.load(Path(job["data"]))
    task, sizes = job["task"], tuple(job["sizes"])
    try:
        solver.load()
    except ImportError as error:
        send(event="missing", why=f"not installed ({error})")
        return
    X, y = solver.prepare(X, y, task)
    gc.collect()
    send(event="ready", version=installed_version(solver.package), numpy=np.__version__)
    times: list[float] = []
    peak = PeakMemory()
    memory, supports = 0, {}
    while len(times) < REPEATS and sum(times) < REPEAT_SECONDS:
        start = time.perf_counter()
        supports = solver.solve_path(X, y, task, sizes)
        times.append(time.perf_counter() - start)
        memory = memory or peak.above_start()
        if len(times) == 1:
            send(event="first", seconds=times[0])
    send(
        event="solved",
        times=times,
        peak_bytes=memory,
        info=solver.info(),
        supports={int(s): np.asarray(S).tolist() for s, S in supports.items()},
    )
    for s, S in solver.finish(X, y, task, sizes):
        send(event="support", s=int(s), support=np.asarray(S).tolist())
    send(event="done")


def main() -> None:
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(**event: Any) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    job = json.loads(sys.argv[1])
    solver = next(s for s in module_solvers(job["module"]) if s.name == job["solver"])
    run(solver, job, send)


if __name__ == "__main__":
    main()
