"""Rows of numbers that are kept once they were made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellzero.supports import NONE, Mask, Support

ROOM = 256
"""There is room for so many rows at first: what is not used takes no memory, only addresses."""


class KeptRows:
    """Rows by feature, added in the room that is left; where there is none, all of them move."""

    def __init__(self, n_features: int, length: int, dtype: Any):
        self.features = NONE  # in the order of their rows
        self.slot = np.full(n_features, -1)
        self._store = np.empty((0, length), dtype=dtype)

    def __len__(self) -> int:
        return len(self.features)

    def __getstate__(self) -> dict[str, Any]:
        """Without the room for rows to come."""
        return self.__dict__ | {"_store": self._store[: len(self)]}

    def __getitem__(self, S: Support) -> NDArray[Any]:
        return self._store[self.slot[S]]

    @property
    def length(self) -> int:
        return self._store.shape[1]

    @property
    def all(self) -> NDArray[Any]:
        return self._store[: len(self)]

    def block(self, S: Support, T: Support) -> NDArray[Any]:
        return self._store[self.slot[S][:, None], T]

    def has(self, S: Support) -> Mask:
        return np.greater_equal(self.slot[S], 0)

    def missing(self, S: Support, ahead: Support = NONE, together: int = 0) -> Support:
        """The features of S without a row; if there are any, and fewer than are made together, some
        of those ahead, too."""
        missing = np.unique(S[~self.has(S)])
        if 0 < len(missing) < together:
            more = ahead[~self.has(ahead) & ~np.isin(ahead, missing)]
            _, first = np.unique(more, return_index=True)  # it may be named twice
            missing = np.append(missing, more[np.sort(first)][: together - len(missing)])
        return missing

    def add(self, features: Support, rows: NDArray[Any]) -> None:
        used, needed = len(self), len(self) + len(features)
        if needed > len(self._store):
            room = min(max(ROOM, 4 * used, needed), len(self.slot))
            grown = np.empty((room, rows.shape[1]), dtype=self._store.dtype)
            grown[:used] = self._store[:used]
            self._store = grown
        self._store[used:needed] = rows
        self.features = np.append(self.features, features)
        self.slot[features] = np.arange(used, needed)
