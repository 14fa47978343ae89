"""What is recorded of a problem, as rows of plain numbers and words, and the files of rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import ellzero as lz
from golden.problems import Data, Problem

FOLDER = Path(__file__).parent
ARHT = {"n_runs": 5, "random_state": 0}
TARGETS = (0.9, 0.99)
"""Targets of the core routine, as shares of the value that OMP finds: out of reach, or nearly."""
TIME_LIMIT = 3600.0
"""Far longer than any proof here takes, so that the clock decides nothing."""

Row = dict[str, Any]
Recording = dict[str, Any]
"""{"problem": name, "data": its fingerprint, "rows": [...]}"""


def recording(problem: Problem) -> Recording:
    """Solve a problem in all the ways that are recorded of it, with the code at hand."""
    X, y, options = data = problem.data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status, a part of a row, says it
        f = problem.objective(X, y, **problem.options, **options)
        rows = list(_rows(problem, f))
    return {"problem": problem.name, "data": fingerprint(data), "rows": rows}


def _rows(problem: Problem, f: lz.Objective) -> Iterator[Row]:
    found = lz.path(f, problem.sizes)
    for s, solution in found.items():
        yield _solution_row("path", s, solution)
    for method, sizes in problem.methods.items():
        options = ARHT if method == "arht" else {}
        for s, solution in lz.path(f, sizes, method, **options).items():
            yield _solution_row(method, s, solution)
    for s in problem.traces:
        yield from _trace_rows("arht trace", s, lz.arht(f, s, random_state=0))
        start = lz.omp(f, s).value
        for share in TARGETS:
            core = lz.arht_core(f, s, share * start, random_state=0)
            yield from _trace_rows(f"arht_core {share} trace", s, core)
    if problem.certified:
        certified = lz.Path((s, found[s]) for s in problem.certified)
        for s, certificate in lz.certify(f, certified, time_limit=TIME_LIMIT).items():
            yield _certificate_row(s, certificate)


def _solution_row(method: str, s: int, found: lz.Solution) -> Row:
    return {
        "method": method,
        "s": s,
        "status": found.status.name,
        "value": float(found.value),
        "support": found.support.tolist(),
    }


def _trace_rows(method: str, s: int, found: lz.Solution) -> Iterator[Row]:
    for k, step in enumerate(found.trace):
        yield {
            "method": method,
            "s": s,
            "step": k,
            "note": step.note,
            "value": float(step.value),
            "support": step.support.tolist(),
        }


def _certificate_row(s: int, found: lz.Certificate) -> Row:
    return {
        "method": "certificate",
        "s": s,
        "status": found.status.name,
        "proven": bool(found.proven),
        "value": float(found.value),
        "lower_bound": float(found.lower_bound),
        "margin": float(found.margin),
        "proven_in": found.proven_in.tolist(),
        "proven_out": found.proven_out.tolist(),
    }


def fingerprint(data: Data) -> dict[str, Any]:
    """Return numbers that tell whether the data are those of a golden file."""
    X, y, options = data
    X = X.tocsr() if sparse.issparse(X) else X
    m, n = X.shape
    weight = options.get("sample_weight")
    places = [(0, 0), (m // 2, n // 2), (m - 1, n - 1)]
    return {
        "shape": [m, n],
        "sum_abs_X": float(np.abs(X).sum(dtype=np.float64)),
        "entries": [float(X[i, j]) for i, j in places],
        "sum_abs_y": float(np.abs(y).sum(dtype=np.float64)),
        "targets": [float(y[i]) for i, _ in places],
        "sum_weight": float(m if weight is None else np.sum(weight)),
    }


# files


def file_of(problem: Problem) -> Path:
    return FOLDER / f"{problem.name}.json"


def read_golden(problem: Problem) -> Recording:
    return json.loads(file_of(problem).read_text(encoding="utf-8"))


def write_golden(problem: Problem, recorded: Recording) -> None:
    """Write a golden file, with a line for each row."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in recorded["rows"])
    head = f'"problem": {json.dumps(recorded["problem"])},\n"data": {json.dumps(recorded["data"])}'
    text = f'{{\n{head},\n"rows": [\n{rows}\n]\n}}\n'
    file_of(problem).write_text(text, encoding="utf-8", newline="\n")
