"""Random numbers that depend on the seed and the number of a restart, and on nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np


def seed_of(random_state: Any) -> int:
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
    """The random numbers of restart z, whatever the order in which restarts are made."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(z,)))
