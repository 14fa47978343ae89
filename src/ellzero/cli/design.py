"""From a table to what an estimator takes: a matrix with names, a target, weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.checks import closest
from ellzero.cli.columns import LARGEST, fault, n_too_large
from ellzero.cli.missing import Fills, complete
from ellzero.cli.target import Target, target_of
from ellzero.data.io.columns import as_categories, as_numbers, is_number, pandas
from ellzero.data.io.table import Table
from ellzero.datasets.preprocessing import Preprocessing
from ellzero.wording import counted, listed, shown

WIDE, MANY = 500, 50_000_000
"""0/1 columns, and entries in them, above which the matrix is sparse."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the file: numbers, or words with one 0/1 column for each level.

    `fill` stands for a missing entry; None means that there must be none.
    """

    name: str
    levels: tuple[str, ...] | None = None
    fill: float | str | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A column of the matrix."""

    column: Column
    level: str | None = None

    @property
    def label(self) -> str:
        name = self.column.name
        return name if self.level is None else f"{name}={self.level}"


@dataclass(frozen=True, eq=False)
class Design:
    """A matrix whose columns are `terms`, and what goes with its rows."""

    X: Any
    terms: list[Term]
    target: Target
    weight: NDArray[np.float64] | None
    forced: list[int]
    n_dropped: int
    n_imputed: int

    @property
    def n_free(self) -> int:
        """Count the features to choose from."""
        return len(self.terms) - len(self.forced)

    @property
    def rows(self) -> str:
        """Say in words which rows are used."""
        words = counted(self.X.shape[0], "row")
        if self.n_dropped:
            words += f", {counted(self.n_dropped, 'more row')} dropped for missing values"
        if self.n_imputed:
            words += f", {counted(self.n_imputed, 'missing value')} imputed"
        return words


def design_of(
    table: Table,
    target: str,
    *,
    task: str | None = None,
    weights: str | None = None,
    forced: Collection[str] = (),
    exclude: Collection[str] = (),
    categorical: Collection[str] = (),
    missing: str = "error",
) -> Design:
    """Make a design of a table; the options are those of `ellzero fit --help`."""
    _check_names(table, [target], "--target")
    others = [target] if weights is None else [target, weights]
    for option, names in (("--weights", others[1:]), ("--exclude", exclude)):
        _check_names(table, names, option)
    features = table.without({*others, *exclude})
    if not features.columns:
        raise ValueError("no column is left to choose features from.")
    _check_names(features, categorical, "--categorical")
    if set(categorical) & set(features.matrix_names):
        raise ValueError("--categorical: the columns of a sparse matrix can only be numbers.")
    frame = {name: _feature(column, name in categorical) for name, column in features.frame.items()}
    _, infinite = features.where(lambda entries: np.abs(entries) > LARGEST)
    for j in infinite[:1]:
        _refuse_large(features.matrix_names[j], int((infinite == j).sum()))
    index = range(table.n_rows)
    features = Table(pandas().DataFrame(frame, index=index), features.matrix, features.matrix_names)
    own = pandas().DataFrame({name: table.column(name) for name in others})
    features, own, fills, n_imputed = complete(features, own, missing)

    X, terms = _matrix(features, fills)
    twice = [label for label, n in Counter(term.label for term in terms).items() if n > 1]
    if twice:
        raise ValueError(f"more than one feature is called {listed(twice)}; rename a column.")
    return Design(
        X=X,
        terms=terms,
        target=target_of(own[target], target, task),
        weight=None if weights is None else _weight(own[weights], weights),
        forced=_forced(forced, terms),
        n_dropped=table.n_rows - X.shape[0],
        n_imputed=n_imputed,
    )


def _check_names(table: Table, names: Collection[str], option: str) -> None:
    known = dict.fromkeys(table.columns) if names else {}
    for name in names:
        if name not in known:
            hint = _hint(name, list(known))
            raise ValueError(f"{option}: there is no column '{shown(name)}'; {hint}")


def _hint(name: str, known: list[str]) -> str:
    close = closest(name, known)
    return f"there are {listed(known)}." if close is None else f"did you mean '{shown(close)}'?"


# kinds


def _feature(column: Any, is_categorical: bool) -> Any:
    """Return a column as floats or as categories, or say what to do with it."""
    if is_number(column) and not is_categorical:
        numbers = pandas().Series(as_numbers(column), name=column.name)
        _refuse_large(column.name, n_too_large(numbers))
        return numbers
    odd = None if is_categorical else fault(column)
    if odd is not None:
        raise ValueError(
            f"column '{shown(column.name)}' {odd}; --exclude it, or say --categorical if they are "
            "categories."
        )
    return as_categories(column)


def _refuse_large(name: str, n: int) -> None:
    if n:
        values = counted(n, "infinite or very large value")
        raise ValueError(f"column '{shown(name)}' has {values}; correct or --exclude it.")


# the matrix


def _matrix(features: Table, fills: Fills) -> tuple[Any, list[Term]]:
    X, terms = None, []
    if len(features.frame.columns):
        words = features.frame.select_dtypes("category")
        n_levels = sum(column.nunique() for _, column in words.items())
        wide = n_levels > WIDE or n_levels * features.n_rows > MANY or features.matrix is not None
        encoder = Preprocessing(absent=(), ones=False, unit_norm=False, sparse_output=wide)
        X = encoder.fit_transform(features.frame)
        for name in features.frame.columns:
            levels = encoder.levels_.get(name)
            column = Column(name, None if levels is None else tuple(levels), fills.get(name))
            terms += [Term(column, level) for level in levels or (None,)]
        told = [j for j, term in enumerate(terms) if not _mirrors(term)]
        if len(told) < len(terms):
            X, terms = X[:, told], [terms[j] for j in told]
    if features.matrix is not None:
        X = features.matrix if X is None else sparse.hstack([X, features.matrix], format="csc")
        terms += [Term(Column(name, None, fills.get(name))) for name in features.matrix_names]
    return X, terms


def _mirrors(term: Term) -> bool:
    """Say whether a term is the first of two levels, which the second one determines."""
    levels = term.column.levels
    return levels is not None and len(levels) == 2 and term.level == levels[0]


def _forced(forced: Collection[str], terms: list[Term]) -> list[int]:
    """Return the places of the forced terms.

    A column stands for all its levels, and of two levels each stands for the other.
    """
    places: dict[str, list[int]] = {name: [] for name in forced}
    for j, term in enumerate(terms if forced else ()):
        for name in {term.column.name, *_labels(term)} & places.keys():
            places[name].append(j)
    for name, own in places.items():
        if not own:
            known = [term.label for term in terms]
            raise ValueError(f"--forced: there is no feature '{shown(name)}'; {_hint(name, known)}")
    found = {j for own in places.values() for j in own}
    if len(found) == len(terms):
        raise ValueError("--forced: all features are forced, so there is none to choose.")
    return sorted(found)


def _labels(term: Term) -> list[str]:
    """Return the names of a term; of two levels, each has the name of the other, too."""
    levels = term.column.levels
    if levels is None or len(levels) != 2:
        return [term.label]
    return [Term(term.column, level).label for level in levels]


def _weight(column: Any, name: str) -> NDArray[np.float64]:
    if not is_number(column):
        raise ValueError(f"--weights: column '{shown(name)}' does not hold numbers.")
    weight = column.to_numpy(np.float64)
    if n_too_large(weight) or (weight < 0).any() or not weight.any():
        raise ValueError(
            f"--weights: '{shown(name)}' must hold finite numbers of at least 0, not all 0."
        )
    return weight
