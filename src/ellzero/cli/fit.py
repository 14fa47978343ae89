"""`ellzero fit DATA --target Y -s 10`: one model, as a table and as a file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ellzero.certificates import Certificate
from ellzero.cli.arguments import (
    FOLDS,
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
from ellzero.cli.model import model_of
from ellzero.cli.model_file import to_json
from ellzero.core import Status
from ellzero.estimators import (
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
    SparseRegressorCV,
)
from ellzero.estimators.criteria import CRITERIA
from ellzero.estimators.cv import BY_FOLDS
from ellzero.files import write_text
from ellzero.silence import without_our_warnings
from ellzero.wording import counted, shown

ADVICE = {
    Status.NO_MINIMISER: "say --alpha 1 or another ridge above 0",
    Status.MAX_ITER: "try another --method",
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="the best model with s features",
        description="Find the best model with at most s features of DATA and say what it is.",
    )
    add_data_options(parser)
    parser.add_argument(
        "-s",
        "--sparsity",
        type=whole(1),
        metavar="S",
        help="how many features; with --cv or --criterion the most (default: the square root of "
        "their number, or 10 to choose from)",
    )
    add_folds(parser, "choose the number of features by cross-validation with K folds")
    parser.add_argument(
        "--criterion",
        choices=BY_FOLDS + CRITERIA,
        help="how to choose: the best fold score (cv, the default), the smallest size within one "
        "standard error of it (1se), or an information criterion",
    )
    parser.add_argument("--method", choices=METHODS, default="auto", help="of the search")
    add_search_options(parser)
    add_certify(parser)
    parser.add_argument("--out", type=Path, metavar="MODEL", help="the file to write the model to")
    parser.add_argument("--json", action="store_true", help="print the model's file instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    check_effort(args.effort, args.method)
    design = read_design(args)
    if args.sparsity is not None and args.sparsity > design.n_free:
        raise ValueError(
            f"--sparsity: cannot choose {args.sparsity} of {counted(design.n_free, 'feature')}."
        )
    with searching("searching") as callback, without_our_warnings():
        # the status is said below, in terms of options
        fitted = estimator(args, design, callback)
        fitted.fit(design.X, design.target.values, design.weight)
    status = fitted.solution_.status
    if status in ADVICE:
        note(f"{status}; {ADVICE[status]}", "warning")
    proof = certificate(args, fitted, design)
    text = document(to_json(model_of(fitted, design), how(fitted, design, proof)))
    if args.out is not None:
        write_text(args.out, text)
        note(f"the model is in {args.out}")
    write(text if args.json else in_words(fitted, design, proof))


def certificate(args: argparse.Namespace, fitted: Any, design: Design) -> Certificate | None:
    if args.certify is None:
        return None
    with searching("proving"):
        return fitted.certify(
            design.X, design.target.values, design.weight, time_limit=args.certify
        )


def estimator(args: argparse.Namespace, design: Design, callback: Any) -> Any:
    """The estimator that the command line describes."""
    effort = {} if args.effort is None else {"effort": args.effort}
    is_class = design.target.task == "classification"
    options = {
        "method": args.method,
        "forced": design.forced,
        "alpha": args.alpha,
        "random_state": args.seed,
        "options": {**effort, "callback": callback},
    }
    if args.cv is None and args.criterion is None:
        kind = SparseClassifier if is_class else SparseRegressor
        return kind(args.sparsity, **options)
    kind = SparseClassifierCV if is_class else SparseRegressorCV
    criterion = args.criterion or "cv"
    by_folds = args.cv is not None or criterion in BY_FOLDS
    folds = folds_of(args.cv or FOLDS, design, args.seed) if by_folds else None
    return kind(args.sparsity, criterion=criterion, cv=folds, **options)


def how(fitted: Any, design: Design, proof: Certificate | None) -> dict[str, Any]:
    """How the model came to be, for machines."""
    labels = [term.label for term in design.terms]
    told = {
        "sparsity": len(fitted.support_),
        "loss": fitted.loss_,
        "status": fitted.solution_.status.name,
        "method": fitted.method,
        "rows": design.X.shape[0],
        "rows_dropped": design.n_dropped,
        "values_imputed": design.n_imputed,
        "candidates": len(labels),
        "forced": [labels[j] for j in fitted.forced_],
        "path": [
            {"size": s, "loss": found.value, "features": [labels[j] for j in found.support]}
            for s, found in fitted.path_.items()
        ],
    }
    if proof is not None:
        told["certificate"] = _finite(proof.summary())
    if hasattr(fitted, "cv_results_"):
        results = {key: np.asarray(v).tolist() for key, v in fitted.cv_results_.items()}
        told["choice"] = {"criterion": fitted.criterion, **_finite(results)}
    return told


def _finite(told: Any) -> Any:
    """Without infinite numbers, which JSON has not: BIC of a model without errors is -inf."""
    if isinstance(told, dict):
        return {key: _finite(value) for key, value in told.items()}
    if isinstance(told, list):
        return [_finite(value) for value in told]
    return None if isinstance(told, float) and not np.isfinite(told) else told


def in_words(fitted: Any, design: Design, proof: Certificate | None) -> str:
    """The model for people."""
    names = [shown(term.label) for term in design.terms]
    report = fitted.report()
    report = replace(
        report,
        title=f"{design.target.task} of {shown(design.target.name)} on {design.rows}",
        names=names,
        classes=[shown(label) for label in report.classes],
        longest=len(names),
    )
    lines = [repr(report), f"loss: {design.target.loss}"]
    lines += [] if proof is None else [str(proof)]
    if hasattr(fitted, "cv_results_"):
        lines.append(_choice(fitted, design.target.fold_error))
    return "\n".join(lines)


def _choice(fitted: Any, fold_error: str) -> str:
    results = fitted.cv_results_
    if fitted.criterion in CRITERIA:
        scores, kind = results[fitted.criterion], fitted.criterion.upper()
    else:
        scores, kind = -results["mean_test_score"], f"{fold_error} on the folds"
    lines = [f"{'s':>4}  {kind}"]
    for s, score in zip(results["sparsity"], scores, strict=True):
        lines.append(f"{s:>4}  {score:.6g}{'  chosen' if s == fitted.sparsity_ else ''}")
    return "\n".join(lines)
