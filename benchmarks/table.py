"""Saved results, read and compared; the page and the plots are drawn from this alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIE = 1e-8  # relative: losses closer than this are the same

Record = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """One solver on one problem."""

    record: Record

    @property
    def solver(self) -> str:
        return self.record["solver"]

    @property
    def kind(self) -> str:
        return self.record.get("kind", "")

    @property
    def ok(self) -> bool:
        return self.record["status"] == "ok"

    @property
    def seconds(self) -> float | None:
        return self.record.get("seconds")

    @property
    def losses(self) -> dict[int, float]:
        return {level["s"]: level["loss"] for level in self.record.get("levels", [])}


class Board:
    """All pairs of one problem, and the best loss any of them reached at each size."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        self.about = pairs[0].record
        self.best = lowest(pairs)

    @property
    def name(self) -> str:
        return self.about["problem"]

    def pair(self, solver: str) -> Pair | None:
        return next((p for p in self.pairs if p.solver == solver), None)

    def seconds(self, solver: str) -> float | None:
        found = self.pair(solver)
        return found.seconds if found else None

    def ratio(self, solver: str, other: str) -> float | None:
        a, b = self.seconds(solver), self.seconds(other)
        return a / b if a and b else None

    def excess(self, pair: Pair) -> dict[int, float]:
        """Loss above the best known, relative to it, at every size the solver answered."""
        share = 1e-3 if self.about["task"] == "logistic" else 1e-9
        floor = share * self.about["null_loss"]  # on separable data the best loss is zero
        return {s: (v - self.best[s]) / max(self.best[s], floor) for s, v in pair.losses.items()}

    def above_peers(self, solver: str = "ellzero") -> list[int]:
        """Sizes at which some other solver has a lower loss."""
        found = self.pair(solver)
        return [s for s, e in self.excess(found).items() if e > TIE] if found else []


def lowest(pairs: Iterable[Pair]) -> dict[int, float]:
    best: dict[int, float] = {}
    for pair in pairs:
        for s, loss in pair.losses.items():
            best[s] = min(best.get(s, loss), loss)
    return dict(sorted(best.items()))


def read(file: Path) -> tuple[Record, list[Board]]:
    """What the run says about itself, and its boards by name."""
    results = json.loads(file.read_text(encoding="utf-8"))
    groups: dict[str, list[Pair]] = {}
    for record in results.pop("records"):
        if record["solver"] != "*":
            groups.setdefault(record["problem"], []).append(Pair(record))
    return results, [Board(groups[name]) for name in sorted(groups)]
