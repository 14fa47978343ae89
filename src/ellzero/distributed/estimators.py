"""The estimators for Dask collections; what they learn is what the local ones would."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from ellzero import estimators
from ellzero.core import Objective
from ellzero.distributed.glm import DistributedLogistic, DistributedMultinomial
from ellzero.distributed.least_squares import DistributedLeastSquares
from ellzero.distributed.passes import dask_or_error
from ellzero.distributed.table import Table, is_dask, is_frame
from ellzero.estimators.base import SparseEstimator
from ellzero.estimators.problem import Problem, Solved
from ellzero.estimators.validation import encode_classes

if TYPE_CHECKING:
    from typing import Self


class OnDask(SparseEstimator):
    """Fits Dask collections; the fitted model is small and local."""

    _local: type[SparseEstimator]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select features of X and fit the model on them, wherever the rows are.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            In any chunks of rows and columns; lengths need not be known.
        y : dask array or series, in as many partitions as X if lengths are not known
        sample_weight : like y, optional
            Non-negative weights; an integer weight means that many copies of the row.
        """
        return super().fit(X, y, sample_weight)

    def to_local(self) -> Any:
        """The same model as an estimator that knows nothing of Dask."""
        local = self._local(**self.get_params(deep=False))
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        local.__dict__.update(fitted)
        return local

    def predict(self, X: Any) -> Any:
        """As the local estimator; of a Dask collection lazily, partition by partition."""
        return self._applied("predict", X)

    def certify(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        """Not here: a proof looks at the rows too often for them to be apart."""
        raise TypeError(
            "certify: does not take Dask collections; use to_local().certify on rows in memory."
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², or the share of right classes; predictions and targets come in one computation, as
        rows that were shuffled may come in another order in the next one."""
        dask = dask_or_error()
        predicted, y, sample_weight = dask.compute(self.predict(X), y, sample_weight)
        metric = r2_score if self._numeric_target else accuracy_score
        return float(metric(y, predicted, sample_weight=sample_weight))

    def _check_training_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        table = Table(X, y, sample_weight, classes=not self._numeric_target)
        self.n_features_in_ = table.n_features
        self.__dict__.pop("feature_names_in_", None)
        if table.names is not None:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        self._read(table)
        return table, None, None

    def _read(self, table: Table) -> None:
        """What must be known before there is an objective."""

    def _solve(self, problem: Problem, X: Any, y: Any, weight: Any, sizes: list[int]) -> Solved:
        return problem.solve_table(X, sizes)

    def _applied(self, method: str, X: Any, n_columns: int | None = None) -> Any:
        check_is_fitted(self)
        local = self.to_local()
        if not is_dask(X):
            return getattr(local, method)(X)
        first = np.zeros((1, self.n_features_in_), dtype=self.coef_.dtype)
        meta = getattr(local, method)(_like(first, X))[:0]
        if is_frame(X):
            return X.map_partitions(_on_frame, local, method, meta, meta=_framed(meta, X._meta[:0]))
        X = X.rechunk({1: -1})
        if n_columns is None:
            return X.map_blocks(_on_array, local, method, meta, drop_axis=1, meta=meta)
        chunks = X.chunks[0], (n_columns,)
        return X.map_blocks(_on_array, local, method, meta, chunks=chunks, meta=meta)


def _like(first: Any, X: Any) -> Any:
    """A row under the names of X."""
    if not is_frame(X):
        return first
    import pandas

    return pandas.DataFrame(first, columns=list(X.columns))


def _on_array(X: Any, local: Any, method: str, none: Any) -> Any:
    return getattr(local, method)(X) if X.shape[0] else none


def _on_frame(X: Any, local: Any, method: str, none: Any) -> Any:
    return _framed(_on_array(X, local, method, none), X)


def _framed(answer: Any, X: Any) -> Any:
    """With the index of X."""
    import pandas

    kind = pandas.Series if answer.ndim == 1 else pandas.DataFrame
    return kind(answer, index=X.index)


class SparseRegressor(OnDask, estimators.SparseRegressor):
    """`ellzero.SparseRegressor` for Dask collections: same parameters, attributes and answers.

    X may be a dask array in any chunks, or a dask data frame. Up to 3 000 features one pass over
    the data is all that least squares needs.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from ellzero.distributed import SparseRegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> y = 3 * X[:, 5] - X[:, 2]
    >>> model = SparseRegressor(sparsity=2).fit(da.from_array(X, chunks=(30, 4)), y)
    >>> model.support_
    array([2, 5])
    >>> model.to_local().predict(X[:1]).round(6) == y[:1].round(6)
    array([ True])
    """

    _local = estimators.SparseRegressor

    def _objective(self) -> Callable[..., Objective]:
        return DistributedLeastSquares


class SparseClassifier(OnDask, estimators.SparseClassifier):
    """`ellzero.SparseClassifier` for Dask collections: same parameters, attributes and answers.

    The rows stay on the workers; a Newton step is one pass that brings back as many numbers as the
    model has, squared.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from ellzero.distributed import SparseClassifier
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> y = X[:, 5] > X[:, 2]
    >>> SparseClassifier(sparsity=2).fit(da.from_array(X, chunks=(30, 4)), y).support_
    array([2, 5])
    """

    _local = estimators.SparseClassifier

    def predict_proba(self, X: Any) -> Any:
        return self._applied("predict_proba", X, len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        return self._applied("predict_log_proba", X, len(self.classes_))

    def decision_function(self, X: Any) -> Any:
        several = len(self.classes_) if len(self.classes_) > 2 else None
        return self._applied("decision_function", X, several)

    def _read(self, table: Table) -> None:
        assert table.summary.classes is not None
        self.classes_ = encode_classes(*table.summary.classes)[0]

    def _objective(self) -> Callable[..., Objective]:
        if len(self.classes_) == 2:
            return DistributedLogistic
        return partial(DistributedMultinomial, n_classes=len(self.classes_))
