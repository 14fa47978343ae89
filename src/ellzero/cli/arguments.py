"""Options that several commands have, and what they stand for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ellzero.cli.console import UsageError, note
from ellzero.cli.design import Design, design_of
from ellzero.cli.missing import MISSING
from ellzero.cli.target import TASKS
from ellzero.data.io.columns import not_numbers, pandas
from ellzero.data.io.formats import FORMATS, Options, format_of
from ellzero.data.io.formats import read_table as read
from ellzero.data.io.libsvm import LARGEST_INDEX, MAX_FEATURES
from ellzero.data.io.table import Table
from ellzero.files import check_writable
from ellzero.selection import METHODS as ALGORITHMS
from ellzero.silence import warning_filter
from ellzero.wording import counted, grouped, shown

METHODS = ("auto", *ALGORITHMS)
FOLDS = 5
PROOF_SECONDS = 60

ARGUMENT_AT_END = re.compile(r"(?<= )(separator|features|format)=(\S+)$")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """What argparse makes of a whole number."""

    def parsed(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            above = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected a whole number {above}, got '{text}'")
        return value

    return parsed


def number(zero: bool = False) -> Callable[[str], float]:
    """What argparse makes of a finite number above zero, or of zero, too."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf") or (value == 0 and not zero):
            kind = "of at least 0" if zero else "above 0"
            raise argparse.ArgumentTypeError(f"expected a finite number {kind}, got '{text}'")
        return value

    return parsed


def separator(text: str) -> str:
    """What argparse makes of a character between columns."""
    character = "\t" if text in ("tab", "\\t") else text
    if character != "\t" and (
        len(text) != 1 or text.isalnum() or text == '"' or not " " <= text <= "~"
    ):
        raise argparse.ArgumentTypeError(f"expected one character such as ; or tab, got '{text}'")
    return character


def add_file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="a table: CSV or TSV with a header, Parquet, LIBSVM, ARFF or npz; also as .gz",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), help="if the name does not say it")
    parser.add_argument(
        "--separator", type=separator, metavar="C", help="between the columns of a CSV file, or tab"
    )
    parser.add_argument("--decimal", choices=(".", ","), help="in the numbers of a CSV file (.)")
    parser.add_argument(
        "--features",
        type=whole(1, LARGEST_INDEX),
        metavar="N",
        help="the most features that a LIBSVM or npz file may have (default: "
        f"{grouped(MAX_FEATURES)}, or as many as it stores numbers if these are more)",
    )


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
        "--cv",
        nargs="?",
        type=whole(2),
        const=FOLDS,
        metavar="K",
        help=f"{purpose} (default {FOLDS})",
    )


def add_certify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--certify",
        nargs="?",
        type=number(),
        const=PROOF_SECONDS,
        metavar="SECONDS",
        help="prove how far the models can be from the best of their size, for up to so long "
        f"(default {PROOF_SECONDS})",
    )


def check_output(out: Path | None, *inputs: Path) -> None:
    """A file that can be written, and is not one of those that are read."""
    if out is None:
        return
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise UsageError(f"--out: {out} is the file that is read; name another one.")
    check_writable(out)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--effort",
        type=number(),
        metavar="E",
        help="time for quality; of the method auto (1)",
    )
    parser.add_argument("--alpha", type=number(zero=True), metavar="A", help="the ridge penalty")
    parser.add_argument(
        "--seed", type=whole(0, 2**32 - 1), default=0, help="of random numbers (default 0)"
    )


def read_table(args: argparse.Namespace, words: Collection[str]) -> Table:
    """Return the table that the options of `add_file_options` describe.

    words : columns of a text file whose entries are words, also if they look like numbers
    """
    kind = _format(args)
    form, sparse = FORMATS[kind], [name for name, form in FORMATS.items() if form.is_sparse]
    for option, value in (("--separator", args.separator), ("--decimal", args.decimal)):
        if value is not None and form.separator is None:
            raise UsageError(f"{option}: is for text; a {kind} file has none.")
    if args.features is not None and not form.is_sparse:
        raise UsageError(f"--features: is for {' and '.join(sparse)} files, not for {kind}.")
    options = Options(args.separator, args.decimal, words, args.features)
    try:
        table = read(args.data, kind, options)
    except ValueError as error:
        raise ValueError(_with_option(str(error))) from error
    if form.separator is not None and not len(not_numbers(pandas().Series(table.columns))):
        names = f"the first line of {args.data} is taken for names"
        note(f"{names}, and all of them are numbers", "warning")
    return table


def _format(args: argparse.Namespace) -> str:
    """Return the format that is asked for, or that the name of the file says."""
    kind = args.format or format_of(args.data)
    if kind is not None:
        return kind
    if args.data.is_dir():
        raise IsADirectoryError(f"{args.data} is a folder; name a file in it.")
    raise UsageError(
        f"{args.data}: the ending of the name does not say what it is; name one with --format: "
        f"{', '.join(FORMATS)}."
    )


def _with_option(message: str) -> str:
    """Name the option for the argument of Python at the end of a message."""
    return ARGUMENT_AT_END.sub(
        lambda found: f"--{found[1]}" + f" {found[2]}".replace(r"'\t'", "tab"), message
    )


def read_design(args: argparse.Namespace) -> Design:
    """DATA as the options want it, once these make sense; the task that was guessed is said."""
    target = args.target or FORMATS[_format(args)].target
    if target is None:
        raise UsageError("--target: say which column is to be predicted.")
    _check_roles(args, target)
    check_output(args.out, args.data)
    table = read_table(args, args.categorical)
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


def _check_roles(args: argparse.Namespace, target: str) -> None:
    """A column is the target, has the weights, is excluded, or is a feature: one of them."""
    weights = [] if args.weights is None else [args.weights]
    taken = {target: "the target"}
    for option, names, role in (
        ("--weights", weights, "that of the weights"),
        ("--exclude", args.exclude, "excluded"),
        ("--forced", args.forced, None),
        ("--categorical", args.categorical, None),
    ):
        for name in names:
            if taken.get(name, role) != role:
                hint = "; say --task classification" * (
                    option == "--categorical" and name == target
                )
                raise UsageError(f"{option}: column '{shown(name)}' is {taken[name]}{hint}.")
        taken |= dict.fromkeys(names, role) if role else {}


def check_effort(effort: float | None, method: str) -> None:
    if effort is not None and method != "auto":
        raise UsageError(f"--effort: is for the method auto; {method} has none.")


def folds_of(n_folds: int, design: Design, seed: int) -> Any:
    """Shuffled, for files are often sorted; every class in its proportion."""
    y, is_class = design.target.values, design.target.task == "classification"
    classes, counts = np.unique(y, return_counts=True)
    if n_folds > (counts.max() if is_class else len(y)):
        most = f"{counts.max()} rows of the largest class" if is_class else f"{len(y)} rows"
        raise ValueError(f"--cv: {n_folds} folds are more than the {most}.")
    few = int(counts.argmin())
    if is_class and counts[few] < n_folds:
        name, n = shown(classes[few]), counted(int(counts[few]), "row")
        if len(classes) == 2 and counts[few] == 1:
            raise ValueError(
                f"--cv: class '{name}' has only 1 row; folds need one to fit and test."
            )
        note(f"class '{name}' has only {n}, so not all of the {n_folds} folds have one", "warning")
    splitter = StratifiedKFold if is_class else KFold
    with warning_filter("ignore", UserWarning, r"sklearn\.model_selection\."):  # of small classes
        return list(splitter(n_folds, shuffle=True, random_state=seed).split(y, y))
