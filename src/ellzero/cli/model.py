"""A fitted model by itself: the columns it needs, and what it makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.checks import closest
from ellzero.cli.design import MANY, WIDE, Column, Design, Term
from ellzero.data.io.columns import as_numbers, as_words, is_number, not_numbers, pandas
from ellzero.data.io.table import Table
from ellzero.estimators import SparseClassifier, SparseRegressor
from ellzero.wording import LONGEST_LIST, counted, listed, shown

Stored = tuple[NDArray[np.intp], NDArray[np.float64]]
"""Rows, and what a column of the matrix has in them; all other rows are zero."""

NOTHING: Stored = (np.empty(0, np.intp), np.empty(0))


@dataclass(frozen=True, eq=False)
class Model:
    """Terms with their coefficients, one for each class where there are more than two."""

    task: str
    target: str
    terms: list[Term]
    coefficients: NDArray[np.float64]  # one row per score, one column per term
    intercept: NDArray[np.float64]
    classes: list[Any]

    @property
    def columns(self) -> list[Column]:
        """The columns of a file that the model needs."""
        return list({term.column.name: term.column for term in self.terms}.values())

    @property
    def _width(self) -> int:
        return max(len(self.terms), 1)  # scikit-learn wants a column

    def estimator(self) -> Any:
        """The fitted estimator of these coefficients, so that its predictions are the same."""
        made = SparseRegressor() if self.task == "regression" else SparseClassifier()
        made.n_features_in_ = self._width
        made.coef_ = np.zeros((len(self.intercept), self._width))
        made.coef_[:, : len(self.terms)] = self.coefficients
        made.intercept_ = self.intercept
        if self.task == "regression":
            made.coef_, made.intercept_ = made.coef_[0], self.intercept[0]
        else:
            made.classes_ = np.array(self.classes, dtype=_class_type(self.classes))
        return made

    def matrix(self, table: Table) -> Any:
        """Return the matrix with one column per term, sparse where `fit` made it sparse.

        An error names the first columns that do not fit and counts the others.
        """
        faults = _Faults()
        entries = {column.name: _entries(table, column, faults) for column in self.columns}
        faults.check()
        stored = [entries[term.column.name].get(term.level, NOTHING) for term in self.terms]
        n_indicators = sum(term.level is not None for term in self.terms)
        wide = n_indicators > WIDE or n_indicators * table.n_rows > MANY
        if table.matrix is not None or wide:
            return _sparse_matrix(stored, (table.n_rows, self._width))
        X = np.zeros((table.n_rows, self._width), order="F")
        for j, (rows, values) in enumerate(stored):
            X[rows, j] = values
        return X


def _sparse_matrix(stored: list[Stored], shape: tuple[int, int]) -> Any:
    lengths = [len(rows) for rows, _ in stored] + [0] * (shape[1] - len(stored))
    rows = np.concatenate([NOTHING[0], *(rows for rows, _ in stored)])
    values = np.concatenate([NOTHING[1], *(values for _, values in stored)])
    return sparse.csc_matrix((values, rows, np.cumsum([0, *lengths])), shape=shape)


class _Faults:
    """Gathers what is wrong with the columns of a table; the first faults are told in words."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._n_more = 0

    @property
    def full(self) -> bool:
        return len(self._first) == LONGEST_LIST

    def add(self, fault: str) -> None:
        if self.full:
            self._n_more += 1
        else:
            self._first.append(fault)

    def check(self) -> None:
        if self._first:
            more = f"; and {counted(self._n_more, 'more fault')}" if self._n_more else ""
            raise ValueError(f"the data do not fit the model: {'; '.join(self._first)}{more}")


def _class_type(classes: list[Any]) -> Any:
    return object if isinstance(classes[0], str) else None


def _entries(table: Table, column: Column, faults: _Faults) -> dict[str | None, Stored]:
    """Return what a column of the table holds, by level; numbers have the level None.

    What does not fit the model is added to the faults.
    """
    if not table.has(column.name):
        # a search for the name that was meant takes time
        close = None if faults.full else closest(column.name, table.columns)
        hint = "" if close is None else f" (did you mean '{shown(close)}'?)"
        faults.add(f"there is no column '{shown(column.name)}'{hint}")
        return {}
    if column.levels is None and table.is_sparse(column.name):
        rows, numbers = table.stored(column.name)
        numbers = numbers.astype(np.float64)
        if not np.isfinite(numbers).all():
            numbers = _checked(pandas().Series(numbers), column, faults)
        return {None: (rows, numbers)}
    given = table.column(column.name)
    if column.levels is not None:
        words = pandas().Series(_checked(as_words(given), column, faults))
        places = words.groupby(words).indices
        return {level: (rows, np.ones(len(rows))) for level, rows in places.items()}
    if not is_number(given):
        given = as_words(given)
        odd = not_numbers(given)
        if len(odd):
            name, word, row = shown(column.name), shown(odd.iloc[0]), odd.index[0] + 1
            faults.add(f"column '{name}' must hold numbers, not '{word}' in row {row}")
            return {}
        given = pandas().to_numeric(given)
    numbers = _checked(pandas().Series(as_numbers(given)), column, faults)
    rows = np.flatnonzero(numbers)
    return {None: (rows, numbers[rows])}


def _checked(found: Any, column: Column, faults: _Faults) -> Any:
    """Numbers without gaps and infinities, or words without gaps and unknown levels."""
    name = shown(column.name)
    missing = int(found.isna().sum())
    if missing and column.fill is None:
        gaps = counted(missing, "missing value")
        faults.add(f"column '{name}' has {gaps}, which the model does not impute")
    elif missing:
        found = found.fillna(column.fill)
    if column.levels is None:
        infinite = int(np.isinf(found).sum())
        if infinite:
            faults.add(f"column '{name}' has {counted(infinite, 'infinite value')}")
    else:
        unknown = sorted(set(found.dropna().unique()) - set(column.levels))
        if unknown:
            faults.add(f"column '{name}' has levels unknown to the model: {listed(unknown)}")
    return found.to_numpy()


def model_of(fitted: Any, design: Design) -> Model:
    """The model of a fitted estimator: the terms it uses, in the order of the file."""
    used = np.sort(np.concatenate([fitted.support_, fitted.forced_])).astype(int)
    coefficients = np.atleast_2d(fitted.coef_)[:, used].astype(np.float64)
    return Model(
        task=design.target.task,
        target=design.target.name,
        terms=[design.terms[j] for j in used],
        coefficients=coefficients,
        intercept=np.atleast_1d(fitted.intercept_).astype(np.float64),
        classes=getattr(fitted, "classes_", np.empty(0)).tolist(),
    )
