"""The loss of several classes: features are chosen for all classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.data.design import as_array
from ellzero.objectives.glm.families import SoftmaxLoss
from ellzero.objectives.glm.glm import GLM


class Multinomial(GLM):
    """f(x) = Σ_k w_k (log Σ_c e^η_kc − η_k,y_k) + ½ ridge ‖x‖², with η = Xx + a.

    A solution has a row of C coefficients for each feature, which are zero together, and C
    intercepts. The same number added to all classes changes no prediction. Of all minimisers the
    one is taken whose rows, and the intercept, sum to zero over the classes. A ridge leads to the
    same one. Inside, a feature owns the C − 1 coordinates of such a row.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (m, n)
    y : array of m labels
        The class of each row, as whole numbers 0 … C − 1.
    n_classes : int, optional
        C. If it is given, some classes may be missing in y, as in a fold.
    sample_weight : array of m non-negative weights, optional
        1 by default.
    fit_intercept : bool
        Whether a is free (and never penalised) or zero.
    forced : array of int
        Features that are in every model and do not count towards s.
    ridge : float or array of n numbers
        One non-negative number for all features, or one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import Multinomial, solve
    >>> X = np.random.default_rng(0).standard_normal((90, 6))
    >>> y = np.argmax(X[:, [1, 1, 4]] * [1, -1, 1], axis=1)
    >>> solve(Multinomial(X, y, ridge=1.0), 2).support
    array([1, 4])
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        n_classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        forced: ArrayLike = (),
        ridge: ArrayLike = 0.0,
    ):
        classes = _classes(y, n_classes)
        super().__init__(
            X,
            classes,
            SoftmaxLoss(int(classes.max()) + 1 if n_classes is None else n_classes),
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
            forced=forced,
            ridge=ridge,
        )


def _classes(y: Any, n_classes: int | None) -> NDArray[Any]:
    """y as class numbers, if it is that."""
    y = as_array(y, "y")
    wanted = "y: expected the classes as whole numbers 0, 1, 2, ..."
    if y.dtype.kind not in "fiub":
        raise TypeError(f"{wanted}, got dtype {y.dtype}; encode other labels first.")
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(y) | (y != np.round(y)))
        if len(bad):
            raise ValueError(f"{wanted}, got {y.flat[bad[0]]} in row {bad[0]}.")
    labels = np.unique(y)
    if len(labels) and labels[0] < 0:
        raise ValueError(f"{wanted}, got {labels[0]:g}.")
    if n_classes is not None:
        if len(labels) and labels[-1] >= n_classes:
            raise ValueError(f"{wanted} up to {n_classes - 1}, got {labels[-1]:g}.")
        return y
    if len(labels) < 2:
        raise ValueError(f"{wanted}, at least two of them; all rows have the same.")
    gaps = np.flatnonzero(labels != np.arange(len(labels)))
    if len(gaps):
        raise ValueError(f"{wanted} without gaps; no row has the class {gaps[0]}.")
    return y
