"""ellzero: the best model that uses at most s features."""

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than all else here

if TYPE_CHECKING:
    from ellzero import datasets, distributed, report, theory
    from ellzero.algorithms.arht import arht, arht_core, arht_robust
    from ellzero.algorithms.els import els
    from ellzero.algorithms.exchange import exchange
    from ellzero.algorithms.iht import iht
    from ellzero.algorithms.lasso import lasso
    from ellzero.algorithms.omp import omp
    from ellzero.algorithms.ompr import ompr
    from ellzero.certificates import Certificate, certify
    from ellzero.core import Iterate, Objective, Solution, Status
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
    from ellzero.objectives.custom import from_callables, from_jax
    from ellzero.objectives.least_squares import LeastSquares
    from ellzero.objectives.logistic import Logistic
    from ellzero.objectives.multinomial import Multinomial
    from ellzero.objectives.quadratic import Quadratic
    from ellzero.objectives.statistics import Statistics
    from ellzero.selection import Path, path, solve

__version__ = "0.1.0"

__all__ = [
    "CVDisplay",
    "Certificate",
    "CoefficientDisplay",
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

_PACKAGES = (
    "algorithms",
    "certificates",
    "core",
    "datasets",
    "distributed",
    "estimators",
    "objectives",
    "report",
    "selection",
    "theory",
)

_NAMES = {
    "ellzero.algorithms.arht": ("arht", "arht_core", "arht_robust"),
    "ellzero.algorithms.els": ("els",),
    "ellzero.algorithms.exchange": ("exchange",),
    "ellzero.algorithms.iht": ("iht",),
    "ellzero.algorithms.lasso": ("lasso",),
    "ellzero.algorithms.omp": ("omp",),
    "ellzero.algorithms.ompr": ("ompr",),
    "ellzero.certificates": ("Certificate", "certify"),
    "ellzero.core": ("Iterate", "Objective", "Solution", "Status"),
    "ellzero.estimators": (
        "CoefficientDisplay",
        "CVDisplay",
        "PathDisplay",
        "SparseClassifier",
        "SparseClassifierCV",
        "SparseRegressor",
        "SparseRegressorCV",
        "SparseSelector",
        "information_criteria",
    ),
    "ellzero.objectives.custom": ("from_callables", "from_jax"),
    "ellzero.objectives.least_squares": ("LeastSquares",),
    "ellzero.objectives.logistic": ("Logistic",),
    "ellzero.objectives.multinomial": ("Multinomial",),
    "ellzero.objectives.quadratic": ("Quadratic",),
    "ellzero.objectives.statistics": ("Statistics",),
    "ellzero.selection": ("Path", "path", "solve"),
}

_MODULES = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take all other names for good as well

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for.

        NumPy and scikit-learn take a second. The command line starts before, to heed Ctrl-C.
        """
        if name in _PACKAGES:
            return import_module(f"ellzero.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module 'ellzero' has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
