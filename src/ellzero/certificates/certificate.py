"""What is proven about a solution, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any

from ellzero.core import Solution
from ellzero.supports import Support


class Verdict(Enum):
    """How a certification ended; the value is the message."""

    OPTIMAL = "the least value possible is known, up to rounding"
    GAP_REACHED = "the gap asked for was reached"
    TIME_LIMIT = "the time limit was reached"
    UNSURE = "all models were looked at, but rounding decides"
    UNDIVIDED = "more features are left than can be branched on"
    STOPPED = "stopped before the end"
    NO_BOUND = "no bound is possible"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far a solution can be from the best model with at most `s` features.

    Attributes
    ----------
    s : int
        The number of features that a model may have.
    value : float
        f of the solution.
    lower_bound : float
        No model with at most s features has a value below this, up to `margin`.
    margin : float
        What rounding may have changed, in units of f. Smaller differences are not shown.
    status : Verdict
        Why the certification ended.
    proven_in : array of int
        The features of every model at least as good as the best known.
    proven_out : array of int
        The features of no such model.
    nodes : int
        How many nodes of the tree were looked at.
    seconds : float
        How long the certification took.
    better : Solution, optional
        A better solution, where one was found on the way.
    advice : str
        What would make a bound, or a better one, possible.
    """

    s: int
    value: float
    lower_bound: float
    margin: float
    status: Verdict
    proven_in: Support = field(repr=False)
    proven_out: Support = field(repr=False)
    nodes: int
    seconds: float
    better: Solution | None = None
    advice: str = ""

    @property
    def gap(self) -> float:
        """(value − lower_bound) / |value|: the solution is at most this far from the best."""
        excess = max(self.value - self.lower_bound, 0.0)
        if self.status is Verdict.UNSURE:
            excess += self.margin
        elif self.status is Verdict.OPTIMAL and excess <= self.margin:
            return 0.0
        return excess / abs(self.value) if self.value else float("inf")

    @property
    def proven(self) -> bool:
        """Whether the solution is the best there is, up to rounding."""
        return self.status is Verdict.OPTIMAL and self.gap == 0.0

    def summary(self) -> dict[str, Any]:
        """Return everything in plain numbers and words, ready for JSON."""
        return {
            "s": self.s,
            "value": self.value,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "status": self.status.name,
            "proven": self.proven,
            "words": str(self),
            "margin": self.margin,
            "proven_in": self.proven_in.tolist(),
            "proven_out": self.proven_out.tolist(),
            "nodes": self.nodes,
            "seconds": self.seconds,
            "better_value": None if self.better is None else self.better.value,
            "better_support": None if self.better is None else self.better.support.tolist(),
        }

    def __str__(self) -> str:
        best = f"best possible {self.s}-feature model"
        if self.status is Verdict.NO_BOUND:
            return f"nothing is known of the {best}: {self.advice}"
        if self.proven:
            return f"proven: this is the {best}, up to rounding"
        within = f"within {_percent(self.gap)} of the {best}"
        if self.better is not None:
            known = "the best one" if self.status is Verdict.OPTIMAL else "one"
            lower = self.value - self.better.value
            within += f"; {known} was found, better by {lower:.3g}"
        return within + (f" ({self.advice})" if self.advice else "")

    def _repr_html_(self) -> str:
        rows = {
            "loss": f"{self.value:.6g}",
            "proven lower bound": f"{self.lower_bound:.6g}",
            "ended because": str(self.status),
            "features proven in / out": f"{len(self.proven_in)} / {len(self.proven_out)}",
            "nodes, seconds": f"{self.nodes}, {self.seconds:.1f}",
        }
        body = "".join(
            f"<tr><th>{key}</th><td>{escape(text)}</td></tr>" for key, text in rows.items()
        )
        return (
            f'<div class="ellzero-certificate"><p>{escape(str(self))}</p>'
            f"<table><tbody>{body}</tbody></table></div>"
        )


def _percent(part: float) -> str:
    """Write a share in percent, rounded up: a gap is never shown smaller than it is."""
    percent = 100 * part
    if percent == float("inf"):
        return "any distance"
    for digits in (0, 1, 2, 3):
        unit = 10.0**-digits
        if percent >= 10 * unit or digits == 3:
            return f"{-(-percent // unit) * unit:.{digits}f} %"
    raise AssertionError
