"""Quadratic objectives: restricted minimisers, insertions and exchanges in closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, eigvalsh, lapack

from ellzero.checks import check_number
from ellzero.core import Iterate, Iterates, Objective
from ellzero.linalg import (
    cholesky,
    independent,
    inverse_root,
    pseudo_inverse,
    pseudo_inverse_root,
    solve_each,
)
from ellzero.objectives.all_subsets import (
    RESOLVED,
    Ranked,
    best_of_all,
    best_pair,
    can_be_ranked,
)
from ellzero.objectives.design import check_ridge
from ellzero.objectives.gram import DenseGram, Gram, scaled_ridge
from ellzero.objectives.insertions import Insertions
from ellzero.objectives.steepest import AHEAD, Steepest
from ellzero.supports import NONE, Matrix, Support, Vector, filled, smallest

WIDTH = 8
"""Supports are filled up to multiples of this, and solved for together with others as long."""

SCREENED = 512
"""So many columns with large gradients are looked at where moments are not held."""

NOTHING = 4
"""Where others leave no more of a column, in units of the last place, it is a combination."""


CLEAR = 1e-5
"""A value is known where rounding changes less than this part of it."""


class Tableau(NamedTuple):
    """All that insertions and exchanges need to know about a support S, on the unit scale."""

    x: Vector  # restricted minimiser
    value: float
    root: Matrix  # B with BᵀB = C_SS⁻¹, or its pseudo-inverse
    regular: bool  # is C_SS?
    Z: Matrix  # B C_S,:
    residual: Vector  # c − C_:,S x, minus the gradient
    inside: Vector  # the part of each column's squared norm that lies in the span of S
    left: Vector  # and what S leaves of it

    @property
    def h(self) -> Vector:
        """The diagonal of C_SS⁻¹."""
        return np.einsum("ij,ij->j", self.root, self.root)


class Quadratic(Objective):
    """f(x) = ½ xᵀGx − bᵀx + constant + ½ Σ ridge_j x_j².

    Inside, everything is on the scale on which G has a unit diagonal (``x̂ = scale · x / unit``) and
    values are in units of ``unit²``.
    """

    blas_threads = 1  # the matrices of a step are too small to gain from more

    def __init__(
        self,
        gram: Any,
        b: ArrayLike,
        constant: float = 0.0,
        ridge: ArrayLike = 0.0,
    ):
        b = np.asarray(b, dtype=float)
        self.gram: Gram = gram if hasattr(gram, "rows") else DenseGram(_checked_matrix(gram, b))
        self.n_features = len(b)
        self.ridge = check_ridge(ridge, len(b))
        check_number("constant", constant)
        self.scale = self.gram.scale
        largest = np.abs(np.where(self.gram.diagonal > 0, b / self.scale, 0.0)).max(initial=0.0)
        self.unit = float(max(np.sqrt(2.0 * abs(constant)), largest)) or 1.0
        self.c = np.where(self.gram.diagonal > 0, b / self.scale / self.unit, 0.0)
        self.half = constant / self.unit / self.unit  # ½ for least squares
        self.resolution = 1e-12 * self.unit**2
        self.keeps_moments = self.gram.keeps
        self._last: tuple[bytes, Vector, Tableau] | None = None
        self._scaled: tuple[Vector, Vector] | None = None
        self._last_gradient = self.c  # where it is large, rows may be asked for next
        self.breadth = breadth(self.n_features**2)

    # the contract

    def _value(self, S: Support, coef: Vector) -> float:
        x = coef * (self.scale[S] / self.unit)
        A = self._block(S)
        return float(self.unit**2 * (self.half - self.c[S] @ x + 0.5 * x @ A @ x))

    def _gradient(self, point: Iterate) -> Vector:
        S = point.support
        x = point.coef * (self.scale[S] / self.unit)
        held = self.gram.holds(S)
        ahead = NONE if held else smallest(-np.abs(self._last_gradient), AHEAD)
        g = (self.gram.combined(S, x[None], ahead)[0] - self.c) * (self.scale * self.unit)
        g[S] += self.ridge[S] * point.coef
        if self.gram.keeps:
            self._last_gradient = g
        return g

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        c = self.c[S]
        x = self._solve(self._block(S), c)
        value = float(self.unit**2 * (self.half - 0.5 * c @ x))
        return Iterate(S, x * (self.unit / self.scale[S]), value, self.n_features)

    def steepest_finder(self) -> Callable[[Iterate], int]:
        if not self.gram.roughness:
            return super().steepest_finder()
        find = self.successive_steepest()
        return lambda x: int(find(Iterates.of(x))[0])

    def steepest(self, xs: Iterates) -> Support:
        return self.successive_steepest()(xs)

    def successive_steepest(self) -> Callable[[Iterates], Support]:
        steepest = Steepest(self.gram, self.c, self.scale, self.forced)

        def of(xs: Iterates) -> Support:
            x = xs.coef * (self.scale[filled(xs.support)] / self.unit)
            return steepest(xs.support, x)

        return of

    def at_hand(self, supports: Support) -> NDArray[np.bool_]:
        return self.gram.at_hand(filled(supports))

    def minimize_each(self, supports: Support, ridges: Matrix, starts: Iterates) -> Iterates:
        coef, values = np.zeros(supports.shape), np.empty(len(supports))
        sizes = np.count_nonzero(supports >= 0, axis=1)
        widths = -(-sizes // WIDTH)
        for width in set(widths.tolist()):
            (k,) = (widths == width).nonzero()
            s = min(width * WIDTH, supports.shape[1])
            coef[k, :s], values[k] = self._minimized(supports[k, :s], sizes[k], ridges[k, :s])
        return Iterates(supports, coef, values, self.n_features)

    def _minimized(self, S: Support, sizes: Support, ridges: Matrix) -> tuple[Matrix, Vector]:
        inside, T = S >= 0, filled(S)
        A, c, scale = self.gram.blocks(T), self.c[T] * inside, self.scale[T]
        s = int(sizes.min())
        A[:, :, s:] *= inside[:, None, s:]  # what is above the diagonal decides
        diagonals = A.reshape(len(A), -1)[:, :: A.shape[1] + 1]
        diagonals += np.where(inside, scaled_ridge(self.ridge[T] + ridges, scale), 1.0)
        x, regular = solve_each(A, c)
        for k in (~regular).nonzero()[0]:
            own = slice(sizes[k])
            x[k, own] = pseudo_inverse(A[k, own, own]) @ c[k, own]
        values = self.unit**2 * (self.half - 0.5 * np.einsum("ki,ki->k", c, x))
        return x * (self.unit / scale), values

    def smoothness(self, k: int) -> float:
        """Exact for k ≤ 2 when the Gram matrix is held; otherwise the best of several bounds."""
        diagonal = self.gram.diagonal * self.scale**2 + self.ridge
        top = diagonal.max(initial=0.0)
        if k <= 1 or not isinstance(self.gram, DenseGram):
            return float(top * min(k, self.n_features))  # trace of a k × k block
        G = np.abs(self.gram.matrix * self.scale * self.scale[:, None])
        np.fill_diagonal(G, 0.0)
        if k == 2:
            half_sum = (diagonal[:, None] + diagonal) / 2
            half_gap = (diagonal[:, None] - diagonal) / 2
            return float((half_sum + np.hypot(half_gap, G)).max())
        kept = min(k - 1, self.n_features - 1)
        largest = -np.partition(-G, kept - 1, axis=1)[:, :kept] if kept else G[:, :0]
        bound = min(top * k, (diagonal + largest.sum(axis=1)).max())
        if self.n_features <= 1000:
            full = self.gram.matrix * self.scale * self.scale[:, None] + np.diag(self.ridge)
            n = self.n_features
            bound = min(bound, eigvalsh(full, subset_by_index=[n - 1, n - 1])[0] * (1 + 1e-12))
        return float(bound)

    # closed forms

    def insertion_values(
        self, S: Support, x0: Iterate | None = None, below: float = np.inf
    ) -> Vector:
        return self._inserted(self._insertions(), S)

    def successive_insertion_values(self) -> Callable[..., Vector]:
        return partial(self._inserted, self._insertions())

    def _inserted(
        self, insertions: Insertions, S: Support, x0: Iterate | None = None, below: float = np.inf
    ) -> Vector:
        left = insertions(S)
        values = left.r * left.r
        values /= independent(left.d)
        values *= -0.5 * self.unit**2
        values += (self.half + left.value) * self.unit**2
        values[S] = np.inf
        if self.forced:
            values[list(self.forced)] = np.inf
        return values

    def _insertions(self) -> Insertions:
        return Insertions(self.gram, self._penalty, self.c)

    def promising_insertions(self, S: Support, count: int) -> Support:
        """Where moments are not held, only columns that would gain much if S left all of them."""
        root = None if self.keeps_moments else inverse_root(self._block(S))
        if root is None:
            return super().promising_insertions(S, count)
        residual = self.c - self.gram.combined(S, (root @ self.c[S] @ root)[None])[0]
        norm = self.gram.diagonal + self._penalty
        gain = np.where(self.outside(S), residual * residual / independent(norm), -np.inf)
        few = smallest(-gain, max(SCREENED, count))
        Z = root @ self.gram.block(S, few)
        left = norm[few] - np.einsum("ij,ij->j", Z, Z)
        return few[smallest(-(residual[few] ** 2) / independent(left), count)]

    def removal_values(self, S: Support, x0: Iterate | None = None) -> Vector:
        t = self._tableau(S)
        if not t.regular:
            return super().removal_values(S)
        return self.unit**2 * (t.value + t.x**2 / (2 * t.h))

    def rounding(self, x: Iterate) -> float:
        """An entry of C is known to a few units in the last place, and so are its products."""
        size = np.abs(x.coef * self.scale[x.support]).sum()
        unit = np.finfo(float).eps * self.digits_lost
        return self.resolution + 8 * unit * float(size * (self.unit + size))

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        rounding = self.rounding(x)
        cost = np.maximum(self.removal_values(x.support) - x.value, 0.0)
        return x.value - rounding, x.value + (1 - 1e-6) * cost - rounding

    def exchange_values(self, S: Support, x0: Iterate | None = None) -> Matrix:
        t = self._tableau(S)
        if not t.regular:
            return super().exchange_values(S)
        values = self._exchange_values(t, slice(None))
        values[:, ~self.outside(S)] = np.inf
        return values

    def best_exchange(self, S: Support, x0: Iterate | None = None) -> tuple[int, int, float]:
        """Only columns that can pay are scored.

        Exchanging j for i lowers f only if |residual_i| > √(2 cost_j) (√d_i − √(d_i − left_i)): the
        most favourable case is a column whose part inside the span of S is all due to j.
        """
        t = self._tableau(S)
        if not t.regular:
            return super().best_exchange(S, x0)
        cost = (t.x**2 / (2 * t.h)).min()
        d = t.left + t.inside
        hurdle = np.sqrt(2 * cost) * (np.sqrt(d) - np.sqrt(np.clip(t.inside, 0.0, d)))
        columns = np.flatnonzero((np.abs(t.residual) >= hurdle * (1 - 1e-9)) & self.outside(S))
        if not len(columns):
            return 0, 0, np.inf
        values = self._exchange_values(t, columns)
        j, i = divmod(int(np.argmin(values)), len(columns))
        return int(S[j]), int(columns[i]), float(values[j, i])

    def _exchange_values(self, t: Tableau, columns: Any) -> Matrix:
        h, W = t.h, t.root.T @ t.Z[:, columns]
        removed = t.value + t.x**2 / (2 * h)
        residual = W * (t.x / h)[:, None]
        residual += t.residual[columns]
        left = W * W
        left /= h[:, None]
        left += t.left[columns]
        residual *= residual
        residual /= independent(left)
        values = np.multiply(residual, -0.5 * self.unit**2, out=residual)
        values += (self.unit**2 * removed)[:, None]
        return values

    @property
    def moment_diagonal(self) -> Vector:
        d = self.gram.diagonal + self._penalty * self.gram.diagonal
        return np.append(d, 2 * self.half * self.unit**2)

    def moment_rows(self, rows: Support) -> Matrix:
        feature = rows < self.n_features
        S, target = rows[feature], self._target_moments()
        M = np.empty((len(rows), len(target)))
        M[feature, :-1] = self.gram.rows(S)
        M[feature.nonzero()[0], S] += self._own_ridge(S)
        M[~feature] = target
        M[:, -1] = target[rows]
        return M

    def moment_block(self, rows: Support, columns: Support) -> Matrix:
        n = self.n_features
        i, j = (rows < n).nonzero()[0], (columns < n).nonzero()[0]
        S, T = rows[i], columns[j]
        block = self.gram.block(S, T)
        if self.ridge.any():
            block += np.equal.outer(S, T) * self._own_ridge(T)
        if len(S) == len(rows) and len(T) == len(columns):
            return block
        target = self._target_moments()
        M = np.empty((len(rows), len(columns)))
        M[i[:, None], j] = block
        M[rows == n] = target[columns]
        M[:, columns == n] = target[rows, None]
        return M

    def moment_products(self, rows: Support, A: Matrix, ahead: Support = NONE) -> Matrix:
        feature = rows < self.n_features
        S, B = (rows, A) if feature.all() else (rows[feature], A[:, feature])
        return self._with_target(self.gram.combined(S, B, ahead), rows, A)

    def rough_moment_products(
        self, rows: Support, A: Matrix, ahead: Support = NONE
    ) -> tuple[Matrix, Vector]:
        if not self.gram.roughness:
            return super().rough_moment_products(rows, A, ahead)
        feature = rows < self.n_features
        S, B = rows[feature], A[:, feature]
        unit = np.abs(B).max(axis=1, initial=0.0, keepdims=True)
        unit[unit == 0] = 1.0
        out = (B / unit).astype(np.float32) @ self.gram.coarse_rows(S, ahead)
        out = self._with_target(out * unit, rows, A)
        error = self.gram.roughness + (len(S) + 8) * float(np.finfo(np.float32).eps)
        return out, error * np.abs(B).sum(axis=1)

    def _with_target(self, products: Matrix, rows: Support, A: Matrix) -> Matrix:
        """What the ridge and the row of the target add to products with rows of C."""
        target = rows == self.n_features
        if self.ridge.any():
            S = rows[~target]
            products[:, S] += A[:, ~target] * self._own_ridge(S)
        if target.any():
            products += np.multiply.outer(A[:, target].sum(axis=1), self.unit * self.c)
        return products

    def _target_moments(self) -> Vector:
        return np.append(self.unit * self.c, 2 * self.half * self.unit**2)

    def _own_ridge(self, S: Support) -> Vector:
        """What the ridge adds to the moments of features with themselves."""
        return self._penalty[S] * self.gram.diagonal[S]

    def best_subset(self, k: int) -> tuple[Iterate, bool] | None:
        if not self._ranks(k):
            return None
        S, doubtful = self._ranked(k, NOTHING)
        return self.minimize(S), not len(doubtful) and self._tells(S)

    def _tells(self, S: Support) -> bool:
        """Say whether moments tell values near that of S apart: a nearly perfect fit is rounding.

        An f that has no floor is not a sum of squares; its values are not compared with zero.
        """
        x = self.minimize(S)
        return self.floor == -np.inf or RESOLVED * self.unit**2 <= CLEAR * (x.value - self.floor)

    def _ranks(self, k: int) -> bool:
        """Can all supports of size k be looked at?"""
        return isinstance(self.gram, DenseGram) and can_be_ranked(self.n_choosable, k)

    def _ranked(self, k: int, same: float) -> Ranked:
        assert isinstance(self.gram, DenseGram)
        rank = best_pair if k == 2 else partial(best_of_all, k=k)
        eps = np.finfo(float).eps * self.digits_lost
        return rank(self.gram.matrix, self._penalty, self.c, self.choosable, eps, same)

    def quadratic_model(self, x: Iterate) -> Objective:
        return self

    def least_squares_form(self, S: Support) -> tuple[Matrix, Vector]:
        b = self.c * self.scale * self.unit
        A = None if self.ridge.any() else self.gram.factor()
        if A is not None:  # as many rows as the data: Aᵀt = b by the normal equations
            A = A * self.scale
            return A[:, S], pseudo_inverse(A @ A.T) @ (A @ b)
        scale = self.scale[S]
        G = self.gram.block(S) * scale * scale[:, None] + np.diag(self.ridge[S])
        w, Q = eigh(G)
        keep = w > w.max(initial=0.0) * 1e-13
        root = np.sqrt(w[keep])
        return (Q[:, keep] * root).T, (Q[:, keep] / root).T @ b[S]

    def _tableau(self, S: Support) -> Tableau:
        key, last = S.tobytes(), self._last
        if last is not None and last[0] == key and last[1] is self.ridge:
            return last[2]
        block = self._block(S)
        inverse = inverse_root(block)
        root = pseudo_inverse_root(block) if inverse is None else inverse
        Z, target = root @ self.gram.rows(S), root @ self.c[S]
        inside = np.einsum("ij,ij->j", Z, Z)
        t = Tableau(
            x=target @ root,
            value=float(self.half - 0.5 * target @ target),
            root=root,
            regular=inverse is not None,
            Z=Z,
            residual=self.c - target @ Z,
            inside=inside,
            left=self.gram.diagonal + self._penalty - inside,
        )
        self._last = key, self.ridge, t
        return t

    @property
    def _penalty(self) -> Vector:
        """The ridge on the unit scale."""
        if self._scaled is None or self._scaled[0] is not self.ridge:
            self._scaled = self.ridge, scaled_ridge(self.ridge, self.scale)
        return self._scaled[1]

    def _block(self, S: Support) -> Matrix:
        block = self.gram.block(S)
        block.flat[:: len(S) + 1] += self._penalty[S]
        return block

    def _solve(self, A: Matrix, c: Vector) -> Vector:
        """A⁻¹c, or the solution of least norm where A is singular."""
        factor = cholesky(A)
        if factor is None:
            return pseudo_inverse(A) @ c
        return lapack.dpotrs(factor, c, lower=1)[0] if len(c) else np.empty(0)


def breadth(size: int) -> int:
    """How wide to search a quadratic of data with so many numbers.

    It takes the longer the more data there are, and with fewer data more supports are alike.
    """
    return int(np.clip(4e8 / size, 1, 256))


def _checked_matrix(G: ArrayLike, b: Vector) -> Matrix:
    G = np.asarray(G, dtype=float)
    if b.ndim != 1 or G.shape != (len(b), len(b)):
        raise ValueError(f"gram, b: expected shapes (n, n) and (n,), got {G.shape} and {b.shape}.")
    if not (np.isfinite(G).all() and np.isfinite(b).all()):
        raise ValueError("gram, b: contain NaN or infinite values.")
    size = np.abs(G).max(initial=0.0)
    if np.abs(G - G.T).max(initial=0.0) > 1e-10 * size:
        raise ValueError("gram: is not symmetric.")
    if eigvalsh(G, subset_by_index=[0, 0])[0] < -1e-8 * size:
        raise ValueError("gram: is not positive semidefinite, so f is not convex.")
    return G
