"""The logistic loss of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.objectives.design import as_array
from ellzero.objectives.glm import GeneralizedLinear
from ellzero.objectives.losses import LogisticLoss
from ellzero.supports import Support, Vector


class Logistic(GeneralizedLinear):
    """f(x) = Σ_k w_k (log(1 + e^η_k) − y_k η_k) + ½ ridge ‖x‖², with η = Xx + a.

    y holds two classes, as {0, 1} or {−1, 1}; the other parameters are those of `LeastSquares`.
    """

    floor = 0.0

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ):
        super().__init__(
            X,
            _binary(y),
            LogisticLoss(),
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
            forced=forced,
            ridge=ridge,
        )

    def deviance(self, loss: float) -> float:
        return 2 * loss

    def _margins(self, S: Support, rows: NDArray[np.float64]) -> Vector:
        margins = (2.0 * self.y - 1.0) * (self._with_nuisance(S) @ rows)
        live = self.weight > 0
        return margins if live.all() else margins[live]


def _binary(y: Any) -> Any:
    y = as_array(y, "y")
    if y.dtype.kind == "O":
        raise TypeError("y: expected two classes coded as 0 and 1 or as -1 and 1, got objects.")
    labels = np.unique(y[~np.isnan(y)] if y.dtype.kind == "f" else y).tolist()
    if set(labels) <= {0, 1}:
        return y
    if set(labels) <= {-1, 1}:
        return (y > 0).astype(float)
    shown = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
    raise ValueError(f"y: expected two classes coded as 0 and 1 or as -1 and 1, got {shown}.")
