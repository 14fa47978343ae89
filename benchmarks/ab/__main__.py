"""Measure a base revision and a head side by side, and print the ratios of their times."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import count, groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import facts, store
from benchmarks.__main__ import chosen, write
from benchmarks.ab import compare
from benchmarks.ab.jobs import GROUPS, Job, all_jobs
from benchmarks.ab.sides import CACHE, Failed, Side
from benchmarks.judge import Judge

TURN_SECONDS, TURN_CALLS = 0.1, 20
"""A turn repeats a short call this long, but not more often than this."""

PAIR_SECONDS = 8.0  # no further round of turns starts once a pair has taken this long
PATIENCE = 4.0  # a worker is killed after this many times the limit
PAUSE_SECONDS = 0.05  # idle threads of OpenBLAS spin for some 30 ms and would slow the other side


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.ab", description=__doc__)
    parser.add_argument("--base", required=True, help="the revision to compare with")
    parser.add_argument("--head", help="the revision to judge, by default the working tree")
    parser.add_argument("--problems", default="*", help="comma-separated patterns of group/name")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each side at least, 5")
    parser.add_argument("--limit", type=float, default=30.0, help="longer calls are timed once")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order of the sides")
    parser.add_argument("--out", type=Path, default=CACHE / "results.json", help="results file")
    parser.add_argument("--list", action="store_true", help="print the names of the jobs only")
    return parser.parse_args()


Turns = dict[str, list[dict[str, Any]]]  # what the worker of each side answered


class Data:
    """The data of one problem, on disk for the workers, and its judge."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.folder, self.task = folder, job.problem.task
        store.save(folder, *job.problem.make())

    @cached_property
    def y(self) -> np.ndarray:
        return np.load(self.folder / "y.npy")

    @cached_property
    def judge(self) -> Judge:
        """Set up the judge, which takes a factorisation, when the first support is judged."""
        return Judge(*store.load(self.folder, mmap=True), self.task)

    @property
    def floor(self) -> float:
        return compare.FLOORS[self.task] * compare.null_loss(self.y, self.task)


class Pair:
    """The two sides, which take turns; only one of them computes at a time."""

    def __init__(self, sides: list[Side], arguments: argparse.Namespace) -> None:
        self.sides, self.limit, self.repeats = sides, arguments.limit, arguments.repeats
        self.rng = random.Random(arguments.seed)

    def records(self, jobs: list[Job]) -> Iterator[dict[str, Any]]:
        """Measure the jobs and yield a record of each. The data of a problem are made once."""
        for _, own in groupby(jobs, key=lambda job: job.problem.name):
            together = list(own)
            why = together[0].problem.missing()
            if why:
                yield from ({**_about(job), "status": "skipped", "why": why} for job in together)
                continue
            with tempfile.TemporaryDirectory(prefix="ellzero-ab-") as folder:
                data = Data(together[0], Path(folder))
                is_loaded = False
                for job in together:
                    try:
                        if not is_loaded:
                            self._load(data)
                        is_loaded = True
                        record = self._measured(job, data)
                    except Failed as failure:
                        is_loaded = False
                        record = {"status": failure.status, "why": str(failure)}
                    yield _about(job) | record

    def _load(self, data: Data) -> None:
        """Load the data into both workers. Starts a worker anew if it was ended."""
        for side in self.sides:
            side.ask(do="load", folder=str(data.folder))

    def _measured(self, job: Job, data: Data) -> dict[str, Any]:
        answers = {side.name: self._turn(side, job, 0.0) for side in self._order()}
        is_long = max(answer["times"][0] for answer in answers.values()) > self.limit
        turns = {name: [answer] for name, answer in answers.items()}
        measured = turns if is_long else self._rounds(job)
        rows = [answers[name]["rows"] for name in ("base", "head")]
        losses = compare.compare_rows(*rows, lambda S: data.judge.loss(S), data.floor)
        status = "long" if is_long else "ok"
        return {
            "status": status,
            "first": {name: answer["times"][0] for name, answer in answers.items()},
            "times": _joined(measured, "times"),
            "cpu": _joined(measured, "cpu"),
            "losses": losses,
        }

    def _rounds(self, job: Job) -> Turns:
        """Let the sides take turns until their shortest times agree, or the time is used up."""
        turns: Turns = {side.name: [] for side in self.sides}
        deadline = time.monotonic() + PAIR_SECONDS
        for rounds in count(1):
            for side in self._order():
                turns[side.name].append(self._turn(side, job, TURN_SECONDS))
            shortest = ([min(turn["times"]) for turn in own] for own in turns.values())
            is_settled = rounds >= self.repeats and compare.is_settled(*shortest)
            if is_settled or time.monotonic() > deadline:
                break
        return turns

    def _turn(self, side: Side, job: Job, seconds: float) -> dict[str, Any]:
        time.sleep(PAUSE_SECONDS)
        order = {"call": job.call, "seconds": seconds, "most": TURN_CALLS}
        return side.ask(PATIENCE * self.limit, do="run", **order)

    def _order(self) -> list[Side]:
        return self.rng.sample(self.sides, len(self.sides))


def _joined(turns: Turns, key: str) -> dict[str, list[float]]:
    return {name: [t for turn in own for t in turn[key]] for name, own in turns.items()}


def _about(job: Job) -> dict[str, Any]:
    return {"group": job.group, "name": job.name, "problem": job.problem.name}


def described(sides: list[Side], say: Callable[[str], Any]) -> dict[str, Any]:
    """Describe both sides. Says what differs between them apart from the revision."""
    about = {side.name: side.ask(do="about") for side in sides}
    for side in sides:
        facts_of = about[side.name]
        if not Path(facts_of["ellzero"]).is_relative_to(side.python.parents[1]):
            sys.exit(f"benchmarks.ab: {side.name} imports ellzero from {facts_of['ellzero']}.")
        versions = ", ".join(f"{k} {v}" for k, v in facts_of["versions"].items())
        threads = f"BLAS threads: {facts_of['blas_threads']}"
        say(f"{side.name}: {side}; Python {facts_of['python']}, {versions}; {threads}")
    same = ("python", "versions", "blas", "blas_threads")
    if any(about["base"][key] != about["head"][key] for key in same):
        say(f"The environments differ in more than ellzero: delete {CACHE} to make them anew.")
    return {side.name: {**about[side.name], "revision": str(side)} for side in sides}


def main() -> None:
    args = parse()
    jobs = [job for job in all_jobs() if chosen(job.id, args.problems)]
    if not jobs:
        sys.exit(f"benchmarks.ab: no jobs match {args.problems!r}; --list prints their names.")
    if args.list:
        print("\n".join(job.id for job in jobs))
        return
    CACHE.mkdir(exist_ok=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    sides = [Side("base", args.base), Side("head", args.head)]
    records: list[dict[str, Any]] = []
    try:
        about = described(sides, print)
        results = {"machine": facts.machine(), "sides": about, "records": records}
        for record in Pair(sides, args).records(jobs):
            records.append(record)
            write(args.out, results)
            sys.stderr.write(f"{record['group']:14} {compare.line(record)}\n")
    except KeyboardInterrupt:
        sys.stderr.write("benchmarks.ab: interrupted; the table has what was measured.\n")
    finally:
        for side in sides:
            side.end()
    print(f"\n{compare.table(records, GROUPS)}")
    print(f"\n{(time.monotonic() - begin) / 60:.1f} minutes; results in {args.out}")


if __name__ == "__main__":
    main()
