"""`ellzero path DATA --target Y --max 40`: the best model of every size, and results to keep."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ellzero.cli.arguments import (
    METHODS,
    add_certify,
    add_data_options,
    add_folds,
    add_search_options,
    check_effort,
    folds_of,
    read_design,
    whole,
)
from ellzero.cli.console import document, note, searching, write
from ellzero.cli.design import Design
from ellzero.files import write_text
from ellzero.report import study
from ellzero.wording import shown

LARGEST = 10


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "path",
        help="the best models of all sizes",
        description="Find the best model of every size up to a largest, and say what enters and "
        "leaves. `ellzero report` makes a page of the results that --out writes.",
    )
    add_data_options(parser)
    parser.add_argument(
        "--max",
        type=whole(1),
        default=LARGEST,
        metavar="S",
        help=f"the largest size ({LARGEST})",
    )
    add_folds(parser, "the error on rows not seen, by cross-validation with K folds")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=["auto"],
        metavar="METHOD",
        help=f"the first gives the models, the loss of others is compared: {', '.join(METHODS)}",
    )
    add_search_options(parser)
    add_certify(parser)
    parser.add_argument("--out", type=Path, metavar="RESULTS", help="the file to write results to")
    parser.add_argument("--json", action="store_true", help="print the results' file instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    check_effort(args.effort, args.methods[0])
    design = read_design(args)
    if args.max > design.n_free:
        note(f"the sizes end at {design.n_free}, the number of features")
    with searching("searching") as callback:
        found = study(
            design.X,
            design.target.values,
            sizes=range(1, min(args.max, design.n_free) + 1),
            task=design.target.task,
            methods=args.methods,
            cv=None if args.cv is None else folds_of(args.cv, design, args.seed),
            sample_weight=design.weight,
            forced=design.forced,
            alpha=args.alpha,
            effort=args.effort,
            feature_names=[term.label for term in design.terms],
            target=design.target.name,
            random_state=args.seed,
            certify=args.certify,
            callback=callback,
        )
    text = document(found)
    if args.out is not None:
        write_text(args.out, text)
        note(f"the results are in {args.out}; `ellzero report` makes a page of them")
    write(text if args.json else "\n".join(in_words(found, design)))


def in_words(found: dict[str, Any], design: Design) -> Iterator[str]:
    """The study for people."""
    forced = f" and {found['n_forced']} forced" if found["n_forced"] else ""
    free = found["n_features"] - found["n_forced"]
    yield f"{found['task']} of {shown(found['target'])} on {design.rows}: {free} features{forced}"
    head, rows = _columns(found)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row, moves in zip([head, *rows], ["came (+) and went (−)", *_moves(found)], strict=True):
        yield "  ".join([*map(str.rjust, row, widths), moves])
    folds = "" if found["cv"] is None else f"; fold error: {design.target.fold_error}"
    yield f"loss: {design.target.loss}{folds}"
    if found["cv"] is not None:
        best, careful = found["cv"]["best"], found["cv"]["one_standard_error"]
        yield (
            f"the folds are best with {best}; {careful} is the smallest within one standard error"
        )


def _columns(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The head of the table, and a row for every size."""
    first, *others = found["methods"]
    proven = any("lower_bound" in model for model in found["models"])
    head = ["s", "loss", *others, "explained"] + (["fold error"] if found["cv"] else [])
    head += ["at best"] if proven else []
    rows = []
    for k, model in enumerate(found["models"]):
        losses = [found["losses"][method][k] for method in (first, *others)]
        explained = model["explained"]
        row = [str(model["s"]), *("" if loss is None else f"{loss:.6g}" for loss in losses)]
        row.append("" if explained is None else f"{explained:.1%}")
        if found["cv"]:
            row.append(f"{found['cv']['error'][k]:.6g}")
        if proven:
            row.append("proven" if model["certified"] else _bound(model))
        rows.append(row)
    return head, rows


def _bound(model: dict[str, Any]) -> str:
    return f"{model['lower_bound']:.6g}" if "lower_bound" in model else ""


def _moves(found: dict[str, Any]) -> Iterator[str]:
    """What every size has that the one before has not, and the other way round."""
    before: set[int] = set()
    for model in found["models"]:
        now = {row["feature"] for row in model["chosen"]}
        moves = [("+", j) for j in sorted(now - before)] + [("−", j) for j in sorted(before - now)]
        yield " ".join(f"{sign}{shown(found['features'][str(j)]['name'])}" for sign, j in moves)
        before = now
