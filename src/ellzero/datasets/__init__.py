"""The eight data sets of the ARHT paper, and its preprocessing as one invertible object.

`load` reads a file from a data folder or downloads it from its public source; `locate` says which
files it would read. `Preprocessing` makes the paper's matrix of any frame.
"""

from ellzero.datasets.loading import Dataset, data_folder, load, locate
from ellzero.datasets.preprocessing import Preprocessing
from ellzero.datasets.registry import NAMES

__all__ = ["NAMES", "Dataset", "Preprocessing", "data_folder", "load", "locate"]
