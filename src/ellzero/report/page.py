"""A study as one HTML file: it is made of saved results only, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ellzero.report.study import SCHEMA, VERSION

SCRIPTS = ("words.js", "csv.js", "charts.js", "tables.js", "figures.js", "report.js")
"""Joined to one script, in this order."""

NEEDED = (
    "task",
    "n_rows",
    "n_features",
    "features",
    "methods",
    "sizes",
    "losses",
    "models",
    "resolution",
)


def render(study: dict[str, Any]) -> str:
    """A page that shows a study: one HTML file with everything in it.

    An entry of ``study["models"]`` is "certified" where it is proven best, and may have a
    "lower_bound", which the loss of no model of this size can be below.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ellzero.report import render, study
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> page = render(study(X, y, sizes=range(1, 4)))
    >>> page[:15]
    '<!doctype html>'
    """
    check_study(study)
    style = _text("report.css")
    script = "\n".join(_text(name) for name in SCRIPTS)
    title = study.get("title") or "The best features"
    return Template(_text("report.html")).substitute(
        title=escape(_well_formed(title)),
        policy=_policy(style, script),
        style=style,
        data=_embedded(study),
        script=script,
    )


def check_study(study: Any) -> None:
    """An error where this is not what `study` makes."""
    if not isinstance(study, dict) or study.get("schema") != SCHEMA:
        raise ValueError(f"study: expected the results of a study, with schema {SCHEMA!r}.")
    if study.get("version") != VERSION:
        raise ValueError(
            f"study: expected version {VERSION} of the results, got {study.get('version')!r}; "
            "make them anew with this version of ellzero."
        )
    missing = [key for key in NEEDED if key not in study]
    if missing:
        raise ValueError(f"study: the results are incomplete, {missing[0]!r} is missing.")
    try:
        n_sizes = len(study["sizes"])
        complete = all(len(study["losses"][method]) == n_sizes for method in study["methods"])
        for model in study["models"]:
            _check_model(model, study["features"])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        what = (
            f"a model lacks {error}" if isinstance(error, KeyError) else "a part has a wrong type"
        )
        raise ValueError(f"study: the results are damaged; {what}.") from error
    if not complete or not study["models"] or len(study["models"]) != n_sizes:
        raise ValueError("study: expected one model for every size, and at least one.")


def _check_model(model: Any, features: Any) -> None:
    """Look up what the page will look up."""
    _ = model["s"], model["loss"], model["explained"], model["intercept"][0]
    rows = model["chosen"] + model["forced"]
    for row in rows:
        _ = row["coefficients"][0], features[str(row["feature"])]["deviation"]
    for row in model["chosen"]:
        _ = [features[str(other["feature"])]["name"] for other in row["stand_ins"]]


def _text(name: str) -> str:
    return files("ellzero.report").joinpath(name).read_text(encoding="utf-8")


def _well_formed(text: Any) -> str:
    """Half of a surrogate pair cannot be written to a file."""
    return str(text).encode("utf-8", "replace").decode("utf-8")


def _policy(style: str, script: str) -> str:
    """Only this style and this script count; nothing is loaded, nothing is sent."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(study: dict[str, Any]) -> str:
    """JSON in which no character can end the element it stands in."""
    try:
        text = json.dumps(study, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"study: cannot be written as JSON ({error}).") from error
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
