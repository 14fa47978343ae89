"""Pointwise losses of generalised linear models: functions of a prediction η and a target y."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

Array = NDArray[np.float64]


class Loss(Protocol):
    curvature: float
    """An upper bound on the second derivative."""

    def value(self, eta: Array, y: Array) -> Array: ...

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        """The first and the second with respect to η."""

    def conjugate(self, q: Array, y: Array) -> Array:
        """max over η of qη − loss(η, y); inf where that is unbounded."""


class LogisticLoss:
    """log(1 + e^η) − yη for y in {0, 1}, computed from the margin so that no digit is lost."""

    curvature = 0.25

    def value(self, eta: Array, y: Array) -> Array:
        z = (1.0 - 2.0 * y) * eta  # minus the margin
        loss = np.log1p(np.exp(-np.abs(z)))
        loss += np.maximum(z, 0.0)
        return loss

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        sign = 1.0 - 2.0 * y
        z = sign * eta
        e = np.exp(-np.abs(z))
        r = 1.0 / (1.0 + e)
        e *= r
        wrong = np.where(z < 0, e, r)  # the probability given to the wrong class
        wrong *= sign
        e *= r
        return wrong, e

    def conjugate(self, q: Array, y: Array) -> Array:
        p = np.abs(q)  # the probability of the wrong class
        inside = (p <= 1) & (np.where(y > 0, -q, q) >= 0)
        p = np.where(inside, p, 0.5)
        return np.where(inside, xlogy(p, p) + xlog1py(1 - p, -p), np.inf)


class SquaredLoss:
    """½ (η − y)²."""

    curvature = 1.0

    def value(self, eta: Array, y: Array) -> Array:
        return 0.5 * (eta - y) ** 2

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        return eta - y, np.ones_like(eta)

    def conjugate(self, q: Array, y: Array) -> Array:
        return 0.5 * q**2 + q * y
