"""How far from the best possible model is a solution?"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import isnan
from typing import Any, overload

from ellzero.certificates.certificate import Certificate, Verdict
from ellzero.certificates.choice import Choice, chosen
from ellzero.certificates.incumbents import incumbent, margin_without_features
from ellzero.certificates.judgement import Judgement
from ellzero.checks import check_number, check_objective, check_sparsity
from ellzero.core import Objective, Solution
from ellzero.selection import Path
from ellzero.threads import blas_threads

SECONDS_BETWEEN_CALLS = 0.1
"""The callback is called at most this often; making certificates takes time, too."""

Progress = Callable[[dict[int, Certificate]], Any]


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
    """Bound how far a solution can be from the best model of its size.

    Relaxations give bounds, and branch and bound improves these until the solution is proven to be
    the best, or the gap is small enough, or the time is up. Ctrl-C also returns what is proven by
    then.

    Parameters
    ----------
    f : Objective
        The objective that was solved.
    solution : Solution or Path
        A solution of f, or a path. All sizes of a path share their work and the time.
    s : int, optional
        The number of features that were asked for, by default as many as the solution has.
    time_limit : float
        Seconds.
    gap : float
        Stop once (value − bound) / value is at most this. 0 asks for a proof.
    callback : function, optional
        Called now and then with the certificates so far, by size. Returning true ends the work.

    Returns
    -------
    Certificate, or dict of int to Certificate
        For a path, one certificate for each size.

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
        return _certificates(f, dict(solution), time_limit, gap, callback)
    if not isinstance(solution, Solution):
        raise TypeError(f"solution: expected a Solution or a Path, got {type(solution).__name__}.")
    size = check_sparsity(f, len(solution.support) if s is None else s)
    if size < len(solution.support):
        raise ValueError(f"s: the solution has {len(solution.support)} features, more than {size}.")
    return _certificates(f, {size: solution}, time_limit, gap, callback)[size]


def _certificates(
    f: Objective,
    solutions: dict[int, Solution],
    time_limit: float,
    gap: float,
    callback: Progress | None,
) -> dict[int, Certificate]:
    begin = time.monotonic()
    deadline = begin + time_limit
    with blas_threads(None if isnan(f.size) else 1):  # a user's functions keep their threads
        margin = margin_without_features(f)
        known = {s: incumbent(f, found, margin) for s, found in solutions.items()}
        judgement = Judgement(f, solutions, Choice(None, margin), gap, margin, begin)
        try:
            judgement.choice = chosen(f, known, margin, gap, deadline)
            unfinished = _work(judgement, deadline, callback)
        except KeyboardInterrupt:
            unfinished = Verdict.STOPPED
        return judgement.certificates(unfinished)


def _work(judgement: Judgement, deadline: float, callback: Progress | None) -> Verdict:
    """Follow the proof to its end, or until the time is up, or until the callback is true.

    Returns what is to be said of the sizes that are not proven by then.
    """
    if judgement.choice.proof is None:
        return Verdict.NO_BOUND
    last_call = time.monotonic()
    for _ in judgement.choice.proof.steps(deadline):
        now = time.monotonic()
        if now > deadline:
            return Verdict.TIME_LIMIT
        if callback is not None and now > last_call + SECONDS_BETWEEN_CALLS:
            last_call = now
            if callback(judgement.certificates(Verdict.TIME_LIMIT)):
                return Verdict.STOPPED
    return Verdict.UNDIVIDED
