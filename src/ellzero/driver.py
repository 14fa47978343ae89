"""The driver: it makes a solver of a generator of iterates."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ellzero.checks import (
    check_callback,
    check_count,
    check_objective,
    check_options,
    check_sparsity,
)
from ellzero.core import Iterate, Model, Objective, Solution, Status
from ellzero.silence import is_silent
from ellzero.threads import blas_threads

Steps: TypeAlias = Generator[Iterate, None, Status]
WaitingSteps: TypeAlias = Generator[Iterate | None, None, Status]
"""Those of one size among several: None where it waits for what is made for all of them."""


Callback: TypeAlias = Callable[[Iterate], Any]


class Course:
    """What an algorithm has come to so far.

    The answer is the lowest iterate (the last of equals), or simply the last of a complete run.
    """

    def __init__(self, f: Objective, steps: Steps | WaitingSteps, max_iter: int | None):
        self.f, self.steps, self.max_iter = f, steps, max_iter
        self.trace: list[Iterate] = []
        self.best: Iterate | None = None
        self.lowest = np.inf
        self.status: Status | None = None

    def follow(self, callback: Callback | None) -> None:
        """On to where the algorithm ends, is ended, or waits."""
        while self.status is None:
            try:
                iterate = next(self.steps)
            except StopIteration as end:
                self.status = end.value
                return
            if iterate is None:
                return
            if self.max_iter is not None and len(self.trace) > self.max_iter:
                self.status = Status.MAX_ITER
                self.steps.close()
                return
            self._add(iterate)
            if callback is not None and callback(iterate):
                self.status = Status.STOPPED

    def stop(self) -> None:
        """Somewhere; every course has a start."""
        if not self.trace:
            self.follow(lambda x: True)
        self.status = self.status or Status.STOPPED

    def _add(self, iterate: Iterate) -> None:
        self.trace.append(iterate)
        if iterate.value <= self.lowest + self.f.resolution:
            self.best, self.lowest = iterate, min(self.lowest, iterate.value)

    def solution(self, method: str) -> Solution:
        best = self.trace[-1] if self.status is Status.COMPLETE else self.best
        assert best is not None
        assert self.status is not None
        return solution(best, self.f.complete(best), self.status, method, tuple(self.trace))


def run(
    f: Objective, steps: Steps, callback: Callback | None, max_iter: int | None, method: str
) -> Solution:
    """Drive an algorithm to its end."""
    course = Course(f, steps, max_iter)
    with blas_threads(f.blas_threads):
        course.follow(callback)
        return course.solution(method)


def run_abreast(
    f: Objective,
    steps: dict[int, WaitingSteps],
    advance: Callable[[], Iterable[int]],
    callback: Callback | None,
    max_iter: int | None,
    method: str,
) -> dict[int, Solution]:
    """Drive an algorithm at several sizes to its end; when all wait, `advance`, which tells for
    which of them there is news."""
    courses = {s: Course(f, one, max_iter) for s, one in steps.items()}
    news: Iterable[int] = courses
    while True:
        for s in news:
            courses[s].follow(callback)
            if courses[s].status is Status.STOPPED:
                for other in courses.values():
                    other.stop()
        if all(course.status for course in courses.values()):
            break
        news = advance()
    return {s: course.solution(method) for s, course in courses.items()}


def solution(
    best: Iterate, model: Model, status: Status, method: str, trace: tuple[Iterate, ...]
) -> Solution:
    """The result of a run, with the warnings its status calls for."""
    for array in (best.support, model.features, model.coef):
        array.flags.writeable = False
    found = Solution(
        support=best.support,
        features=model.features,
        coef=model.coef,
        n_features=best.n_features,
        value=model.value,
        status=status if model.attained else Status.NO_MINIMISER,
        n_iter=max(len(trace) - 1, 0),
        intercept=model.intercept,
        method=method,
        trace=trace,
        feature_names=model.feature_names,
    )
    warn_of(found)
    return found


def warn_of(found: Solution) -> None:
    if found.status is Status.NO_MINIMISER:
        advice = (
            f" (features {found.support.tolist()}). The coefficients grow without bound; add a "
            "ridge to make them finite (it does not hold the intercept, which has no bound where a "
            "class is missing)."
        )
    elif found.status is Status.MAX_ITER:
        advice = "; raise max_iter."
    else:
        return
    if is_silent():
        return
    warnings.warn(
        f"{found.method}: {found.status}{advice}",
        ConvergenceWarning,
        stacklevel=_callers_level(),
    )


def _callers_level() -> int:
    """How far up the stack the user's own code is, for a warning to point there."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ellzero"):
        level, frame = level + 1, frame.f_back
    return level


def solver(
    max_iter: int | None = None, options: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Steps]], Callable[..., Solution]]:
    """Make a function ``f, s -> Solution`` of a generator of iterates.

    The function takes two more arguments: ``callback(iterate)``, which stops the run by returning
    true, and ``max_iter``, the number of iterates after the first. `options` is the callable that
    an algorithm's ``**options`` go to; its keywords are shown in the solver's signature.
    """
    default, receiver = max_iter, options

    def decorate(algorithm: Callable[..., Steps]) -> Callable[..., Solution]:
        @functools.wraps(algorithm)
        def solve(
            f: Objective,
            s: int,
            *args: Any,
            callback: Callback | None = None,
            max_iter: int | None = default,
            **options: Any,
        ) -> Solution:
            check_objective(f)
            check_callback(callback)
            check_options(algorithm.__name__, options, known)
            if max_iter is not None:
                check_count("max_iter", max_iter, 0)
            steps = algorithm(f, check_sparsity(f, s), *args, **options)
            return run(f, steps, callback, max_iter, algorithm.__name__)

        shown = _parameters(algorithm) + (_parameters(receiver, keywords=True) if receiver else [])
        for name, value in (("callback", None), ("max_iter", default)):
            shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value))
        known = {p.name for p in shown}
        solve.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return solve

    return decorate


def _parameters(function: Callable[..., Any], keywords: bool = False) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    if keywords:
        return [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]
