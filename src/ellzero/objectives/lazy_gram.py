"""Rows of a Gram matrix that is too large to be held, made when they are first asked for."""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.design import TOLERATED_LOSS, Design
from ellzero.objectives.gram import CONSTANT, blocks_of, gram_inverse
from ellzero.objectives.kept_rows import KeptRows
from ellzero.objectives.panels import Panels, rounding_of
from ellzero.objectives.products import product
from ellzero.supports import NONE, Matrix, Support, Vector

LONGEST_KEPT = 100_000
"""Of sparse data with more features no Gram row is kept."""

A_PASS, LONG_PASS = 16, 64
"""A pass over dense data makes so many rows in hardly more time than eight; where all rows that it
makes are wanted, a longer one takes less time for each."""

COARSE_PASS = 12
"""One over panels makes so many in hardly more time than one."""

PANELS_FROM, FEW = 1 << 21, 3
"""It pays to copy X if it has so many numbers, and more than a few coarse rows are asked for."""

GATHERED = 64
"""It takes time to gather so many columns."""

MANY = 1024
"""The columns of so many features at a time are not kept, ..."""

MOST, MOST_NUMBERS = 4096, 1 << 26
"""... nor those of more in all, nor so many numbers."""

NO_COLUMNS: tuple[Support, Matrix] = NONE, np.empty((0, 0))


