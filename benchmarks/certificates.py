"""How soon is the answer proven? ellzero's certificates, OKRidge's, and the paper's guarantees.

    python -m benchmarks.certificates            # runs, saves JSON, rewrites the page's tables
    python -m benchmarks.certificates --page     # only the tables, from the saved JSON

OKRidge runs in its own environment (`ELLZERO_BENCH_OKRIDGE` names the interpreter), on the same
data: ½‖Xx − y‖² + ½ λ‖x‖² with centred columns of unit norm. Both begin with nothing: ellzero's
time includes its search. Real data are read from the folder named by `ELLZERO_DATA`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.base import unit_columns
from benchmarks.problems.synthetic import regression

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "certificates.json"
PAGE = ROOT / "docs" / "certificates.md"
GAPS = {"1 % gap": 0.01, "proof": 0.0}

OKRIDGE = """
import sys, json, numpy as np
from okridge.tree import BNBTree
data = np.load(sys.argv[1])
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    tree = BNBTree(X=data["X"], y=data["y"], lambda2=float(data["ridge"]), max_memory_GB=2)
    loss, beta, gap, bound, seconds = tree.solve(
        k=int(data["s"]), gap_tol=float(sys.argv[2]), time_limit=float(sys.argv[3]))
y2 = float(data["y"] @ data["y"])
print(json.dumps({"value": (loss + y2) / 2, "bound": (bound + y2) / 2, "seconds": seconds,
                  "nodes": tree.number_of_nodes}))
