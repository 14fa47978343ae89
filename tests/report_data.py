"""Studies for the tests of the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from ellzero.report import study

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'`${alert(3)}",
    '=HYPERLINK("http://example.org","click")',
    "a" * 10_000,
    "\u202eright to left\u202d",
    "@SUM(1;2)",
    "\t+1, -1",
    "<!--\u2028\u2029\ud800&lt;-->",
]


def hostile_study() -> dict[str, Any]:
    """All names and titles try to be something else than text."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, len(HOSTILE)))
    y = X @ np.arange(len(HOSTILE), 0, -1.0) + rng.standard_normal(60)
    return study(
        X,
        y,
        sizes=range(1, 9),
        feature_names=HOSTILE,
        title="</title><script>alert(4)</script>",
        target="<b onclick=alert(5)>y</b>",
    )
