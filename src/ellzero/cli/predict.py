"""`ellzero predict MODEL DATA`: what a saved model says about the rows of a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ellzero.cli.arguments import add_file_options, check_output, read_table
from ellzero.cli.console import document, note, write
from ellzero.cli.model import Model
from ellzero.cli.model_file import load
from ellzero.cli.spreadsheet import csv_line
from ellzero.data.io.table import Table
from ellzero.files import write_text
from ellzero.wording import counted, escaped, listed

SCHEMA, VERSION = "ellzero.predictions", 1


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="predictions of a saved model",
        description="Predict the rows of DATA with a model that `ellzero fit --out` wrote.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file of `ellzero fit`")
    add_file_options(parser)
    parser.add_argument("--out", type=Path, metavar="CSV", help="the file to write; else stdout")
    parser.add_argument("--json", action="store_true", help="print JSON instead of CSV")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    check_output(args.out, args.data, args.model)
    model = load(args.model)
    words = [column.name for column in model.columns if column.levels is not None]
    table = read_table(args, words)
    predictions = predict(model, table)
    _say_what_is_not_used(model, table)
    if args.out is not None:
        write_text(args.out, as_csv(model, predictions))
        note(f"{counted(table.n_rows, 'prediction')} in {args.out}")
    if args.json:
        write(document({"schema": SCHEMA, "version": VERSION, **predictions}))
    elif args.out is None:
        text = as_csv(model, predictions)
        write(escaped(text, allowed="\n") if sys.stdout.isatty() else text)


def predict(model: Model, table: Table) -> dict[str, Any]:
    """Return the predictions, and for classes their probabilities, as lists."""
    X, estimator = model.matrix(table), model.estimator()
    told = {"target": model.target, "predictions": estimator.predict(X).tolist()}
    if model.task == "classification":
        told |= {"classes": model.classes, "probabilities": estimator.predict_proba(X).tolist()}
    return told


def as_csv(model: Model, predictions: dict[str, Any]) -> str:
    """Write one line per row: the prediction, then the probability of every class."""
    head = ["prediction", *(f"probability_{label}" for label in model.classes)]
    chances = predictions.get("probabilities") or [[]] * len(predictions["predictions"])
    lines = zip(predictions["predictions"], chances, strict=True)
    return csv_line(head) + "".join(csv_line([value, *row]) for value, row in lines)


def _say_what_is_not_used(model: Model, table: Table) -> None:
    used = {column.name for column in model.columns}
    extra = [name for name in table.columns if name not in used]
    if extra:
        note(f"{counted(len(extra), 'column')} not used: {listed(extra)}")
