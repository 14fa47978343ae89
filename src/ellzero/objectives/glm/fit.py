"""Fits of a generalised linear model over a few features."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from ellzero.objectives.glm.newton import Derivatives, Look, Minimum, newton, newton_step
from ellzero.objectives.glm.rows import Linear, Losses, RowSums
from ellzero.supports import Matrix, Support, Vector

NEARLY_DEPENDENT = 1e-10
"""With a smaller pivot in a Hessian of unit diagonal, a step loses ten of sixteen digits."""

TOLD_APART = 1e-12
"""Columns that differ by less of their length are taken for copies: coefficients would be noise."""

TURNED = 1e-5
"""Rounding may turn a direction of the columns by this angle before a fit is in doubt."""


class Fit(NamedTuple):
    """A minimum over some columns, and how sure it is."""

    B: Matrix
    value: float
    step: Matrix
    """The last Newton step, in coefficients."""
    converged: bool
    clear: bool = True
    """Whether the columns are told apart. Otherwise lower values may exist."""


class Problem(NamedTuple):
    """The losses over intercept, forced features and S, with a penalty on each of these columns.

    The predictions of `fixed` are added.
    """

    rows: RowSums
    S: Support
    penalty: Vector
    fixed: Linear | None = None

    def fit(self, B: Matrix, tol: float, below: float = inf) -> Fit:
        """Minimise from the coefficients B. Stops early where no step promises less than `below`.

        Where the Hessian shows columns that are nearly dependent, go on in orthonormal columns. A
        Hessian holds squares of what tells near copies apart.
        """
        K = B.shape[1]
        look = penalised(self.rows.loss(self.S, self.fixed), np.diag(self.penalty), K)
        found = newton(look, B.ravel(), tol, below)
        if found.pivot > NEARLY_DEPENDENT or found.value >= below:
            return _fit_of(found, K)
        return self._in_orthonormal_columns(found, look, tol, K)

    def _in_orthonormal_columns(self, start: Minimum, look: Look, tol: float, K: int) -> Fit:
        base = Orthonormal.of(self)
        inner = penalised(self.rows.loss(self.S, self.fixed, base.back), base.penalty, K)
        found = newton(inner, (base.there @ start.u.reshape(-1, K)).ravel(), tol)
        B, step = (base.back @ part.reshape(-1, K) for part in (found.u, found.step))
        value = look(B.ravel())[0]  # of these coefficients, which are rounded
        if start.value <= value:
            return _fit_of(start, K)._replace(clear=base.clear)
        return Fit(B, value, step, found.converged, base.clear)

    def promise(self, B: Matrix) -> tuple[float, bool]:
        """Return what a Newton step from B promises, and whether the columns are told apart."""
        K = B.shape[1]
        look = penalised(self.rows.loss(self.S, self.fixed), np.diag(self.penalty), K)
        g, H = look(B.ravel())[1]()
        step, pivot = newton_step(g, H)
        if pivot > NEARLY_DEPENDENT:
            return float(-g @ step), True
        base = Orthonormal.of(self)
        inner = penalised(self.rows.loss(self.S, self.fixed, base.back), base.penalty, K)
        g, H = inner((base.there @ B).ravel())[1]()
        return float(-g @ newton_step(g, H)[0]), base.clear


class Orthonormal(NamedTuple):
    """Coordinates v = Ru in which the columns, [√w A; √penalty] = QR, are orthonormal.

    Columns that depend on others, up to rounding, have coefficient zero.
    """

    back: Matrix
    """u = back · v."""
    there: Matrix
    """v = there · u."""
    penalty: Matrix
    clear: bool

    @classmethod
    def of(cls, problem: Problem) -> Orthonormal:
        root = np.sqrt(problem.penalty)
        whole = np.vstack([problem.rows.triangle(problem.S), np.diag(root)])
        norms = np.linalg.norm(whole, axis=0)
        norms[norms == 0] = 1.0
        R, order = qr(whole / norms, mode="r", pivoting=True, check_finite=False)
        sizes, eps = np.abs(R.diagonal()), float(np.finfo(float).eps)
        rank = int((sizes > TOLD_APART).sum())
        # levels beside an intercept leave 2e-14 of the last one, in 7 000 rows
        noise = eps * (4 * np.sqrt(len(norms)) + 1.5 * np.sqrt(problem.rows.n_rows))
        least = sizes[sizes > noise].min(initial=1.0)
        clear = bool(8 * len(norms) * eps < TURNED * least)
        back = np.zeros((len(norms), rank))
        back[order[:rank]] = solve_triangular(R[:rank, :rank], np.eye(rank))
        back /= norms[:, None]
        held = root[:, None] * back
        return cls(back, R[:rank, np.argsort(order)] * norms, held.T @ held, clear)


def penalised(losses: Losses, penalty: Matrix, K: int) -> Look:
    """Return the losses plus ½ Σ_a B_aᵀ penalty B_a as a function of all coefficients in a row."""
    whole = np.kron(penalty, np.eye(K)) if K > 1 else penalty

    def look(u: Vector) -> tuple[float, Derivatives]:
        value, derivatives = losses(u.reshape(-1, K))
        slope = whole @ u

        def with_penalty() -> tuple[Vector, Matrix]:
            g, H = derivatives()
            return g + slope, H + whole

        return value + 0.5 * float(u @ slope), with_penalty

    return look


def _fit_of(found: Minimum, K: int) -> Fit:
    step = found.step.reshape(-1, K)
    return Fit(found.u.reshape(-1, K), found.value, step, found.converged)
