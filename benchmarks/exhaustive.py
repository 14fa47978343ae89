"""Is the search's answer the best there is? Branch and bound over all supports of a small problem.

    python -m benchmarks.exhaustive letter --limit 3600

From the model of all features, features are removed one after the other. f of what is left bounds f
of every support inside it from below, so a branch ends where that is no better than the best known
at all the sizes it can still reach. Without a limit the result is a proof for every size.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import ellzero
from benchmarks.problems import all_problems


class OutOfTime(Exception):
    pass


class Proof:
    """The best support of every size, beginning with what the search found."""

    def __init__(self, f: ellzero.Objective, path: ellzero.Path, deadline: float):
        self.f, self.deadline = f, deadline
        self.best = {s: found.value for s, found in path.items()}
        self.best[0] = f.minimize([]).value
        self.tolerance = 1e-9 * self.best[0]
        self.fits = 0

    def run(self) -> None:
        x = self.f.minimize(self.f.choosable)
        self._visit(x, np.array(x.support))

    def _visit(self, x: ellzero.Iterate, removable: np.ndarray) -> None:
        """Every support that lies in that of x and differs by some of the removable features."""
        if time.monotonic() > self.deadline:
            raise OutOfTime
        size = len(x.support)
        self.best[size] = min(self.best[size], x.value)
        if not len(removable):
            return
        costs = self.f.quadratic_model(x).removal_values(x.support)
        cost = dict(zip(x.support.tolist(), costs, strict=True))
        # the dearest first: its branch is cut at once, and all later ones keep it
        order = sorted(removable.tolist(), key=lambda j: -cost[j])
        for position, j in enumerate(order):
            rest = np.array(order[position + 1 :], dtype=int)
            without = x.support[x.support != j]
            y = self.f.minimize(without, x)
            self.fits += 1
            smallest = len(without) - len(rest)
            reachable = range(max(smallest, 1), len(without) + 1)
            if any(y.value < self.best[s] - self.tolerance for s in reachable):
                self._visit(y, rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds")
    arguments = parser.parse_args()
    problem = next(p for p in all_problems() if p.name == arguments.problem)
    X, y = problem.make()
    kind = ellzero.LeastSquares if problem.task == "least_squares" else ellzero.Logistic
    f = kind(X, y, fit_intercept=True)
    path = ellzero.path(f, range(1, f.n_features + 1))
    proof = Proof(f, path, time.monotonic() + arguments.limit)
    begin = time.monotonic()
    try:
        proof.run()
        verdict = "all supports of every size considered"
    except OutOfTime:
        verdict = "out of time: no proof"
    worse = {s: v.value / proof.best[s] - 1 for s, v in path.items() if v.value > proof.best[s]}
    worse = {s: excess for s, excess in worse.items() if excess > 1e-9}
    seconds = time.monotonic() - begin
    sys.stdout.write(
        f"{arguments.problem}: {verdict}; {proof.fits} fits of {2**f.n_features - 1} supports, "
        f"{seconds:.0f} s\nsizes at which the search is not the best: {worse or 'none'}\n"
    )


if __name__ == "__main__":
    main()
