"""What the paper's figures show: data sets, methods, sparsities.

A sparsity counts the column of ones, which is in every model: sparsity 6 is five features and the
intercept. The paper does not list its sparsities; these go up to all features where those are
few, and otherwise to where the curves have become flat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIGURES: Mapping[str, tuple[str, ...]] = {
    "fig1": ("cal_housing", "year"),
    "fig2": ("comp-activ-harder", "slice"),
    "fig3": ("census", "kddcup04_bio"),
    "fig4": ("letter", "ijcnn1"),
}

METHODS: Mapping[str, Mapping[str, Any]] = {
    "LASSO": {},
    "OMP": {},
    "OMPR": {},
    "ELS": {},
    "ARHT": {"setting": "practical", "rho": 1.0, "n_runs": 20, "random_state": 0},
    "ellzero": {"random_state": 0},
}
"""The options of each. ARHT's "practical" setting is the paper's: factor 1e-3, stop at half."""

REFITTED = "LASSO refitted"
"""A second result of each LASSO run: the loss after a refit on the support it found."""

CURVES = (*METHODS, REFITTED)

SPARSITIES: Mapping[str, Sequence[int]] = {
    "cal_housing": range(2, 10),
    "year": range(2, 32),
    "comp-activ-harder": range(2, 14),
    "slice": range(2, 42),
    "census": (2, 3, 4, 6, 8, 11, 16, 21, 26),
    "kddcup04_bio": (2, 3, 4, 5, 6, 8, 10, 12, 16, 21, 26, 31),
    "letter": range(2, 18),
    "ijcnn1": range(2, 24),
}


@dataclass(frozen=True)
class Settings:
    """How much is done: at most so many rows of each data set, and so many sparsities."""

    rows: int | None = None
    n_sparsities: int | None = None

    def sparsities(self, name: str) -> list[int]:
        """Those of a data set; few of them are spread evenly over all, the ends included."""
        every = list(SPARSITIES[name])
        count = len(every) if self.n_sparsities is None else min(self.n_sparsities, len(every))
        step = (len(every) - 1) / max(count - 1, 1)
        return [every[round(k * step)] for k in range(count)]


FULL = Settings()
FAST = Settings(rows=10_000, n_sparsities=8)


def chosen(figures: Sequence[str] = (), datasets: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """The data sets to show in each figure; nothing given means all.

    Examples
    --------
    >>> chosen(["fig1"], ["cal_housing"])
    {'fig1': ('cal_housing',)}
    """
    for figure in figures:
        if figure not in FIGURES:
            raise ValueError(f"figure: expected one of {', '.join(FIGURES)}; got {figure!r}.")
    wanted = {figure: FIGURES[figure] for figure in FIGURES if figure in (figures or FIGURES)}
    here = [name for names in wanted.values() for name in names]
    for name in datasets:
        if name not in here:
            raise ValueError(f"datasets: expected some of {', '.join(here)}; got {name!r}.")
    kept = {
        figure: tuple(name for name in names if name in (datasets or here))
        for figure, names in wanted.items()
    }
    return {figure: names for figure, names in kept.items() if names}
