"""Losses of generalised linear models: convex functions of a row's K predictions and its target.

Predictions have shape (m, K). A target has the shape that `target` gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import xlogy

from ellzero.supports import Matrix, Vector

Array = NDArray[np.float64]


class Taylor(NamedTuple):
    """A loss near the predictions of each row."""

    value: Vector
    slopes: Matrix
    """K numbers for each row."""
    second: Callable[[], Matrix]
    """Makes weights a_r ≥ 0 for each row: its second derivatives are Σ_r a_r · forms[r]."""


class Family(Protocol):
    """A loss, and what its K outputs mean to a user."""

    n_outputs: int
    """K."""
    curvature: float
    """An upper bound on every eigenvalue of the second derivatives."""
    forms: Array
    """Positive semidefinite K × K matrices of which the second derivatives are made."""
    natural_shape: tuple[int, ...]
    """The shape of one feature's coefficients as users know them."""

    def target(self, y: Vector) -> NDArray[Any]:
        """Return y in the form that the other methods take."""

    def taylor(self, eta: Matrix, y: NDArray[Any]) -> Taylor:
        """Return the value and the derivatives at the predictions."""

    def dual(self, eta: Matrix, y: NDArray[Any], moves: Array) -> Matrix:
        """Return the conjugate ℓ*(∇ℓ(η) + ∇²ℓ(η)·move) for moves of shape (m, p, K).

        ℓ*(q) is the maximum of q·η − ℓ(η). It is inf where that is unbounded.
        """

    def margins(self, eta: Matrix, y: NDArray[Any]) -> Vector:
        """Return by how much predictions favour each row's class. Empty if y holds no classes."""

    def natural(self, B: Matrix) -> Array:
        """Return coefficients as users know them, from K numbers for each feature."""

    def reduced(self, x: Array) -> Matrix:
        """Return the K numbers for each feature, from coefficients as users know them."""


class OneOutput:
    """A family whose single prediction is what users know."""

    n_outputs = 1
    forms = np.ones((1, 1, 1))
    natural_shape: tuple[int, ...] = ()

    def natural(self, B: Matrix) -> Array:
        return B[..., 0]

    def reduced(self, x: Array) -> Matrix:
        return x[..., None]


class LogisticLoss(OneOutput):
    """log(1 + e^η) − yη for y in {0, 1}, computed from the margin so that no digit is lost."""

    curvature = 0.25

    def target(self, y: Vector) -> Array:
        """Return −1 for the class 1, and 1 for the class 0: η times this is minus the margin."""
        return 1.0 - 2.0 * y[:, None]

    def taylor(self, eta: Matrix, y: Array) -> Taylor:
        z = y * eta
        e = np.exp(-np.abs(z))
        value = np.log1p(e)
        value += np.maximum(z, 0.0)
        r = 1.0 / (1.0 + e)
        e *= r
        slopes = np.where(z < 0, e, r)  # the probability of the wrong class
        slopes *= y
        e *= r
        return Taylor(value[:, 0], slopes, lambda: e)

    def dual(self, eta: Matrix, y: Array, moves: Array) -> Matrix:
        _, slopes, second = self.taylor(eta, y)
        wrong = y * (slopes + second() * moves[:, :, 0])
        inside = (wrong >= 0) & (wrong <= 1)
        p = np.where(inside, wrong, 0.5)
        r = 1.0 - p
        value = p * np.log(np.maximum(p, 1e-300))  # several times as fast as xlogy
        value += r * np.log(np.maximum(r, 1e-300))
        value[~inside] = np.inf
        return value

    def margins(self, eta: Matrix, y: Array) -> Vector:
        return (-y * eta)[:, 0]


class SquaredLoss(OneOutput):
    """½ (η − y)²."""

    curvature = 1.0

    def target(self, y: Vector) -> Array:
        return y[:, None]

    def taylor(self, eta: Matrix, y: Array) -> Taylor:
        left = eta - y
        return Taylor(0.5 * left[:, 0] ** 2, left, lambda: np.ones_like(eta))

    def dual(self, eta: Matrix, y: Array, moves: Array) -> Matrix:
        q = eta - y + moves[:, :, 0]
        return 0.5 * q**2 + q * y

    def margins(self, eta: Matrix, y: Array) -> Vector:
        return np.empty(0)


class SoftmaxLoss:
    """−log of the probability of each row's class, for C classes.

    The same number added to all classes changes nothing. So the K = C − 1 predictions are
    coordinates in an orthonormal basis of the vectors that sum to zero; norms and ridges are the
    same there. Inside, the largest of the C predictions is taken out first: nothing overflows. What
    is left of a probability near one is summed from the others, and second derivatives are sums of
    products p_c p_d over pairs of classes, so that no digit is lost.
    """

    curvature = 0.5

    def __init__(self, n_classes: int):
        self.basis = helmert(n_classes)  # a row for each output
        self.n_outputs = n_classes - 1
        self.natural_shape: tuple[int, ...] = (n_classes,)
        self.pairs = np.triu_indices(n_classes, 1)
        apart = (self.basis[:, self.pairs[0]] - self.basis[:, self.pairs[1]]).T
        self.forms = apart[:, :, None] * apart[:, None, :]

    def target(self, y: Vector) -> NDArray[np.intp]:
        return y.astype(np.intp)

    def taylor(self, eta: Matrix, y: NDArray[Any]) -> Taylor:
        value, errors, p = self._probabilities(eta, y)
        c, d = self.pairs
        return Taylor(value, (self.basis @ errors).T, lambda: (p[c] * p[d]).T)

    def dual(self, eta: Matrix, y: NDArray[Any], moves: Array) -> Matrix:
        _, errors, p = self._probabilities(eta, y)
        errors, p = errors.T[:, None], p.T[:, None]
        moves = moves @ self.basis
        moves -= (p * moves).sum(axis=2, keepdims=True)
        q = errors + p * moves
        q[np.arange(len(y)), :, y] += 1.0
        inside = (q >= 0).all(axis=2)
        q = np.maximum(q, 0.0)
        return np.where(inside, xlogy(q, q).sum(axis=2), np.inf)

    def margins(self, eta: Matrix, y: NDArray[Any]) -> Vector:
        t = eta @ self.basis
        own = np.arange(len(y)), y
        margins = t[own][:, None] - t
        margins[own] = np.inf
        return margins[margins < np.inf]

    def natural(self, B: Matrix) -> Array:
        return B @ self.basis

    def reduced(self, x: Array) -> Matrix:
        return x @ self.basis.T

    def _probabilities(self, eta: Matrix, y: NDArray[Any]) -> tuple[Vector, Matrix, Matrix]:
        """Return values, p − 1 at the row's class and p at the others, and p. A row is a class."""
        t = self.basis.T @ eta.T  # sums over classes are several times as fast this way round
        rows = np.arange(len(y))
        largest = t.argmax(axis=0), rows
        top = t[largest]
        value = top - t[y, rows]
        t -= top
        p = np.exp(t, out=t)
        p[largest] = 0.0
        rest = p.sum(axis=0)
        p[largest] = 1.0
        value += np.log1p(rest)
        total = 1.0 + rest
        own = p[y, rows]
        others = np.where(own == 1.0, rest, total - own)
        p /= total
        errors = p.copy()
        errors[y, rows] = -others / total
        return value, errors, p
