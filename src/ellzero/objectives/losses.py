"""Pointwise losses of generalised linear models: functions of a prediction η and a target y."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

Array = NDArray[np.float64]


class Loss(Protocol):
    curvature: float
    """An upper bound on the second derivative."""

    def value(self, eta: Array, y: Array) -> Array: ...

    def taylor(self, eta: Array, y: Array) -> tuple[Array, Array, Array]:
        """The value and the first and second derivatives with respect to η."""

    def conjugate(self, q: Array, y: Array) -> Array:
        """max over η of qη − loss(η, y); inf where that is unbounded."""


class LogisticLoss:
    """log(1 + e^η) − yη for y in {0, 1}, computed from the margin so that no digit is lost."""

    curvature = 0.25

    def value(self, eta: Array, y: Array) -> Array:
        z = (1.0 - 2.0 * y) * eta  # minus the margin
        return self._value(z, np.exp(-np.abs(z)))

    def taylor(self, eta: Array, y: Array) -> tuple[Array, Array, Array]:
        sign = 1.0 - 2.0 * y
        z = sign * eta
        e = np.exp(-np.abs(z))
        value = self._value(z, e)
        r = 1.0 / (1.0 + e)
        e *= r
        wrong = np.where(z < 0, e, r)  # the probability given to the wrong class
        wrong *= sign
        e *= r
        return value, wrong, e

    def _value(self, z: Array, e: Array) -> Array:
        value = np.log1p(e)
        value += np.maximum(z, 0.0)
        return value

    def conjugate(self, q: Array, y: Array) -> Array:
        p = np.abs(q)  # the probability of the wrong class
        inside = (p <= 1) & (np.where(y > 0, -q, q) >= 0)
        p = np.where(inside, p, 0.5)
        r = 1.0 - p
        value = p * np.log(np.maximum(p, 1e-300))  # several times as fast as xlogy
        value += r * np.log(np.maximum(r, 1e-300))
        value[~inside] = np.inf
        return value


class SquaredLoss:
    """½ (η − y)²."""

    curvature = 1.0

    def value(self, eta: Array, y: Array) -> Array:
        return 0.5 * (eta - y) ** 2

    def taylor(self, eta: Array, y: Array) -> tuple[Array, Array, Array]:
        return self.value(eta, y), eta - y, np.ones_like(eta)

    def conjugate(self, q: Array, y: Array) -> Array:
        return 0.5 * q**2 + q * y


class SoftmaxLoss:
    """log Σ_c e^η_c − η_y of a row of predictions η, one per class; y is the row that marks the
    class. The largest prediction is taken out first: nothing overflows, and no digit is lost."""

    curvature = 0.5
    """Of the whole row: the largest eigenvalue of diag(p) − ppᵀ is at most that."""

    def value(self, eta: Array, y: Array) -> Array:
        return self.taylor(eta, y)[0]

    def taylor(self, eta: Array, y: Array) -> tuple[Array, Array, Array]:
        """p − y and p(1 − p): the second derivatives off the diagonal are −p_c p_d."""
        top, p, rest = self._relative(eta)
        value = np.log1p(rest) + (top - (eta * y).sum(axis=1))
        others = np.where(p == 1.0, rest[:, None], 1.0 + rest[:, None] - p)
        p /= 1.0 + rest[:, None]
        others /= 1.0 + rest[:, None]
        return value, np.where(y > 0, -others, p), p * others

    def conjugate(self, q: Array, y: Array) -> Array:
        p = q + y
        inside = (p >= 0).all(axis=1)
        return np.where(inside, xlogy(np.maximum(p, 0.0), np.maximum(p, 0.0)).sum(axis=1), np.inf)

    def _relative(self, eta: Array) -> tuple[Array, Array, Array]:
        """The largest prediction, e^η relative to it, and its sum over the other classes."""
        largest = np.arange(len(eta)), eta.argmax(axis=1)
        top = eta[largest]
        e = np.exp(eta - top[:, None])
        e[largest] = 0.0
        rest = e.sum(axis=1)
        e[largest] = 1.0
        return top, e, rest
