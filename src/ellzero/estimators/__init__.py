"""ellzero as scikit-learn estimators."""

from ellzero.estimators.classifier import SparseClassifier
from ellzero.estimators.criteria import information_criteria
from ellzero.estimators.cv import SparseClassifierCV, SparseRegressorCV
from ellzero.estimators.displays import CoefficientDisplay, CVDisplay, PathDisplay
from ellzero.estimators.regressor import SparseRegressor
from ellzero.estimators.selector import SparseSelector

__all__ = [
    "CVDisplay",
    "CoefficientDisplay",
    "PathDisplay",
    "SparseClassifier",
    "SparseClassifierCV",
    "SparseRegressor",
    "SparseRegressorCV",
    "SparseSelector",
    "information_criteria",
]
