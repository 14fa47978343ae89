"""`ellzero demo`: which few facts about a patient predict how diabetes will progress?

scikit-learn's diabetes data: 442 patients, 10 measurements, one score a year later. With squares
and pairwise products there are 64 candidate features. For s = 1..15 we look for the best s of
them, and compare with two usual answers: orthogonal matching pursuit and the LASSO. All three
models are least-squares fits on the features they chose, so only the choice differs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import ellzero as lz
from ellzero.cli.console import document, note, searching, write
from ellzero.files import check_writable, replacing

BASE = ["age", "sex", "bmi", "bp", "chol", "ldl", "hdl", "chol/hdl", "trig", "glucose"]
SIZES = range(1, 16)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="the best s of 64 features on real data",
        description="Which s of 64 features predict best how diabetes progresses, s = 1..15, and "
        "how much better they are than those of OMP and the LASSO.",
    )
    parser.add_argument("--picture", type=Path, metavar="PNG", help="the file to draw losses in")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    if args.picture is not None:
        check_writable(args.picture)
    X, y, names = quadratic_features()
    f = lz.LeastSquares(X, y, fit_intercept=True)
    with searching("searching") as callback:
        best = lz.path(f, SIZES, callback=callback)
    omp = [lz.omp(f, s).value for s in SIZES]
    lasso = [lz.lasso(f, s).value for s in SIZES]  # refitted on the features it chose
    total = f.value(np.zeros(len(names)))
    features = [[names[j] for j in best[s].support] for s in SIZES]
    results = {
        "s": list(SIZES),
        "r2": [1 - best[s].value / total for s in SIZES],
        "loss": [best[s].value for s in SIZES],
        "omp": omp,
        "lasso": lasso,
        "features": features,
    }
    write(document(results) if args.json else "\n".join(table(results)))
    if args.picture is not None:
        draw(results, args.picture)
        note(f"the picture is in {args.picture}")


def quadratic_features() -> tuple[Any, Any, list[str]]:
    """10 measurements, 45 products and 9 squares (sex has two values: its square says nothing)."""
    data, y = load_diabetes(return_X_y=True)
    Z = scale(data)
    columns, names = list(Z.T), list(BASE)
    for i, a in enumerate(BASE):
        for j, b in enumerate(BASE[i:], start=i):
            if not a == b == "sex":
                columns.append(Z[:, i] * Z[:, j])
                names.append(f"{a}²" if a == b else f"{a}·{b}")
    return scale(np.column_stack(columns)), y, names


def table(results: dict[str, Any]) -> Iterator[str]:
    yield " s     R²     loss      OMP    LASSO   features that came (+) and went (-)"
    before: set[str] = set()
    for s, r2, loss, omp, lasso, features in zip(*results.values(), strict=True):
        now = set(features)
        changes = [f"+{name}" for name in sorted(now - before)]
        changes += [f"-{name}" for name in sorted(before - now)]
        yield f"{s:2} {r2:6.3f} {loss:8.0f} {omp:8.0f} {lasso:8.0f}   {' '.join(changes)}"
        before = now


def draw(results: dict[str, Any], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--picture needs matplotlib: pip install 'ellzero[plot]'") from error
    fig = Figure(figsize=(7, 6), dpi=150, layout="constrained")
    top, bottom = fig.subplots(2, sharex=True, height_ratios=[3, 2])
    loss = np.array(results["loss"])
    for name, style in (("lasso", "C2^:"), ("omp", "C1s--")):
        other = np.array(results[name])
        top.plot(SIZES, other, style, label=name.upper())
        bottom.plot(SIZES, 100 * (other / loss - 1), style)
    top.plot(SIZES, loss, "C0o-", label="ellzero")
    bottom.axhline(0, color="C0")
    top.set(title="Diabetes progression, 64 candidate features", ylabel="loss  ½‖Xx − y‖²")
    bottom.set(xlabel="features in the model, s", ylabel="% above ellzero", xticks=SIZES)
    top.yaxis.set_major_formatter("{x:,.0f}")
    top.legend(frameon=False, reverse=True)
    for ax in (top, bottom):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
    with replacing(path) as unfinished:
        fig.savefig(unfinished, format="png")
