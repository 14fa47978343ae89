"""ellzero past one machine: estimators for Dask collections, on Dask's scheduler and workers."""

from ellzero.distributed.estimators import SparseClassifier, SparseRegressor

__all__ = ["SparseClassifier", "SparseRegressor"]
