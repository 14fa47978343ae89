"""The logistic loss of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ellzero.data.design import as_array
from ellzero.objectives.glm.families import LogisticLoss
from ellzero.objectives.glm.glm import GLM


class Logistic(GLM):
    """f(x) = Σ_k w_k (log(1 + e^η_k) − y_k η_k) + ½ ridge ‖x‖², with η = Xx + a.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (m, n)
    y : array of m labels
        Two classes, as {0, 1} or {−1, 1}.
    sample_weight : array of m non-negative weights, optional
        1 by default.
    fit_intercept : bool
        Whether a is free (and never penalised) or zero.
    forced : array of int
        Features that are in every model and do not count towards s.
    ridge : float or array of n numbers
        One non-negative number for all features, or one for each.
    """

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
