"""`python -m benchmarks`: measure, save, and write the page."""

from __future__ import annotations

import argparse
import json
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks import facts, runner
from benchmarks.problems import all_problems
from benchmarks.solvers import all_solvers

RESULTS = Path(__file__).resolve().parent / "results"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small set, in minutes")
    parser.add_argument("--problems", default="*", help="comma-separated patterns")
    parser.add_argument("--solvers", default="*", help="comma-separated patterns")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds per pair, by default 30")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--out", type=Path, help="the results file")
    parser.add_argument("--no-page", action="store_true", help="measure only")
    return parser.parse_args()


def chosen(name: str, patterns: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns.split(","))


def main() -> None:
    args = parse()
    problems = [
        p
        for p in all_problems()
        if (p.quick if args.quick else p.full) and chosen(p.name, args.problems)
    ]
    solvers = [name for name in all_solvers() if chosen(name, args.solvers)]
    if not problems or not solvers:
        kind, pattern = ("solvers", args.solvers) if problems else ("problems", args.problems)
        quick = ", or none of them is a quick one" if args.quick and not problems else ""
        sys.exit(f"benchmarks: no {kind} match {pattern!r}{quick}.")
    limits = runner.Limits(args.limit, 3 * args.limit)
    everything = args.problems == args.solvers == "*"
    kind = "quick" if args.quick else "full" if everything else "part"
    out = args.out or RESULTS / f"{kind}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {
        "machine": facts.machine(),
        "seed": args.seed,
        "limit_seconds": args.limit,
        "records": [],
    }

    def report(record: dict[str, Any]) -> None:
        results["records"].append(record)
        write(out, results)
        sys.stderr.write(progress(record))

    runner.run(problems, solvers, limits, args.seed, report)
    if not args.no_page:
        from benchmarks import page

        page.write(out, page.folder_for(out))


def write(out: Path, results: dict[str, Any]) -> None:
    """One record a line: small, and readable as a diff."""
    head = {key: value for key, value in results.items() if key != "records"}
    rows = ",\n".join(json.dumps(r, separators=(",", ":")) for r in results["records"])
    part = out.with_suffix(".part")
    part.write_text(f'{json.dumps(head)[:-1]}, "records": [\n{rows}\n]}}\n', encoding="utf-8")
    part.replace(out)


def progress(record: dict[str, Any]) -> str:
    took = f"{record['seconds']:.3g} s" if "seconds" in record else ""
    line = f"{record['problem']:24} {record['solver']:18} {record['status']:8} {took:10}"
    return f"{line} {record.get('why') or ''}".rstrip() + "\n"


if __name__ == "__main__":
    main()
