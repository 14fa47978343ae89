"""One problem at many sizes: `path` over s, and `solve` for one s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ellzero.checks import (
    check_callback,
    check_count,
    check_number,
    check_objective,
    check_options,
    check_sparsity,
)
from ellzero.core import Model, Move, Objective, Solution, Status
from ellzero.driver import Best, Callback, one_blas_thread, run, solution, warn_of
from ellzero.methods.arht import arht, arht_path
from ellzero.methods.els import els
from ellzero.methods.exchange import exchange
from ellzero.methods.iht import iht
from ellzero.methods.lasso import lasso
from ellzero.methods.omp import omp, omp_steps
from ellzero.methods.ompr import ompr
from ellzero.parallel import check_n_jobs, in_shares, workers
from ellzero.search.auto import auto_steps
from ellzero.supports import NONE, Support

if TYPE_CHECKING:
    import pandas

METHODS: dict[str, Callable[..., Solution]] = {
    method.__name__: method for method in (omp, ompr, els, exchange, arht, iht, lasso)
}

SAME_VALUE = 1e-9
"""By rounding, a larger model may be reported with a value that is higher by this part of it."""


class Path(Mapping[int, Solution]):
    """Solutions of several sizes, by size: ``path[7].support``. Iterates over sizes, ascending."""

    def __init__(self, solutions: Iterable[tuple[int, Solution]]):
        self._solutions = dict(sorted(solutions, key=lambda item: item[0]))

    def __getitem__(self, s: int) -> Solution:
        try:
            return self._solutions[s]
        except KeyError:
            sizes = list(self._solutions)
            raise KeyError(f"no solution of size {s!r} in this path; sizes: {sizes}") from None

    def __iter__(self) -> Iterator[int]:
        return iter(self._solutions)

    def __len__(self) -> int:
        return len(self._solutions)

    def to_frame(self, feature_names: Any = None) -> pandas.DataFrame:
        """Return a row for each size and chosen feature: s, feature, coefficient, value, status.

        Parameters
        ----------
        feature_names : sequence, optional
            By default the names that the data came with, or indices.
        """
        import pandas

        names = self._names if feature_names is None else list(feature_names)
        for found in self.values():
            if len(names) != found.n_features:
                raise ValueError(
                    f"feature_names: expected {found.n_features} names, one per feature, "
                    f"got {len(names)}."
                )
        rows = [
            {
                "s": s,
                "feature": names[j],
                "coefficient": coefficient,
                "value": solution.value,
                "status": solution.status.name,
            }
            for s, solution in self.items()
            for j, coefficient in zip(
                solution.support.tolist(), solution.x[solution.support], strict=True
            )
        ]
        return pandas.DataFrame(rows, columns=["s", "feature", "coefficient", "value", "status"])

    @property
    def _names(self) -> Sequence[Any]:
        """Return the names of the features, or their indices."""
        known = ((found.feature_names, found.n_features) for found in self.values())
        names, n_features = next(known, (None, 0))
        return names or range(n_features)

    def __repr__(self) -> str:
        names = self._names
        lines = [f"Path of {len(self)} sizes", f"{'s':>4}  {'value':>14}  entered (+) and left (−)"]
        before: set[int] = set()
        for s, found in self.items():
            now = set(found.support.tolist())
            moves = [f"+{names[j]}" for j in sorted(now - before)]
            moves += [f"−{names[j]}" for j in sorted(before - now)]
            shown = " ".join(moves[:12]) + (" ..." if len(moves) > 12 else "")
            lines.append(f"{s:>4}  {found.value:>14.8g}  {shown}")
            before = now
        return "\n".join(lines)


def path(
    f: Objective,
    sizes: Iterable[int],
    method: str = "auto",
    *,
    callback: Callback | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Path:
    """Return the best model found at every size, in one go.

    Parameters
    ----------
    f : Objective
    sizes : iterable of int
        The numbers of features wanted.
    method : {"auto", "omp", "ompr", "els", "exchange", "arht", "iht", "lasso"}
        "auto" is ellzero's own search over all sizes up to the largest.
    callback : callable, optional
        Called with every iterate. A true answer ends the search. "ompr", "els", "exchange", "iht"
        and "lasso" take the sizes one by one, and there the path ends with the size that was
        stopped. "arht" takes them side by side, and every size has what was found until then.
    n_jobs : int, optional
        For any method but "auto" and "omp", how many sizes joblib runs at the same time. The
        answers are the same.
    **options
        For "auto" `effort` (time for quality: 1 by default, and twice the effort is never worse),
        `max_iter` (improvements after which to stop; no limit by default) and `random_state` (0 by
        default). Otherwise those of the method.

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import LeastSquares, path
    >>> X = np.random.default_rng(0).standard_normal((50, 6))
    >>> p = path(LeastSquares(X, 3 * X[:, 4] - X[:, 1]), range(1, 4))
    >>> p[2].support
    array([1, 4])
    """
    check_objective(f)
    check_callback(callback)
    check_n_jobs(n_jobs)
    if not isinstance(sizes, Iterable):
        raise TypeError(f"sizes: expected several sizes, such as range(1, 11), got {sizes!r}.")
    wanted = sorted({check_sparsity(f, s, "sizes") for s in sizes})
    if not wanted:
        raise ValueError("sizes: expected at least one size.")
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method: expected 'auto' or one of {sorted(METHODS)}, got {method!r}.")
    with one_blas_thread(f):
        if method == "auto":
            check_options("auto", options, {"effort", "max_iter", "random_state"})
            _check_undivided(method, n_jobs)
            return _searched(f, wanted, callback, **options)
        return Path(_one_by_one(f, wanted, METHODS[method], callback, n_jobs, options))


def solve(f: Objective, s: int, method: str = "auto", **options: Any) -> Solution:
    """Return the best model found with at most s features.

    It is the same as ``path(f, range(1, s + 1), method, **options)[s]``. See `path` for the
    parameters.
    """
    check_objective(f)
    s = check_sparsity(f, s)
    return path(f, [s], method, **options)[s]


def _searched(
    f: Objective,
    wanted: list[int],
    callback: Callback | None,
    *,
    effort: float = 1.0,
    max_iter: int | None = None,
    random_state: Any = 0,
) -> Path:
    check_number("effort", effort, above=0, or_equal=True)
    if max_iter is not None:
        check_count("max_iter", max_iter, 0)
    best, proven = Best(f), set[int]()
    steps = auto_steps(f, wanted[-1], proven, effort=effort, random_state=random_state)
    limit = None if max_iter is None else max_iter - 1
    status = run(steps, lambda x: best.add(x, len(x.support)), callback, limit)
    ended = dict.fromkeys(wanted, status)
    if status is Status.SEARCH_ENDED:  # otherwise it was cut short
        ended |= dict.fromkeys(proven, Status.OPTIMAL)
    models = _made_monotone(f, best, wanted[-1])
    return Path((s, best.solution(s, ended[s], "auto", models[s])) for s in wanted)


def _made_monotone(f: Objective, best: Best, largest: int) -> list[Model]:
    """Return what is reported at sizes 0 to `largest`, and mend sizes above a smaller one.

    A search that was cut short, or misled by moments, may leave such a size, or none. The size gets
    the features of the smaller one and one more, without effect if need be. All sizes are refitted,
    also those that nobody asked for: no answer depends on which sizes were asked for.
    """
    found = best.of
    found.setdefault(0, f.minimize(NONE))
    models = [f.refit(found[0])]

    def is_higher(model: Model) -> bool:
        below = models[-1].value
        return not model.value <= below + min(f.resolution, SAME_VALUE * abs(below))

    for s in range(1, largest + 1):
        model = f.refit(found[s]) if s in found else None
        if model is None or is_higher(model):
            below = found[s - 1]
            (i,) = f.steepest([below])
            found[s] = f.minimize(Move(i).of(below.support), below)
            model = f.refit(found[s])
            if is_higher(model):
                model = _with_zeros(models[-1], model.features)
        models.append(model)
    return models


def _with_zeros(model: Model, features: Support) -> Model:
    """Return the same model of more features."""
    coef = np.zeros((len(features), *model.coef.shape[1:]))
    coef[np.isin(features, model.features)] = model.coef
    return model._replace(features=features, coef=coef)


def _one_by_one(
    f: Objective,
    wanted: list[int],
    method: Callable[..., Solution],
    callback: Callback | None,
    n_jobs: int | None,
    options: dict[str, Any],
) -> Iterator[tuple[int, Solution]]:
    """Run a method at every size. OMP, and the methods that start from it, share one run of it.

    ARHT takes all sizes at once, unless they are dealt to workers.
    """
    start = options.get("start", "omp")
    from_omp = method in (ompr, els, exchange, arht) and isinstance(start, str) and start == "omp"
    if method is omp and not options:
        _check_undivided("omp", n_jobs)
        yield from _greedy(f, wanted, callback)
        return
    greedy = tuple(omp_steps(f, wanted[-1])) if from_omp else ()
    tasks = [(s, {**options, "start": greedy[s]} if from_omp else options) for s in wanted]
    if n_jobs not in (None, 1):
        if callback is not None:
            raise ValueError(
                "callback: with n_jobs the sizes run in other processes; leave out one of the two."
            )
        share = partial(_share, f, method)
        for s, found in in_shares(share, tasks, workers(n_jobs, len(tasks))):
            warn_of(found)
            yield s, found
        return
    if method is arht:
        starts = {s: greedy[s] if from_omp else start for s in wanted}
        given = {name: value for name, value in options.items() if name != "start"}
        yield from arht_path(f, starts, callback=callback, **given).items()
        return
    for s, arguments in tasks:
        found = method(f, s, callback=callback, **arguments)
        yield s, found
        if found.status is Status.STOPPED:
            return


def _greedy(
    f: Objective, wanted: list[int], callback: Callback | None
) -> Iterator[tuple[int, Solution]]:
    """Run OMP once for all sizes."""
    trace = omp(f, wanted[-1], callback=callback).trace
    for s in wanted:
        if s < len(trace):
            steps = trace[: s + 1]
            yield s, solution(trace[s], f.refit(trace[s]), Status.COMPLETE, "omp", steps)


def _share(
    f: Objective, method: Callable[..., Solution], tasks: list[tuple[int, dict[str, Any]]]
) -> list[tuple[int, Solution]]:
    return [(s, method(f, s, **options)) for s, options in tasks]


def _check_undivided(method: str, n_jobs: int | None) -> None:
    if n_jobs not in (None, 1):
        raise ValueError(
            f"n_jobs: {method!r} makes the models of all sizes in one run, which cannot be divided."
        )
