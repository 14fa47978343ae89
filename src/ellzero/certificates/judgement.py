"""From what a proof knows to what a certificate says."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ellzero.certificates.certifiable import reaches_floor, ridge_of
from ellzero.certificates.certificate import Certificate, Verdict
from ellzero.certificates.choice import RIDGE, Choice
from ellzero.certificates.proof import Proof
from ellzero.certificates.tolerances import LARGEST_MARGIN
from ellzero.core import Objective, Solution, Status
from ellzero.driver import solution as solution_of
from ellzero.silence import without_our_warnings
from ellzero.supports import NONE


@dataclass
class Judgement:
    """What can be said of the solutions of f while a proof works, and after it.

    `null_margin` is what rounding may change of f without features, `begin` when the work began.
    """

    f: Objective
    solutions: dict[int, Solution]
    choice: Choice
    gap: float
    null_margin: float
    begin: float

    def certificates(self, unfinished: Verdict) -> dict[int, Certificate]:
        """Make a certificate for each size; `unfinished` is said of sizes that are not proven."""
        if self.choice.proof is None:
            return {s: self._without_bound(s, found) for s, found in self.solutions.items()}
        return {
            s: self._certificate(self.choice.proof, s, found, unfinished)
            for s, found in self.solutions.items()
        }

    def _without_bound(self, s: int, found: Solution) -> Certificate:
        return Certificate(
            s=s,
            value=found.value,
            lower_bound=self.f.floor,
            margin=self.choice.margin,
            status=Verdict.NO_BOUND,
            proven_in=NONE,
            proven_out=NONE,
            nodes=0,
            seconds=time.monotonic() - self.begin,
            advice=self.choice.advice,
        )

    def _certificate(
        self, proof: Proof, s: int, found: Solution, unfinished: Verdict
    ) -> Certificate:
        bound = float(max(proof.lower_bound(s), self.f.floor))
        better = self._better(proof, s, found)
        best = found if better is None else better
        margin = self.choice.margin + proof.best(s).rounding  # judged at the best model itself
        status = self._status(proof, s, best, bound, margin) or unfinished
        if status is Verdict.OPTIMAL:  # what is left of the gap is rounding
            margin = max(margin, best.value - bound)
        must, must_not = proof.proven(s)
        if len(must) > s or status is Verdict.UNSURE:  # rounding decides
            must = must_not = NONE
        weak = status in (Verdict.TIME_LIMIT, Verdict.UNDIVIDED) and bound < found.value / 2
        return Certificate(
            s=s,
            value=found.value,
            lower_bound=bound,
            margin=float(margin),
            status=status,
            proven_in=must,
            proven_out=must_not,
            nodes=proof.nodes(s),
            seconds=time.monotonic() - self.begin,
            better=better,
            advice=f"a weak bound; {self._ridge_advice()}" if weak else "",
        )

    def _status(
        self, proof: Proof, s: int, best: Solution, bound: float, margin: float
    ) -> Verdict | None:
        """Return how the proof of a size ended; None if it has not."""
        if self._reaches_floor(best):
            return Verdict.OPTIMAL
        if not proof.finished(s):
            return None
        left = best.value - bound
        if self.gap and left > margin:
            return Verdict.GAP_REACHED
        clear = margin <= LARGEST_MARGIN * abs(best.value) and left <= 2 * margin
        return Verdict.OPTIMAL if clear else Verdict.UNSURE

    def _reaches_floor(self, best: Solution) -> bool:
        """Say whether f cannot be lower, judged at this model and not by its size without one."""
        if best.value > self.f.floor + self.null_margin:
            return False
        x = self.f.minimize(best.support)
        return reaches_floor(self.f, replace(x, value=best.value))

    def _better(self, proof: Proof, s: int, found: Solution) -> Solution | None:
        """Return the best model known, refitted, if it is better than the solution."""
        best, least = proof.best(s), found.value - self.choice.margin
        if best.value >= least:
            return None
        x = self.f.minimize(best.support)
        with without_our_warnings():  # its status says what the warning would
            better = solution_of(x, self.f.refit(x), Status.COMPLETE, "certify")
        return better if better.value < least else None

    def _ridge_advice(self) -> str:
        has_ridge = ridge_of(self.f).any()
        return RIDGE.replace("a ridge", "a larger ridge") if has_ridge else RIDGE
