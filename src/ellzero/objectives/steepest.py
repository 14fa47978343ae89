"""Where the gradients of many points of a quadratic are largest."""

from __future__ import annotations

from collections.abc import Iterator
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.gram import Gram
from ellzero.supports import NONE, Matrix, Support, Vector, at_once, smallest, spread
from ellzero.threads import in_parts

TOGETHER = 32
"""So many points make a group; more would have less in common."""

COLUMNS, BLOCKS = 400, 25
"""So many columns make a block: BLAS does not pack factors as small as those of a group and a
block. The largest numbers are looked for in so many blocks at a time."""

IN_CACHE = 1 << 20
"""So many numbers are made at a time."""

ROOM = 256
"""There is room for so many rows at first: what is not used takes no memory, only addresses."""

AHEAD = 16
"""So many features with large gradients are named, whose rows may be asked for next."""

CANDIDATES = 256
"""Of more features that may have the largest gradient all are looked at."""

WORTH = 1e7
"""It takes so many multiplications until threads pay."""

Single = NDArray[np.float32]


class Stack(NamedTuple):
    """Groups of equally many points; the gradients of group g are A[g] · rows[slots[g]]."""

    points: Support
    slots: Support
    A: Single
    block: Support  # of each point: where the features of its support are, which may not enter
    column: Support


class Tops(NamedTuple):
    """Of each point, one a column: the largest gradient and the next ones, and where they are.

    What is clearly less than the largest may be anywhere (−1).
    """

    size: Single
    feature: Support