"""


def _year() -> tuple[np.ndarray, np.ndarray]:
    from benchmarks.problems.real import matrix

    return matrix("year_sample10000", "least_squares")


RACES: list[tuple[str, Any, int, float]] = [
    ("ls-5000x40, s = 8", partial(regression, 5_000, 40, 8, snr=0.3), 8, 0.01),
    ("ls-5000x60, s = 10", partial(regression, 5_000, 60, 10, snr=0.3), 10, 0.01),
    ("ls-5000x60, s = 10", partial(regression, 5_000, 60, 10, snr=0.3), 10, 0.1),
    ("ls-2000x200, s = 10", partial(regression, 2_000, 200, 10, snr=1.0), 10, 0.1),
    ("year_sample10000, s = 10", _year, 10, 0.1),
]
"""Name, data, size, and the ridge on columns of unit norm."""

TABLE = [
    ("cal_housing", "least_squares", (2, 4, 6)),
    ("comp_activ_harder", "least_squares", (3, 6, 9)),
    ("year_sample10000", "least_squares", (5, 10, 30)),
    ("slice_first682", "least_squares", (5, 20)),
    ("letter", "logistic", (4, 8, 12)),
    ("ijcnn1", "logistic", (4, 8, 16)),
    ("kddcup04_bio", "logistic", (5, 15)),
]


def race(limit: float) -> list[dict[str, Any]]:
    rows = []
    for name, make, s, ridge in RACES:
        try:
            X, y = unit_columns(*make())
        except (OSError, AssertionError):
            sys.stderr.write(f"{name}: no data\n")
            continue
        for goal, gap in GAPS.items():
            row = {"problem": name, "ridge": ridge, "goal": goal, "limit": limit}
            row["ellzero"] = ours(X, y, s, ridge, gap, limit)
            row["okridge"] = theirs(X, y, s, ridge, gap, limit)
            sys.stderr.write(f"{row}\n")
            rows.append(row)
    return rows


def ours(X: Any, y: Any, s: int, ridge: float, gap: float, limit: float) -> dict[str, Any]:
    import ellzero

    begin = time.perf_counter()
    f = ellzero.LeastSquares(X, y, ridge=ridge)
    found = ellzero.certify(f, ellzero.solve(f, s), time_limit=limit, gap=gap)
    seconds = time.perf_counter() - begin
    value = found.value if found.better is None else found.better.value
    return {"value": value, "bound": found.lower_bound, "seconds": seconds, "nodes": found.nodes}


def theirs(X: Any, y: Any, s: int, ridge: float, gap: float, limit: float) -> dict[str, Any]:
    python = os.environ.get("ELLZERO_BENCH_OKRIDGE", str(ROOT / ".venv-okridge/bin/python"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=X, y=y, s=s, ridge=ridge)
        call = [python, "-c", OKRIDGE, str(file), str(gap), str(limit)]
        try:
            done = subprocess.run(
                call, capture_output=True, text=True, timeout=3 * limit + 60,
                env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"error": type(error).__name__}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def side_by_side(limit: float) -> list[dict[str, Any]]:
    """What the paper promises beforehand, and what is proven afterwards."""
    import ellzero
    from benchmarks.problems import all_problems

    problems = {p.name: p for p in all_problems()}
    rows = []
    for name, task, sizes in TABLE:
        if problems[name].missing():
            continue
        X, y = problems[name].make()
        kind = ellzero.LeastSquares if task == "least_squares" else ellzero.Logistic
        f = kind(X, y, fit_intercept=True)
        begin = time.perf_counter()
        path = ellzero.path(f, sizes)
        searched = time.perf_counter() - begin
        found = ellzero.certify(f, path, time_limit=limit)
        rows.append(
            {
                "data": name,
                "n": len(f.features),
                "speaks": {m: first_promise(f, m) for m in ("arht", "ompr")},
                "search_seconds": searched,
                "seconds": max(c.seconds for c in found.values()),
                "limit": limit,
                "levels": [{**c.summary(), "advice": c.advice} for c in found.values()],
            }
        )
        sys.stderr.write(f"{name}: {[(c.s, c.status.name, c.gap) for c in found.values()]}\n")
    return rows


def first_promise(f: Any, method: str) -> int | None:
    """The least s for which the theorem says something (s* = 1); None if not even for s = n."""
    from ellzero.theory import guarantee

    low, high = 0, len(f.features.choosable)
    if not guarantee(f, high)[method].s_star:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if guarantee(f, middle)[method].s_star else (middle, high)
    return high


def tables(saved: dict[str, Any]) -> str:
    lines = [
        "| data | features | the paper speaks from | s | proven gap | nodes | time, all s |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in saved["side_by_side"]:
        for place, level in enumerate(row["levels"]):
            head = ["", "", ""]
            if not place:
                spoken = [f"s = {s} ({m})" for m, s in row["speaks"].items() if s]
                head = [f"`{row['data']}`", str(row["n"]), ", ".join(spoken) or "not even s = n"]
            gap = "**proven best**" if level["proven"] else _percent(level["gap"])
            gap = f"none ({level['status']})" if level["status"] == "NO_BOUND" else gap
            seconds = f"{row['seconds']:.0f} s" if not place else ""
            cells = [*head, str(level["s"]), gap, str(level["nodes"]), seconds]
            lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "| problem | λ | goal | ellzero | OKRidge |",
        "|---|---|---|---|---|",
    ]
    for row in saved["race"]:
        cells = [row["problem"], f"{row['ridge']:g}", row["goal"]]
        cells += [
            _reached(row[who], GAPS[row["goal"]], row["limit"]) for who in ("ellzero", "okridge")
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _reached(run: dict[str, Any], gap: float, limit: float) -> str:
    if "error" in run:
        return f"failed ({run['error']})"
    left = max(run["value"] - run["bound"], 0.0) / run["value"]
    if left <= gap + 1e-8:
        return f"{run['seconds']:.2g} s, {run['nodes']} nodes"
    return f"not in {limit:.0f} s: {_percent(left)} left"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.1 else f"{100 * part:.2g} %"


def write_page(saved: dict[str, Any]) -> None:
    begin, end = "<!-- tables -->", "<!-- end of tables -->"
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n{tables(saved)}\n{end}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="only rewrite the tables of the page")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    arguments = parser.parse_args()
    if not arguments.page:
        from benchmarks.facts import machine

        saved = {
            "machine": machine(),
            "race": race(arguments.limit),
            "side_by_side": side_by_side(arguments.limit),
        }
        RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    write_page(json.loads(RESULTS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
