"""The paper's observations, put to the numbers.

Each check is of one data set: `losses[method][sparsity]`. Losses closer than TIE, relative to the
smaller, are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ellzero.experiments.figures import REFITTED

TIE = 1e-6
MOSTLY = 0.75
"""An observation that holds at this share of the sparsities holds mostly."""

Losses = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class Verdict:
    """How one observation fares on one data set."""

    observation: str
    verdict: str
    numbers: str

    @property
    def is_true(self) -> bool:
        return self.verdict in ("holds", "holds mostly", "yes")


def verdicts(losses: Losses) -> list[Verdict]:
    """Every observation that the results allow to check."""
    return [
        Verdict(observation, *check(losses))
        for observation, needed, check in OBSERVATIONS
        if all(losses.get(method) for method in needed)
    ]


def excess(loss: float, other: float) -> float:
    """How much a loss is above another, relative to the other."""
    return (loss - other) / max(abs(other), 1e-300)


def not_above(loss: float, other: float) -> bool:
    return loss <= other + TIE * abs(other)


def shared(losses: Losses, methods: Iterable[str]) -> list[int]:
    """The sparsities at which all of these have a result."""
    return sorted(set.intersection(*(set(losses.get(method, ())) for method in methods)))


def _counted(holds: Mapping[int, bool]) -> tuple[str, str]:
    """A verdict, and the count behind it."""
    good, every = sum(holds.values()), len(holds)
    if not every:
        return "no result", "no sparsity has all the results"
    word = "holds" if good == every else "holds mostly" if good >= MOSTLY * every else "fails"
    return word, f"at {good} of {every} sparsities"


def _largest(excesses: Mapping[int, float], text: str) -> str:
    """The worst case of an excess, where there is one above a tie."""
    s = max(excesses, key=lambda s: excesses[s], default=None)
    if s is None or excesses[s] <= TIE:
        return ""
    return f"; {text} {100 * excesses[s]:.3g} % (s = {s})"


def _best(first: str, others: tuple[str, ...]) -> Callable[[Losses], tuple[str, str]]:
    def check(losses: Losses) -> tuple[str, str]:
        sizes = shared(losses, (first, *others))
        rest = {s: min(losses[m][s] for m in others) for s in sizes}
        verdict, count = _counted({s: not_above(losses[first][s], rest[s]) for s in sizes})
        behind = _largest(
            {s: excess(losses[first][s], rest[s]) for s in sizes}, "above the others by up to"
        )
        ahead = _largest(
            {s: excess(rest[s], losses[first][s]) for s in sizes}, "below them by up to"
        )
        return verdict, count + behind + ahead

    return check


def _between(losses: Losses) -> tuple[str, str]:
    sizes = shared(losses, ("ELS", "ARHT", "OMPR"))
    els, arht, ompr = (losses[method] for method in ("ELS", "ARHT", "OMPR"))
    holds = {s: not_above(els[s], arht[s]) and not_above(arht[s], ompr[s]) for s in sizes}
    verdict, count = _counted(holds)
    below = sum(not not_above(els[s], arht[s]) for s in sizes)
    above = sum(not not_above(arht[s], ompr[s]) for s in sizes)
    return verdict, f"{count}; better than ELS at {below}, worse than OMPR at {above}"


def _oscillates(losses: Losses) -> tuple[str, str]:
    """Where ELS beats OMPR, ARHT is nearer to the one or to the other; does it change sides?"""
    els, arht, ompr = (losses[method] for method in ("ELS", "ARHT", "OMPR"))
    apart = [s for s in shared(losses, ("ELS", "ARHT", "OMPR")) if not not_above(ompr[s], els[s])]
    sides = ["ELS" if 2 * arht[s] < els[s] + ompr[s] else "OMPR" for s in apart]
    changes = sum(a != b for a, b in pairwise(sides))
    near = f"nearer to ELS at {sides.count('ELS')}, to OMPR at {sides.count('OMPR')}"
    numbers = f"of {len(apart)} sparsities with ELS below OMPR: {near}; {changes} changes of side"
    return ("yes" if changes >= 2 else "no"), numbers


def _ahead(first: str) -> Callable[[Losses], tuple[str, str]]:
    """Never above OMP and OMPR, and somewhere clearly below."""

    def check(losses: Losses) -> tuple[str, str]:
        sizes = shared(losses, (first, "OMP", "OMPR"))
        rest = {s: min(losses["OMP"][s], losses["OMPR"][s]) for s in sizes}
        verdict, count = _counted({s: not_above(losses[first][s], rest[s]) for s in sizes})
        clear = [s for s in sizes if not not_above(rest[s], losses[first][s])]
        if verdict == "holds" and not clear:
            return "tied", f"{count}, but nowhere by more than a tie"
        gains = {s: excess(rest[s], losses[first][s]) for s in sizes}
        return verdict, f"{count}, clearly below at {len(clear)}{_largest(gains, 'by up to')}"

    return check


def _last(method: str, others: tuple[str, ...]) -> Callable[[Losses], tuple[str, str]]:
    def check(losses: Losses) -> tuple[str, str]:
        sizes = shared(losses, (method, *others))
        worst = {s: max(losses[m][s] for m in others) for s in sizes}
        verdict, count = _counted({s: not_above(worst[s], losses[method][s]) for s in sizes})
        above = _largest({s: excess(losses[method][s], worst[s]) for s in sizes}, "above by up to")
        return verdict, count + above

    return check


GREEDY = ("OMP", "OMPR", "ELS", "ARHT")
PAPER = ("LASSO", *GREEDY)

OBSERVATIONS: tuple[tuple[str, tuple[str, ...], Callable[[Losses], tuple[str, str]]], ...] = (
    ("ELS is the best of the five", PAPER, _best("ELS", ("LASSO", "OMP", "OMPR", "ARHT"))),
    ("ARHT is between ELS and OMPR", ("ELS", "ARHT", "OMPR"), _between),
    ("ARHT oscillates between ELS and OMPR", ("ELS", "ARHT", "OMPR"), _oscillates),
    ("ELS is ahead of OMP and OMPR", ("ELS", "OMP", "OMPR"), _ahead("ELS")),
    ("ARHT is ahead of OMP and OMPR", ("ARHT", "OMP", "OMPR"), _ahead("ARHT")),
    ("LASSO is last", PAPER, _last("LASSO", GREEDY)),
    ("LASSO is last even when refitted", (REFITTED, *GREEDY), _last(REFITTED, GREEDY)),
    ("ellzero's search is best of all", ("ellzero", *PAPER), _best("ellzero", PAPER)),
)
