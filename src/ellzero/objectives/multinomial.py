"""Multinomial regression: several classes, and features that are chosen for all of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert

from ellzero.core import Iterate, Objective
from ellzero.objectives.design import as_array, check_target
from ellzero.objectives.dual import INFEASIBLE, LENGTHS, reach_of, rounding_of
from ellzero.objectives.glm import GeneralizedLinear
from ellzero.objectives.gram import gram_inverse, scaled_ridge
from ellzero.objectives.group_quadratic import LocalGroupModel
from ellzero.objectives.losses import SoftmaxLoss
from ellzero.objectives.newton import stable_inverse
from ellzero.objectives.restricted import Restricted
from ellzero.supports import Matrix, Support, Vector, magnitudes

LARGEST_LOCAL_HESSIAN = 1000
"""A local model has at most this many unknowns: those of the features that promise most."""

BOUND_BLOCK = 1 << 22  # numbers in a block of candidates when they are bounded


class Multinomial(GeneralizedLinear):
    """f(x) = Σ_k w_k (log Σ_c e^η_kc − η_k,y_k) + ½ ridge ‖x‖², with η = Xx + a.

    y holds the class of each row, as whole numbers 0 … C−1; with `n_classes` given, some of them
    may be missing, as in a fold. The other parameters are those of `LeastSquares`.

    A feature owns a row of C coefficients, which are zero together: x is n × C, the intercept
    has C numbers, and s counts features.

    The same number added to all classes changes no prediction. Of all minimisers the one is taken
    whose rows, and the intercept, sum to zero over the classes; it is also the one that a ridge
    leads to.

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import Multinomial, solve
    >>> X = np.random.default_rng(0).standard_normal((90, 6))
    >>> y = np.argmax(X[:, [1, 1, 4]] * [1, -1, 1], axis=1)
    >>> solve(Multinomial(X, y, ridge=1.0), 2).support
    array([1, 4])
    """

    floor = 0.0

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
        self.n_classes = int(classes.max()) + 1 if n_classes is None else n_classes
        self.per_feature = (self.n_classes,)
        self.basis = helmert(self.n_classes).T  # orthonormal columns that sum to zero
        super().__init__(
            X,
            classes,
            SoftmaxLoss(),
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
            forced=forced,
            ridge=ridge,
        )

    def deviance(self, loss: float) -> float:
        return 2 * loss

    def _target(self, y: Any, m: int) -> NDArray[np.float64]:
        """A row per row of the data, with a one at its class."""
        return np.eye(self.n_classes)[check_target(y, m).astype(np.intp)]

    @property
    def _problem(self) -> type[Restricted]:
        return _RestrictedSoftmax

    # what a Hessian makes possible

    def curvature(self, p: Matrix, second: Matrix, A: Matrix, Z: Matrix) -> Matrix:
        """Second derivatives of the losses, one unknown of a column of A and one of Z.

        p are the probabilities and `second` the weighted p(1 − p); as all rows and columns of
        diag(p) − ppᵀ sum to zero, no digit is lost where a probability is close to one.
        """
        C, r = self.n_classes, self.n_classes - 1
        root = np.sqrt(self.weight)[:, None] * p
        left = (A[:, :, None] * root[:, None, :]).reshape(len(A), -1)
        right = left if Z is A else (Z[:, :, None] * root[:, None, :]).reshape(len(Z), -1)
        H = (left.T @ right).reshape(A.shape[1], C, Z.shape[1], C)
        np.negative(H, out=H)
        for c in range(C):
            H[:, c, :, c] = (A.T * second[:, c]) @ Z
        H = np.tensordot(self.basis.T, np.tensordot(H, self.basis, 1), (1, 1))
        return H.swapaxes(0, 1).reshape(A.shape[1] * r, Z.shape[1] * r)

    def _insertion_bounds(self, base: Iterate) -> Vector:
        """As for one prediction per row: a Newton step in the unknowns of S and i moves the slopes
        of the losses to a point that is feasible for the dual problem."""
        S, r = base.support, self.n_classes - 1
        A = self._with_nuisance(S)
        assert base.nuisance is not None
        rows = np.concatenate([base.nuisance, self._standard(S, base.coef)])
        penalty, ridge = self._penalty(S), scaled_ridge(self.ridge, self.scale)
        slopes, second = self._slopes(base)
        errors = self._errors(slopes)
        p = errors + self.y
        bounds = np.full(self.n_features, np.inf)
        candidates = np.flatnonzero(self.outside(S))
        bounds[candidates] = -np.inf
        H = self.curvature(p, second, A, A) + np.diag(np.repeat(penalty, r))
        inverse = stable_inverse(H)
        if inverse is None:
            return bounds
        width = max(BOUND_BLOCK // p.size, 1)
        for begin in range(0, len(candidates), width):
            block = candidates[begin : begin + width]
            Z = self.design.columns(block)
            cross = self.curvature(p, second, A, Z)
            onto = inverse @ cross
            g = Z.T @ slopes @ self.basis
            for a, i in enumerate(block):
                own = slice(a * r, (a + 1) * r)
                z = Z[:, a : a + 1]
                whole = self.curvature(p, second, z, z) + ridge[i] * np.eye(r)
                left = stable_inverse(whole - cross[:, own].T @ onto[:, own])
                if left is None:  # of a nearly dependent feature nothing is known
                    continue
                step = -left @ g[a]
                back = -(onto[:, own] @ step).reshape(-1, r) @ self.basis.T
                new = self.basis @ step
                move = z * new + A @ back
                moved = errors + p * (move - (p * move).sum(axis=1, keepdims=True))
                dual = -float(self.weight @ self.loss.conjugate(moved, self.y))
                dual -= 0.5 * float(penalty @ magnitudes(rows + back) ** 2)
                bounds[i] = dual - 0.5 * ridge[i] * float(new @ new) - self.resolution
        return bounds

    def _removal_bounds(self, x: Iterate, asked: Support) -> tuple[float, Vector]:
        """From points of the dual problem, as in `dual`: leaving out a feature makes its equations
        void."""
        S, r, first = x.support, self.n_classes - 1, self.N.shape[1]
        A, rows = self._with_nuisance(S), self._rows(x)
        penalty = np.repeat(self._penalty(S), r)
        slopes, second = self._slopes(x)
        errors = self._errors(slopes)
        p, u = errors + self.y, (rows @ self.basis).ravel()
        H = self.curvature(p, second, A, A) + np.diag(penalty)
        stable = stable_inverse(H)
        inverse = gram_inverse(H) if stable is None else stable
        slope = (A.T @ slopes @ self.basis).ravel() + penalty * u
        newton = -inverse @ slope
        tolerated = INFEASIBLE * self.total_weight
        left_over = np.abs(slope + H @ newton)
        if not left_over.max(initial=0.0) <= tolerated:
            return self.floor, np.full(len(S), self.floor)
        reach = reach_of(A, self._penalty(S), rows, stable is not None)
        worst = np.maximum(left_over.reshape(-1, r).max(axis=1), rounding_of(A, slopes))
        lost = self.resolution + float(reach @ worst)

        def dual(step: Vector, penalty: Vector) -> float:
            move = A @ (step.reshape(-1, r) @ self.basis.T)
            moved = errors + p * (move - (p * move).sum(axis=1, keepdims=True))
            value = -float(self.weight @ self.loss.conjugate(moved, self.y))
            value -= 0.5 * float(penalty @ (u + step) ** 2)
            return value - lost if value - lost > self.floor else self.floor

        here = dual(newton, penalty)
        without = np.full(len(S), here)
        for j in asked:
            own = slice((first + j) * r, (first + j + 1) * r)
            block = stable_inverse(inverse[own, own])
            if block is None:  # a dependent feature costs nothing
                continue
            removing = -inverse[:, own] @ (block @ (u + newton)[own])
            others = H @ removing
            others[own] = 0.0
            free = penalty.copy()
            free[own] = 0.0
            if np.abs(others).max() <= tolerated:
                hidden = float(reach @ np.abs(others).reshape(-1, r).max(axis=1))
                found = (dual(newton + length * removing, free) - hidden for length in LENGTHS)
                without[j] = max(without[j], next((v for v in found if v > here), here))
        return here, without

    def _local_model(self, x: Iterate) -> Objective:
        if x.nuisance is None:
            x = self._profile(x.support, x.coef)
        S, r = x.support, self.n_classes - 1
        products = self._slope_products(x)
        known = self._promising(S, products)
        whole = self._curvature_at(x, known)
        q = self.N.shape[1] * r
        own = whole[:q, :q] + np.diag(np.repeat(self._penalty(S[:0]), r))
        slope = -gram_inverse(own) @ whole[:q, q:]
        H = whole[q:, q:] + whole[q:, :q] @ slope
        z = np.zeros((len(known), r))
        z[np.searchsorted(known, S)] = self._standard(S, x.coef) @ self.basis
        g = (products[known] @ self.basis).ravel()
        Hz = H @ z.ravel()
        without_ridge = x.value - 0.5 * self.ridge[S] @ magnitudes(x.coef) ** 2
        constant = without_ridge - g @ z.ravel() + 0.5 * z.ravel() @ Hz
        model = LocalGroupModel(
            H, Hz - g, float(constant), self.ridge, known=known, scale=self.scale, basis=self.basis
        )
        model.forced = self.forced
        model.resolution = self.resolution
        model.centre, model.slope = x, slope.T
        return model

    def _curvature_at(self, x: Iterate, known: Support) -> Matrix:
        """A sum over the rows: of the columns of the intercept, the forced and these features."""
        slopes, second = self._slopes(x)
        A = np.column_stack([self.N, self.design.columns(known)])
        return self.curvature(self._errors(slopes) + self.y, second, A, A)

    def _promising(self, S: Support, products: Matrix) -> Support:
        """S and the features with the largest gradients, on the standardised scale."""
        room = max(LARGEST_LOCAL_HESSIAN // (self.n_classes - 1), 2 * len(S), 2)
        scores = magnitudes(products)
        scores[S] = np.inf
        free = self.choosable
        return np.sort(free[np.argsort(-scores[free], kind="stable")[:room]])

    # inside

    def _errors(self, slopes: Matrix) -> Matrix:
        """p − y of each row; zero for rows without weight, which do not matter."""
        w = self._column(self.weight)
        return np.divide(slopes, w, out=np.zeros_like(slopes), where=w > 0)

    def _margins(self, S: Support, rows: NDArray[np.float64]) -> Vector:
        """By how much the prediction of each row's class exceeds those of the other classes."""
        live = self.weight > 0
        eta, y = (self._with_nuisance(S) @ rows)[live], self.y[live]
        margins = (eta * y).sum(axis=1, keepdims=True) - eta
        return margins[y == 0]


class _RestrictedSoftmax(Restricted):
    """The unknowns are coordinates of the rows that sum to zero, in an orthonormal basis."""

    f: Multinomial

    def __init__(self, f: Multinomial, A: Matrix, penalty: Vector, offset: Any):
        super().__init__(f, A, np.repeat(penalty, f.n_classes - 1), offset)

    @property
    def width(self) -> int:
        return self.f.n_classes - 1

    def unknowns(self, rows: NDArray[np.float64]) -> Vector:
        return (rows @ self.f.basis).ravel()

    def rows(self, u: Vector) -> NDArray[np.float64]:
        return u.reshape(self.A.shape[1], self.f.n_classes - 1) @ self.f.basis.T

    def hessian(self, u: Vector) -> Matrix:
        second = self.f.weight[:, None] * self._second
        H = self.f.curvature(self._first + self.f.y, second, self.A, self.A)
        return H + np.diag(self.penalty)

    def lower(self, u: Vector, step: Vector) -> float:
        return -np.inf


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
