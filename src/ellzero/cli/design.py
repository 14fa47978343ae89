"""From a table to what an estimator takes: a matrix with names, a target, weights."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.cli.console import counted, listed, shown
from ellzero.cli.table import Table
from ellzero.cli.target import Target, target_of
from ellzero.datasets.formats import pandas
from ellzero.datasets.preprocessing import Preprocessing

WIDE, MANY = 500, 50_000_000
"""With more 0/1 columns, or more entries in them, the matrix is sparse."""

FEW_WORDS = 20
MISSING = ("error", "drop", "impute")


@dataclass(frozen=True)
class Column:
    """A column of the file: numbers, or words with one 0/1 column for each level.

    `fill` stands for a missing entry; None means that there must be none.
    """

    name: str
    levels: tuple[str, ...] | None = None
    fill: float | str | None = None


@dataclass(frozen=True)
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
    def rows(self) -> str:
        """The rows used, in words."""
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
    """The options are those of the command line; see `ellzero fit --help`."""
    _check_names(table, [target], "--target")
    others = [target] if weights is None else [target, weights]
    for option, names in (("--weights", others[1:]), ("--exclude", exclude)):
        _check_names(table, names, option)
    features = table.without([*others, *exclude])
    if not features.columns:
        raise ValueError("no column is left to choose features from.")
    _check_names(features, categorical, "--categorical")
    if set(categorical) & set(features.matrix_names):
        raise ValueError("--categorical: the columns of a sparse matrix can only be numbers.")
    frame = {name: _feature(column, name in categorical) for name, column in features.frame.items()}
    index = range(table.n_rows)
    features = Table(pandas().DataFrame(frame, index=index), features.matrix, features.matrix_names)
    own = pandas().DataFrame({name: table.column(name) for name in others})
    features, own, fills, n_imputed = _complete(features, own, missing)

    X, terms = _matrix(features, fills)
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
    known = table.columns
    for name in names:
        if name not in known:
            raise ValueError(f"{option}: there is no column '{shown(name)}'; {_hint(name, known)}")


def _hint(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name[:100], known[:10_000], n=1)
    return f"did you mean '{shown(close[0])}'?" if close else f"there are {listed(known)}."


# kinds


def is_number(column: Any) -> bool:
    return pandas().api.types.is_numeric_dtype(column) and column.dtype.kind != "c"


def as_words(column: Any) -> Any:
    """Entries as text, whole numbers without a decimal point; missing ones stay missing."""
    if is_number(column) and column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype(object).where(column.notna(), None).map(str, na_action="ignore")


def _feature(column: Any, is_categorical: bool) -> Any:
    """Floats or words, or an error that says what to do with the column."""
    name = shown(column.name)
    if is_categorical:
        return as_words(column).astype("category")
    if is_number(column):
        numbers = column.to_numpy(np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            n = counted(int(np.isinf(numbers).sum()), "infinite value")
            raise ValueError(f"column '{name}' has {n}; correct or --exclude it.")
        return pandas().Series(numbers, name=column.name)
    if column.dtype.kind in "mMc":
        raise ValueError(
            f"column '{name}' holds {column.dtype}; make numbers of it, or --exclude it."
        )
    words = as_words(column)
    _check_words(words, name)
    return words.astype("category")


def _check_words(words: Any, name: str) -> None:
    given = words.dropna()
    levels = given.unique()
    odd = given[pandas().to_numeric(given, errors="coerce").isna()]
    if 0 < len(odd) < len(given) / 2:
        raise ValueError(
            f"column '{name}' holds numbers, and {counted(len(odd), 'other word')} such as "
            f"'{shown(odd.iloc[0])}' in row {odd.index[0] + 1}; correct them, or say "
            f"--categorical or --exclude."
        )
    if len(levels) > FEW_WORDS and len(levels) > len(given) / 2:
        raise ValueError(
            f"column '{name}' has {len(levels)} different words in {counted(len(given), 'row')}: "
            "it seems to name the rows; --exclude it, or say --categorical if you mean it."
        )


# missing values


def _complete(
    features: Table, own: Any, missing: str
) -> tuple[Table, Any, dict[str, float | str], int]:
    """Features and own columns without gaps, what fills them, and how many were filled."""
    counts = {name: int(n) for name, n in features.frame.isna().sum().items() if n}
    own_counts = {name: int(n) for name, n in own.isna().sum().items() if n}
    if missing == "error" and (counts or own_counts):
        found = [f"'{shown(name)}' {n}" for name, n in {**own_counts, **counts}.items()]
        more = f" and {len(found) - 8} more columns" if len(found) > 8 else ""
        raise ValueError(
            f"values are missing: {', '.join(found[:8])}{more}; choose --missing drop (those "
            "rows) or --missing impute (medians and the most frequent words)."
        )
    fills: dict[str, float | str] = {}
    keep = own.notna().all(axis=1).to_numpy()
    if missing == "drop":
        keep = keep & features.frame.notna().all(axis=1).to_numpy()
    features, own = features.rows(keep), own[keep].reset_index(drop=True)
    if not len(own):
        raise ValueError("no row is left once those with missing values are dropped.")
    if missing == "impute":
        fills = {name: _fill(column) for name, column in features.frame.items()}
        n_imputed = int(features.frame.isna().to_numpy().sum())
        filled = features.frame.fillna(fills) if n_imputed else features.frame
        return Table(filled, features.matrix, features.matrix_names), own, fills, n_imputed
    return features, own, fills, 0


def _fill(column: Any) -> float | str:
    if column.isna().all():
        raise ValueError(f"column '{shown(column.name)}' is empty; --exclude it.")
    return float(column.median()) if is_number(column) else str(column.mode()[0])


# the matrix


def _matrix(features: Table, fills: dict[str, float | str]) -> tuple[Any, list[Term]]:
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
        terms += [Term(Column(name)) for name in features.matrix_names]
    return X, terms


def _mirrors(term: Term) -> bool:
    """The first of two levels says nothing that the second does not."""
    levels = term.column.levels
    return levels is not None and len(levels) == 2 and term.level == levels[0]


def _forced(forced: Collection[str], terms: list[Term]) -> list[int]:
    """A column stands for all its levels."""
    found: set[int] = set()
    for name in forced:
        places = [j for j, term in enumerate(terms) if name in (term.column.name, term.label)]
        if not places:
            known = [term.label for term in terms]
            raise ValueError(f"--forced: there is no feature '{shown(name)}'; {_hint(name, known)}")
        found.update(places)
    return sorted(found)


def _weight(column: Any, name: str) -> NDArray[np.float64]:
    if not is_number(column):
        raise ValueError(f"--weights: column '{shown(name)}' does not hold numbers.")
    weight = column.to_numpy(np.float64)
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError(
            f"--weights: '{shown(name)}' must hold finite numbers of at least 0, not all 0."
        )
    return weight
