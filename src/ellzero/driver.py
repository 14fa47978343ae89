"""The one loop that runs every method, and what it collects."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from math import isnan
from typing import Any, TypeAlias

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
"""What a method is: a generator of iterates that returns how it ended."""

Callback: TypeAlias = Callable[[Iterate], Any]


def run(
    steps: Steps,
    collect: Callable[[Iterate], None],
    callback: Callback | None = None,
    max_iter: int | None = None,
) -> Status:
    """Follow a method to its end, or until `max_iter` more steps, or until the callback is true."""
    n_steps = 0
    while True:
        try:
            x = next(steps)
        except StopIteration as end:
            return end.value
        if max_iter is not None and n_steps > max_iter:
            steps.close()
            return Status.MAX_ITER
        collect(x)
        n_steps += 1
        if callback is not None and callback(x):
            steps.close()
            return Status.STOPPED


class Best:
    """A collector: the lowest iterate of every size (the last of equals), and the way there."""

    def __init__(self, f: Objective):
        self.f = f
        self.of: dict[int, Iterate] = {}
        self.lowest: dict[int, float] = {}
        self.traces: dict[int, list[Iterate]] = {}

    def add(self, x: Iterate, size: int) -> None:
        self.traces.setdefault(size, []).append(x)
        lowest = self.lowest.get(size, x.value)
        if x.value <= lowest + self.f.resolution:
            self.of[size], self.lowest[size] = x, min(lowest, x.value)

    def solution(
        self, size: int, status: Status, method: str, model: Model | None = None
    ) -> Solution:
        """Return what was found at a size. A complete run answers with its last iterate."""
        trace = tuple(self.traces.get(size, ()))
        x = trace[-1] if status is Status.COMPLETE else self.of[size]
        return solution(x, model or self.f.refit(x), status, method, trace)


def solution(
    x: Iterate, model: Model, status: Status, method: str, trace: Iterable[Iterate] = ()
) -> Solution:
    """Make the result of a run, and give the warnings that its status calls for."""
    trace = tuple(trace)
    for array in (x.support, model.features, model.coef):
        array.flags.writeable = False
    found = Solution(
        support=x.support,
        features=model.features,
        coef=model.coef,
        n_features=len(x.features),
        value=model.value,
        status=status if model.attained else Status.NO_MINIMISER,
        n_iter=max(len(trace) - 1, 0),
        intercept=model.intercept,
        method=method,
        trace=trace,
        feature_names=x.features.names,
    )
    warn_of(found)
    return found


def one_blas_thread(f: Objective) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread where f is made of data. A user's own functions keep their setting.

    The matrices of a step are too small to gain from more. Threads of BLAS, once woken, spin for a
    tenth of a second and take a processor from what follows.
    """
    return blas_threads(None if isnan(f.size) else 1)


def warn_of(found: Solution) -> None:
    """Warn where a solution has no minimiser, or ended at its limit of iterations."""
    if found.status is Status.NO_MINIMISER:
        advice = (
            f" (features {found.support.tolist()}). The coefficients grow without bound. Set a "
            "small ridge. If a class is absent, the intercept still diverges."
        )
    elif found.status is Status.MAX_ITER:
        advice = "; raise max_iter."
    else:
        return
    if is_silent():
        return
    warnings.warn(
        f"{found.method}: {found.status}{advice}", ConvergenceWarning, stacklevel=_users_level()
    )


def _users_level() -> int:
    """Count the frames up to the user's own code, for a warning to point there."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ellzero"):
        level, frame = level + 1, frame.f_back
    return level


def solver(
    max_iter: int | None = None, options: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Steps]], Callable[..., Solution]]:
    """Make a function ``f, s -> Solution`` of a method.

    The function takes two more arguments: ``callback(iterate)``, which stops the run by returning
    true, and ``max_iter``, the number of iterates after the first. `options` is the callable that
    the method's ``**options`` go to. Its keywords are shown in the signature of the function.
    """
    default, receiver = max_iter, options

    def decorate(method: Callable[..., Steps]) -> Callable[..., Solution]:
        @functools.wraps(method)
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
            check_options(method.__name__, options, known)
            if max_iter is not None:
                check_count("max_iter", max_iter, 0)
            s, best = check_sparsity(f, s), Best(f)
            with one_blas_thread(f):
                steps = method(f, s, *args, **options)
                status = run(steps, lambda x: best.add(x, s), callback, max_iter)
                return best.solution(s, status, method.__name__)

        shown = _parameters(method) + (_parameters(receiver, keywords=True) if receiver else [])
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
