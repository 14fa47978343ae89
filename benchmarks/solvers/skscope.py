"""skscope's ScopeSolver: splicing for any smooth objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks import refit
from benchmarks.base import Shape, Solver, Supports, Task, unit_columns

Objective = tuple[Callable[..., float], Callable[..., np.ndarray]]


class Recorder:
    """A numeric solver for ScopeSolver that keeps the best support it was given of each size.

    ScopeSolver hands out one size only; splicing takes a support only where the loss falls, so
    the best one tried at a size is the one it ends with.
    """

    def __init__(self, fit: Callable[[np.ndarray], tuple[float, np.ndarray]], n: int) -> None:
        self._fit, self._n = fit, n
        self.best: dict[int, tuple[float, np.ndarray]] = {}

    def __call__(
        self, objective: Any, value_and_grad: Any, params: np.ndarray, chosen: Any, data: Any
    ) -> tuple[float, np.ndarray]:
        support = np.asarray(chosen, dtype=int)
        support = support[support < self._n]
        loss, coef = self._fit(support)
        params[support] = coef[: len(support)]
        params[self._n :] = coef[len(support) :]
        if loss < self.best.get(len(support), (np.inf,))[0]:
            self.best[len(support)] = (loss, support)
        return loss, params


class Skscope(Solver):
    name = module = package = "skscope"
    note = (
        "`ScopeSolver(n, sizes)` with its default settings. Objective and gradient in NumPy, on "
        "the Gram matrix where m > n; the inner fit is `numeric_solver=` a direct solve or a "
        "Newton fit on the chosen columns, which is faster and more exact than its L-BFGS."
    )

    def skip(self, shape: Shape) -> str:
        return "ScopeSolver allocates n × n numbers" if shape.n > 40_000 else ""

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        if task == "logistic":
            recorder, objective, gradient = _logistic(X, y)
            extra = 1  # the intercept, always selected
        else:
            recorder, objective, gradient = _least_squares(X, y)
            extra = 0
        self._run(recorder, objective, gradient, X.shape, sizes, extra)
        return {s: support for s, (_, support) in recorder.best.items() if s in set(sizes)}

    def _run(
        self, recorder: Recorder, objective: Any, gradient: Any, shape: Any, sizes: Any, extra: int
    ) -> None:
        from skscope import ScopeSolver

        m, n = shape
        solver = ScopeSolver(
            n + extra,
            [s + extra for s in sizes],
            sample_size=m,
            preselect=list(range(n, n + extra)),
            numeric_solver=recorder,
            ic_method=lambda loss, p, s, n: loss,
        )
        solver.solve(objective, gradient=gradient)


def _least_squares(X: np.ndarray, y: np.ndarray) -> tuple[Recorder, Any, Any]:
    Z, y = unit_columns(X, y)
    m, n = Z.shape
    if m <= n:

        def fit(S: np.ndarray) -> tuple[float, np.ndarray]:
            b = np.linalg.lstsq(Z[:, S], y, rcond=None)[0]
            r = y - Z[:, S] @ b
            return float(r @ r), b

        def residual(x: np.ndarray) -> np.ndarray:
            S = np.flatnonzero(x)
            return Z[:, S] @ x[S] - y

        return (
            Recorder(fit, n),
            lambda x, data: float(np.square(residual(np.asarray(x))).sum()),
            lambda x, data: 2 * (residual(np.asarray(x)) @ Z),
        )
    G, c, yy = Z.T @ Z, Z.T @ y, float(y @ y)

    def gram_fit(S: np.ndarray) -> tuple[float, np.ndarray]:
        b = np.linalg.lstsq(G[np.ix_(S, S)], c[S], rcond=None)[0]
        return yy - float(c[S] @ b), b

    return (
        Recorder(gram_fit, n),
        lambda x, data: yy + float(x @ (G @ x) - 2 * (c @ x)),
        lambda x, data: 2 * (G @ x - c),
    )


def _logistic(X: Any, y: np.ndarray) -> tuple[Recorder, Any, Any]:
    n = X.shape[1]
    scale = np.sqrt(np.asarray((X.multiply(X) if hasattr(X, "multiply") else X * X).mean(axis=0)))
    scale = np.where(scale > 0, scale, 1.0).ravel()

    def fit(S: np.ndarray) -> tuple[float, np.ndarray]:
        A = refit.columns(X, S) / scale[S]
        found = refit.logistic(A, y)
        return found.loss, refit.raw_coefficients(A, found)

    def predictor(x: np.ndarray) -> np.ndarray:
        x = np.asarray(x)
        S = np.flatnonzero(x[:n])
        return refit.columns(X, S) @ (x[S] / scale[S]) + x[n]

    def gradient(x: np.ndarray, data: Any) -> np.ndarray:
        r = expit(predictor(x)) - y
        return np.append((X.T @ r) / scale, r.sum())

    return Recorder(fit, n), lambda x, data: refit.logistic_loss(predictor(x), y), gradient


SOLVERS = [Skscope()]
