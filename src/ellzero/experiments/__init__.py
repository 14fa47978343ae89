"""The paper's experiments: loss against sparsity on its eight data sets, in its four figures.

`reproduce` computes what is missing, saves each result as it is made, and writes a table, the
figures and a report that says which of the paper's observations hold. `ellzero reproduce` calls it.
"""

from ellzero.experiments.figures import FAST, FIGURES, FULL, METHODS, Settings
from ellzero.experiments.reproduce import Outcome, reproduce

__all__ = ["FAST", "FIGURES", "FULL", "METHODS", "Outcome", "Settings", "reproduce"]
