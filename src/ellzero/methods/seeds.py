"""Random numbers that depend on the seed and on the number of a restart, and on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

NUMBERS_AT_ONCE = 32
"""Random numbers drawn in one call: one at a time, a call takes longer than a step of ARHT."""


def seed_of(random_state: Any) -> int:
    """Return a seed: of a whole number the number itself, of a generator its next draw.

    None gives a seed from the operating system.
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    try:
        return np.random.SeedSequence(random_state).entropy  # type: ignore[return-value]
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state: expected None, a non-negative integer or a generator, got "
            f"{random_state!r}."
        ) from None


def child(seed: int, z: int) -> np.random.Generator:
    """Return the generator of restart z, whatever the order in which restarts are made."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(z,)))


class Draws:
    """The random numbers of restart z, uniform on [0, 1). Every iteration begins with the first."""

    def __init__(self, seed: int, z: int):
        self.seed, self.z = seed, z
        self._drawn: list[float] = []

    @cached_property
    def _generator(self) -> np.random.Generator:
        return child(self.seed, self.z)

    def __iter__(self) -> Iterator[float]:
        k = 0
        while True:
            if k == len(self._drawn):
                self._drawn += self._generator.random(NUMBERS_AT_ONCE).tolist()
            yield self._drawn[k]
            k += 1
