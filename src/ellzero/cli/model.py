"""A fitted model by itself: the columns it needs, and what it makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.cli.columns import as_numbers, as_words, closest, is_number, not_numbers
from ellzero.cli.console import counted, listed, shown
from ellzero.cli.design import Column, Design, Term
from ellzero.cli.table import Table
from ellzero.datasets.formats import pandas
from ellzero.estimators import SparseClassifier, SparseRegressor


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
        return list(dict.fromkeys(term.column for term in self.terms))

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

    def matrix(self, table: Table) -> NDArray[np.float64]:
        """One column per term; an error lists all that does not fit."""
        faults: list[str] = []
        entries = {c.name: _entries(table, c, faults) for c in self.columns}
        if faults:
            raise ValueError("the data do not fit the model: " + "; ".join(faults))
        X = np.zeros((table.n_rows, self._width), order="F")
        for j, term in enumerate(self.terms):
            column = entries[term.column.name]
            X[:, j] = column if term.level is None else column == term.level
        return X


def _class_type(classes: list[Any]) -> Any:
    return object if isinstance(classes[0], str) else None


def _entries(table: Table, column: Column, faults: list[str]) -> Any:
    """The numbers or words of a column; what does not fit is added to the faults."""
    name = shown(column.name)
    if not table.has(column.name):
        close = closest(column.name, table.columns)
        hint = "" if close is None else f" (did you mean '{shown(close)}'?)"
        faults.append(f"there is no column '{name}'{hint}")
        return None
    given = table.column(column.name)
    if column.levels is None and not is_number(given):
        given = as_words(given)
        odd = not_numbers(given)
        if len(odd):
            where = f"'{shown(odd.iloc[0])}' in row {odd.index[0] + 1}"
            faults.append(f"column '{name}' must hold numbers, not {where}")
            return None
        given = pandas().to_numeric(given)
    found = pandas().Series(as_numbers(given)) if column.levels is None else as_words(given)
    missing = int(found.isna().sum())
    if missing and column.fill is None:
        faults.append(
            f"column '{name}' has {counted(missing, 'missing value')}, which the model does not "
            "impute"
        )
    elif missing:
        found = found.fillna(column.fill)
    if column.levels is None:
        infinite = int(np.isinf(found).sum())
        if infinite:
            faults.append(f"column '{name}' has {counted(infinite, 'infinite value')}")
    else:
        unknown = sorted(set(found.dropna().unique()) - set(column.levels))
        if unknown:
            faults.append(f"column '{name}' has levels unknown to the model: {listed(unknown)}")
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
