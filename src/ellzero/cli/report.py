"""`ellzero report`: a page to read from the results of `ellzero path`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ellzero.cli.arguments import check_output
from ellzero.cli.model_file import parsed
from ellzero.files import write_text
from ellzero.report import render


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="make one HTML page of saved results",
        description="Make one HTML page of saved results. The page loads nothing: it can be "
        "mailed, archived and read without a network.",
    )
    parser.add_argument("results", type=Path, metavar="RESULTS.json", help="a saved study")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="PAGE.html",
        help="where to write the page; by default beside the results, with the ending .html",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    output = args.out or args.results.with_suffix(".html")
    check_output(output, args.results)
    study = _read(args.results)
    try:
        page = render(study)
    except ValueError as error:
        raise ValueError(f"{args.results}: {str(error).removeprefix('study: ')}") from error
    write_text(output, page)
    sys.stdout.write(f"{output}\n")


def _read(path: Path) -> Any:
    try:
        return parsed(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: is no file of `ellzero path --out`: {error}") from error
