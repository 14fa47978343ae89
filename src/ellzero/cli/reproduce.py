"""`ellzero reproduce`: the paper's figures, from its data sets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ellzero.cli.arguments import whole
from ellzero.datasets import NAMES
from ellzero.experiments import FAST, FIGURES, FULL, reproduce


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "reproduce",
        help="the paper's experiments: loss against sparsity",
        description="Loss against sparsity on the paper's data sets for LASSO, OMP, OMPR, ELS, "
        "ARHT and ellzero's own search. A run that was stopped goes on where it was.",
    )
    command.add_argument(
        "figures", nargs="*", metavar="FIGURE", help=f"{', '.join(FIGURES)} (default: all)"
    )
    command.add_argument(
        "--datasets", nargs="+", default=[], metavar="NAME", help=f"some of {', '.join(NAMES)}"
    )
    command.add_argument("--fast", action="store_true", help="few rows and sparsities: minutes")
    command.add_argument(
        "--out", type=Path, default=Path("reproduction"), help="folder (default: %(default)s)"
    )
    command.add_argument("--jobs", type=whole(1), default=2, help="processes (default: 2)")
    command.add_argument("--data-home", help="data folder (default: ELLZERO_DATA, or the cache)")
    command.add_argument("--no-download", action="store_true", help="never ask the network")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    outcome = reproduce(
        args.out,
        figures=args.figures,
        datasets=args.datasets,
        settings=FAST if args.fast else FULL,
        data_home=args.data_home,
        download=not args.no_download,
        n_jobs=args.jobs,
    )
    for file in outcome.files:
        sys.stdout.write(f"{file}\n")
    for name, reason in outcome.skipped.items():
        sys.stderr.write(f"ellzero: skipped {name}: {reason}\n")
