"""Where the gradients of many points of a quadratic are largest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.core import Matrix, Support, Vector, at_once, filled, union
from ellzero.objectives.gram import Gram
from ellzero.threads import in_parts

TOGETHER = 96
"""So many points are taken together; more would have less in common."""

COLUMNS = 2048
"""So many columns of the rows that points have in common stay in a core's cache."""

WORTH = 5e7
"""It takes so many multiplications until threads pay."""

Single = NDArray[np.float32]


class Group(NamedTuple):
    """Points on supports of similar size: their gradients are A · C[features] − c."""

    features: Support
    A: Matrix
    point: Support  # whose support has this feature, which may not enter,
    feature: Support  # in the order of features


class Top(NamedTuple):
    """Of each point the largest gradient in some columns, where it is, and the next."""

    size: Single
    feature: Support
    second: Single


class CoarseRows:
    """Rows of C, scaled as f is and in single precision, in blocks of columns; the first is −c."""

    def __init__(self, gram: Gram, c: Vector, scale: Vector):
        self.gram, self.scale = gram, scale
        self.width = min(COLUMNS, len(c))
        self.begins = range(0, len(c), self.width)
        self.blocks = np.zeros((len(self.begins), 64, self.width), dtype=np.float32)
        self.slot = np.full(len(c), -1)
        self._fill(slice(0, 1), -c[None])
        self.used = 1

    def take(self, features: Support) -> None:
        new = features[self.slot[features] < 0]
        if not len(new):
            return
        end = self.used + len(new)
        if end > self.blocks.shape[1]:
            more = np.zeros((len(self.begins), end, self.width), dtype=np.float32)
            self.blocks = np.concatenate([self.blocks, more], axis=1)
        self._fill(slice(self.used, end), self.gram.rows(new))
        self.slot[new] = np.arange(self.used, end)
        self.used = end

    def _fill(self, slots: slice, rows: Matrix) -> None:
        scaled = rows * self.scale
        for block, begin in zip(self.blocks, self.begins, strict=True):
            part = scaled[:, begin : begin + self.width]
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
        self.scale = live / (live.max(initial=0.0) or 1.0)
        self.forced = np.array(forced, dtype=np.intp)
        self.coarse = CoarseRows(gram, c, self.scale) if gram.keeps else None

    def __call__(self, S: Support, x: Matrix) -> Support:
        sizes = np.count_nonzero(S >= 0, axis=1)
        order = sizes.argsort(kind="stable")
        parts = [order[k : k + TOGETHER] for k in range(0, len(order), TOGETHER)]
        groups = [self._group(S[part, : sizes[part[-1]]], x[part]) for part in parts]
        found = np.empty(len(S), dtype=np.intp)
        if self.coarse is None:
            found[order] = np.concatenate([self._first(group) for group in groups])
            return found
        self.coarse.take(union(filled(S), len(self.c))[0])
        with np.errstate(over="ignore", invalid="ignore"):
            top = self._top(groups, self.coarse)
            clear = top.size - top.second > rounding(x[order], np.float32)
        found[order] = top.feature
        if not clear.all():
            k = order[~clear]
            found[k] = self._first(self._group(S[k, : sizes[k].max()], x[k]))
        return found

    def _group(self, S: Support, x: Matrix) -> Group:
        features, places = union(filled(S), len(self.c))
        point, k = (S >= 0).nonzero()
        A = np.zeros((len(S), len(features)))
        A[point, places[point, k]] = x[point, k]
        feature = S[point, k]
        if len(self.forced):
            point = np.append(point, np.arange(len(S)).repeat(len(self.forced)))
            feature = np.append(feature, np.tile(self.forced, len(S)))
        order = feature.argsort()
        return Group(features, A, point[order], feature[order])

    def _first(self, group: Group) -> Support:
        found = np.empty(len(group.A), dtype=np.intp)
        for part in at_once(len(group.A), 2 * len(self.c)):
            A = group.A[part]
            sizes = self.gram.combined(group.features, A)
            sizes -= self.c
            np.abs(sizes, out=sizes)
            sizes *= self.scale
            inside = (group.point >= part.start) & (group.point < part.stop)
            sizes[group.point[inside] - part.start, group.feature[inside]] = -1.0
            doubt = rounding(A, np.float64)[:, None] * self.scale
            least = (sizes - doubt).max(axis=1, keepdims=True)
            sizes += doubt
            found[part] = (sizes >= least).argmax(axis=1)
        return found

    def _top(self, groups: list[Group], coarse: CoarseRows) -> Top:
        weights = [np.c_[np.ones(len(group.A)), group.A].astype(np.float32) for group in groups]

        def work(part: slice) -> list[Top]:
            longest = max(len(group.features) for group in groups)
            room = np.empty((longest + 1 + TOGETHER, coarse.width), dtype=np.float32)
            tops = []
            for k in range(part.start, part.stop):
                each = [
                    self._top_of(*pair, coarse, k, room)
                    for pair in zip(groups, weights, strict=True)
                ]
                tops.append(Top(*map(np.concatenate, zip(*each, strict=True))))
            return tops

        products = len(self.c) * sum(group.A.size for group in groups)
        threads = self.gram.threads if products > WORTH else 1
        parts = in_parts(work, len(coarse.begins), threads, threads)
        return largest([top for part in parts for top in part])

    def _top_of(self, group: Group, A: Single, coarse: CoarseRows, k: int, room: Single) -> Top:
        slots = np.append(0, coarse.slot[group.features])
        taken, sizes = room[: len(slots)], room[len(slots) : len(slots) + len(A)]
        coarse.blocks[k].take(slots, axis=0, out=taken, mode="clip")
        np.matmul(A, taken, out=sizes)
        np.abs(sizes, out=sizes)
        begin, rows = coarse.begins[k], np.arange(len(A))
        low, high = group.feature.searchsorted([begin, begin + coarse.width])
        sizes[group.point[low:high], group.feature[low:high] - begin] = -1.0
        feature = sizes.argmax(axis=1)
        size = sizes[rows, feature]
        sizes[rows, feature] = -1.0
        return Top(size, feature + begin, sizes.max(axis=1))


def rounding(x: Matrix, kind: type[np.floating]) -> Vector:
    """By how much a difference of entries of Cx − c may be off, those of C and c being up to 1."""
    return (x.shape[1] + 8) * np.finfo(kind).eps * (1.0 + np.abs(x).sum(axis=1))


def largest(tops: list[Top]) -> Top:
    """Of all columns, the first of equals."""
    sizes = np.array([top.size for top in tops])
    first = sizes.argmax(axis=0), np.arange(sizes.shape[1])
    feature = np.array([top.feature for top in tops])[first]
    both = np.concatenate([sizes, [top.second for top in tops]])
    second = np.partition(both, -2, axis=0)[-2]
    return Top(sizes[first], feature, second)
