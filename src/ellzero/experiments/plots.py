"""The figures, in the paper's layout: data sets one below the other, loss against sparsity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ellzero.experiments.figures import CURVES, REFITTED
from ellzero.experiments.observations import Losses
from ellzero.files import writing

STYLES: Mapping[str, Mapping[str, Any]] = {
    "LASSO": {"color": "tab:blue", "marker": "s"},
    REFITTED: {"color": "tab:blue", "linestyle": ":"},
    "OMP": {"color": "tab:orange", "marker": "v"},
    "OMPR": {"color": "tab:green", "marker": "^"},
    "ELS": {"color": "tab:red", "marker": "o"},
    "ARHT": {"color": "tab:purple", "marker": "D"},
    "ellzero": {"color": "black", "linestyle": "--", "marker": "x"},
}
WIDE = 20
"""Losses with a larger ratio get a logarithmic axis, on which the better ones can be told apart."""

LOSS = {"regression": "loss  ½‖Ax − b‖²", "binary": "logistic loss"}


def draw(panels: Sequence[tuple[str, str, Losses]], file: Path) -> list[Path]:
    """Draw (title, task, losses) of each data set; saves `file` as .png and .svg."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "ellzero", "font.size": 10}):
        figure = Figure(figsize=(7.5, 4.2 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), squeeze=False)[:, 0]
        for axis, (title, task, losses) in zip(axes, panels, strict=True):
            _panel(axis, losses)
            axis.set(title=title, xlabel="sparsity (the intercept counts 1)", ylabel=LOSS[task])
        saved = [file.with_suffix(".png"), file.with_suffix(".svg")]
        for path in saved:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            with writing(path):
                figure.savefig(path, dpi=150, metadata=metadata)
    return saved


def _panel(axis: Any, losses: Losses) -> None:
    for method in CURVES:
        points = sorted(losses.get(method, {}).items())
        if points:
            style = {"markersize": 4.5, "linewidth": 1.3, "fillstyle": "none", **STYLES[method]}
            axis.plot(*zip(*points, strict=True), label=method, **style)
    drawn = [loss for curve in losses.values() for loss in curve.values()]
    if min(drawn) > 0 and max(drawn) > WIDE * min(drawn):
        axis.set_yscale("log")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
