"""Where the gradients of many points of a quadratic are largest."""

from __future__ import annotations

from collections.abc import Iterator
from threading import local
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.gram import Gram
from ellzero.supports import Matrix, Support, Vector, at_once, filled, union
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
    """Of each point: the largest gradient, where it is, the next."""

    size: Single
    feature: Support
    second: Single


class CoarseRows:
    """Rows of C, scaled as f is and in single precision, in blocks of columns; the first is −c."""

    def __init__(self, gram: Gram, c: Vector, scale: Vector):
        self.gram, self.scale = gram, scale
        self.n_blocks = -(-len(c) // COLUMNS)
        self.width = -(-len(c) // self.n_blocks)
        self.at_once = min(BLOCKS, self.n_blocks) * self.width
        self.slot = np.full(len(c), -1)
        self.rows = self._room(ROOM)
        self._fill(slice(0, 1), -c[None])
        self.used = 1

    def take(self, features: Support) -> None:
        new = np.unique(features[self.slot[features] < 0])
        if not len(new):
            return
        end = self.used + len(new)
        if end > self.rows.shape[1]:
            grown = self._room(2 * end)
            grown[:, : self.used] = self.rows[:, : self.used]
            self.rows = grown
        self._fill(slice(self.used, end), self.gram.rows(new))
        self.slot[new] = np.arange(self.used, end)
        self.used = end

    def numbers(self, stack: Stack) -> int:
        """So many are made for a stack at a time."""
        return self.at_once * (stack.slots.size + len(stack.points))

    def _room(self, slots: int) -> Single:
        n = len(self.slot)
        rows = np.empty((self.n_blocks, min(slots, n + 1), self.width), dtype=np.float32)
        rows[-1:, :, n - (self.n_blocks - 1) * self.width :] = 0.0  # the last block may have less
        return rows

    def _fill(self, slots: slice, rows: Matrix) -> None:
        scaled = rows * self.scale
        for k, block in enumerate(self.rows):
            part = scaled[:, k * self.width : (k + 1) * self.width]
            block[slots, : part.shape[1]] = part


class Steepest:
    """For each x the feature outside its support, but no forced one, with the largest |∇ᵢf(x)|.

    x is on the unit scale; the gradient there, Cx − c, is `scale` times that of f. Single precision
    tells the largest where it is larger than all others by more than rounding; of those that double
    precision does not tell apart, the first is taken.
    """

    def __init__(self, gram: Gram, c: Vector, scale: Vector, forced: tuple[int, ...]):
        self.gram, self.c = gram, c
        live = np.where(gram.diagonal > 0, scale, 0.0)  # columns of zeros gain nothing
        live[list(forced)] = 0.0
        self.scale = live / (live.max(initial=0.0) or 1.0)
        self.forced = list(forced)
        self.coarse = CoarseRows(gram, c, self.scale) if gram.keeps else None
        self._own = local()

    def __call__(self, S: Support, x: Matrix) -> Support:
        if self.coarse is None:
            return self._first(S, x)
        self.coarse.take(S[S >= 0])
        with np.errstate(over="ignore", invalid="ignore"):
            size, found, second = self._tops(S, x, self.coarse)
            doubtful = ~((size - second > rounding(S, x, np.float32)) & (size > 0))
        if doubtful.any():
            found[doubtful] = self._first(S[doubtful], x[doubtful])
        return found

    def _first(self, S: Support, x: Matrix) -> Support:
        """In double precision."""
        found = np.empty(len(S), dtype=np.intp)
        for part in at_once(len(S), 2 * len(self.c)):
            own = S[part]
            features, places = union(filled(own), len(self.c))
            point, k = (own >= 0).nonzero()
            A = np.zeros((len(own), len(features)))
            A[point, places[point, k]] = x[part][point, k]
            sizes = self.gram.combined(features, A)
            sizes -= self.c
            np.abs(sizes, out=sizes)
            sizes *= self.scale
            sizes[point, own[point, k]] = -np.inf
            sizes[:, self.forced] = -np.inf
            doubt = rounding(own, x[part], np.float64)[:, None] * self.scale
            least = (sizes - doubt).max(axis=1, keepdims=True)
            sizes += doubt
            found[part] = (sizes >= least).argmax(axis=1)
        return found

    def _tops(self, S: Support, x: Matrix, coarse: CoarseRows) -> Tops:
        """In single precision; threads share the blocks of columns."""
        stacked = list(stacks(S, x, coarse))
        products = coarse.width * coarse.n_blocks * sum(stack.A.size for stack in stacked)
        threads = self.gram.threads if products > WORTH else 1
        numbers = max(map(coarse.numbers, stacked))

        def work(blocks: slice) -> Tops:
            room = self._room(numbers)
            tops = [top_of(stack, coarse, blocks, room) for stack in stacked]
            return Tops(*map(np.concatenate, zip(*tops, strict=True)))

        rounds = -(-coarse.n_blocks // (threads * BLOCKS))
        n_parts = min(rounds * threads, coarse.n_blocks)  # equally many for each thread
        found = in_parts(work, coarse.n_blocks, n_parts, threads)
        size, feature, second = map(np.stack, zip(*found, strict=True))
        order = np.concatenate([stack.points for stack in stacked])
        place = np.empty(len(S), dtype=np.intp)
        place[order] = np.arange(len(order))
        first = size.argmax(axis=0)[place], place
        next_ = np.partition(np.concatenate([size, second]), -2, axis=0)[-2]
        return Tops(size[first], feature[first], next_[place])

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


def top_of(stack: Stack, coarse: CoarseRows, blocks: slice, room: Single) -> Tops:
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
    column = highest.argmax(axis=1)
    there = sizes[:, points, column]
    block, size = there.argmax(axis=0), there.max(axis=0)
    there[block, points] = -1.0
    highest[points, column] = there.max(axis=0)
    return Tops(size, (blocks.start + block) * width + column, highest.max(axis=1))


def rounding(S: Support, x: Matrix, kind: type[np.floating]) -> Vector:
    """By how much a difference of entries of Cx − c may be off, those of C and c being up to 1."""
    terms = np.count_nonzero(S >= 0, axis=1) + 8
    return terms * np.finfo(kind).eps * (1.0 + np.abs(x).sum(axis=1))
