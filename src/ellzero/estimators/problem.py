"""One fit: an objective made of data, searched on the scale asked for, told on that of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ellzero.certificates import Certificate
from ellzero.core import Iterate, Objective, Solution
from ellzero.data.design import Design, divided_columns
from ellzero.objectives.glm.logistic import Logistic
from ellzero.objectives.glm.multinomial import Multinomial
from ellzero.objectives.least_squares import LARGEST_HELD, LeastSquares
from ellzero.objectives.moments.statistics import Statistics, check_squarable
from ellzero.selection import Path, path
from ellzero.silence import without_our_warnings
from ellzero.supports import Support, Vector

RANDOMISED = ("auto", "arht")
SHARING_SIZES = ("auto", "omp")
"""Methods for which smaller sizes come with the largest."""


class Solved(NamedTuple):
    """An objective and its solutions, for features divided by `scale`."""

    f: Objective
    scale: Vector | None
    searched: Path

    @classmethod
    def of(cls, f: Objective, scale: Vector | None, path: Path) -> Solved:
        """Given the solutions for the features as they came."""
        if scale is not None:
            path = Path((s, _unscaled(found, 1 / scale)) for s, found in path.items())
        return cls(f, scale, path)

    @property
    def path(self) -> Path:
        """The solutions for the features as they came."""
        if self.scale is None:
            return self.searched
        return Path((s, _unscaled(found, self.scale)) for s, found in self.searched.items())

    def told(self, certificate: Certificate) -> Certificate:
        """The certificate for the features as they came."""
        if self.scale is None or certificate.better is None:
            return certificate
        return replace(certificate, better=_unscaled(certificate.better, self.scale))


SEPARABLE_ALPHA = 1e-3
"""The ridge of the log-loss unless the user sets one: just enough to have a minimiser."""


@dataclass(frozen=True)
class Problem:
    """What is minimised, and how; the data come with the call."""

    objective: Callable[..., Objective]
    method: str
    fit_intercept: bool
    standardize: bool
    forced: Support
    alpha: float
    seed: Any
    search: dict[str, Any]

    def solve(
        self, X: Any, y: Any, weight: Any, sizes: Iterable[int], callback: Any = None
    ) -> Solved:
        f, scale = self.objective_of(X, y, weight)
        return Solved(f, scale, self._path(f, sizes, callback))

    def objective_of(self, X: Any, y: Any, weight: Any) -> tuple[Objective, Vector | None]:
        """What is minimised, and what features are divided by, if by anything."""
        scale = None
        if self.standardize and not self._ignores_scale:
            scale = deviations(X, weight)
            X = divided_columns(X, scale) if sparse.issparse(X) else X / scale
        return self.objective(X, y, sample_weight=weight, **self._options), scale

    def solve_statistics(self, stats: Statistics, sizes: Iterable[int]) -> Solved:
        scale = None
        if self.standardize and not self._ignores_scale:
            scale = nonzero(np.sqrt(stats.xx.diagonal() / stats.weight), stats.mean)
            stats = stats.scaled(scale)
        f = LeastSquares.from_statistics(stats, **self._options)
        return Solved(f, scale, self._path(f, sizes))

    def solve_table(self, table: Any, sizes: Iterable[int]) -> Solved:
        """For data that only their own objectives can read, and that know their deviations."""
        scale = None
        if self.standardize and not self._ignores_scale:
            scale = table.deviations()
        f = self.objective(table, units=scale, **self._options)
        return Solved(f, scale, self._path(f, sizes))

    def sizes_around(self, s: int, n_choosable: int) -> list[int]:
        """s and its neighbours; all sizes up to there where they come at no cost."""
        first = 1 if self.method in SHARING_SIZES else max(s - 1, 1)
        return list(range(first, min(s + 1, n_choosable) + 1))

    def adds_up(self, n_features: int) -> bool:
        """Do statistics of parts of the rows make those of the whole?"""
        return is_least_squares(self.objective) and n_features <= LARGEST_HELD

    @property
    def _ignores_scale(self) -> bool:
        """Is the search the same whatever the units of the features?"""
        return is_least_squares(self.objective) and self.method == "auto" and self.alpha == 0

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "fit_intercept": self.fit_intercept,
            "forced": self.forced,
            "ridge": self.alpha,
        }

    def _path(self, f: Objective, sizes: Iterable[int], callback: Any = None) -> Path:
        seed = {"random_state": self.seed} if self.method in RANDOMISED else {}
        options = {**seed, "callback": callback, **self.search}
        with without_our_warnings():
            # only the size that is used deserves a warning
            return path(f, sizes, self.method, **options)


def class_objective(n_classes: int) -> Callable[..., Objective]:
    """The loss of so many classes, given as numbers from 0."""
    return Logistic if n_classes == 2 else partial(Multinomial, n_classes=n_classes)


def is_least_squares(objective: Callable[..., Objective]) -> bool:
    return isinstance(objective, type) and issubclass(objective, LeastSquares)


def check_alpha(alpha: Any, objective: Callable[..., Objective]) -> float:
    if alpha is None:
        return 0.0 if is_least_squares(objective) else SEPARABLE_ALPHA
    numeric = isinstance(alpha, int | float | np.number) and not isinstance(alpha, bool)
    if not numeric or not 0 <= alpha < np.inf:
        raise ValueError(f"alpha: expected a finite number, 0 or above, got {alpha!r}.")
    return float(alpha)


def check_switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_) and value not in (0, 1):
        raise ValueError(f"{name}: expected True or False, got {value!r}.")
    return bool(value)


def deviations(X: Any, weight: Vector | None) -> Vector:
    """The standard deviation of every column; 1 where it is constant."""
    design = Design(X)
    w = np.ones(X.shape[0]) if weight is None else weight
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = design.means_and_norms(w, centre=True)
    check_squarable(squares, 0.0)
    return nonzero(np.sqrt(squares / w.sum()), mean)


def nonzero(deviation: Vector, mean: Vector) -> Vector:
    """1 instead of the deviation of a column that is constant up to rounding."""
    return np.where(deviation > 1e-10 * np.abs(mean), deviation, 1.0)


def _unscaled(solution: Solution, scale: Vector) -> Solution:
    """The solution for X, given that for X / scale."""

    def iterate(x: Iterate) -> Iterate:
        each = x.features.per_coordinate(scale[x.support], x.support)
        return replace(x, coef=x.coef / each)

    coef = (solution.coef.T / scale[solution.features]).T
    coef.flags.writeable = False
    return replace(solution, coef=coef, trace=tuple(map(iterate, solution.trace)))
