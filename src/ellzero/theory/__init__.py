"""What the paper proves, as code: its constants, its bounds, and the instances that meet them.

Axiotis and Sviridenko, "Sparse Convex Optimization via Adaptively Regularized Hard Thresholding".
"""

from ellzero.theory import bounds, constants, instances
from ellzero.theory.constants import Curvature, Domain
from ellzero.theory.guarantees import Guarantee, Promise, guarantee
from ellzero.theory.spectrum import Interval

__all__ = [
    "Curvature",
    "Domain",
    "Guarantee",
    "Interval",
    "Promise",
    "bounds",
    "constants",
    "guarantee",
    "instances",
]
