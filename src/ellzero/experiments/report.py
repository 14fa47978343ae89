"""The table, and the report in Markdown: every number in it is computed from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ellzero as lz
from ellzero.data.io.columns import pandas
from ellzero.datasets.registry import ENTRIES
from ellzero.experiments import plots
from ellzero.experiments.figures import CURVES, FIGURES, METHODS, REFITTED, Settings
from ellzero.experiments.observations import Losses, verdicts
from ellzero.experiments.store import Result
from ellzero.files import writing

TITLE = "# The paper's experiments"

Shown = Mapping[str, Sequence[Result]]
"""The results of each data set."""


def table(results: Iterable[Result], file: Path) -> Path:
    """One row per data set, method and sparsity."""
    figure_of = {name: figure for figure, names in FIGURES.items() for name in names}
    rows = [{"figure": figure_of[r.dataset], **asdict(r)} for r in results]
    frame = pandas().DataFrame(rows)
    method = pandas().Categorical(frame["method"], CURVES)
    frame = frame.assign(method=method).sort_values(["figure", "dataset", "method", "sparsity"])
    with writing(file):
        frame.astype({"method": str}).to_parquet(file, index=False)
    return file


def check_ours(file: Path) -> None:
    """An error if the report would take the place of a file that is not one."""
    if file.exists() and not file.read_text(encoding="utf-8", errors="replace").startswith(TITLE):
        raise FileExistsError(
            f"out: {file} is not a report of these experiments and would be lost; "
            "choose another folder."
        )


def losses_of(results: Iterable[Result]) -> Losses:
    losses: dict[str, dict[int, float]] = {}
    for result in results:
        losses.setdefault(result.method, {})[result.sparsity] = result.loss
    return losses


def rows_of(name: str, results: Sequence[Result]) -> str:
    """How many rows, and of how many where those are not the paper's."""
    rows, whole = max(r.rows for r in results), ENTRIES[name].paper_shape[0]
    return _number(rows) + (f" of the paper's {_number(whole)}" if rows != whole else "") + " rows"


def figure(names: Sequence[str], shown: Shown, file: Path) -> list[Path]:
    panels = [
        (f"{name}, {rows_of(name, shown[name])}", ENTRIES[name].task, losses_of(shown[name]))
        for name in names
    ]
    return plots.draw(panels, file)


def write(
    figures: Mapping[str, Sequence[str]],
    shown: Shown,
    skipped: Mapping[str, str],
    settings: Settings,
    file: Path,
) -> Path:
    """The report; `skipped` has the reason for each data set without results."""
    lines = [TITLE, "", *_introduction(settings), "", *_summary(shown)]
    for name, names in figures.items():
        here = [dataset for dataset in names if dataset in shown]
        if not here:
            continue
        lines += ["", f"## Figure {name.removeprefix('fig')}: {' and '.join(here)}", ""]
        lines += [f"![loss against sparsity]({name}.png)", "", *_together(here, shown)]
        for dataset in here:
            lines += ["", *_dataset(dataset, shown[dataset])]
    if skipped:
        lines += ["", "## Not here", "", *(f"- {name}: {why}" for name, why in skipped.items())]
    with writing(file):
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


INTRODUCTION = """\
Loss against sparsity, as in the experiments of the ARHT paper. Made by ellzero {version}, with
`{command}`, and not by hand.

- The loss is the paper's, summed over rows: ½‖Ax − b‖², or the logistic loss.
- Columns have unit norm and are not centred. The column of ones is in every model and counts as
  one: sparsity 6 is five features and the intercept.
- OMPR, ELS and ARHT start from the OMP solution of the same sparsity.
- ARHT has the paper's settings: {arht}, progress factor 1e-3, and a run stops
  when half the support is unregularised.
- LASSO is tuned by binary search on α, without a penalty on the intercept. Its loss is that of
  its own, shrunk coefficients; the dotted curve is the loss after a refit on its support. Where
  no α gives exactly s non-zeros, the next smaller model counts.
- ellzero is `path` with `method="auto"`, which the paper does not have.
- The paper does not list its sparsities: the range of each plot is a choice made here.
"""

FAST = """\
- **A fast run**: at most {rows} rows of each data set, drawn at random, and {n} sparsities.
"""

SUMMARY = """
An observation *holds* where it is true at every sparsity, *holds mostly* at three quarters of them
or more, and *fails* otherwise. Losses that differ by less than one part in a million are equal;
*tied* means that a method is never behind and never ahead.
"""


def _introduction(settings: Settings) -> list[str]:
    fast = settings.rows is not None
    text = INTRODUCTION.format(
        version=lz.__version__,
        command="ellzero reproduce" + " --fast" * fast,
        arht=", ".join(f"{key} = {value}" for key, value in METHODS["ARHT"].items()),
    )
    if fast:
        text += FAST.format(rows=_number(settings.rows or 0), n=settings.n_sparsities)
    return (text + SUMMARY).splitlines()


def _summary(shown: Shown) -> list[str]:
    """Observations against data sets."""
    found = {
        name: {v.observation: v.verdict for v in verdicts(losses_of(results))}
        for name, results in shown.items()
    }
    observations = list(dict.fromkeys(o for checks in found.values() for o in checks))
    rows = [[o, *(checks.get(o, "") for checks in found.values())] for o in observations]
    return _markdown(["observation", *found], rows)


def _together(names: Sequence[str], shown: Shown) -> list[str]:
    """What is true, at least mostly, of which data sets of a figure."""
    true: dict[str, list[str]] = {}
    for name in names:
        for verdict in verdicts(losses_of(shown[name])):
            true.setdefault(verdict.observation, []).extend([name] * verdict.is_true)
    groups: dict[str, list[str]] = {}
    for observation, where in true.items():
        groups.setdefault(" and ".join(where) or "no data set", []).append(observation)
    return [f"- True of {where}: {'; '.join(group)}." for where, group in groups.items()]


def _dataset(name: str, results: Sequence[Result]) -> list[str]:
    losses = losses_of(results)
    lines = [f"### {name}: {rows_of(name, results)}", ""]
    checks = [[v.observation, v.verdict, v.numbers] for v in verdicts(losses)]
    lines += [*_markdown(["observation", "verdict", "numbers"], checks), ""]
    methods = [method for method in CURVES if method in losses]
    sizes = sorted({r.sparsity for r in results})
    rows = [[s, *(_loss(losses[m].get(s)) for m in methods)] for s in sizes]
    lines += _markdown(["s", *methods], rows)
    runs = {(r.method, r.seconds) for r in results if r.method != REFITTED}
    lines += ["", f"{sum(seconds for _, seconds in runs) / 60:.1f} minutes of processor time."]
    unbounded = sorted({(r.method, r.sparsity) for r in results if r.status == "NO_MINIMISER"})
    if unbounded:
        where = ", ".join(f"{method} {s}" for method, s in unbounded)
        lines += [f"No minimiser exists (classes can be separated) at: {where}."]
    return lines


def _markdown(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def _loss(loss: float | None) -> str:
    return "" if loss is None else f"{loss:.7g}"


def _number(count: int) -> str:
    return f"{count:,}".replace(",", " ")
