"""One problem at many sizes: `path` over s, and `solve` for one s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ellzero.algorithms.arht import arht, arht_path, same_at_all_sizes
from ellzero.algorithms.els import els
from ellzero.algorithms.exchange import exchange
from ellzero.algorithms.iht import iht
from ellzero.algorithms.lasso import lasso
from ellzero.algorithms.omp import omp
from ellzero.algorithms.ompr import ompr
from ellzero.algorithms.search import search_steps
from ellzero.checks import (
    check_callback,
    check_count,
    check_number,
    check_objective,
    check_options,
    check_sparsity,
)
from ellzero.core import Iterate, Model, Objective, Solution, Status
from ellzero.driver import Callback, solution, warn_of
from ellzero.parallel import check_n_jobs, in_shares, workers
from ellzero.supports import Support, magnitudes
from ellzero.threads import blas_threads

if TYPE_CHECKING:
    import pandas

METHODS: dict[str, Callable[..., Solution]] = {
    method.__name__: method for method in (omp, ompr, els, exchange, arht, iht, lasso)
}


SAME_VALUE = 1e-9
"""By rounding, a larger model may be reported with a value that is higher by this part of it."""


class Path(Mapping[int, Solution]):
    """Solutions of several sizes, by size: ``path[7].support``; iterates over sizes, ascending."""

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
        """One row per size and chosen feature: s, feature, coefficient, value, status.

        feature_names : by default those the data came with, otherwise indices
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
        """Those of the data, otherwise indices."""
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
    """The best model found at every size, in one go.

    Parameters
    ----------
    f : the objective
    sizes : the numbers of features wanted
    method : "auto", ellzero's own search over all sizes up to the largest, or the name of one of
        the algorithms: "omp", "ompr", "els", "exchange", "arht", "iht", "lasso"
    callback : called with every iterate; a true answer ends the search. "ompr", "els", "exchange",
        "iht" and "lasso" take the sizes one by one, and there the path ends with the size that was
        stopped; "arht" takes them side by side, and every size has what was found until then
    n_jobs : for any algorithm but "auto" and "omp", how many sizes joblib runs at the same time;
        the answers are the same
    options : for "auto" `effort` (time for quality: 1 by default, and twice the effort is never
        worse), `max_iter` (improvements after which to stop; no limit by default) and
        `random_state` (0 by default); otherwise those of the algorithm

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
    with blas_threads(f.blas_threads):
        if method == "auto":
            check_options("auto", options, {"effort", "max_iter", "random_state"})
            _check_undivided(method, n_jobs)
            return _searched(f, wanted, callback, **options)
        return Path(_one_by_one(f, wanted, METHODS[method], callback, n_jobs, options))


def solve(f: Objective, s: int, method: str = "auto", **options: Any) -> Solution:
    """The best model found with s features: what a `path` up to s has at s."""
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
    best: dict[int, Iterate] = {}
    traces: dict[int, list[Iterate]] = {}
    proven: dict[int, bool] = {}
    status = Status.SEARCH_ENDED
    steps = search_steps(f, wanted[-1], effort=effort, random_state=random_state)
    for n_iter in count():
        try:
            x = next(steps)
        except StopIteration as end:
            proven = end.value
            break
        if n_iter == max_iter:
            status = Status.MAX_ITER
            break
        k = len(x.support)
        if k not in best or x.value < best[k].value:
            best[k] = x
            traces.setdefault(k, []).append(x)
        if callback is not None and callback(x):
            status = Status.STOPPED
            break
    best.setdefault(0, f.minimize([]))
    models = _made_monotone(f, best, wanted)
    return Path((s, _found(f, best[s], models.get(s), proven, status, traces)) for s in wanted)


def _found(
    f: Objective,
    x: Iterate,
    model: Model | None,
    proven: dict[int, bool],
    status: Status,
    traces: dict[int, list[Iterate]],
) -> Solution:
    s = len(x.support)
    ended = Status.OPTIMAL if proven.get(s) else status
    return solution(x, model or f.complete(x), ended, "auto", tuple(traces.get(s, ())))


def _made_monotone(f: Objective, best: dict[int, Iterate], wanted: list[int]) -> dict[int, Model]:
    """Return what is reported, after mending sizes that are missing or above a smaller one.

    A search that was cut short, or misled by moments, may leave such a size. It gets the features
    of the smaller one and one more, without effect if need be. Where refits are dear, sizes that
    are not wanted are compared by what the search knows of them.
    """
    models: dict[int, Model] = {}
    reported = range(wanted[-1] + 1) if f.moment_diagonal is not None else wanted

    def value(s: int) -> float:
        if s not in best:
            return np.inf
        if s not in reported:
            return best[s].value
        if s not in models:
            models[s] = f.complete(best[s])
        return models[s].value

    def is_higher(s: int) -> bool:
        below = value(s - 1)
        return not value(s) <= below + min(f.resolution, SAME_VALUE * abs(below))

    for s in range(1, wanted[-1] + 1):
        if is_higher(s):
            below = best[s - 1]
            i = f.largest_outside(below.support, magnitudes(f.gradient(below)))
            best[s] = f.minimize([*below.support, i], below)
            models.pop(s, None)
            if is_higher(s) and s in models and s - 1 in models:
                models[s] = _with_zeros(models[s - 1], models[s].features)
    return models


def _with_zeros(model: Model, features: Support) -> Model:
    """The same model of more features."""
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
    """Run the algorithm at every size; OMP, and those that start from it, share one run of it.

    ARHT takes all sizes at once, unless they are dealt to workers.
    """
    start = options.get("start", "omp")
    from_omp = method in (ompr, els, exchange, arht) and isinstance(start, str) and start == "omp"
    if from_omp or (method is omp and not options):
        greedy = omp(f, wanted[-1], callback=callback if method is omp else None).trace
    if method is omp and not options:
        _check_undivided("omp", n_jobs)
        sizes = [s for s in wanted if s < len(greedy)]
        for s in sizes:
            model = f.complete(greedy[s])
            yield s, solution(greedy[s], model, Status.COMPLETE, "omp", greedy[: s + 1])
        return
    if method is arht:
        options = same_at_all_sizes(f, options)
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
        yield from arht_path(f, starts, **(options | {"callback": callback})).items()
        return
    for s, arguments in tasks:
        found = method(f, s, callback=callback, **arguments)
        yield s, found
        if found.status is Status.STOPPED:
            return


def _share(
    f: Objective, method: Callable[..., Solution], tasks: list[tuple[int, dict[str, Any]]]
) -> list[tuple[int, Solution]]:
    """Sizes of all lengths, between which f keeps what it remembers."""
    f = f.apart()
    return [(s, method(f, s, **options)) for s, options in tasks]


def _check_undivided(method: str, n_jobs: int | None) -> None:
    if n_jobs not in (None, 1):
        raise ValueError(
            f"n_jobs: {method!r} makes the models of all sizes in one run, which cannot be divided."
        )
