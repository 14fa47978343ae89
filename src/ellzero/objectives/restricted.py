"""A generalised linear model over a few columns, as Newton's method wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.newton import Minimum, newton
from ellzero.objectives.products import weighted_square
from ellzero.supports import Matrix, Vector

if TYPE_CHECKING:
    from ellzero.objectives.glm import GeneralizedLinear


class Restricted:
    """f over the columns A, which may be sparse; remembers the point last looked at."""

    def __init__(self, f: GeneralizedLinear, A: Any, penalty: Vector, offset: Any = 0.0):
        self.f, self.A, self.penalty, self.offset = f, A, penalty, offset
        self._u: Vector | None = None

    # the unknowns: what each column owns, as one vector

    def unknowns(self, rows: NDArray[np.float64]) -> Vector:
        return rows

    def rows(self, u: Vector) -> NDArray[np.float64]:
        return u

    def predict(self, u: Vector) -> NDArray[np.float64]:
        return self.A @ self.rows(u)

    def eta(self, u: Vector) -> NDArray[np.float64]:
        if self._u is not u:
            self._u, self._eta = u, self.predict(u) + self.offset
        return self._eta

    def value(self, u: Vector) -> float:
        losses, self._first, self._second = self.f.loss.taylor(self.eta(u), self.f.y)
        return float(self.f.weight @ losses + 0.5 * self.penalty @ u**2)

    def gradient(self, u: Vector) -> Vector:
        """At the point of the last value."""
        slopes = self.f._column(self.f.weight) * self._first
        return self.unknowns(self.A.T @ slopes) + self.penalty * u

    def hessian(self, u: Vector) -> Matrix:
        """At the point of the last value."""
        self._curvatures = self.f.weight * self._second
        square = weighted_square(self.A, self._curvatures, self.f.threads)
        self._hessian = square + np.diag(self.penalty)
        return self._hessian

    def lower(self, u: Vector, step: Vector) -> float:
        """A lower bound on the minimum, by the slopes of the losses that the step predicts.

        They are feasible for the dual problem (see `dual`) as far as the step solves
        Newton's equations. The gradient is that of u, the Hessian the last one asked for.
        """
        f, D, H = self.f, self._curvatures, self._hessian
        q = f.weight * self._first
        g = self.A.T @ q + self.penalty * u
        if np.abs(H @ step + g).max() > 1e-9 * np.abs(g).max():
            return -np.inf
        live = f.weight > 0
        moved = (q + D * (self.A @ step))[live] / f.weight[live]
        dual = -float(f.weight[live] @ f.loss.conjugate(moved, f.y[live]))
        return dual - 0.5 * float(self.penalty @ (u + step) ** 2) - f.resolution

    def minimize(
        self,
        u: Vector,
        tol: float,
        below: float = np.inf,
        hoped: float = np.inf,
        expected: float = -np.inf,
    ) -> Minimum:
        lower = self.lower if below < np.inf else None
        return newton(
            self.value,
            self.gradient,
            self.hessian,
            u,
            tol,
            lower=lower,
            below=below,
            hoped=hoped,
            expected=expected,
        )