class LazyGram:
    """Parts of XᵀMX, made when they are first asked for.

    What a search asks about many features is answered by rows in single precision (`coarse_rows`),
    what it then asks about few by exact blocks, made of their columns. Exact rows take a pass over
    X. All is kept, save the rows of sparse data if they are longer than `LONGEST_KEPT`: those would
    soon outgrow X, and combinations of them are made each time anew.

    M is the weighted projection that takes out the intercept (if `centre`) and the forced features,
    the latter under their ridge.
    """

    keeps = True
    threads = 1
    roughness = 0.0
    _keeps_columns = False

    def __init__(
        self,
        design: Design,
        weight: Vector,
        centre: bool,
        F: Support,
        ridge: Vector,
        threads: int,
        tolerated: float = TOLERATED_LOSS,
    ):
        self.design, self.weight = design, weight
        self.threads = threads
        self._keeps_columns = not design.is_sparse
        total = weight.sum()
        self.mean, self.norms2 = design.means_and_norms(weight, centre, self.threads)
        self.N = design.columns(F) - self.mean[F]
        own = (self.N.T * weight) @ self.N
        self._project(total, own, self._times(weight[:, None] * self.N), F, ridge)
        # products of sparse columns may be centred afterwards where few enough digits cancel
        enough = (tolerated * self.norms2 >= total * self.mean**2).all()
        self._sparse = design.is_sparse and bool(enough)
        self.keeps = not self._sparse or design.shape[1] <= LONGEST_KEPT
        if self._keeps_columns and design.X.size >= PANELS_FROM and not len(F):
            # forced features may leave so little of a column that single precision loses it
            self.roughness = rounding_of(len(weight))

    def _project(self, total: float, own: Matrix, cross: Matrix, F: Support, ridge: Vector) -> None:
        """Take the forced features out: NᵀWN and XᵀWN of the centred columns are given."""
        norms2 = self.norms2
        self._forced_ridge = bool(ridge[F].any())
        self.K, self.cross = gram_inverse(own + np.diag(ridge[F])), cross
        left = norms2 - np.einsum("jq,qr,jr->j", cross, self.K, cross)
        zero = (left <= 1e-12 * norms2) | (norms2 <= CONSTANT * total * self.mean**2)
        zero[F] = True
        self._norm = np.where(zero, 1.0, np.sqrt(np.maximum(left, 0.0)))
        self.scale = self._norm
        self.diagonal = (~zero).astype(float)
        self._exact = KeptRows(len(norms2), len(norms2), np.float64)
        self._forget()

    def _forget(self) -> None:
        self._lock = RLock()  # threads may share what is kept
        self._coarse = KeptRows(len(self._norm), len(self._norm), np.float32)
        self._last = NO_COLUMNS
        self._forget_columns()

    def _forget_columns(self) -> None:
        m = len(self.weight) if self._keeps_columns else 0
        self._columns = KeptRows(len(self._norm), m, np.float64)
        self._among = np.empty((0, 0))  # C between the features whose columns are kept

    def __getstate__(self) -> dict[str, Any]:
        """Without the lock, and all that is soon made anew."""
        left_out = ("_lock", "_coarse", "_columns", "_among", "_last", "_panels")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._forget()

    # products with the columns

    def _times(self, V: Matrix, T: Any = slice(None)) -> Matrix:
        """(X_T − mean)ᵀ V; one pass over X where T is not given."""
        if not isinstance(T, slice):
            return self._centred(T).T @ V
        product = self.design.transposed_times(V, self.threads)
        if self.mean.any():
            for column, total in zip(product.T, V.sum(axis=0), strict=True):
                column -= total * self.mean
        return product

    def _centred(self, T: Support) -> Matrix:
        """X_T − mean; as many as a beam asks for again and again are remembered."""
        if not GATHERED <= len(T) <= 8 * GATHERED:
            return self.design.columns(T) - self.mean[T]
        last, columns = self._last
        if not np.array_equal(T, last):
            columns = self.design.columns(T) - self.mean[T]
            self._last = T, columns
        return columns

    def _measured(self, V: Matrix) -> Matrix:
        """MV for the centred columns V."""
        wV = V * self.weight[:, None]
        if self.N.size:
            wV -= (self.N @ (self.K @ (self.N.T @ wV))) * self.weight[:, None]
        return wV

    def inner(self, V: Matrix, T: Any = slice(None)) -> Matrix:
        """X_TᵀMV on the unit scale of the columns T, by default all, for the centred columns V."""
        out = self._times(self._measured(V), T)
        out /= self._norm[T, None]
        out[self.diagonal[T] == 0] = 0.0
        return out

    def factor(self) -> Matrix | None:
        m, n = self.design.shape
        if m >= n or self._forced_ridge:
            return None
        root = np.sqrt(self.weight)[:, None]
        A = (self.design.columns(np.arange(len(self.mean))) - self.mean) * (root / self._norm)
        A[:, self.diagonal == 0] = 0.0
        B = root * self.N
        A -= B @ (self.K @ (B.T @ A))
        return A

    def _inner_products(self, S: Support, T: Any = slice(None)) -> Matrix:
        """C[S, T], by default C[S, :], from the columns."""
        if self._sparse:
            new = self.design.sparse_products(S, T, self.weight)
            new -= np.multiply.outer(self.weight.sum() * self.mean[S], self.mean[T])
            return self._projected(new, S, T)
        new = self.inner(self._unit_columns(S), T).T
        new[self.diagonal[S] == 0] = 0.0
        return new

    def _unit_columns(self, S: Support) -> Matrix:
        return (self.design.columns(S) - self.mean[S]) / self._norm[S]

    def _projected(self, new: Matrix, S: Support, T: Any = slice(None)) -> Matrix:
        """Of products of centred columns, what the forced features leave, on the unit scale."""
        new -= self.cross[S] @ self.K @ self.cross[T].T
        new /= self._norm[T]
        new /= self._norm[S, None]
        new[:, self.diagonal[T] == 0] = 0.0
        new[self.diagonal[S] == 0] = 0.0
        return new

    # rows

    def rows(self, S: Support) -> Matrix:
        if not self.keeps:
            return self.combined(S, np.eye(len(S)))
        return self._held(S)[S]

    def combined(self, S: Support, A: Matrix, ahead: Support = NONE) -> Matrix:
        if self.keeps:
            return product(A, self._held(S, ahead)[S])
        A = A * (self.diagonal[S] / self._norm[S])
        V = self.design.X[:, S] @ A.T - A @ self.mean[S]
        return np.ascontiguousarray(self.inner(V).T)

    def holds(self, S: Support) -> bool:
        return not self.keeps or bool(self._exact.has(S).all())

    def _held(self, S: Support, ahead: Support = NONE) -> KeptRows:
        """The exact rows, with those of S."""
        with self._lock:
            ahead = np.append(ahead, self._coarse.features)  # what mattered before may again
            missing = self._exact.missing(S, ahead, A_PASS)
            if len(missing):
                self._exact.add(missing, self._with_diagonal(self._new_rows(missing), missing))
            return self._exact

    def _new_rows(self, S: Support) -> Matrix:
        return self._inner_products(S)

    def coarse_rows(self, S: Support, ahead: Support = NONE) -> NDArray[Any]:
        if not self.roughness:
            return self._held(S, ahead)[S]
        with self._lock:
            missing = self._coarse.missing(S, ahead, COARSE_PASS)
            if len(missing):
                self._coarse.add(missing, self._with_diagonal(self._new_coarse(missing), missing))
            return self._coarse[S]

    def _new_coarse(self, S: Support) -> NDArray[Any]:
        if "_panels" not in self.__dict__ and len(self._coarse) + len(S) <= FEW:
            return self._inner_products(S)
        V = self._unit_columns(S) * self.diagonal[S]
        return self._panels.products((V * np.sqrt(self.weight)[:, None]).T)

    @cached_property
    def _panels(self) -> Panels:
        """Nothing is forced, so C = ZᵀZ; with half of the weight in each factor none is large."""
        factor, root = self.diagonal / self._norm, np.sqrt(self.weight)
        return Panels(self.design, self.mean, factor, root, self.threads)

    def _with_diagonal(self, rows: NDArray[Any], S: Support) -> NDArray[Any]:
        rows[np.arange(len(S)), S] = self.diagonal[S]
        return rows

    def at_hand(self, S: Support) -> NDArray[np.bool_]:
        kept, enough = (self._coarse, COARSE_PASS) if self.roughness else (self._exact, LONG_PASS)
        missing = ~kept.has(S)
        if not self.keeps or np.unique(S[missing]).size >= enough:
            return np.ones(len(S), dtype=bool)
        return np.logical_not(missing.any(axis=1))

    # blocks

    def block(self, S: Support, T: Support | None = None) -> Matrix:
        T = S if T is None else T
        if len(S) < MANY:
            among, here, there = self._taken(S, T)
            if (there >= 0).all():
                return among[here[:, None], there]
        products = self._across(S, T)
        same = np.equal.outer(S, T)
        products[same] = np.broadcast_to(self.diagonal[T], same.shape)[same]
        return products

    def blocks(self, S: Support) -> NDArray[np.float64]:
        among, places, _ = self._taken(S)
        return blocks_of(among, places)

    def _taken(self, S: Support, T: Support = NONE) -> tuple[Matrix, Support, Support]:
        """Keep the columns of S; C between all features whose columns are kept, and where in it
        those of S are, and those of T, or −1."""
        with self._lock:
            self._take(S)
            return self._among, self._columns.slot[S], self._columns.slot[T]

    def _take(self, S: Support) -> None:
        new = self._columns.missing(S)
        if not len(new):
            return
        most = min(MOST, MOST_NUMBERS // max(self._columns.length, 1))
        if len(self._columns) + len(new) > most:
            self._forget_columns()
            new = np.unique(S)
        columns = np.empty((0, len(new)))
        if self._keeps_columns:
            columns = self._unit_columns(new) * self.diagonal[new]
        self._columns.add(new, columns.T)
        features, before = self._columns.features, len(self._among)
        among = np.empty((len(features), len(features)))
        among[:before, :before] = self._among
        if self._keeps_columns:
            among[before:] = self._measured(columns).T @ self._columns.all.T
        else:
            among[before:] = self._inner_products(new, features)
        among[:before, before:] = among[before:, :before].T
        among.flat[before * (len(among) + 1) :: len(among) + 1] = self.diagonal[new]
        self._among = among

    def _across(self, S: Support, T: Support) -> Matrix:
        """C[S, T], of the columns of S that are kept, if they are."""
        kept = self._columns
        if not self._keeps_columns or not kept.has(S).all():
            return self._inner_products(S, T)
        return self.inner(kept[S].T, T).T
