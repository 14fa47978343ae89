"""OKRidge: the beam search that starts its branch and bound."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from benchmarks.base import (
    Shape,
    Solver,
    Supports,
    Task,
    dense_only,
    least_squares_only,
    unit_columns,
)

RIDGE = 1e-10  # on columns of unit norm; the solver divides by nothing smaller
MEMORY_GB = 4.0  # of cached partial solutions


class OKRidge(Solver):
    name = package = env = "okridge"
    module = "okridge.solvers"
    note = (
        "the beam search behind `BNBTree.solve(k, time_limit=-1)`, 50 parents × 50 children as "
        "there, run once to the largest size: its best support at each level on the way is what "
        "a call for that size returns."
    )

    def skip(self, shape: Shape) -> str:
        wide = "needs the n × n Gram matrix" if shape.n > 20_000 else ""
        return least_squares_only(shape) or dense_only(shape) or wide

    def solve_path(
        self, X: np.ndarray, y: np.ndarray, task: Task, sizes: Sequence[int]
    ) -> Supports:
        from okridge.solvers import sparseLogRegModel_big_n

        Z, y = unit_columns(X, y)
        n = Z.shape[1]
        G = Z.T @ Z
        G[np.diag_indices(n)] += RIDGE
        data = SimpleNamespace(
            X=Z, y=y, n=Z.shape[0], p=n, XTX_lambda2=G, XTy=y @ Z, lambda2=RIDGE,
            half_Lipschitz=G.diagonal(),
        )  # fmt: skip
        beam = sparseLogRegModel_big_n(data, 50, 50, max_memory_GB=MEMORY_GB)
        beam.forbidden_support = set()
        found = {}
        for s in range(1, min(max(sizes), n) + 1):
            beam.beamSearch_multipleSupports_via_OMP_by_1()
            found[s] = np.flatnonzero(beam.supp_mask_arr_parent[0])
        return {s: found[s] for s in sizes if s in found}


SOLVERS = [OKRidge()]
