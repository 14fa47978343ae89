"""Rewrite the golden files with the code at hand, and print what changed.

``make golden`` rewrites all, ``PYTHONPATH=tests python -m golden diabetes wine`` a few. Files of
real data are left alone where the folder of real data is not there.
"""

from __future__ import annotations

import sys
from collections import Counter

from golden.problems import PROBLEMS, Problem
from golden.real import missing
from golden.record import file_of, read_golden, recording, write_golden
from golden.rules import Comparison, name_of


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def rewrite(problem: Problem) -> None:
    new = recording(problem)
    if not file_of(problem).exists():
        write_golden(problem, new)
        say(f"{problem.name}: new file, {len(new['rows'])} rows")
        return
    comparison = Comparison(read_golden(problem), new)
    changes = comparison.changes()
    write_golden(problem, comparison.updated())
    groups = Counter(
        f"{'sizes of path' if key[0] == 'path' else f'rows of {key[0]}'} {kind}"
        for key, kind in changes.items()
    )
    told = ", ".join(f"{count} {group}" for group, count in groups.items()) or "unchanged"
    say(f"{problem.name}: {told}")
    for key, kind in changes.items():
        old, new_row = comparison.before.get(key), comparison.after.get(key)
        shown = " -> ".join("none" if row is None else shown_row(row) for row in (old, new_row))
        say(f"    {name_of(old or new_row or {})}: {kind}: {shown}")


def shown_row(row: dict) -> str:
    fields = ("status", "note", "value", "lower_bound", "support", "proven_in", "proven_out")
    return " ".join(str(row[name]) for name in fields if name in row)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        say(f"unknown problem {unknown[0]!r}; there are {', '.join(PROBLEMS)}")
        return 2
    for name in names or PROBLEMS:
        problem = PROBLEMS[name]
        reason = missing(problem.real) if problem.real else ""
        if reason:
            say(f"{name}: left alone: {reason}")
        else:
            rewrite(problem)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
