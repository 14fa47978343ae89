"""Quadratics: moments, with a penalty beside them. Everything about them has a closed form."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, eigvalsh, lapack

from ellzero.checks import check_number, check_ridge
from ellzero.core import (
    Features,
    Iterate,
    Move,
    Neighbourhood,
    Objective,
    Point,
    as_features,
)
from ellzero.linalg import cholesky, pseudo_inverse, solve_each
from ellzero.objectives.moments import Moments
from ellzero.objectives.moments.held import HeldMoments, penalty_on, unit_moments
from ellzero.objectives.tableau import Left
from ellzero.supports import Matrix, Support, Vector

if TYPE_CHECKING:
    from typing import Self

    from ellzero.objectives.exact_rows import ExactRows

NUMBERS_AT_ONCE = 1 << 22
"""Entries of gradients that are made at a time: 32 MB, about what a processor's cache holds."""

LARGEST_SPECTRUM = 1000
"""Features up to which the smoothness may ask for a largest eigenvalue: 0.1 s for so many."""


class Quadratic(Objective):
    """f(x) = ½ xᵀGx − bᵀx + constant + ½ Σ ridge_j ‖x_j‖².

    Parameters
    ----------
    gram : array of shape (n, n)
        G, symmetric and positive semidefinite.
    b : array of n numbers
    constant : float
    ridge : float or array of n numbers
        One number for all features, or one for each.

    Examples
    --------
    >>> from ellzero import Quadratic, omp
    >>> omp(Quadratic([[2.0, 1.0], [1.0, 2.0]], [1.0, 3.0]), 1).support
    array([1])
    """

    moments: Moments
    scale: Vector
    """For each coordinate, z = scale · x / unit."""
    unit: float
    ridge: Vector
    """One number for each feature."""
    has_rows = False
    """Whether the rows that f is made of are known; otherwise only moments are."""
    digits_lost: float = 1.0
    """By how much cancellation has made rounding of the moments larger before f came to be."""

    def __init__(
        self,
        gram: ArrayLike,
        b: ArrayLike,
        constant: float = 0.0,
        ridge: ArrayLike = 0.0,
    ):
        b = np.asarray(b, dtype=float)
        check_number("constant", constant)
        moments, scale, unit = unit_moments(_checked_matrix(gram, b), b, float(constant))
        self.hold(moments, Features(len(b)), scale, unit, check_ridge(ridge, len(b)))

    @classmethod
    def of(
        cls,
        moments: Moments,
        features: Features,
        scale: Vector,
        unit: float = 1.0,
        ridge: ArrayLike = 0.0,
    ) -> Quadratic:
        """Make a quadratic of its moments on the unit scale."""
        f = Quadratic.__new__(Quadratic)
        f.hold(moments, features, scale, unit, ridge)
        return f

    def hold(
        self, moments: Moments, features: Features, scale: Vector, unit: float, ridge: ArrayLike
    ) -> None:
        """Take these moments for those of this f. A subclass calls it once, when it is made."""
        self.moments, self.features, self.scale, self.unit = moments, features, scale, unit
        self.size = float(len(scale)) ** 2
        self.resolution = 1e-12 * unit**2
        self._set_ridge(np.broadcast_to(np.asarray(ridge, dtype=float), (len(features),)))

    def _set_ridge(self, ridge: Vector) -> None:
        self.ridge = ridge
        own = np.where(self.features.free, ridge, 0.0)  # that on forced features is in the moments
        self.penalty = penalty_on(self.features.per_coordinate(own), self.scale)
        self.has_penalty = bool(self.penalty.any())

    # C and the penalty together

    def block(self, S: Support, T: Support) -> NDArray[np.float64]:
        """Return (C + diag(penalty))[S, T] for coordinates S and T, or stacks of them."""
        block = self.moments.block(S, T)
        if self.has_penalty:
            same = S[..., :, None] == T[..., None, :]
            block = block + np.where(same, self.penalty[T][..., None, :], 0.0)
        return block

    def products(self, S: Support, A: Matrix) -> Matrix:
        """Return A · (C + diag(penalty))[S, :] for coordinates S."""
        found = self.moments.products(S, A)
        if self.has_penalty:
            found[:, S] += A * self.penalty[S]
        return found

    def products_each(self, rows: Iterable[Support], weights: Iterable[Vector]) -> Matrix:
        """Return, for each set of coordinates T with weights a, the row a · C[T, :]."""
        rows, flat = list(rows), np.concatenate(list(weights))
        union, place = np.unique(np.concatenate(rows), return_inverse=True)
        A = np.zeros((len(rows), len(union)))
        A[np.repeat(np.arange(len(rows)), [len(T) for T in rows]), place] = flat
        return self.products(union, A)

    @cached_property
    def own_blocks(self) -> list[NDArray[np.float64]]:
        """For every block size, the block of each feature with itself."""
        if self.features.all_single:
            return [(self.moments.diagonal + self.penalty)[:, None, None]]
        return [self.block(at, at) for _, at in self.features.groups]

    # the contract

    def at(self, x: Point) -> Iterate:
        x = self.point(x)
        T = self.features.coordinates(x.support)
        z = x.coef * (self.scale[T] / self.unit)
        own = self.moments.constant - self.moments.target[T] @ z + 0.5 * z @ self.block(T, T) @ z
        return Iterate(
            self.features, x.support, x.coef, float(self.unit**2 * own), x.note, x.minimizer
        )

    def gradient(self, x: Point) -> Vector:
        x = self.point(x)
        T = self.features.coordinates(x.support)
        z = x.coef * (self.scale[T] / self.unit)
        slope = self.products(T, z[None])[0] - self.moments.target
        return slope * (self.scale * self.unit)

    def minimize(self, S: ArrayLike, start: Iterate | None = None, below: float = inf) -> Iterate:
        S = as_features(S)
        T = self.features.coordinates(S)
        c = self.moments.target[T]
        z = _solved(self.block(T, T), c)
        value = self.unit**2 * (self.moments.constant - 0.5 * float(c @ z))
        return Iterate(self.features, S, z * (self.unit / self.scale[T]), value)

    def steepest(self, xs: Sequence[Iterate]) -> list[int]:
        step = max(NUMBERS_AT_ONCE // len(self.scale), 1)
        parts = [xs[k : k + step] for k in range(0, len(xs), step)]
        return [i for part in parts for i in self._steepest(part)]

    def _steepest(self, xs: Sequence[Iterate]) -> list[int]:
        rows = [self.features.coordinates(x.support) for x in xs]
        z = [x.coef * (self.scale[T] / self.unit) for x, T in zip(xs, rows, strict=True)]
        slopes = self.products_each(rows, z)
        slopes -= self.moments.target
        slopes *= self.scale
        sizes = self.features.norms(slopes)
        sizes[:, ~self.features.free] = -1.0
        inside = np.concatenate([x.support for x in xs])
        sizes[np.repeat(np.arange(len(xs)), [len(x.support) for x in xs]), inside] = -1.0
        return sizes.argmax(axis=1).tolist()

    def minimize_stack(
        self, supports: Sequence[Support], ridges: Sequence[Vector]
    ) -> list[Iterate]:
        """Minimise f + ½ Σ d_j ‖x_j‖² over each of many supports.

        Parameters
        ----------
        supports : sequence of arrays of int
            Sorted supports, of any sizes.
        ridges : sequence of arrays of float
            For each support the numbers d_j of its features.
        """
        order = sorted(range(len(supports)), key=lambda k: len(supports[k]))
        T = [self.features.coordinates(supports[k]) for k in order]
        d = [self.features.per_coordinate(ridges[k], supports[k]) for k in order]
        found: dict[int, Iterate] = {}
        step = max(NUMBERS_AT_ONCE // (len(T[-1]) ** 2 or 1), 1) if T else 1
        for begin in range(0, len(order), step):
            part = slice(begin, begin + step)
            z, values = self._minimised(T[part], d[part])
            for k, own, x, value in zip(order[part], T[part], z, values.tolist(), strict=True):
                found[k] = Iterate(self.features, supports[k], x[: len(own)], value)
        return [found[k] for k in range(len(supports))]

    def _minimised(self, own: list[Support], ridges: list[Vector]) -> tuple[Matrix, Vector]:
        """Return minimisers over sets of coordinates, filled up with zeros, and their values.

        Smaller sets are filled up to the size of the largest one with ones on the diagonal.
        """
        sizes = np.array([len(T) for T in own])
        filled = np.arange(sizes.max(initial=1)) < sizes[:, None]
        members = np.concatenate(own)
        T = np.full(filled.shape, members[0] if len(members) else 0)  # whose row is made anyway
        d = np.zeros(filled.shape)
        T[filled], d[filled] = members, np.concatenate(ridges)
        A, scale = self.moments.block(T, T), self.scale[T]
        A *= filled[:, :, None] & filled[:, None, :]
        own_penalty = self.penalty[T] + penalty_on(d, scale)
        np.einsum("kii->ki", A)[...] += np.where(filled, own_penalty, 1.0)
        c = self.moments.target[T] * filled
        z, regular = solve_each(A, c)
        for k in np.flatnonzero(~regular):
            z[k] = pseudo_inverse(A[k]) @ c[k]
        values = self.unit**2 * (self.moments.constant - 0.5 * np.einsum("ki,ki->k", c, z))
        return z * (self.unit / scale), values

    def smoothness(self, k: int) -> float:
        """Return ρₖ⁺, exact for k ≤ 2 where the matrix is held and features are single.

        Otherwise it is the least of several upper bounds.
        """
        tops = []
        for (_, at), L in zip(self.features.groups, self.own_blocks, strict=True):
            scale = self.scale[at]
            tops.append(eigvalsh_each(L * scale[:, :, None] * scale[:, None]))
        top = float(max(t.max(initial=0.0) for t in tops))
        k = min(k, len(self.features))
        if k <= 1 or not self.features.all_single or not isinstance(self.moments, HeldMoments):
            return top * k  # the trace of k blocks
        diagonal = tops[0]
        G = np.abs(self.moments.matrix * self.scale * self.scale[:, None])
        np.fill_diagonal(G, 0.0)
        if k == 2:
            half_sum = (diagonal[:, None] + diagonal) / 2
            half_gap = (diagonal[:, None] - diagonal) / 2
            return float((half_sum + np.hypot(half_gap, G)).max())
        kept = min(k - 1, len(G) - 1)
        largest = -np.partition(-G, kept - 1, axis=1)[:, :kept] if kept else G[:, :0]
        bound = min(top * k, float((diagonal + largest.sum(axis=1)).max()))
        if len(G) <= LARGEST_SPECTRUM:
            whole = self.moments.matrix * self.scale * self.scale[:, None]
            whole[np.diag_indices_from(whole)] = diagonal
            last = len(G) - 1
            bound = min(
                bound, float(eigvalsh(whole, subset_by_index=[last, last])[0]) * (1 + 1e-12)
            )
        return bound

    def ridged(self, d: ArrayLike) -> Self:
        other = copy.copy(self)
        other.__dict__.pop("own_blocks", None)
        other._set_ridge(self.ridge + np.where(self.features.free, np.asarray(d, dtype=float), 0.0))
        return other

    def quadratic(self, x: Iterate) -> Quadratic:
        return self

    def neighbourhood(self, x: Iterate) -> Neighbourhood:
        return ClosedForms(self, Left.by(self, x.support))

    # what proofs ask (see `Certifiable`)

    def rounding(self, x: Iterate) -> float:
        """Bound how far the value of a minimiser may be from the minimum over its support.

        An entry of C is known to a few units in the last place, and so are products with it.
        """
        size = np.abs(x.coef * self.scale[self.features.coordinates(x.support)]).sum()
        eps = float(np.finfo(float).eps) * self.digits_lost
        return self.resolution + 8 * eps * float(size * (self.unit + size))

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        """Return lower bounds on min f over the support S of x, and over S without each feature."""
        rounding = self.rounding(x)
        cost = np.maximum(self.neighbourhood(x).removals() - x.value, 0.0)
        return x.value - rounding, x.value + (1 - 1e-6) * cost - rounding

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether f cannot be lower than at x."""
        return x.value <= self.floor

    def exact(self, free: Support | None = None, deadline: float = inf) -> ExactRows | None:
        """Return f from the rows that it is made of, if these are known."""
        return None

    def forced_hide(self) -> bool:
        """Say whether the forced features leave less than rounding of a column that may matter."""
        return False

    # what the LASSO asks

    def least_squares_form(self, S: Support) -> tuple[Matrix, Vector]:
        """Return A, t with f(x) = ½‖Ax_S − t‖² + constant for x that are zero outside S."""
        S = self.features.coordinates(S)
        b = self.moments.target * self.scale * self.unit
        A = None if self.has_penalty else self.moments.factor()
        if A is not None:  # as many rows as the data: Aᵀt = b by the normal equations
            A = A * self.scale
            return A[:, S], pseudo_inverse(A @ A.T) @ (A @ b)
        scale = self.scale[S]
        w, Q = eigh(self.block(S, S) * scale * scale[:, None])
        keep = w > w.max(initial=0.0) * 1e-13
        root = np.sqrt(w[keep])
        return (Q[:, keep] * root).T, (Q[:, keep] / root).T @ b[S]


class ClosedForms(Neighbourhood):
    """The neighbourhood of a quadratic: everything follows from what S leaves."""

    def __init__(self, f: Quadratic, left: Left):
        self.f, self.left = f, left
        self.order = np.argsort(left.S)
        S = left.S[self.order]
        z = left.z
        if len(S):
            places = left.places()
            z = z[np.concatenate([np.arange(places[k].start, places[k].stop) for k in self.order])]
        coef = z * (f.unit / f.scale[f.features.coordinates(S)])
        self.x = Iterate(f.features, S, coef, float(left.value) * f.unit**2)

    def insertions(self, below: float = inf) -> Vector:
        values = (self.left.value - self.left.gains()) * self.f.unit**2
        return np.where(self.f.features.outside(self.x.support), values, inf)

    def removals(self) -> Vector:
        if not self.left.regular:
            return np.array([self.moved(Move(leaves=j)).x.value for j in self.x.support.tolist()])
        return (self.left.value + self.left.costs()[self.order]) * self.f.unit**2

    def best_exchange(self) -> Move:
        i, j, value = self.left.best_exchange()
        value *= self.f.unit**2
        return Move(i, j, value if value < self.x.value else inf)

    def moved(self, move: Move) -> Neighbourhood:
        left = self.left
        if move.leaves >= 0:
            left = left.removed(move.leaves)
        if move.enters >= 0:
            left = left.inserted(move.enters)
        return ClosedForms(self.f, left)


def eigvalsh_each(A: NDArray[np.float64]) -> Vector:
    """Return the largest eigenvalue of every matrix of a stack."""
    if A.shape[1] == 1:
        return A[:, 0, 0]
    return np.asarray(np.linalg.eigvalsh(A)[:, -1], dtype=np.float64)


def _solved(A: Matrix, c: Vector) -> Vector:
    """Return A⁻¹c, or the solution of least norm where A is singular."""
    factor = cholesky(A)
    if factor is None:
        return pseudo_inverse(A) @ c
    return lapack.dpotrs(factor, c, lower=1)[0] if len(c) else np.empty(0)


def _checked_matrix(G: Any, b: Vector) -> Matrix:
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
