"""A fitted model in words: text for a terminal, a table for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from numpy.typing import NDArray

from ellzero.core import Solution
from ellzero.selection import Path
from ellzero.supports import Support

LONGEST = 30


@dataclass(frozen=True, eq=False)
class Report:
    """Features, coefficients, loss, and what one feature more or less would change."""

    title: str
    names: list[Any]
    path: Path
    solution: Solution
    forced: Support
    coef: NDArray[Any]
    intercept: NDArray[Any]
    classes: list[Any]
    longest: int = LONGEST
    """Features listed before the rest is only counted."""

    def __repr__(self) -> str:
        rows = [("", *self._labels), *self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        table = [
            "  "
            + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]
        return "\n".join([self._headline, *table, *self._remarks()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(label)}</th>" for label in ("feature", *self._labels))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in self._remarks())
        return (
            f'<div class="ellzero-report"><p>{escape(self._headline)}</p>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<ul>{remarks}</ul></div>"
        )

    @property
    def _headline(self) -> str:
        k, n = len(self.solution.support), len(self.names) - len(self.forced)
        forced = f" and {len(self.forced)} forced" if len(self.forced) else ""
        return f"{self.title}: {k} of {n} features{forced}, loss {self.solution.value:.6g}"

    @property
    def _labels(self) -> list[str]:
        return [str(c) for c in self.classes] if len(self.coef) > 1 else ["coefficient"]

    def _rows(self) -> Iterator[tuple[str, ...]]:
        chosen = [(j, "") for j in self.solution.support.tolist()]
        members = chosen + [(j, " (forced)") for j in self.forced.tolist()]
        for j, kind in members[: self.longest]:
            yield f"{self.names[j]}{kind}", *(f"{c:.6g}" for c in self.coef[:, j])
        if len(members) > self.longest:
            yield f"... and {len(members) - self.longest} more", *("" for _ in self.coef)
        yield "intercept", *(f"{a:.6g}" for a in self.intercept)

    def _remarks(self) -> Iterator[str]:
        sizes = list(self.path)
        here = next(s for s in sizes if self.path[s] is self.solution)
        for s in (here - 1, here + 1):
            if s in self.path:
                yield self._neighbour(s)
        yield f"status {self.solution.status.name}: {self.solution.status}"

    def _neighbour(self, s: int) -> str:
        other, own = self.path[s], set(self.solution.support.tolist())
        there = set(other.support.tolist())
        moves = [f"+{self.names[j]}" for j in sorted(there - own)]
        moves += [f"−{self.names[j]}" for j in sorted(own - there)]
        change = (other.value - self.solution.value) / (abs(self.solution.value) or 1.0)
        told = f"{change:+.2%}" if change < 100 else f"{change:.3g} times more"
        return f"with {s}: loss {other.value:.6g} ({told}), {' '.join(moves) or 'the same'}"
