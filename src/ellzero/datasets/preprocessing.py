"""The paper's preprocessing of a table, which can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ellzero.data.io.columns import is_number, level_codes, pandas, word_codes


class Preprocessing(TransformerMixin, BaseEstimator):
    """One-hot columns, complete rows, a column of ones, columns of unit ℓ2 norm.

    In the paper's order: categorical columns become one 0/1 column for each level; examples that
    still miss an entry are discarded; a column of ones is added as the last; each column is
    divided by its norm. A missing category gets no column of its own, so its row has zeros there
    and is complete: only a missing number discards a row. Nothing is centred.

    Parameters
    ----------
    absent
        Words that stand for a missing category.
    ones
        Whether to add the column of ones. Leave it out where the solver has an intercept.
    unit_norm
        Whether to scale. A column of zeros stays as it is.
    sparse_output
        Whether the matrix is sparse (CSC); "auto" where there are categorical columns.

    Attributes
    ----------
    levels_ : dict
        The levels of each categorical column, in the order of their columns.
    norms_ : array
        What each column was divided by.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"size": [3.0, 4.0], "colour": ["red", "?"]})
    >>> preprocessing = Preprocessing(sparse_output=False)
    >>> preprocessing.fit_transform(X).round(3).tolist()
    [[0.6, 1.0, 0.707], [0.8, 0.0, 0.707]]
    >>> preprocessing.original_coef([10.0, 1.0, 0.0])
    (0.0, {'size': 2.0, 'colour': {'red': 1.0}})
    """

    def __init__(
        self,
        *,
        absent: Sequence[str] = ("?",),
        ones: bool = True,
        unit_norm: bool = True,
        sparse_output: bool | Literal["auto"] = "auto",
    ):
        self.absent = absent
        self.ones = ones
        self.unit_norm = unit_norm
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> Preprocessing:
        self._fit(_frame(X))
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        return self._scaled(self._fit(_frame(X)))

    def transform(self, X: Any) -> Any:
        """Return the matrix of the complete rows: `complete(X)` says which rows are complete."""
        check_is_fitted(self)
        return self._scaled(self._matrix(self._known(X)))

    def complete(self, X: Any) -> np.ndarray:
        """Say which rows are kept: y[preprocessing.complete(X)] goes with the matrix."""
        check_is_fitted(self)
        return self._complete(self._known(X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return `age`, `education=Children`, ..., and `1` for the column of ones."""
        check_is_fitted(self)
        names = [
            name if level is None else f"{name}={level}" for name, level in self._columns()
        ] + ["1"] * self.ones
        return np.asarray(names, dtype=object)

    def inverse_transform(self, A: Any) -> Any:
        """Return the frame that a matrix was made of, but for rows that were discarded."""
        check_is_fitted(self)
        columns = self._columns()
        shape = np.shape(A)
        if len(shape) != 2 or shape[1] != len(self.norms_):
            raise ValueError(f"A: expected {len(self.norms_)} columns, got shape {shape}.")
        B = sparse.csc_matrix(A) @ sparse.diags(self.norms_)
        made: dict[str, Any] = {}
        for name in self.feature_names_in_:
            js = [j for j, (column, _) in enumerate(columns) if column == name]
            if name not in self.levels_:
                made[name] = B[:, js].toarray().ravel()
                continue
            words = np.full(B.shape[0], None, dtype=object)
            for j in js:
                words[B[:, [j]].nonzero()[0]] = columns[j][1]
            made[name] = pandas().Categorical(words, categories=self.levels_[name])
        return pandas().DataFrame(made)

    def original_coef(
        self, x: ArrayLike, intercept: float = 0.0
    ) -> tuple[float, dict[str, float | dict[str, float]]]:
        """Return the intercept and the coefficients of the original columns.

        They are in the original units, with a coefficient for each level of a categorical column;
        zeros are left out. `intercept` is that of a solver that has its own.
        """
        check_is_fitted(self)
        x = np.asarray(x, dtype=np.float64)
        if x.shape != self.norms_.shape:
            raise ValueError(f"x: expected {len(self.norms_)} coefficients, got {x.shape}.")
        x = x / self.norms_
        found: dict[str, float | dict[str, float]] = {}
        for (name, level), value in zip(self._columns(), x.tolist(), strict=False):
            if value == 0:
                continue
            if level is None:
                found[name] = value
            else:
                levels = found.setdefault(name, {})
                assert isinstance(levels, dict)
                levels[level] = value
        return float(intercept + (x[-1] if self.ones else 0.0)), found

    def _fit(self, frame: Any) -> Any:
        """Learn levels and norms; return the matrix before it is scaled."""
        if isinstance(self.absent, str):
            raise TypeError(f"absent: expected a tuple of words, got {self.absent!r}.")
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        self.levels_ = {
            name: sorted({*word_codes(column)[0]} - {*self.absent})
            for name, column in frame.items()
            if not is_number(column)
        }
        A = self._matrix(frame)
        if not A.shape[0]:
            raise ValueError("X: no row is complete.")
        norms = sparse_linalg.norm(A, axis=0) if sparse.issparse(A) else np.linalg.norm(A, axis=0)
        self.norms_ = np.where(norms > 0, norms, 1.0) if self.unit_norm else np.ones_like(norms)
        return A

    def _known(self, X: Any) -> Any:
        """Return the columns seen in fit, in that order."""
        frame = _frame(X)
        missing = [name for name in self.feature_names_in_ if name not in frame.columns]
        if missing:
            raise ValueError(f"X: there is no column {missing[0]!r}.")
        return frame[list(self.feature_names_in_)]

    def _columns(self) -> list[tuple[str, str | None]]:
        """Return (column, level) of each column of the matrix but the ones; numbers have None."""
        return [
            (name, level)
            for name in self.feature_names_in_
            for level in self.levels_.get(name, [None])
        ]

    def _complete(self, frame: Any) -> np.ndarray:
        numbers = frame[[name for name in frame.columns if name not in self.levels_]]
        return numbers.notna().all(axis=1).to_numpy(bool)

    def _matrix(self, frame: Any) -> Any:
        keep = self._complete(frame)
        if not keep.all():
            frame = frame[keep]
        is_sparse = bool(self.levels_) if self.sparse_output == "auto" else self.sparse_output
        blocks = []
        for name, column in frame.items():
            if name in self.levels_:
                block = self._one_hot(name, column)
                blocks.append(block if is_sparse else block.toarray())
            else:
                numbers = _numbers(name, column)[:, None]
                blocks.append(sparse.csc_matrix(numbers) if is_sparse else numbers)
        if self.ones:
            blocks.append(np.ones((len(frame), 1)))
        return sparse.hstack(blocks, format="csc") if is_sparse else np.hstack(blocks)

    def _one_hot(self, name: str, column: Any) -> Any:
        levels = self.levels_[name]
        words, codes = word_codes(column)
        unknown = set(words) - {*levels, *self.absent}
        if unknown:
            raise ValueError(f"X: column {name!r} has a level not seen in fit: {unknown.pop()!r}.")
        codes = level_codes(words, codes, levels)
        rows = np.flatnonzero(codes >= 0)
        entries = (np.ones(len(rows)), (rows, codes[rows]))
        return sparse.csc_matrix(entries, shape=(len(codes), len(levels)))

    def _scaled(self, A: Any) -> Any:
        if sparse.issparse(A):
            return sparse.csc_matrix(A @ sparse.diags(1 / self.norms_))
        return np.divide(A, self.norms_, out=A)


def _frame(X: Any) -> Any:
    frame = pandas().DataFrame(X)
    frame.columns = [str(name) for name in frame.columns]
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"X: two columns are called {twice!r}.")
    return frame


def _numbers(name: str, column: Any) -> np.ndarray:
    try:
        numbers = column.to_numpy(np.float64)
    except ValueError as error:
        raise ValueError(f"X: column {name!r} had numbers in fit: {error}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"X: column {name!r} has an infinite entry.")
    return numbers
