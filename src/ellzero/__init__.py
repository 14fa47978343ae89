"""ellzero: the best model that uses at most s features."""

from importlib import import_module
from types import ModuleType

from ellzero.interrupts import EndOnInterrupt, is_command

with EndOnInterrupt(is_command()):
    import ellzero.theory as theory
    from ellzero.certificates import Certificate, certify
    from ellzero.core import Features, Iterate, Objective, Solution, Status
    from ellzero.estimators import (
        CoefficientDisplay,
        CVDisplay,
        PathDisplay,
        SparseClassifier,
        SparseClassifierCV,
        SparseRegressor,
        SparseRegressorCV,
        SparseSelector,
        information_criteria,
    )
    from ellzero.methods.arht import arht, arht_core, arht_robust
    from ellzero.methods.els import els
    from ellzero.methods.exchange import exchange
    from ellzero.methods.iht import iht
    from ellzero.methods.lasso import lasso
    from ellzero.methods.omp import omp
    from ellzero.methods.ompr import ompr
    from ellzero.objectives.custom import from_callables, from_jax
    from ellzero.objectives.glm.logistic import Logistic
    from ellzero.objectives.glm.multinomial import Multinomial
    from ellzero.objectives.least_squares import LeastSquares
    from ellzero.objectives.moments.statistics import Statistics
    from ellzero.objectives.quadratic import Quadratic
    from ellzero.selection import Path, path, solve

__version__ = "0.1.0"

__all__ = [
    "CVDisplay",
    "Certificate",
    "CoefficientDisplay",
    "Features",
    "Iterate",
    "LeastSquares",
    "Logistic",
    "Multinomial",
    "Objective",
    "Path",
    "PathDisplay",
    "Quadratic",
    "Solution",
    "SparseClassifier",
    "SparseClassifierCV",
    "SparseRegressor",
    "SparseRegressorCV",
    "SparseSelector",
    "Statistics",
    "Status",
    "arht",
    "arht_core",
    "arht_robust",
    "certify",
    "datasets",
    "distributed",
    "els",
    "exchange",
    "from_callables",
    "from_jax",
    "iht",
    "information_criteria",
    "lasso",
    "omp",
    "ompr",
    "path",
    "report",
    "solve",
    "theory",
]


def __getattr__(name: str) -> ModuleType:
    """Packages that are imported when they are first asked for."""
    if name in ("datasets", "distributed", "report"):
        return import_module(f"ellzero.{name}")
    raise AttributeError(f"module 'ellzero' has no attribute {name!r}")