class CoarseRows:
    """Rows of C, scaled as f is and in single precision, in blocks of columns; the first is −c."""

    def __init__(self, gram: Gram, c: Vector, scale: Vector):
        self.gram, self.scale = gram, scale.astype(np.float32)
        self.n_blocks = -(-len(c) // COLUMNS)
        self.width = -(-len(c) // self.n_blocks)
        self.at_once = min(BLOCKS, self.n_blocks) * self.width
        self.slot = np.full(len(c), -1)
        self.rows = self._room(ROOM)
        self._fill(slice(0, 1), -c[None])
        self.used = 1

    def take(self, features: Support, ahead: Support) -> None:
        new = np.unique(features[self.slot[features] < 0])
        if not len(new):
            return
        end = self.used + len(new)
        if end > self.rows.shape[1]:
            grown = self._room(2 * end)
            grown[:, : self.used] = self.rows[:, : self.used]
            self.rows = grown
        self._fill(slice(self.used, end), self.gram.coarse_rows(new, ahead))
        self.slot[new] = np.arange(self.used, end)
        self.used = end

    def gradients(self, features: Support, A: Matrix) -> Single:
        """A · C[features, :] − c."""
        weights = np.column_stack([np.ones(len(A)), A]).astype(np.float32)
        products = weights @ self.rows[:, np.append(0, self.slot[features])]
        return products.transpose(1, 0, 2).reshape(len(A), -1)[:, : len(self.slot)]

    def numbers(self, stack: Stack) -> int:
        """So many are made for a stack at a time."""
        return self.at_once * (stack.slots.size + len(stack.points))

    def _room(self, slots: int) -> Single:
        n = len(self.slot)
        rows = np.empty((self.n_blocks, min(slots, n + 1), self.width), dtype=np.float32)
        rows[-1:, :, n - (self.n_blocks - 1) * self.width :] = 0.0  # the last block may have less
        return rows

    def _fill(self, slots: slice, rows: NDArray[Any]) -> None:
        scaled = np.multiply(rows, self.scale, dtype=np.float32, casting="same_kind")
        whole = len(self.slot) // self.width * self.width
        blocks = scaled[:, :whole].reshape(len(rows), -1, self.width).transpose(1, 0, 2)
        self.rows[: len(blocks), slots] = blocks
        self.rows[len(blocks) :, slots, : scaled.shape[1] - whole] = scaled[:, whole:]


class Steepest:
    """For each x the feature outside its support, but no forced one, with the largest |∇ᵢf(x)|.

    x is on the unit scale; the gradient there, Cx − c, is `scale` times that of f. Single precision
    tells the largest where it is larger than all others by more than rounding. Where it leaves a
    doubt, those that may be the largest are made exactly; of those that double precision does not
    tell apart, the first is taken.
    """

    def __init__(self, gram: Gram, c: Vector, scale: Vector, forced: tuple[int, ...]):
        self.gram, self.c = gram, c
        live = np.where(gram.diagonal > 0, scale, 0.0)  # columns of zeros gain nothing
        live[list(forced)] = 0.0
        self.scale = live / (live.max(initial=0.0) or 1.0)
        self.forced = list(forced)
        self.coarse = CoarseRows(gram, c, self.scale) if gram.keeps else None
        self._ahead = NONE  # features that may be in the supports of the next points
        self._own = local()

    def __call__(self, S: Support, x: Matrix) -> Support:
        if self.coarse is None:
            return self._first(S, x)
        self.coarse.take(S[S >= 0], self._ahead)
        with np.errstate(over="ignore", invalid="ignore"):
            doubt = rounding(S, x, np.float32) + 2 * self.gram.roughness * np.abs(x).sum(axis=1)
            if len(S) == 1:
                return self._of_one(S, x, float(doubt[0]), self.coarse)
            tops = self._tops(S, x, doubt, self.coarse)
            clear = (tops.size[0] - tops.size[1] > doubt) & (tops.size[0] > 0)
            (k,) = (~clear | np.isinf(tops.size[0])).nonzero()
            found = tops.feature[0]
            if len(k):
                unclear = Tops(tops.size[:, k], tops.feature[:, k])
                candidates = self._candidates(S[k], x[k], doubt[k], unclear, self.coarse)
                found[k] = self._first(S[k], x[k], candidates)
        features, counts = np.unique(found, return_counts=True)
        self._ahead = features[np.argsort(-counts)]
        return found

    def _of_one(self, S: Support, x: Matrix, doubt: float, coarse: CoarseRows) -> Support:
        features, A = spread(S, x, len(self.c))
        sizes = np.abs(coarse.gradients(features, A)[0])
        sizes[features] = -1.0
        self._ahead = smallest(-sizes, AHEAD)
        size = sizes.max()
        near = np.flatnonzero(sizes >= size - doubt)
        if not 0 < size < np.inf or len(near) > CANDIDATES:
            return self._first(S, x)
        return near if len(near) == 1 else self._first(S, x, near)

    def _candidates(
        self, S: Support, x: Matrix, doubt: Vector, tops: Tops, coarse: CoarseRows
    ) -> Support | None:
        """Features of which one has the largest gradient, for each of these points; None: all."""
        least = tops.size[0] - doubt
        if not (np.isfinite(least) & (tops.size[0] > 0)).all():
            return None
        foremost = tops.feature[:2].ravel()
        near = [foremost[foremost < len(self.c)]]  # or it is what fills up the last block
        (more,) = (tops.size[2] >= least).nonzero()
        for part in at_once(len(more), len(self.c)):
            k = more[part]
            features, A = spread(S[k], x[k], len(self.c))
            sizes = np.abs(coarse.gradients(features, A))
            near.append(np.flatnonzero((sizes >= least[k, None]).any(axis=0)))
        candidates = np.unique(np.concatenate(near))
        return candidates if len(candidates) <= CANDIDATES else None

    def _first(self, S: Support, x: Matrix, columns: Support | None = None) -> Support:
        """In double precision, the largest of some or of all columns."""
        found = np.empty(len(S), dtype=np.intp)
        T = np.arange(len(self.c)) if columns is None else columns
        for part in at_once(len(S), 2 * len(T)):
            own = S[part]
            features, A = spread(own, x[part], len(self.c))
            if columns is None:
                sizes = self.gram.combined(features, A)
            else:
                sizes = A @ self.gram.block(features, T)
            sizes -= self.c[T]
            np.abs(sizes, out=sizes)
            sizes *= self.scale[T]
            point, k = (own >= 0).nonzero()
            taken = np.zeros((len(own), len(self.c)), dtype=bool)
            taken[point, own[point, k]] = True
            taken[:, self.forced] = True
            sizes[taken[:, T]] = -np.inf
            doubt = rounding(own, x[part], np.float64)[:, None] * self.scale[T]
            least = (sizes - doubt).max(axis=1, keepdims=True)
            sizes += doubt
            found[part] = T[(sizes >= least).argmax(axis=1)]
        return found

    def _tops(self, S: Support, x: Matrix, doubt: Vector, coarse: CoarseRows) -> Tops:
        """In single precision; threads share the blocks of columns."""
        stacked = list(stacks(S, x, coarse))
        products = coarse.width * coarse.n_blocks * sum(stack.A.size for stack in stacked)
        threads = self.gram.threads if products > WORTH else 1
        numbers = max(map(coarse.numbers, stacked))

        def work(blocks: slice) -> Tops:
            room = self._room(numbers)
            tops = [top_of(stack, coarse, blocks, room, doubt[stack.points]) for stack in stacked]
            return Tops(*(np.concatenate(part, axis=1) for part in zip(*tops, strict=True)))

        rounds = -(-coarse.n_blocks // (threads * BLOCKS))
        n_parts = min(rounds * threads, coarse.n_blocks)  # equally many for each thread
        found = in_parts(work, coarse.n_blocks, n_parts, threads)
        size, feature = map(np.concatenate, zip(*found, strict=True))
        order = np.concatenate([stack.points for stack in stacked])
        place = np.empty(len(S), dtype=np.intp)
        place[order] = np.arange(len(order))
        size, feature = size[:, place], feature[:, place]
        order = np.argsort(-np.where(np.isnan(size), np.inf, size), axis=0)  # NaN: who knows
        foremost = order[:3], np.arange(len(S))
        return Tops(size[foremost], feature[foremost])

    def _room(self, numbers: int) -> Single:
        """That of a thread; it is kept, as fresh memory takes time."""
        if numbers > len(getattr(self._own, "room", ())):
            self._own.room = np.empty(numbers, dtype=np.float32)
        return self._own.room


def stacks(S: Support, x: Matrix, coarse: CoarseRows) -> Iterator[Stack]:
    """The points in groups that have features in common, and so many groups in a stack."""
    slots = np.where(S >= 0, coarse.slot[S], 0)
    order = slots.max(axis=1, initial=0).argsort(kind="stable")  # features that came late are rare
    n_groups = -(-len(S) // TOGETHER)
    n_together = -(-len(S) // n_groups)
    order = np.append(order, np.full(n_groups * n_together - len(S), order[-1]))
    slots, block_and_column = slots[order], np.divmod(S[order], coarse.width)
    point = np.arange(len(order))[:, None]
    group = point // n_together
    used = np.zeros((n_groups, coarse.used), dtype=bool)
    used[group, slots] = True
    used[:, 0] = True
    position = used.cumsum(axis=1) - 1
    n_slots = position[:, -1] + 1
    A = np.zeros((n_groups * n_together, n_slots.max()), dtype=np.float32)
    A[point, position[group, slots]] = x[order]
    A[:, 0] = 1.0
    taken = np.zeros((n_groups, n_slots.max()), dtype=np.intp)
    g, slot = used.nonzero()
    taken[g, position[g, slot]] = slot
    most = max(IN_CACHE // (coarse.at_once * (int(n_slots.max()) + n_together)), 1)
    for begin in range(0, n_groups, most):
        groups = slice(begin, begin + most)
        points = slice(begin * n_together, (begin + most) * n_together)
        width = n_slots[groups].max()
        own = A[points, :width].reshape(-1, n_together, width)
        where = (part[points] for part in block_and_column)
        yield Stack(order[points], taken[groups, :width], own, *where)


def top_of(stack: Stack, coarse: CoarseRows, blocks: slice, room: Single, doubt: Vector) -> Tops:
    """What is largest in some blocks of the columns."""
    rows = coarse.rows[blocks]
    n_blocks, width = len(rows), coarse.width
    points = np.arange(len(stack.points))
    end = n_blocks * stack.slots.size * width
    taken = room[:end].reshape(n_blocks, *stack.slots.shape, width)
    sizes = room[end : end + n_blocks * len(points) * width]
    rows.take(stack.slots, axis=1, out=taken, mode="clip")
    np.matmul(stack.A, taken, out=sizes.reshape(n_blocks, *stack.A.shape[:2], width))
    np.abs(sizes, out=sizes)
    sizes = sizes.reshape(n_blocks, len(points), width)
    point, k = ((stack.block >= blocks.start) & (stack.block < blocks.stop)).nonzero()
    sizes[stack.block[point, k] - blocks.start, point, stack.column[point, k]] = -1.0
    highest = sizes.max(axis=0)
    size = np.full((3, len(points)), -1.0, dtype=np.float32)
    feature = np.full((3, len(points)), -1)
    for rank in range(2):
        column = highest.argmax(axis=1)
        there = sizes[:, points, column]
        block = there.argmax(axis=0)
        own = np.arange(len(points))
        size[rank, points] = there[block, own]
        feature[rank, points] = (blocks.start + block) * width + column
        there[block, own] = -1.0
        highest[own, column] = there.max(axis=0)
        size[rank + 1, points] = highest.max(axis=1)
        if rank == 0:  # only where it is near is it asked where the second is
            sizes[block, points, column] = -1.0
            points = (size[0] - size[1] <= doubt).nonzero()[0]
            highest = highest[points]
    return Tops(size, feature)


def rounding(S: Support, x: Matrix, kind: type[np.floating]) -> Vector:
    """By how much a difference of entries of Cx − c may be off, those of C and c being up to 1."""
    terms = np.count_nonzero(S >= 0, axis=1) + 8
    return terms * np.finfo(kind).eps * (1.0 + np.abs(x).sum(axis=1))
