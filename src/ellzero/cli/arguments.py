"""Options that several commands have, and what they stand for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sklearn.model_selection import KFold, StratifiedKFold

from ellzero.cli.console import note, shown
from ellzero.cli.design import MISSING, Design, design_of
from ellzero.cli.table import MATRIX_TARGETS, SUFFIXES, format_of, read
from ellzero.cli.target import TASKS
from ellzero.files import check_writable
from ellzero.selection import METHODS as ALGORITHMS

METHODS = ("auto", *ALGORITHMS)
FOLDS = 5
PROOF_SECONDS = 60


def add_file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="a table: CSV or TSV with a header, Parquet, LIBSVM, ARFF or npz; also as .gz",
    )
    parser.add_argument("--format", choices=tuple(SUFFIXES), help="if the name does not say it")
    parser.add_argument("--separator", metavar="C", help="between the columns of a CSV file")


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """DATA and how to read it."""
    add_file_options(parser)
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict")
    parser.add_argument("--task", choices=TASKS, help="default: guessed from the target, and said")
    parser.add_argument("--weights", metavar="COLUMN", help="the column with weights of the rows")
    for option, text in (
        ("--forced", "columns (or column=level) that are in every model and do not count"),
        ("--exclude", "columns that are no features"),
        ("--categorical", "columns whose numbers are names of categories"),
    ):
        parser.add_argument(
            option, nargs="+", action="extend", default=[], metavar="COLUMN", help=text
        )
    parser.add_argument(
        "--missing",
        choices=MISSING,
        default="error",
        help="rows with missing values: refuse (the default), drop, or impute by medians and the "
        "most frequent words",
    )


def add_folds(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument(
        "--cv", nargs="?", type=int, const=FOLDS, metavar="K", help=f"{purpose} (default {FOLDS})"
    )


def add_certify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--certify",
        nargs="?",
        type=float,
        const=PROOF_SECONDS,
        metavar="SECONDS",
        help="prove how far the models can be from the best of their size, for up to so long "
        f"(default {PROOF_SECONDS})",
    )


def _check_folds(folds: int | None) -> None:
    if folds is not None and folds < 2:
        raise ValueError(f"--cv: expected at least 2 folds, got {folds}.")


def check_output(out: Path | None, *inputs: Path) -> None:
    """A file that can be written, and is not one of those that are read."""
    if out is None:
        return
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise ValueError(f"--out: {out} is the file that is read; name another one.")
    check_writable(out)


def _check_seconds(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ValueError(f"--certify: expected a positive number of seconds, got {seconds}.")


def add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--effort",
        type=float,
        metavar="E",
        help="time for quality; of the method auto (1)",
    )
    parser.add_argument("--alpha", type=float, metavar="A", help="the ridge penalty")
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (default 0)")


def read_design(args: argparse.Namespace) -> Design:
    """DATA as the options want it, once these make sense; the task that was guessed is said."""
    check_output(args.out, args.data)
    _check_folds(args.cv)
    _check_seconds(args.certify)
    target = args.target or MATRIX_TARGETS.get(args.format or format_of(args.data))
    if target is None:
        raise ValueError("--target: say which column is to be predicted.")
    table = read(args.data, args.format, args.separator, words=args.categorical)
    design = design_of(
        table,
        target,
        task=args.task,
        weights=args.weights,
        forced=args.forced,
        exclude=args.exclude,
        categorical=args.categorical,
        missing=args.missing,
    )
    if design.target.why is not None:
        other = TASKS[1 - TASKS.index(design.target.task)]
        note(
            f"the task is {design.target.task}, for the target '{shown(target)}' "
            f"{design.target.why}; if that is wrong, say --task {other}"
        )
    return design


def check_effort(effort: float | None, method: str) -> None:
    if effort is not None and method != "auto":
        raise ValueError(f"--effort: is for the method auto; {method} has none.")


def folds_of(n_folds: int, task: str, seed: int) -> Any:
    """Shuffled, for files are often sorted; every class in its proportion."""
    splitter = StratifiedKFold if task == "classification" else KFold
    return splitter(n_folds, shuffle=True, random_state=seed)
