"""Rows of a Gram matrix that is too large to be held, made when they are first asked for."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.design import TOLERATED_LOSS, Design
from ellzero.objectives.gram import CONSTANT, blocks_of, gram_inverse
from ellzero.objectives.products import product
from ellzero.supports import NONE, Mask, Matrix, Support, Vector, union
from ellzero.threads import blas_threads, current_blas_threads

LONGEST_KEPT = 100_000
"""Of sparse data with more features no Gram row is kept."""

A_PASS, LONG_PASS = 16, 64
"""A pass over dense data makes so many rows in hardly more time than eight; where all rows that it
makes are wanted, a longer one takes less time for each."""

ROOM = 256
"""There is room for so many rows at first: what is not used takes no memory, only addresses."""

GATHERED = 64
"""It takes time to gather so many columns."""

NO_COLUMNS: tuple[Support, Matrix] = NONE, np.empty((0, 0))


class LazyGram:
    """Rows of XᵀMX computed when first asked for, one pass over X each, and kept.

    Small blocks need no rows: what those kept do not tell is computed from the columns, each time
    anew. Rows longer than `LONGEST_KEPT` would soon outgrow a sparse X: none is kept there, and
    combinations of rows are computed each time anew, too.

    M is the weighted projection that takes out the intercept (if `centre`) and the forced features,
    the latter under their ridge.
    """

    keeps = True
    threads = 1

    def __init__(
        self,
        design: Design,
        weight: Vector,
        centre: bool,
        F: Support,
        ridge: Vector,
        tolerated: float = TOLERATED_LOSS,
    ):
        self.design, self.weight = design, weight
        self.threads = current_blas_threads()
        total = weight.sum()
        self.mean, self.norms2 = design.means_and_norms(weight, centre, self.threads)
        self.N = design.columns(F) - self.mean[F]
        own = (self.N.T * weight) @ self.N
        self._project(total, own, self._times(weight[:, None] * self.N), F, ridge)
        # products of sparse columns may be centred afterwards where few enough digits cancel
        enough = (tolerated * self.norms2 >= total * self.mean**2).all()
        self._sparse = design.is_sparse and bool(enough)
        self.keeps = not self._sparse or design.shape[1] <= LONGEST_KEPT

    def __getstate__(self) -> dict[str, Any]:
        """Without the lock, the room for rows to come and what is only remembered."""
        state = self.__dict__ | {"_store": self._store[: len(self._kept)], "_last": NO_COLUMNS}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_lock": Lock()}

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
        self._lock = Lock()  # threads may share the rows
        self._last = NO_COLUMNS
        self._kept, self._slot = NONE, np.full(len(norms2), -1)
        self._store = np.empty((0, len(norms2)))
        self._among = np.empty((0, 0))  # C between the features that are kept, close together

    def _times(self, V: Matrix, T: Any = slice(None)) -> Matrix:
        """(X_T − mean)ᵀ V; one pass over X where T is not given."""
        if not isinstance(T, slice):
            return self._columns(T).T @ V
        with blas_threads(self.threads):
            product = self.design.transposed_times(V, self.threads)
        if self.mean.any():
            for column, total in zip(product.T, V.sum(axis=0), strict=True):
                column -= total * self.mean
        return product

    def _columns(self, T: Support) -> Matrix:
        """X_T − mean; as many as a beam asks for again and again are remembered."""
        if not GATHERED <= len(T) <= 4 * GATHERED:
            return self.design.columns(T) - self.mean[T]
        last, columns = self._last
        if not np.array_equal(T, last):
            columns = self.design.columns(T) - self.mean[T]
            self._last = T, columns
        return columns

    def inner(self, V: Matrix, T: Any = slice(None)) -> Matrix:
        """X_TᵀMV on the unit scale of the columns T, by default all, for the centred columns V."""
        wV = V * self.weight[:, None]
        wV -= (self.N @ (self.K @ (self.N.T @ wV))) * self.weight[:, None]
        out = self._times(wV, T)
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

    def rows(self, S: Support) -> Matrix:
        if not self.keeps:
            return self.combined(S, np.eye(len(S)))
        slots = self._slots(S)
        return self._store[slots]

    def block(self, S: Support, T: Support | None = None) -> Matrix:
        T = S if T is None else T
        block, new, other = self._held_block(S, T)
        if new.any() and other.any():
            products = self._inner_products(S[new], T[other])
            same = np.equal.outer(S[new], T[other])
            products[same] = np.broadcast_to(self.diagonal[T[other]], same.shape)[same]
            block[np.ix_(new, other)] = products
        return block

    def _held_block(self, S: Support, T: Support) -> tuple[Matrix, Mask, Mask]:
        """C[S, T] but for features that both have no row, and which of S and of T those are."""
        with self._lock:
            here, there, store = self._slot[S], self._slot[T], self._store
        new, other = here < 0, there < 0
        if not new.any():
            return store[here[:, None], T], new, other
        block = np.empty((len(S), len(T)))
        block[~new] = store[here[~new, None], T]
        block[np.ix_(new, ~other)] = store[there[~other, None], S[new]].T
        return block, new, other

    def blocks(self, S: Support) -> NDArray[np.float64]:
        with self._lock:
            slots, among, store = self._slot[S], self._among, self._store
        new = slots < 0
        if not new.any():
            return blocks_of(among, slots)
        if not len(among):
            return self._unheld_blocks(S)
        held = np.where(new, 0, slots)
        blocks = blocks_of(among, held)
        k, p = new.nonzero()
        i = S[k, p]
        row = np.where(new[k], self.diagonal[i, None], store[held[k], i[:, None]])
        blocks[k, p] = row
        blocks[k, :, p] = row
        first = np.take_along_axis(S, new.argmax(axis=1)[:, None], axis=1)
        several = (new & (S != first)).any(axis=1)
        if several.any():
            blocks[several] = self._unheld_blocks(S[several])
        return blocks

    def _unheld_blocks(self, S: Support) -> NDArray[np.float64]:
        """Of supports with several features that have no row."""
        features, places = union(S, len(self._slot))
        return blocks_of(self.block(features), places)

    def at_hand(self, S: Support) -> NDArray[np.bool_]:
        missing = self._slot[S] < 0
        if not self.keeps or np.unique(S[missing]).size >= LONG_PASS:
            return np.ones(len(S), dtype=bool)
        return np.logical_not(missing.any(axis=1))

    def combined(self, S: Support, A: Matrix, ahead: Support = NONE) -> Matrix:
        if self.keeps:
            slots = self._slots(S, ahead)
            return product(A, self._store[slots])
        A = A * (self.diagonal[S] / self._norm[S])
        V = self.design.X[:, S] @ A.T - A @ self.mean[S]
        return np.ascontiguousarray(self.inner(V).T)

    def _slots(self, S: Support, ahead: Support = NONE) -> Support:
        """Where the rows of S are kept; those missing are made, and some of those ahead."""
        with self._lock:
            slots = self._slot[S]
            if (slots < 0).any():
                missing = np.unique(S[slots < 0])
                more = ahead[(self._slot[ahead] < 0) & ~np.isin(ahead, missing)]
                missing = np.append(missing, more[: max(A_PASS - len(missing), 0)])
                new = self._new_rows(missing)
                new[np.arange(len(missing)), missing] = self.diagonal[missing]
                self._append(missing, new)
                slots = self._slot[S]
            return slots

    def _new_rows(self, S: Support) -> Matrix:
        return self._inner_products(S)

    def _inner_products(self, S: Support, T: Any = slice(None)) -> Matrix:
        """C[S, T], by default C[S, :], from the columns."""
        if self._sparse:
            new = self.design.sparse_products(S, T, self.weight)
            new -= np.multiply.outer(self.weight.sum() * self.mean[S], self.mean[T])
            return self._projected(new, S, T)
        new = self.inner((self.design.columns(S) - self.mean[S]) / self._norm[S], T).T
        new[self.diagonal[S] == 0] = 0.0
        return new

    def _projected(self, new: Matrix, S: Support, T: Any = slice(None)) -> Matrix:
        """Of products of centred columns, what the forced features leave, on the unit scale."""
        new -= self.cross[S] @ self.K @ self.cross[T].T
        new /= self._norm[T]
        new /= self._norm[S, None]
        new[:, self.diagonal[T] == 0] = 0.0
        new[self.diagonal[S] == 0] = 0.0
        return new

    def _append(self, missing: Support, new: Matrix) -> None:
        self._kept = np.append(self._kept, missing)
        used, needed = len(self._among), len(self._kept)
        if needed > len(self._store):
            n = self._store.shape[1]
            grown = np.empty((min(max(ROOM, 4 * used, needed), n), n))
            grown[:used] = self._store[:used]
            self._store = grown
        self._store[used:needed] = new
        self._slot[missing] = np.arange(used, needed)
        among = np.empty((needed, needed))
        among[:used, :used] = self._among
        among[used:] = new[:, self._kept]
        among[:used, used:] = among[used:, :used].T
        self._among = among
