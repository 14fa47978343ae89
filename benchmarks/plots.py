"""The plots of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.table import Board

mpl.rcParams.update(
    {
        "svg.hashsalt": "ellzero",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)
FLOOR = 1e-4  # per cent; where "none" is drawn on a logarithmic axis


def colours(names: Sequence[str]) -> dict[str, Any]:
    """The same colour for a solver in every plot; ellzero is black."""
    wheel = mpl.colormaps["tab10"].colors
    others = [name for name in names if name != "ellzero"]
    return {"ellzero": "black"} | {name: wheel[i % 10] for i, name in enumerate(others)}


def save(figure: Any, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return file


def time_ratios(boards: Sequence[Board], file: Path) -> Path | None:
    """How many times ellzero's time each solver took, one row per problem."""
    boards = [b for b in boards if b.about["family"] == "time" and b.seconds("ellzero")]
    names = sorted({p.solver for b in boards for p in b.pairs if p.kind in ("peer", "yardstick")})
    if not names:
        return None
    paint = colours(names)
    figure, axis = plt.subplots(figsize=(8, 0.9 + 0.6 * len(boards)))
    for row, board in enumerate(boards):
        for name in names:
            ratio = board.ratio(name, "ellzero")
            if ratio:
                marker = "|" if board.pair(name).kind == "yardstick" else "o"
                axis.plot(ratio, row, marker, color=paint[name], ms=9 if marker == "|" else 6)
    for name in names:
        axis.plot([], [], "o", color=paint[name], label=name)
    axis.axvline(1.0, color="black", lw=1)
    axis.set(xscale="log", xlabel="time ÷ ellzero's time", yticks=range(len(boards)))
    axis.set_yticklabels([b.name for b in boards])
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return save(figure, file)


def excess(boards: Sequence[Board], file: Path) -> Path | None:
    """Loss above the best known at every size, one small plot per problem."""
    boards = [b for b in boards if b.about["family"] != "scaling" and len(b.best) > 1]
    if not boards:
        return None
    names = sorted({p.solver for b in boards for p in b.pairs if p.losses and p.kind == "peer"})
    paint = colours(names)
    rows = -(-len(boards) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(11, 2.5 * rows), squeeze=False)
    for axis, board in zip(axes.flat, boards, strict=False):
        for pair in board.pairs:
            if pair.solver in paint and pair.losses:
                above = board.excess(pair)
                percent = [max(100 * above[s], FLOOR) for s in above]
                front = pair.solver == "ellzero"
                axis.plot(
                    list(above), percent, color=paint[pair.solver], lw=2 if front else 1,
                    zorder=3 if front else 2,
                )  # fmt: skip
        axis.set(yscale="log", title=board.name, xlabel="s")
        axis.set_ylim(FLOOR * 0.7)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(boards) :]:
        axis.axis("off")
    for axis in axes[:, 0]:
        axis.set_ylabel("excess loss, %")
    handles = [plt.Line2D([], [], color=c, label=name) for name, c in paint.items()]
    figure.legend(handles=handles, loc="upper center", ncol=6, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.5 / (2.5 * rows)))
    return save(figure, file)


def scaling(boards: Sequence[Board], file: Path) -> Path | None:
    """Time against m, n and s on logarithmic axes, with the slope over the larger half."""
    lines: dict[tuple[str, str], list[tuple[int, Board]]] = {}
    for board in boards:
        if board.about["family"] == "scaling" and board.seconds("ellzero"):
            loss, axis_name, value = scaling_point(board.name)
            lines.setdefault((loss, axis_name), []).append((value, board))
    if not lines:
        return None
    columns = min(3, len(lines))
    rows = -(-len(lines) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.7 * columns, 3 * rows), squeeze=False)
    for axis, ((loss, axis_name), points) in zip(axes.flat, sorted(lines.items()), strict=False):
        points.sort(key=lambda point: point[0])
        growth(axis, points)
        axis.set(xscale="log", yscale="log", xlabel=axis_name.split("-")[-1], ylabel="seconds")
        measured = [value for value, _ in points]
        axis.set_xticks(measured, labels=[f"{value:,}".replace(",", " ") for value in measured])
        axis.minorticks_off()
        axis.tick_params(axis="x", labelsize="small")
        axis.set_title(f"{loss}, {_held(axis_name, points[0][1].about)}")
    for axis in axes.flat[len(lines) :]:
        axis.axis("off")
    figure.tight_layout()
    return save(figure, file)


def scaling_point(name: str) -> tuple[str, str, int]:
    """`scaling-ls-wide-n-2500` -> ("ls", "wide-n", 2500)."""
    loss, rest = name.removeprefix("scaling-").split("-", 1)
    axis_name, value = rest.rsplit("-", 1)
    return loss, axis_name, int(value)


def slope(x: Sequence[float], t: Sequence[float]) -> float:
    """The exponent of growth over the larger half of the points."""
    half = len(x) // 2
    return float(np.polyfit(np.log(x[half:]), np.log(t[half:]), 1)[0])


GROWING = {
    "ellzero": "black",
    "ellzero-effort-0": "grey",
    "dsyrk": "tab:blue",
    "s·Xᵀr": "tab:orange",
}


def growth(axis: Any, points: list[tuple[int, Board]]) -> None:
    for solver, colour in GROWING.items():
        found = [(x, t) for x, board in points if (t := board.seconds(solver))]
        if len(found) > 2:
            x, t = zip(*found, strict=True)
            axis.plot(x, t, "o-", color=colour, ms=4, label=f"{solver}: slope {slope(x, t):.2f}")
    axis.legend(frameon=False, fontsize=8)
    axis.grid(alpha=0.3)


def _held(axis_name: str, about: dict[str, Any]) -> str:
    """What stays fixed while this axis varies."""
    fixed = {"m": about["m"], "n": about["n"], "s": about["sizes"][1]}
    fixed.pop(axis_name.split("-")[-1])
    return ", ".join(f"{key} = {value}" for key, value in fixed.items())
