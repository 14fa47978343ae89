"""Compare the answers of two sides, and write the table of an A/B run. Nothing is measured here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

AGREEMENT = 1.02
"""Ratio up to which times of equal work count as the same. Other processes only add to a time."""

TOLERANCE = 1e-9
"""Relative difference below which two losses count as equal."""

FLOORS = {"least_squares": 1e-9, "logistic": 1e-3, "multinomial": 1e-3}
"""Share of the null loss that a difference is at least divided by. Losses may be zero."""

Record = dict[str, Any]
Row = dict[str, Any]


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return exp(mean(log ratio)), or NaN where there is no ratio."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(fmean(logs)) if logs else math.nan


def is_settled(base: Iterable[float], head: Iterable[float]) -> bool:
    """Say whether the three shortest times of both sides agree, each side's and all of them.

    Sides that differ need more evidence: another process may have slowed one of them.
    """
    shortest = [time for side in (base, head) for time in sorted(side)[:3]]
    return len(shortest) == 6 and max(shortest) <= AGREEMENT * min(shortest)


def null_loss(y: np.ndarray, task: str) -> float:
    """Return the loss of the intercept alone."""
    if task == "least_squares":
        return 0.5 * float(np.sum((y - y.mean()) ** 2))
    counts = np.unique(y, return_counts=True)[1]
    return float(counts @ np.log(len(y) / counts))


def relative(head: float, base: float, floor: float) -> float:
    """Return (head − base) / max(|base|, floor)."""
    return (head - base) / max(abs(base), floor)


def compare_rows(
    base: Sequence[Row], head: Sequence[Row], loss: Callable[[list[int]], float], floor: float
) -> Record:
    """Compare what the two sides answered at every size.

    Equal supports have equal losses. Of other supports `loss`, the judge, says the losses. Where
    both sides have a certificate, a larger gap is worse in the same way as a larger loss.
    """
    before, after = ({row["s"]: row for row in rows} for rows in (base, head))
    both = sorted(before.keys() & after.keys())
    excess = {s: _excess(before[s], after[s], loss, floor) for s in both}
    values = [
        abs(relative(after[s]["value"], before[s]["value"], floor))
        for s in both
        if before[s]["support"] == after[s]["support"]
    ]
    return {
        "sizes": len(both),
        "worse": sum(e > TOLERANCE for e in excess.values()),
        "better": sum(e < -TOLERANCE for e in excess.values()),
        "worst": max(excess.values(), default=0.0),
        "excess": {s: e for s, e in excess.items() if abs(e) > TOLERANCE},
        "other_supports": sum(before[s]["support"] != after[s]["support"] for s in both),
        "value_difference": max(values, default=0.0),
        "only_base": sorted(before.keys() - after.keys()),
        "only_head": sorted(after.keys() - before.keys()),
        "refuted": [s for s in both if _is_refuted(before[s], after[s])],
    }


def _excess(base: Row, head: Row, loss: Callable[[list[int]], float], floor: float) -> float:
    difference = 0.0
    if base["support"] != head["support"]:
        difference = relative(loss(head["support"]), loss(base["support"]), floor)
    gaps = head.get("gap", 0.0), base.get("gap", 0.0)
    rise = 0.0 if gaps[0] == gaps[1] else gaps[0] - gaps[1]  # both may be infinite
    return rise if abs(rise) > abs(difference) else difference


def _is_refuted(base: Row, head: Row) -> bool:
    """Say whether a lower bound of one side is above a value that either side has found."""
    proofs = [row for row in (base, head) if "bound" in row]
    values = [row["value"] for row in (base, head)]
    values += [row["better"] for row in proofs if row["better"] is not None]
    return any(row["bound"] > min(values) + row["margin"] for row in proofs)


def ratios(record: Record) -> dict[str, float]:
    """Return head / base of the shortest time, the median time and the least CPU time of a job."""
    times, cpu = record["times"], record["cpu"]
    return {
        "shortest": min(times["head"]) / min(times["base"]),
        "median": median(times["head"]) / median(times["base"]),
        "cpu": min(cpu["head"]) / min(cpu["base"]),
    }


# --- The table --------------------------------------------------------------------------------

WIDTH = 44
HEADER = (
    f"{'':{WIDTH}} {'base':>9} {'head':>9} {'ratio':>7} {'median':>7} {'cpu':>7}"
    f" {'sizes':>6} {'worse':>6} {'better':>6} {'worst':>9}"
)


def table(records: Sequence[Record], groups: Sequence[str]) -> str:
    """Return the table of all jobs by group, each group with its means, and the total."""
    lines = [HEADER]
    for group in groups:
        own = [record for record in records if record["group"] == group]
        if own:
            lines += [group, *(f"  {line(record)}" for record in own), *summary(own), ""]
    return "\n".join([*lines, "all", *summary(records), "", *remarks(records)]).rstrip()


def line(record: Record) -> str:
    """Return the line of one job."""
    name = f"{record['name']:{WIDTH - 2}}"
    if "times" not in record:
        return f"{name} {record['status']}: {record['why']}"
    base, head = (seconds(min(record["times"][side])) for side in ("base", "head"))
    row = f"{name} {base:>9} {head:>9}{_numbers(ratios(record))}{_counts(record['losses'])}"
    return f"{row}  {notes(record)}".rstrip()


def _numbers(ratio: dict[str, float]) -> str:
    return "".join(f" {value:7.3f}" for value in ratio.values())


def _counts(losses: Record) -> str:
    worst = f"{losses['worst']:.2g}" if abs(losses["worst"]) > TOLERANCE else "0"
    return f" {losses['sizes']:6} {losses['worse']:6} {losses['better']:6} {worst:>9}"


def notes(record: Record) -> str:
    """Return what a reader should know about a job beside its numbers."""
    losses, found = record["losses"], []
    if record["status"] == "long":
        found.append("over the limit: timed once")
    if losses["value_difference"] > TOLERANCE:
        found.append(f"values of equal supports differ by {losses['value_difference']:.1g}")
    for side in ("base", "head"):
        if losses[f"only_{side}"]:
            found.append(f"only {side} has s = {', '.join(map(str, losses[f'only_{side}']))}")
    if losses["refuted"]:
        found.append(f"WRONG BOUND at s = {', '.join(map(str, losses['refuted']))}")
    return "; ".join(found)


def summary(records: Sequence[Record]) -> list[str]:
    """Return the geometric means, the largest and smallest ratio, and the counts of losses."""
    measured = [record for record in records if "times" in record]
    if not measured:
        return [f"  {'no job was measured':{WIDTH - 2}}"]
    by_ratio = sorted(((ratios(record), record["name"]) for record in measured), key=_shortest)
    means = {key: geometric_mean(ratio[key] for ratio, _ in by_ratio) for key in by_ratio[0][0]}
    losses = [record["losses"] for record in measured]
    total = {key: sum(loss[key] for loss in losses) for key in ("sizes", "worse", "better")}
    total["worst"] = max(loss["worst"] for loss in losses)
    rows = [("largest", *by_ratio[-1]), ("smallest", *by_ratio[0])]
    ends = [f"  {word:{WIDTH + 18}}{_numbers(ratio)}  {name}" for word, ratio, name in rows]
    title = f"geometric mean of {len(measured)}"
    return [f"  {title:{WIDTH + 18}}{_numbers(means)}{_counts(total)}", *ends]


def _shortest(pair: tuple[dict[str, float], str]) -> float:
    return pair[0]["shortest"]


def remarks(records: Sequence[Record]) -> list[str]:
    """Return sentences on jobs that were not measured, and on bounds that are wrong."""
    lacking = [record for record in records if "times" not in record]
    refuted = [record["name"] for record in records if record.get("losses", {}).get("refuted")]
    found = []
    if lacking:
        found.append(f"Not measured: {len(lacking)} of {len(records)} jobs; their lines say why.")
    if refuted:
        found.append(f"A lower bound is above a known value: {', '.join(refuted)}.")
    return found


def seconds(value: float) -> str:
    """Write a time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
