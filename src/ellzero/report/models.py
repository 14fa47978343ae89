"""What is told of the model of every size: its fit, its features, and what could replace them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ellzero.core import Solution, Status
from ellzero.estimators.base import hold_model, linear_predictor
from ellzero.estimators.criteria import bare_loss, likelihood_of
from ellzero.estimators.problem import Problem, Solved
from ellzero.report.stand_ins import correlations, stand_ins


class Models:
    """Describes solutions; `model` is the estimator whose data and parameters they are of."""

    def __init__(
        self, model: Any, problem: Problem, solved: Solved, X: Any, y: Any, weight: Any, count: int
    ):
        self.model, self.forced, self.solved = model, problem.forced, solved
        self.X, self.y, self.weight, self.count = X, y, weight, count
        bare = problem.objective(X[:, :1], y, sample_weight=weight, fit_intercept=True)
        self.null = bare.minimize([]).value

    def described(self) -> list[dict[str, Any]]:
        entries = [self._entry(s, found) for s, found in self.solved.path.items()]
        self._add_correlations([row for entry in entries for row in entry["chosen"]])
        return entries

    def _entry(self, s: int, found: Solution) -> dict[str, Any]:
        f, coef = self.solved.f, found.x
        x = f.minimize(found.support)
        without = f.neighbourhood(x).removals()
        replacements = stand_ins(f, x, self.count)
        return {
            "s": s,
            "loss": float(found.value),
            "status": found.status.name,
            "explanation": str(found.status),
            "certified": found.status is Status.OPTIMAL,
            "intercept": np.atleast_1d(found.intercept).tolist(),
            **self._fit(found, bare_loss(f, self.solved.searched[s])),
            "chosen": [
                {
                    "feature": j,
                    "coefficients": np.atleast_1d(coef[j]).tolist(),
                    "loss_without": float(loss),
                    "stand_ins": [{"feature": i, "loss": float(new)} for i, new in others],
                }
                for j, loss, others in zip(x.support.tolist(), without, replacements, strict=True)
            ],
            "forced": [
                {"feature": j, "coefficients": np.atleast_1d(coef[j]).tolist()}
                for j in self.forced.tolist()
            ],
        }

    def _add_correlations(self, rows: list[dict[str, Any]]) -> None:
        """All at once, in one pass over the columns concerned."""
        pairs = [(row["feature"], other) for row in rows for other in row["stand_ins"]]
        if not pairs:
            return
        members = sorted({j for j, _ in pairs} | {other["feature"] for _, other in pairs})
        place = {j: k for k, j in enumerate(members)}
        R = correlations(self.X, self.weight, np.array(members))
        for j, other in pairs:
            r = float(R[place[j], place[other["feature"]]])
            other["correlation"] = r if np.isfinite(r) else None

    def _fit(self, found: Solution, loss: float) -> dict[str, float | None]:
        """How well the model fits, in terms that do not depend on the number of rows."""
        explained = 1 - loss / self.null if self.null > 0 else None
        hold_model(self.model, found, np.float64)
        if hasattr(self.model, "classes_"):
            eta = linear_predictor(self.X, self.model.coef_, self.model.intercept_)
            guess = eta[:, 0] > 0 if eta.shape[1] == 1 else eta.argmax(axis=1)
            right = float(np.average(guess == self.y, weights=self.weight))
            return {"explained": explained, "accuracy": right}
        error = float(np.sqrt(2 * max(loss, 0.0) / likelihood_of(self.solved.f).observations))
        return {"explained": explained, "rmse": error}
