"""The moves of ellzero's search: neighbours of a support, descents, shakes and greedy chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ellzero.algorithms.exchange import exchange_steps
from ellzero.core import Iterate, Objective, Support, magnitudes, swapped

TRIALS = 3
"""How many of the neighbours that a model ranks first are tried on f itself."""

REFILL = 20
"""A rebuilt support draws among this many of the best insertions."""

EXACT_BELOW = 3
"""Below this size insertions are scored on f itself, where f can afford that, not on its model."""

DIVERSE = 4
"""Below this size the search pursues as many supports as it can afford."""


class Neighbours:
    """Supports that differ from S in one feature, best first, as far as f lets us tell.

    A quadratic f knows the values; otherwise its local model at x estimates them, and without a
    model gradients and coefficients at least rank them.
    """

    def __init__(self, f: Objective, x: Iterate, tried: set[bytes]):
        self.f, self.x, self.S, self.tried = f, x, x.support, tried
        self.model = f.quadratic_model(x)
        self.exact = self.model is f
        self._off = 2.0  # by what factor the model may misjudge a change; learnt from trials

    def larger(self, limit: float) -> Iterator[Iterate]:
        if self.model is None:
            scores = -magnitudes(self.f.gradient(self.x))
        elif self.f.breadth > 1 and len(self.S) < EXACT_BELOW:
            scores = self.f.insertion_values(self.S, self.x)
        else:
            scores = self.model.insertion_values(self.S)
        candidates = np.flatnonzero(self.f.outside(self.S))
        yield from self._tried(
            scores[candidates], limit, lambda c: np.append(self.S, candidates[c])
        )

    def larger_by_two(self, limit: float) -> Iterator[Iterate]:
        """Two features that pay only as a pair, where f can tell."""
        found = self.f.best_pair_insertion(self.S)
        if found is not None and found[2] < limit - self.f.resolution:
            y = self.refit(np.append(self.S, found[:2]))
            if y is not None:
                yield y

    def smaller(self, limit: float) -> Iterator[Iterate]:
        if self.model is not None:
            scores = self.model.removal_values(self.S)
        else:
            scores = magnitudes(self.x.coef)
        yield from self._tried(scores, limit, lambda j: np.delete(self.S, j))

    def exchanged(self) -> Iterator[Iterate]:
        f, S, x = self.f, self.S, self.x
        if self.model is None:
            ins = smallest(np.where(f.outside(S), -magnitudes(f.gradient(x)), np.inf), TRIALS)
            outs = S[smallest(magnitudes(x.coef), TRIALS)]
            found = (self.refit(swapped(S, j, i)) for i in ins for j in outs)
            yield from (y for y in found if y is not None)
            return
        settled = last(exchange_steps(self.model, self.model.minimize(S)), x).support
        y = self.refit(settled)
        if y is not None:
            yield y
        scores = self.model.exchange_values(S).ravel()
        n = f.n_features
        yield from self._tried(scores, x.value, lambda c: swapped(S, int(S[c // n]), int(c % n)))

    def _tried(
        self, scores: np.ndarray, limit: float, support: Callable[[int], Support]
    ) -> Iterator[Iterate]:
        for c in smallest(scores, self._trials()):
            hopeless = self.model is not None and not self._promising(scores[c], limit)
            if hopeless and limit < np.inf:
                return
            y = self.refit(support(int(c)))
            if y is None:
                continue
            predicted = abs(scores[c] - self.x.value)
            if self.model is not None and predicted > self.f.resolution:
                self._off = 1.25 * max(abs(y.value - self.x.value) / predicted, 0.8)
            yield y

    def _trials(self) -> int:
        """Many of a small support's neighbours, to be diverse; few of a large one's."""
        if not self.exact:
            return TRIALS
        return self.f.breadth if len(self.S) < DIVERSE else min(self.f.breadth, 2)

    def refit(self, support: Support) -> Iterate | None:
        """The minimiser over a support not tried before, from where the model expects it."""
        support = np.sort(support)
        key = support.tobytes()
        if key in self.tried:
            return None
        self.tried.add(key)
        if self.exact or self.model is None:
            return self.f.minimize(support, self.x)
        return self.f.minimize(support, self.model.minimize(support))

    def _promising(self, score: float, limit: float) -> bool:
        """May the value be under the limit, allowing for the model's error?"""
        if not self.exact:
            change = score - self.x.value
            score = self.x.value + (change * self._off if change < 0 else change / self._off)
        return bool(score < limit - self.f.resolution)


