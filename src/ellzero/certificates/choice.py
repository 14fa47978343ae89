"""Which proof fits an objective, and how much rounding may change of what it says."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from ellzero.certificates.certifiable import exact, ridge_of, rounding
from ellzero.certificates.convex_proof import ConvexProof
from ellzero.certificates.nodes import Incumbent
from ellzero.certificates.proof import Proof
from ellzero.certificates.quadratic_proof import QuadraticProof
from ellzero.certificates.tolerances import LARGEST_MARGIN, SMALLEST_SPLIT
from ellzero.certificates.unit_moments import (
    hides_features,
    least_clear_eigenvalue,
    rounding_of_matrix,
    unit_moments_of,
    zero_features,
)
from ellzero.certificates.wide_proof import WideProof, split_by_ridge
from ellzero.core import Objective
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Support

LARGEST_MATRIX = 3000
"""Columns up to which the matrix of a quadratic is made: 72 MB. Beyond, only products are asked."""

MOST_SUPPORTS_IF_PERFECT = 1e6
"""Supports up to which a tree is tried although all features together fit perfectly."""

MOST_FEATURES_ON_ROWS = 30
"""Features up to which the rows are asked where moments leave doubt: there each node is an SVD."""

RIDGE = "a ridge (ridge > 0, or alpha > 0 in an estimator) would make a better one possible"
PERFECT = f"all features together fit the data perfectly, so only f ≥ 0 is certain; {RIDGE}"
TOO_WIDE = f"with more than {LARGEST_MATRIX} features a bound needs a ridge; add one, or preselect"
WIDE_BLOCKS = (
    f"with more than {LARGEST_MATRIX} columns a bound needs features of one column each; preselect"
)
NO_ROWS = (
    "some features are dependent, or nearly so, and moments cannot tell which; leave some out, or "
    f"certify with the rows, as in LeastSquares(X, y); {RIDGE}"
)
NO_TIME = "stopped before there was a bound"

Known = dict[int, Incumbent]
"""The best model known of each size."""


@dataclass
class Choice:
    """The proof to work on, if there is one, and the margin by which its bounds hold."""

    proof: Proof | None
    margin: float
    advice: str = NO_TIME
    """What would make a bound possible where there is no proof."""


def chosen(f: Objective, known: Known, margin: float, gap: float, deadline: float) -> Choice:
    """Choose the proof for f.

    Parameters
    ----------
    margin : float
        What rounding may change of f without features.
    """
    if not isinstance(f, Quadratic):
        return Choice(ConvexProof(f, known, margin, gap), margin)
    if len(f.scale) > LARGEST_MATRIX:
        return _of_wide_data(f, known, margin, gap)
    return _of_moments(f, known, margin, gap, deadline)


def _of_moments(f: Quadratic, known: Known, margin: float, gap: float, deadline: float) -> Choice:
    """Choose for a quadratic whose matrix can be made: by moments, or from the rows."""
    features = np.setdiff1d(f.features.choosable, zero_features(f))
    moments = unit_moments_of(f, features)
    n = len(moments) - 1
    least, dependent = least_clear_eigenvalue(f, moments)
    whole_margin = margin + rounding_of_matrix(f, least, n)
    value = min(abs(best.value) for best in known.values())
    inexact = whole_margin > LARGEST_MARGIN * value and n <= MOST_FEATURES_ON_ROWS
    unclear = dependent or hides_features(f)
    if unclear or inexact:
        try:
            rows = exact(f, deadline) if f.features.all_single else None
        except TimeoutError:
            return Choice(None, margin)
        if rows is not None:
            return _of_rows(rows, known, margin, gap)
        if unclear:
            return Choice(None, margin, NO_ROWS)
    if not (n and f.features.all_single):
        proof = ConvexProof(f, known, whole_margin, gap, warm_starts=False)
        return Choice(proof, whole_margin)
    known = {s: _within(features, best) for s, best in known.items()}
    return Choice(QuadraticProof(moments, features, known, whole_margin, gap), whole_margin)


def _of_rows(rows: Objective, known: Known, margin: float, gap: float) -> Choice:
    """Choose for columns that are dependent or nearly so, by an f that can tell these apart."""
    choosable = rows.features.choosable
    supports = max(comb(len(choosable), s) for s in known)
    whole = rows.minimize(choosable)
    perfect = whole.value - rounding(rows, whole) <= rows.floor + margin
    if perfect and supports > MOST_SUPPORTS_IF_PERFECT:
        return Choice(None, margin, PERFECT)
    fits = {s: rows.minimize(x.support) for s, x in known.items()}
    known = {s: Incumbent(x.value, x.support, rounding(rows, x)) for s, x in fits.items()}
    proof = ConvexProof(rows, known, 0.0, gap, warm_starts=False)
    return Choice(proof, 0.0)  # the margin is that of each model


def _of_wide_data(f: Quadratic, known: Known, margin: float, gap: float) -> Choice:
    """Choose for a quadratic whose matrix is too large: only a ridge bounds it."""
    if not f.features.all_single:
        return Choice(None, margin, WIDE_BLOCKS)
    choosable = f.features.choosable
    d = split_by_ridge(f)[choosable]
    least = float(d[d > 0].min(initial=np.inf))
    if not ridge_of(f)[choosable].min() > 0 or least < SMALLEST_SPLIT:
        return Choice(None, margin, TOO_WIDE)
    margin += rounding_of_matrix(f, least, LARGEST_MATRIX)
    return Choice(WideProof(f, known, margin, gap), margin)


def _within(features: Support, best: Incumbent) -> Incumbent:
    """Return a model without features that cannot change f."""
    return Incumbent(best.value, np.intersect1d(best.support, features))
