"""Pictures in the style of scikit-learn's displays; they need the extra ``plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ellzero.estimators.validation import feature_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from ellzero.certificates import Certificate


class _Display:
    """`plot` draws into `ax_` of `figure_`, new ones unless `ax` is given."""

    figure_: Any
    ax_: Any

    def _axes(self, ax: Any, xlabel: str, ylabel: str) -> Any:
        try:
            import matplotlib.pyplot as plt
            from matplotlib.ticker import MaxNLocator
        except ImportError as error:
            raise ImportError("plots need matplotlib: pip install 'ellzero[plot]'") from error
        if ax is None:
            _, ax = plt.subplots()
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return ax


class PathDisplay(_Display):
    """The loss at every size of a path; `from_estimator` makes one of a fitted estimator.

    `bounds` are proven lower bounds on the loss (NaN where there is none): the band between them
    and the losses is where the best models can be.
    """

    def __init__(
        self,
        *,
        sizes: NDArray[Any],
        losses: NDArray[Any],
        selected: int | None = None,
        bounds: NDArray[Any] | None = None,
    ):
        self.sizes, self.losses, self.selected = sizes, losses, selected
        self.bounds = bounds

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        certificates: Mapping[int, Certificate] | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> Self:
        """Plot the path of a fitted estimator; further options go to ``ax.plot``.

        certificates : what ``estimator.certify(X, y, whole_path=True)`` returned
        """
        check_is_fitted(estimator)
        path = estimator.path_
        known = certificates or {}
        display = cls(
            sizes=np.array(list(path)),
            losses=np.array([found.value for found in path.values()]),
            selected=_selected(estimator),
            bounds=np.array([known[s].lower_bound if s in known else np.nan for s in path]),
        )
        return display.plot(ax=ax, **line_options)

    def plot(self, *, ax: Any = None, **line_options: Any) -> Self:
        ax = self._axes(ax, "number of selected features", "loss")
        (self.line_,) = ax.plot(self.sizes, self.losses, **{"marker": "o", **line_options})
        self.band_ = None
        if self.bounds is not None and np.isfinite(self.bounds).any():
            self.band_ = ax.fill_between(
                self.sizes,
                self.bounds,
                self.losses,
                where=np.isfinite(self.bounds),
                alpha=0.3,
                color=self.line_.get_color(),
                label="proven: the best lies in here",
            )
            ax.legend()
        _mark(ax, self.selected)
        return self


class CoefficientDisplay(_Display):
    """The coefficients at every size of a path, one line per feature (and class)."""

    def __init__(
        self,
        *,
        sizes: NDArray[Any],
        coefficients: dict[str, NDArray[Any]],
        selected: int | None = None,
    ):
        self.sizes, self.coefficients, self.selected = sizes, coefficients, selected

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_options: Any) -> Self:
        """Plot the coefficients of a fitted estimator; further options go to ``ax.plot``."""
        check_is_fitted(estimator)
        path = estimator.path_
        names, lines = feature_names(estimator), {}
        used = np.unique(np.concatenate([found.features for found in path.values()]))
        x = np.array([found.x[used] for found in path.values()])
        for k, j in enumerate(used):
            if x.ndim == 2:
                lines[str(names[j])] = x[:, k]
            else:
                lines |= {f"{names[j]}, {c}": x[:, k, i] for i, c in enumerate(estimator.classes_)}
        display = cls(sizes=np.array(list(path)), coefficients=lines, selected=_selected(estimator))
        return display.plot(ax=ax, **line_options)

    def plot(self, *, ax: Any = None, **line_options: Any) -> Self:
        ax = self._axes(ax, "number of selected features", "coefficient")
        self.lines_ = [
            ax.plot(self.sizes, values, label=name, **{"marker": "o", **line_options})[0]
            for name, values in self.coefficients.items()
        ]
        _mark(ax, self.selected)
        if len(self.lines_) <= 20:  # more names than that hide the picture
            ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return self


class CVDisplay(_Display):
    """The cross-validated score at every size, with standard errors over the folds."""

    def __init__(
        self,
        *,
        sizes: NDArray[Any],
        mean: NDArray[Any],
        standard_error: NDArray[Any],
        selected: int | None = None,
    ):
        self.sizes, self.mean, self.standard_error = sizes, mean, standard_error
        self.selected = selected

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_options: Any) -> Self:
        """Plot the scores of a fitted CV estimator; further options go to ``ax.errorbar``."""
        check_is_fitted(estimator)
        results = getattr(estimator, "cv_results_", {})
        if "mean_test_score" not in results:
            raise ValueError(
                f"{type(estimator).__name__} was not cross-validated; fit SparseRegressorCV or "
                "SparseClassifierCV with criterion='cv' or '1se'."
            )
        display = cls(
            sizes=results["sparsity"],
            mean=results["mean_test_score"],
            standard_error=results["se_test_score"],
            selected=_selected(estimator),
        )
        return display.plot(ax=ax, **line_options)

    def plot(self, *, ax: Any = None, **line_options: Any) -> Self:
        ax = self._axes(ax, "number of selected features", "cross-validated score")
        options = {"marker": "o", "capsize": 3, **line_options}
        self.errorbar_ = ax.errorbar(self.sizes, self.mean, self.standard_error, **options)
        _mark(ax, self.selected)
        return self


def _selected(estimator: Any) -> int:
    """The size of the model in use."""
    return next(s for s, found in estimator.path_.items() if found is estimator.solution_)


def _mark(ax: Any, selected: int | None) -> None:
    if selected is not None:
        ax.axvline(selected, color="grey", linestyle="--", linewidth=1)