def descend(f: Objective, x: Iterate, tried: set[bytes]) -> Iterate:
    """Exchange until no exchange helps."""
    while 0 < len(x.support) < f.n_choosable:
        neighbours = Neighbours(f, x, tried)
        if neighbours.exact:
            return last(exchange_steps(f, x), x)
        for y in neighbours.exchanged():
            if y.value < x.value - f.resolution:
                x = y
                break
        else:
            break
    return x


def shake(f: Objective, x: Iterate, rng: np.random.Generator) -> Iterate:
    """A support near x's that exchanges alone would not reach, settled; or x itself."""
    model = f.quadratic_model(x)
    if model is None or not x.coef.any() or len(x.support) >= f.n_choosable:
        return x
    moved = (unregularised if rng.random() < 0.5 else rebuilt)(model, x, rng)
    if np.array_equal(moved.support, x.support):
        return x
    y = last(exchange_steps(model, model.minimize(moved.support)), moved)
    return f.minimize(y.support, y)


def unregularised(model: Objective, x: Iterate, rng: np.random.Generator) -> Iterate:
    """ARHT's way out: regularise all but a random part of the support, and exchange.

    The features left free are drawn with probability proportional to x_i².
    """
    S = x.support
    keys = rng.exponential(size=len(S)) / np.maximum(magnitudes(x.coef) ** 2, 1e-300)
    d = np.full(model.n_features, model.smoothness(1) * 10 ** rng.uniform(-3, 0))
    d[S[np.argsort(keys)[: len(S) // 2]]] = 0.0
    g = model.ridged(d)
    return last(exchange_steps(g, g.minimize(S)), x)


def rebuilt(model: Objective, x: Iterate, rng: np.random.Generator) -> Iterate:
    """Take out a random part of the support; refill it with good features, last with the best."""
    k = len(x.support)
    S = rng.permutation(x.support)[: k - int(rng.integers(1, k // 2 + 2))]
    S = np.sort(S)
    while len(S) < k:
        good = smallest(model.insertion_values(S), REFILL if len(S) < k - 1 else 1)
        if not len(good):
            return x
        S = np.sort(np.append(S, good[int(len(good) * rng.random() ** 2)]))
    return model.minimize(S)


def forward_chain(f: Objective, x: Iterate, top: int) -> Iterator[Iterate]:
    """Forward selection that keeps the best few supports of every size."""
    beam = [x]
    while len(beam[0].support) < top:
        if f.quadratic_model(beam[0]) is f:
            beam = wider_beam(f, beam)
        else:
            beam = [min(Neighbours(f, beam[0], set()).larger(np.inf), key=lambda y: y.value)]
        yield from beam


def wider_beam(f: Objective, beam: list[Iterate]) -> list[Iterate]:
    """The best supports with one feature more than those of the beam; f is quadratic."""
    found: dict[bytes, tuple[float, Support]] = {}
    for y in beam:
        values = f.insertion_values(y.support)
        for i in smallest(values, f.breadth):
            S = np.sort(np.append(y.support, i))
            found[S.tobytes()] = float(values[i]), S
    best = sorted(found.values(), key=lambda pair: pair[0])
    return [f.minimize(S) for _, S in best[: f.breadth]]


def backward_chain(f: Objective, top: int) -> Iterator[Iterate]:
    """Backward elimination from all features; the supports of at most `top` features."""
    x = f.minimize(f.choosable)
    while len(x.support) > 1:
        if len(x.support) <= top:
            yield x
        x = min(Neighbours(f, x, set()).smaller(np.inf), key=lambda y: y.value)


def smallest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the smallest finite scores, in order."""
    if count == 1 or len(scores) <= count:
        order = np.array([np.argmin(scores)]) if count == 1 else np.argsort(scores, kind="stable")
    else:
        part = np.argpartition(scores, count)[:count]
        order = part[np.argsort(scores[part], kind="stable")]
    return order[np.isfinite(scores[order])]


def last(steps: Iterable[Iterate], x: Iterate) -> Iterate:
    for x in steps:  # noqa: B007
        pass
    return x
