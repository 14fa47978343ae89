"""How far from the best possible model is a solution?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import Any, Protocol, overload

import numpy as np

from ellzero.certificates.certificate import Certificate, Verdict
from ellzero.certificates.convex_proof import ConvexProof
from ellzero.certificates.diagonal import SMALLEST
from ellzero.certificates.nodes import Incumbent
from ellzero.certificates.quadratic_proof import QuadraticProof
from ellzero.certificates.wide_proof import WideProof, ridge_on_unit_scale
from ellzero.checks import check_number, check_objective, check_sparsity
from ellzero.core import Objective, Solution, Status
from ellzero.driver import solution as solution_of
from ellzero.selection import Path
from ellzero.silence import without_our_warnings
from ellzero.supports import NONE, Matrix, Support
from ellzero.threads import blas_threads

LARGEST_MATRIX = 3000
"""With more features than this the matrix of a quadratic is not made."""

HOPELESS = 1e6
"""With more supports than this, nothing is tried where all features together fit perfectly."""

ROUNDING = 1e-10
"""The margin for rounding, as a part of the loss without any feature."""

CLEAR = 1e-3
"""A margin above this part of the loss is no rounding any more: nothing is called proven."""

FEW = 30
"""With so many features at most, a proof from the rows is tried where moments leave doubt."""

SAME_VALUE = 1e-5
"""The value of a solution and f there may differ by this part: float32 and back is no other f."""

NOTHING = 1e-30
"""Values below this are not compared: of a perfect fit there is only rounding."""

RIDGE = "a ridge (ridge > 0, or alpha > 0 in an estimator) would make a better one possible"
PERFECT = f"all features together fit the data perfectly, so only f ≥ 0 is certain; {RIDGE}"
TOO_WIDE = f"with more than {LARGEST_MATRIX} features a bound needs a ridge; add one, or preselect"
NO_ROWS = (
    "some features are dependent, or nearly so, and moments cannot tell which; leave some out, or "
    f"certify with the rows, as in LeastSquares(X, y); {RIDGE}"
)

Progress = Callable[[dict[int, Certificate]], Any]


class OtherObjective(ValueError):
    """The solution to be certified is not one of f."""


class Proof(Protocol):
    """Bounds at several sizes, improved step by step."""

    def steps(self, deadline: float) -> Any: ...
    def lower_bound(self, s: int) -> float: ...
    def best(self, s: int) -> Incumbent: ...
    def nodes(self, s: int) -> int: ...
    def finished(self, s: int) -> bool: ...
    def proven(self, s: int) -> tuple[Support, Support]: ...


@overload
def certify(
    f: Objective,
    solution: Solution,
    *,
    s: int | None = None,
    time_limit: float = 60.0,
    gap: float = 0.0,
    callback: Progress | None = None,
) -> Certificate: ...


@overload
def certify(
    f: Objective,
    solution: Path,
    *,
    time_limit: float = 60.0,
    gap: float = 0.0,
    callback: Progress | None = None,
) -> dict[int, Certificate]: ...


def certify(
    f: Objective,
    solution: Solution | Path,
    *,
    s: int | None = None,
    time_limit: float = 60.0,
    gap: float = 0.0,
    callback: Progress | None = None,
) -> Certificate | dict[int, Certificate]:
    """How far a solution can be from the best model of its size, at most.

    Bounds from relaxations, improved by branch and bound until the solution is proven to be the
    best, or the gap is small enough, or the time is up; Ctrl-C also returns what is proven by then.

    Parameters
    ----------
    f : the objective that was solved
    solution : a solution of it, or a path; all sizes of a path share their work and the time
    s : the number of features that were asked for, if not as many as the solution has
    time_limit : seconds
    gap : stop once (value − bound) / value is at most this; 0 asks for a proof
    callback : called now and then with the certificates so far, by size; true ends the work

    Returns
    -------
    a `Certificate`, or for a path one for each size, by size

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import LeastSquares, certify, solve
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> f = LeastSquares(X, 3 * X[:, 4] - X[:, 1] + 0.5 * X[:, 6])
    >>> print(certify(f, solve(f, 2)))
    proven: this is the best possible 2-feature model, up to rounding
    """
    check_objective(f)
    check_number("time_limit", time_limit, above=0)
    check_number("gap", gap, above=0, or_equal=True)
    if isinstance(solution, Path):
        if not len(solution):
            raise ValueError("solution: the path is empty.")
        if s is not None:
            raise ValueError("s: a path knows its sizes; leave it out.")
        return _Run(f, dict(solution), time_limit, gap, callback).result()
    if not isinstance(solution, Solution):
        raise TypeError(f"solution: expected a Solution or a Path, got {type(solution).__name__}.")
    size = check_sparsity(f, len(solution.support) if s is None else s)
    if size < len(solution.support):
        raise ValueError(f"s: the solution has {len(solution.support)} features, more than {size}.")
    return _Run(f, {size: solution}, time_limit, gap, callback).result()[size]


class _Run:
    """One call of `certify`: who proves, for how long, and what is told in the end."""

    def __init__(
        self,
        f: Objective,
        solutions: dict[int, Solution],
        time_limit: float,
        gap: float,
        callback: Progress | None,
    ):
        self.begin = time.monotonic()
        self.deadline = self.begin + time_limit
        self.f, self.solutions, self.gap, self.callback = f, solutions, gap, callback
        null = f.minimize(f.choosable[:0])
        self.margin = max(100 * f.rounding(null), ROUNDING * abs(null.value))
        self.trace = self.margin  # of f without features
        self.status = Verdict.TIME_LIMIT
        self.proof: Proof | None = None
        self.exact: Objective | None = None  # what proves instead of f
        self.advice = "stopped before there was a bound"

    def result(self) -> dict[int, Certificate]:
        with blas_threads(self.f.blas_threads):
            known = {s: self._incumbent(s) for s in self.solutions}
            try:
                self.proof = self._proof(known)
                self._work()
            except KeyboardInterrupt:
                self.status = Verdict.STOPPED
            return self._certificates()

    def _incumbent(self, s: int) -> Incumbent:
        """The solution refitted, which must be one of f."""
        found = self.solutions[s]
        if not np.isfinite(found.value):
            raise ValueError(f"solution: its value is {found.value}.")
        if found.shape != self.f.shape:
            raise ValueError(f"solution: has coefficients {found.shape}, f {self.f.shape}.")
        x, here = self.f.minimize(found.support), self.f.point(found.x)
        least = min(x.value, self.f.complete(x).value)
        slack = SAME_VALUE * abs(found.value) + NOTHING + self.trace + 100 * self.f.rounding(here)
        value = self.f.complete(here).value
        if not min(abs(value - found.value), abs(least - found.value)) <= slack:
            raise OtherObjective(
                f"solution: its value is {found.value:g}, but f is {value:g} at its coefficients; "
                "it is the solution of another objective (other data, weights or ridge)."
            )
        return Incumbent(least, found.support)

    def _proof(self, known: dict[int, Incumbent]) -> Proof | None:
        """Who can prove something about this f."""
        f = self.f
        if f.moment_diagonal is None:
            return ConvexProof(f, known, self.margin, self.gap)
        if f.n_features > LARGEST_MATRIX:
            return self._wide_proof(known)
        features = np.setdiff1d(f.choosable, _zero(f))
        n = len(features)
        moments = _unit_moments(f, features)
        eigen = np.linalg.eigvalsh(moments[:-1, :-1]) if n else np.ones(1)
        clear = max(SMALLEST, 16 * n * f.digits_lost * np.finfo(float).eps)
        rounding = self._rounding(float(eigen[eigen > clear].min(initial=1.0)), n)
        value = min(abs(best.value) for best in known.values())
        dependent, on_forced = eigen[0] <= clear, bool(f.forced and len(_zero(f)))
        inexact = self.margin + rounding > CLEAR * value and n <= FEW
        if dependent or on_forced or inexact:
            try:
                exact = f.from_rows(self.deadline)
            except TimeoutError:
                return None
            if exact is not None and (dependent or inexact or len(_zero(exact)) < len(_zero(f))):
                return self._exact_proof(exact, known)
            if exact is None and (dependent or on_forced):
                self.advice = NO_ROWS
                return None
        if n == 0:
            return ConvexProof(f, known, self.margin, self.gap)
        self.margin += rounding
        known = {s: self._within(features, best) for s, best in known.items()}
        return QuadraticProof(moments, features, known, self.margin, self.gap)

    def _exact_proof(self, f: Objective, known: dict[int, Incumbent]) -> Proof | None:
        """For columns that are dependent or nearly so, by an f that can tell these apart."""
        supports = max(comb(f.n_choosable, s) for s in known)
        whole = f.minimize(f.choosable)
        if whole.value - f.rounding(whole) <= f.floor + self.margin and supports > HOPELESS:
            self.advice = PERFECT
            return None
        fits = {s: f.minimize(x.support) for s, x in known.items()}
        known = {s: Incumbent(x.value, x.support, f.rounding(x)) for s, x in fits.items()}
        self.exact, self.margin = (
            f,
            0.0,
        )  # all of it is what rounding hides at the model in question
        return ConvexProof(f, known, self.margin, self.gap)

    def _rounding(self, least: float, n: int) -> float:
        """What an error in the last places of C may change, with its least eigenvalue.

        ½ xᵀCx of a minimiser x is what it gains, which is no more than all features together do.
        """
        f = self.f
        null = f.minimize(f.choosable[:0]).value
        gained = null - (f.floor if np.isfinite(f.floor) else f.minimize(f.choosable).value)
        return 8 * np.finfo(float).eps * n * f.digits_lost * 2 * max(gained, 0.0) / least

    def _wide_proof(self, known: dict[int, Incumbent]) -> Proof | None:
        d = ridge_on_unit_scale(self.f)[self.f.choosable]
        least = float(d[d > 0].min(initial=np.inf))
        if not self.f.ridge[self.f.choosable].min() > 0 or least < SMALLEST:
            self.advice = TOO_WIDE
            return None
        self.margin += self._rounding(least, LARGEST_MATRIX)
        return WideProof(self.f, known, self.margin, self.gap)

    @staticmethod
    def _within(features: Support, best: Incumbent) -> Incumbent:
        """Without features that cannot change f: those that are zero."""
        return Incumbent(best.value, np.intersect1d(best.support, features))

    def _work(self) -> None:
        if self.proof is None:
            return
        told = time.monotonic()
        for _ in self.proof.steps(self.deadline):
            now = time.monotonic()
            if now > self.deadline:
                return
            if self.callback is not None and now > told + 0.1:
                told = now
                if self.callback(self._certificates()):
                    self.status = Verdict.STOPPED
                    return
        self.status = Verdict.UNDIVIDED  # of what is not proven by now

    def _certificates(self) -> dict[int, Certificate]:
        return {s: self._certificate(s, found) for s, found in self.solutions.items()}

    def _certificate(self, s: int, found: Solution) -> Certificate:
        seconds = time.monotonic() - self.begin
        if self.proof is None:
            return Certificate(
                s, found.value, self.f.floor, self.margin, Verdict.NO_BOUND, NONE, NONE, 0,
                seconds, advice=self.advice,
            )  # fmt: skip
        bound = float(max(self.proof.lower_bound(s), self.f.floor))
        better = self._better(s, found)
        best = found if better is None else better
        margin = self._margin(s)
        status = self._status(s, best, bound, margin)
        if status is Verdict.OPTIMAL:  # what is left of the gap is rounding
            margin = max(margin, best.value - bound)
        weak = status in (Verdict.TIME_LIMIT, Verdict.UNDIVIDED) and bound < found.value / 2
        must, must_not = self.proof.proven(s)
        if len(must) > s or status is Verdict.UNSURE:  # rounding decides
            must = must_not = NONE
        return Certificate(
            s, found.value, bound, float(margin), status, must, must_not, self.proof.nodes(s),
            seconds, better, advice=f"a weak bound; {self._ridge}" if weak else "",
        )  # fmt: skip

    @property
    def _ridge(self) -> str:
        return RIDGE.replace("a ridge", "a larger ridge") if self.f.ridge.any() else RIDGE

    def _margin(self, s: int) -> float:
        """With what rounding may hide at the best model itself, where it is ill-conditioned."""
        assert self.proof is not None
        return self.margin + self.proof.best(s).rounding

    def _status(self, s: int, best: Solution, bound: float, margin: float) -> Verdict:
        assert self.proof is not None
        if self._reaches_floor(best):
            return Verdict.OPTIMAL
        if not self.proof.finished(s):
            return self.status
        left = best.value - bound
        if self.gap and left > margin:
            return Verdict.GAP_REACHED
        clear = margin <= CLEAR * abs(best.value) and left <= 2 * margin
        return Verdict.OPTIMAL if clear else Verdict.UNSURE

    def _reaches_floor(self, best: Solution) -> bool:
        """Say whether f cannot be lower, judged at this model and not by its size without one."""
        near = best.value <= self.f.floor + self.trace
        x = self.f.minimize(best.support) if near else None
        return x is not None and self.f.reaches_floor(replace(x, value=best.value))

    def _better(self, s: int, found: Solution) -> Solution | None:
        assert self.proof is not None
        best = self.proof.best(s)
        if best.value >= found.value - self.margin:
            return None
        x = self.f.minimize(best.support)
        with without_our_warnings():  # its status says so
            better = solution_of(x, self.f.complete(x), Status.COMPLETE, "certify", ())
        return better if better.value < found.value - self.margin else None


def _zero(f: Objective) -> Support:
    """The features that cannot change f."""
    assert f.moment_diagonal is not None
    return f.choosable[f.moment_diagonal[f.choosable] == 0]


def _unit_moments(f: Objective, features: Support) -> Matrix:
    """The moments of these features on the scale on which also with the ridge the diagonal is 1."""
    rows = np.append(features, f.n_features)
    M = f.moment_block(rows, rows)
    scale = np.append(np.sqrt(M.diagonal()[:-1]), 1.0)
    return M / scale / scale[:, None]
