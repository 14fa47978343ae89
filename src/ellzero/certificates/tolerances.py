"""The numbers that keep a proof true under rounding, with the argument for each.

"The unit scale" is the one on which every column has length one. A share is a part of a whole: 0.01
of a value is one percent of it.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(float).eps)

SMALLEST_SPLIT = 1e-9
"""The least d of a split on the unit scale. A smaller d would divide rounding by almost nothing."""

DEPENDENT_BELOW = 16 * EPS
"""Columns count as dependent where the least eigenvalue of n of them, on the unit scale, is below
this number times n and the digits lost: it is then rounding of the matrix."""

LEAST_MARGIN = 1e-10
"""The margin is at least this share of the loss without features: what summing m products loses."""

ROUNDING_OF_NULL = 100.0
"""The margin is at least this many times the rounding of the value without features."""

LARGEST_MARGIN = 1e-3
"""Share of the best value above which a margin decides. Nothing is then called proven."""

SAME_VALUE = 1e-5
"""Share of its value by which a solution may differ from f: data may have been float32 and back."""

CERTAIN_COST = 1 - 1e-6
"""The share of a computed cost of leaving a feature out that is counted on. Moments with an
eigenvalue below 1e-9 are not used, so a cost has lost at most nine of its sixteen digits. The
rounding of costs that are tiny beside the loss is part of the margin."""

STALE_TABLEAU = 0.01
"""Share of the margin by which updates may blur a bound. Beyond it a tableau is made anew."""

SMALLEST_VALUE = 1e-30
"""Values of f below this are not compared with others: of a perfect fit there is only rounding."""
