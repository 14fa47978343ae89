"""The page: tables and plots from saved results. `python -m benchmarks.page [results.json]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import plots
from benchmarks.solvers import all_solvers
from benchmarks.table import TIE, Board, Pair, read

ROOT = Path(__file__).resolve().parent.parent
ORDER = {"ours": 0, "peer": 1, "ours-method": 2, "yardstick": 3}

INTRODUCTION = """\
# Benchmarks

ellzero and its peers on the same work, made by `make bench` (`make bench-quick` for a few
minutes' worth); this page is written from the saved results and not by hand.

- Each pair of solver and problem runs in a process of its own, in random order, with the
  libraries' default threads. The time is that of one call that yields the whole path, from the
  raw matrix to the supports; short runs are repeated and the shortest counts. Memory is the peak
  above what the process held with the data loaded.
- A judge outside the solvers refits every returned support in float64, intercept in, without a
  penalty: ½‖residual‖² for least squares, by QR; the summed logistic loss, by Newton.
- The answer at s is the best of a solver's supports with at most s features. The excess is the
  loss above the lowest that any solver here reached at that s.
"""

GROWTH = """\
Small data are searched wider, which hides how the time of the default grows; with `effort=0` the
search is equally wide everywhere. The exponents are those over the larger half of each range.

"""


FULL = ROOT / "benchmarks/results/full.json"


def folder_for(results: Path) -> Path:
    """Where the page goes: docs/ for the full run, beside the results for any other."""
    return ROOT / "docs" if results.resolve() == FULL else results.with_suffix("")


def write(results: Path, folder: Path) -> Path:
    about, boards = read(results)
    images = folder / "benchmarks"
    drawn = {
        "Time against ellzero's": plots.time_ratios(boards, images / "time.svg"),
        "Excess loss per size": plots.excess(boards, images / "excess.svg"),
        "Growth of time": plots.scaling(boards, images / "scaling.svg"),
    }
    compared = [b for b in boards if b.about["family"] != "scaling"]
    parts = [INTRODUCTION, machine(about), times(compared), methods(compared), losses(compared)]
    for title, file in drawn.items():
        if file:
            parts.append(f"## {title}\n\n![{title}]({file.relative_to(folder).as_posix()})\n")
    parts += [growth(boards), details(compared), calls(boards)]
    target = folder / "benchmarks.md"
    target.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    return target


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def number(value: float | None, unit: str = "") -> str:
    if value is None:
        return "–"
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", " ")
    return text + unit


def machine(about: dict[str, Any]) -> str:
    facts = about["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in facts["versions"].items())
    rows = [
        ("date", facts["date"]),
        ("processor", f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB"),
        ("system", f"{facts['system']}, Python {facts['python']}"),
        ("versions", versions),
        ("BLAS", "; ".join(facts["blas"])),
        ("load at the start", facts["load_at_start"] and round(facts["load_at_start"][0], 2)),
        ("limit per pair", f"{about['limit_seconds']:.0f} s, more for the largest problems"),
    ]
    remark = f"\n{about['remark']}\n" if about.get("remark") else ""
    return "## Machine\n\n" + table(("", ""), rows) + remark


def times(boards: Sequence[Board]) -> str:
    """ellzero's time against the arithmetic it rests on and against abess."""
    rows = []
    for b in boards:
        ours = b.pair("ellzero")
        if b.about["family"] != "time" or ours is None or not ours.ok:
            continue
        memory = ours.record["peak_bytes"] / b.about["data_bytes"]
        others = [p for p in b.pairs if p.kind == "peer" and p.ok]
        quick = min(others, key=lambda p: p.seconds or 0, default=None)
        rows.append(
            (
                title(b),
                number(ours.seconds, " s"),
                number(b.ratio("ellzero", "dsyrk")),
                number(b.ratio("ellzero", "s·Xᵀr")),
                abess_against(b, ours),
                f"{quick.solver} {number(quick.seconds, ' s')}" if quick else "–",
                number(memory),
            )
        )
    if not rows:
        return ""
    head = ("problem", "ellzero", "÷ dsyrk", "÷ s·Xᵀr", "abess ÷ ellzero", "fastest peer",
            "peak memory ÷ X")  # fmt: skip
    return "## Time\n\n" + table(head, rows)


def abess_against(board: Board, ours: Pair) -> str:
    """How many times ellzero's time abess took, or at least took."""
    abess = board.pair("abess")
    if abess is None or not ours.seconds:
        return "–"
    if abess.record["status"] == "timeout":
        return "> " + number(abess.record["limit"] / ours.seconds, "×")
    return number(board.ratio("abess", "ellzero"), "×")


def methods(boards: Sequence[Board]) -> str:
    """Whole paths of the paper's algorithms, and ARHT's against abess'."""
    names = ("omp", "ompr", "els", "exchange", "arht", "lasso")
    rows = []
    for b in boards:
        seconds = [b.seconds(f"ellzero-{name}") for name in names]
        if b.about["family"] == "time" and any(seconds):
            cells = (number(t, " s" if t else "") for t in seconds)
            rows.append((title(b), *cells, number(b.ratio("ellzero-arht", "abess"))))
    if not rows:
        return ""
    head = ("problem", *map(str.upper, names), "ARHT ÷ abess")
    return "## ellzero's single methods\n\n" + table(head, rows)


def losses(boards: Sequence[Board]) -> str:
    """Mean excess loss of each peer, and at how many sizes ellzero is not the lowest."""
    peers = sorted({p.solver for b in boards for p in b.pairs if p.kind == "peer"})
    rows = []
    for b in boards:
        ours = b.pair("ellzero")
        behind = len(b.above_peers()) if ours and ours.losses else "–"
        cells = [_mean_excess(b, name) for name in ("ellzero", *peers)]
        rows.append((title(b), len(b.best), behind, *cells))
    head = ("problem", "sizes", "ellzero not lowest at", "ellzero", *peers)
    return "## Mean excess loss, %\n\n" + table(head, rows)


def _mean_excess(board: Board, solver: str) -> str:
    pair = board.pair(solver)
    if pair is None or not pair.losses:
        return "–"
    percent = 100 * mean(board.excess(pair).values())
    return "0" if percent < 100 * TIE else number(percent)


def growth(boards: Sequence[Board]) -> str:
    """Exponents of time along each axis, from the larger half of the points."""
    lines: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for b in boards:
        if b.about["family"] == "scaling":
            loss, axis, value = plots.scaling_point(b.name)
            for solver in ("ellzero", "ellzero-effort-0"):
                if seconds := b.seconds(solver):
                    lines.setdefault((loss, axis, solver), []).append((value, seconds))
    rows = []
    for (loss, axis, solver), points in sorted(lines.items()):
        if len(points) > 2:
            x, t = zip(*sorted(points), strict=True)
            span = f"{number(x[0])} … {number(x[-1])}"
            rows.append((loss, axis, solver, span, number(t[-1], " s"), f"{plots.slope(x, t):.2f}"))
    if not rows:
        return ""
    head = ("loss", "axis", "solver", "range", "longest", "exponent")
    return GROWTH + table(head, rows)


def details(boards: Sequence[Board]) -> str:
    parts = ["## Every pair\n"]
    for b in boards:
        about = b.about
        extra = f" {about['note']}." if about["note"] else ""
        sparse = ", sparse" if about["sparse"] else ""
        parts.append(
            f"### {b.name}\n\n{about['task'].replace('_', ' ')}, {about['m']} × {about['n']}"
            f"{sparse}, s = {about['sizes'][0]}..{about['sizes'][1]}.{extra}\n"
        )
        pairs = sorted(b.pairs, key=lambda p: (ORDER[p.kind], p.seconds or 1e9))
        head = ("solver", "time", "÷ ellzero", "peak MiB", "mean excess %", "max excess %",
                "lowest at", "")  # fmt: skip
        parts.append(table(head, (_detail(b, p) for p in pairs if p.record["status"] != "skipped")))
    return "\n".join(parts)


def _detail(board: Board, pair: Pair) -> tuple[str, ...]:
    record, above = pair.record, list(board.excess(pair).values())
    remark = record.get("why", "")
    steps = record.get("info", {}).get("steps")
    if record.get("crashes"):
        remark = f"after {record['crashes']} crashes"
    elif pair.ok and pair.kind == "ours-method" and steps:
        remark = f"{number(1000 * pair.record['seconds'] / steps)} ms per step"
    name = pair.solver
    if not pair.ok:
        return name, record["status"], "", "", "", "", "", remark
    return (
        name,
        number(pair.seconds, " s"),
        number(board.ratio(pair.solver, "ellzero")),
        number(record["peak_bytes"] / 2**20),
        number(100 * mean(above)) if above else "",
        number(100 * max(above)) if above else "",
        f"{sum(e <= TIE for e in above)} of {len(board.best)}" if above else "",
        remark,
    )


def calls(boards: Sequence[Board]) -> str:
    """How each solver was called, and in which version."""
    versions = {p.solver: p.record["version"] for b in boards for p in b.pairs if p.ok}
    lines = [
        f"- **{name}** {versions.get(name, '(did not run)')}: {solver.note}"
        for name, (_, solver) in all_solvers().items()
    ]
    return "## How each is called\n\n" + "\n".join(lines) + "\n"


def title(board: Board) -> str:
    first, last = board.about["sizes"]
    return f"{board.name}, s = {last}" if first == last else f"{board.name}, s = {first}..{last}"


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else FULL
    write(given, folder_for(given))
