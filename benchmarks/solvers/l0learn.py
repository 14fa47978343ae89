"""L0Learn: coordinate descent with local combinatorial search (CDPSI), C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.base import Solver, Supports, Task

LOSSES = {"least_squares": "SquaredError", "logistic": "Logistic"}


class L0Learn(Solver):
    name = module = package = env = "l0learn"
    retries = 5  # version 0.4.3 ends in a segmentation fault now and then on wide matrices
    note = (
        '`fit(X, y, penalty="L0", algorithm="CDPSI", max_support_size=s)`: a path over λ, which '
        "does not visit every size; a size left out takes the best smaller one."
    )

    def solve_path(self, X: Any, y: np.ndarray, task: Task, sizes: Sequence[int]) -> Supports:
        import l0learn
        from scipy import sparse

        X = sparse.csc_matrix(X) if sparse.issparse(X) else X
        fit = l0learn.fit(
            X,
            y,
            loss=LOSSES[task],
            penalty="L0",
            algorithm="CDPSI",
            max_support_size=int(max(sizes)),
        )
        steps = np.asarray(sparse.csc_matrix(fit.coeffs[0]).toarray())
        found = [np.flatnonzero(c) for c in steps.T]
        return {len(S): S for S in found if 0 < len(S) <= max(sizes)}


SOLVERS = [L0Learn()]
