"""The whole: what is asked for, what is there, what is missing; then table, figures, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ellzero.experiments import report, store
from ellzero.experiments.figures import FULL, Settings, chosen
from ellzero.experiments.problems import Folder, fetch, fingerprints
from ellzero.experiments.runs import Job, complete, jobs
from ellzero.progress import progress


@dataclass(frozen=True)
class Outcome:
    """What a run has written, and the reason for each data set that it left out."""

    files: Sequence[Path]
    skipped: Mapping[str, str]


def reproduce(
    out: Path,
    *,
    figures: Sequence[str] = (),
    datasets: Sequence[str] = (),
    settings: Settings = FULL,
    data_home: Folder = None,
    download: bool = True,
    n_jobs: int = 1,
) -> Outcome:
    """Compute what is not yet in `out`, and write the table, the figures and the report there.

    Parameters
    ----------
    out : folder; `results.jsonl` in it has every result ever made there, and is only added to
    figures, datasets : some of the paper's; none means all
    settings : `FULL`, or `FAST` for few rows and sparsities
    data_home, download : as for `ellzero.datasets.load`
    n_jobs : how many processes

    Raises
    ------
    FileNotFoundError
        None of the data sets can be had.
    FileExistsError
        `out` has a README.md that is not a report of these experiments.
    """
    wanted = chosen(figures, datasets)
    _check_packages()
    report.check_ours(out / "README.md")
    work, skipped = _work(wanted, settings, data_home, download)
    if not work:
        reasons = "\n".join(skipped.values())
        raise FileNotFoundError(f"no data set could be had.\n{reasons}")
    out.mkdir(parents=True, exist_ok=True)
    file = out / "results.jsonl"
    there = store.read(file)
    missing = [job for job in work if not all(key in there for key in job.keys)]
    with progress("computing", sum(job.cost for job in missing), "jobs") as advance:
        complete(file, missing, n_jobs, advance)
    return Outcome(_written(out, file, work, wanted, skipped, settings), skipped)


def _check_packages() -> None:
    """Before the work, not after it."""
    for package in ("pandas", "pyarrow", "matplotlib"):
        try:
            import_module(package)
        except ImportError:
            raise ImportError(
                f"the experiments need {package}: pip install 'ellzero[data,plot]'"
            ) from None


def _work(
    wanted: Mapping[str, Sequence[str]], settings: Settings, data_home: Folder, download: bool
) -> tuple[list[Job], dict[str, str]]:
    """Every job, those of small data sets first, and why a data set has none."""
    work: list[list[Job]] = []
    skipped: dict[str, str] = {}
    sizes: list[int] = []
    for name in (name for names in wanted.values() for name in names):
        try:
            files = fetch(name, data_home, download)
        except FileNotFoundError as error:
            skipped[name] = str(error)
            continue
        sizes.append(sum(file.stat().st_size for file in files))
        work.append(list(jobs(name, fingerprints(name, settings, files), settings, data_home)))
    order = sorted(range(len(work)), key=lambda k: sizes[k])
    return [job for k in order for job in work[k]], skipped


def _written(
    out: Path,
    file: Path,
    work: Sequence[Job],
    wanted: Mapping[str, Sequence[str]],
    skipped: Mapping[str, str],
    settings: Settings,
) -> list[Path]:
    there = store.read(file)
    results = [there[key] for job in work for key in job.keys if key in there]
    shown = {
        name: [result for result in results if result.dataset == name]
        for names in wanted.values()
        for name in names
        if name not in skipped
    }
    files = [report.table(results, out / "results.parquet")]
    for figure, names in wanted.items():
        here = [name for name in names if name in shown]
        if here:
            files += report.figure(here, shown, out / figure)
    files += [report.write(wanted, shown, skipped, settings, out / "README.md")]
    return files
