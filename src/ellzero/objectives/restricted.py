"""A generalised linear model over a few columns, as Newton's method wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from ellzero.objectives.design import dense
from ellzero.objectives.newton import Minimum, newton
from ellzero.objectives.products import weighted_square
from ellzero.supports import Matrix, Vector

if TYPE_CHECKING:
    from ellzero.objectives.glm import GeneralizedLinear


NEARLY_DEPENDENT = 1e-10
"""With a smaller pivot in a Hessian of unit diagonal, a step loses ten of sixteen digits."""

TOLD_APART = 1e-12
"""Columns that differ by less of their length are taken for copies: coefficients would be noise."""

TURNED = 1e-5
"""Rounding may turn a direction of the columns by this angle before the fit is in doubt."""


class Restricted:
    """f over the columns A, which may be sparse; remembers the point last looked at."""

    f: GeneralizedLinear
    has_rows = True
    """Are all rows here, so that columns can be made orthonormal?"""

    def __init__(self, f: GeneralizedLinear, A: Any, penalty: Vector, offset: Any = 0.0):
        self.f, self.A, self.penalty, self.offset = f, A, penalty, offset
        self._u: Vector | None = None

    # the unknowns: what each column owns, as one vector

    def unknowns(self, rows: NDArray[np.float64]) -> Vector:
        return rows

    def rows(self, u: Vector) -> NDArray[np.float64]:
        return u

    @property
    def width(self) -> int:
        """How many unknowns each column has."""
        return 1

    @property
    def column_penalty(self) -> Vector:
        """The penalty of every column."""
        return self.penalty[:: self.width]

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
        found = newton(
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
        if found.pivot > NEARLY_DEPENDENT or found.value >= min(below, hoped):
            return found
        if not self.has_rows:
            return found._replace(clear=False)
        return Orthonormal(self).minimize(found, tol)


class Orthonormal:
    """A restricted problem in coordinates v = Ru in which its columns, [√w A; √penalty] = QR, are
    orthonormal. A Hessian holds squares of what tells near copies apart; Q holds it unsquared.

    Columns that depend on others, up to rounding, have coefficient zero.
    """

    def __init__(self, problem: Restricted):
        self.problem, f = problem, problem.f
        root, penalty = np.sqrt(f.weight)[:, None], problem.column_penalty
        whole = np.vstack([root * dense(problem.A), np.diag(np.sqrt(penalty))])
        norms = np.linalg.norm(whole, axis=0)
        norms[norms == 0] = 1.0
        Q, R, order = qr(whole / norms, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(R.diagonal())
        eps = float(np.finfo(float).eps)
        # levels beside an intercept leave 7e-15 of the last one, in 7 000 rows
        noise = eps * (4 * np.sqrt(len(norms)) + 0.5 * np.sqrt(len(whole)))
        rank = int((sizes > TOLD_APART).sum())
        told = sizes[sizes > noise].min(initial=1.0)
        self.clear = bool(8 * len(norms) * eps < TURNED * told)
        self.back = np.zeros((len(norms), rank))  # u = back · v
        self.back[order[:rank]] = solve_triangular(R[:rank, :rank], np.eye(rank))
        self.back /= norms[:, None]
        self.there = R[:rank, np.argsort(order)] * norms  # v = there · u
        A = np.divide(Q[: len(root), :rank], root, out=np.zeros((len(root), rank)), where=root > 0)
        self.inner = type(problem)(f, A, np.zeros(rank), problem.offset)
        below = Q[len(root) :, :rank]
        self.penalty = np.kron(below.T @ below, np.eye(problem.width))

    def minimize(self, start: Minimum, tol: float) -> Minimum:
        inner, problem = self.inner, self.problem
        v = inner.unknowns(self.there @ problem.rows(start.u))
        found = newton(
            lambda v: inner.value(v) + 0.5 * float(v @ self.penalty @ v),
            lambda v: inner.gradient(v) + self.penalty @ v,
            lambda v: inner.hessian(v) + self.penalty,
            v,
            tol,
        )
        u = problem.unknowns(self.back @ inner.rows(found.u))
        step = problem.unknowns(self.back @ inner.rows(found.step))
        value = problem.value(u)  # of these coefficients, which are rounded
        found = found._replace(u=u, step=step, value=value, clear=self.clear)
        return min(start._replace(clear=self.clear), found, key=lambda m: m.value)
