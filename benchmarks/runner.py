"""Runs every solver on every problem, in random order, each pair in its own process."""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks import store
from benchmarks.base import Problem, Shape, Solver
from benchmarks.judge import Judge
from benchmarks.solvers import all_solvers

ROOT = Path(__file__).resolve().parent.parent
LOAD_SECONDS = 300.0  # to start, import and read the data
SCALING_SOLVERS = ("ellzero", "ellzero-effort-0", "dsyrk", "s·Xᵀr")

Record = dict[str, Any]


@dataclass
class Limits:
    """Seconds a pair may take: the timed path, and the supports fetched off the clock."""

    solve: float = 600.0
    finish: float = 1800.0

    def times(self, patience: float) -> Limits:
        return Limits(patience * self.solve, patience * self.finish)


@dataclass
class Outcome:
    """What came back from one process."""

    status: str = "error"
    why: str = ""
    supports: dict[int, np.ndarray] = field(default_factory=dict)
    facts: Record = field(default_factory=dict)


def run(
    problems: list[Problem],
    solvers: list[str],
    limits: Limits,
    seed: int,
    report: Callable[[Record], None],
) -> None:
    """Measure every pair and hand each record to `report` as it is ready."""
    rng = random.Random(seed)
    rng.shuffle(problems)
    for problem in problems:
        why = problem.missing()
        if why:
            report({"problem": problem.name, "solver": "*", "status": "skipped", "why": why})
            continue
        with tempfile.TemporaryDirectory(prefix="ellzero-bench-") as folder:
            data = Path(folder)
            store.save(data, *problem.make())
            for record in _run_problem(problem, solvers, data, limits, rng):
                report(record)


def _run_problem(
    problem: Problem, solvers: list[str], data: Path, limits: Limits, rng: random.Random
) -> Iterator[Record]:
    X, y = store.load(data, mmap=True)
    shape = Shape(problem.task, *X.shape, (data / "X.npz").exists(), problem.sizes)
    judge = Judge(X, y, problem.task)
    about = {
        "problem": problem.name,
        "task": problem.task,
        "family": problem.family,
        "note": problem.note,
        "m": shape.m,
        "n": shape.n,
        "sparse": shape.sparse,
        "sizes": [problem.sizes[0], problem.sizes[-1]],
        "data_bytes": store.nbytes(X),
        "null_loss": judge.null,
    }
    known = all_solvers()
    if problem.family == "scaling":
        solvers = [name for name in solvers if name in SCALING_SOLVERS]
    for name in rng.sample(solvers, len(solvers)):
        module, solver = known[name]
        record = {**about, "solver": name, "kind": solver.kind}
        why = solver.skip(shape)
        if why:
            yield {**record, "status": "skipped", "why": why}
            continue
        job = {"module": module, "solver": name, "data": str(data)}
        job |= {"task": problem.task, "sizes": list(problem.sizes)}
        outcome = _attempt(solver, job, limits.times(problem.patience))
        yield {
            **record,
            "status": outcome.status,
            "why": outcome.why,
            **outcome.facts,
            "levels": judge.levels(outcome.supports, problem.sizes),
        }


def interpreter(solver: Solver) -> Path:
    """The Python of the solver's environment; ELLZERO_BENCH_<ENV> names another one."""
    if not solver.env:
        return Path(sys.executable)
    chosen = os.environ.get(f"ELLZERO_BENCH_{solver.env.upper()}")
    return Path(chosen) if chosen else ROOT / f".venv-{solver.env}" / "bin" / "python"


def _attempt(solver: Solver, job: Record, limits: Limits) -> Outcome:
    python = interpreter(solver)
    if not python.exists():
        return Outcome("missing", f"not installed (no environment .venv-{solver.env})")
    for tries in range(solver.retries + 1):
        outcome = _process(python, job, limits)
        if outcome.status != "crashed":
            if tries:
                outcome.facts["crashes"] = tries
            return outcome
    return outcome


def _process(python: Path, job: Record, limits: Limits) -> Outcome:
    command = [str(python), "-m", "benchmarks.worker", json.dumps(job)]
    out = Outcome()
    with tempfile.TemporaryFile() as errors, _child(command, errors) as child:
        lines = _lines(child)
        deadline = time.monotonic() + LOAD_SECONDS
        while True:
            try:
                line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return _late(out, limits)
            if line is None:
                return _ended(out, child.wait(), errors)
            event = json.loads(line)
            deadline = _take(event, out, limits) or deadline


def _take(event: Record, out: Outcome, limits: Limits) -> float | None:
    """Book one event; the new deadline where the event starts a new stage."""
    kind = event.pop("event")
    if kind == "missing":
        out.status, out.why = "missing", event["why"]
    elif kind == "ready":
        out.facts |= event
        out.status = "solving"
        return time.monotonic() + limits.solve
    elif kind == "solved":
        out.status = "ok"
        out.supports |= {int(s): np.array(S, int) for s, S in event.pop("supports").items()}
        out.facts |= event | {"seconds": min(event["times"])}
        return time.monotonic() + limits.finish
    elif kind == "support":
        out.supports[event["s"]] = np.array(event["support"], int)
    elif kind == "done":
        out.facts["complete"] = True
    return None


def _late(out: Outcome, limits: Limits) -> Outcome:
    if out.status == "ok":
        out.why = f"supports of the larger sizes not fetched in {limits.finish:.0f} s"
    else:
        out.status, out.why = "timeout", f"over {limits.solve:.0f} s"
        out.facts["limit"] = limits.solve
    return out


def _ended(out: Outcome, code: int, errors: IO[bytes]) -> Outcome:
    if code == 0:
        return out
    errors.seek(0)
    tail = errors.read().decode(errors="replace").strip().splitlines()
    if out.status != "ok":
        out.status = "crashed" if code < 0 else "error"
    out.why = f"signal {-code}" if code < 0 else (tail[-1] if tail else f"exit code {code}")
    return out


@contextmanager
def _child(command: list[str], errors: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def _lines(child: subprocess.Popen[str]) -> queue.Queue[str | None]:
    """The child's lines as they come, then None."""
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    return lines
