"""A fitted model as a JSON document: plain to read, safe to load from a stranger."""

from __future__ import annotations

import json
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

import ellzero
from ellzero.cli.design import Column, Term
from ellzero.cli.model import Model
from ellzero.cli.target import TASKS
from ellzero.wording import shown

SCHEMA, VERSION = "ellzero.model", 1
LARGEST_FILE = 1 << 26  # bytes
MOST_CLASSES = 10_000


# writing


def to_json(model: Model, fit: dict[str, Any]) -> dict[str, Any]:
    """The document; `fit` says how the model came to be, and nothing depends on it."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "ellzero": ellzero.__version__,
        "task": model.task,
        "target": model.target,
        "classes": model.classes,
        "columns": [_column_to_json(column) for column in model.columns],
        "terms": [
            {
                "column": term.column.name,
                **({} if term.level is None else {"level": term.level}),
                "coefficients": coefficients,
            }
            for term, coefficients in zip(model.terms, model.coefficients.T.tolist(), strict=True)
        ],
        "intercept": model.intercept.tolist(),
        "fit": fit,
    }


def _column_to_json(column: Column) -> dict[str, Any]:
    if column.levels is None:
        return {"name": column.name, "kind": "numeric", "missing": column.fill}
    return {
        "name": column.name,
        "kind": "categorical",
        "levels": list(column.levels),
        "missing": column.fill,
    }


# reading


def load(path: Path) -> Model:
    """The model in a file; a ValueError says what is wrong with it."""
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{path}: is no model: larger than {LARGEST_FILE >> 20} MB.")
    try:
        return _model(parsed(content))
    except ValueError as error:
        raise ValueError(f"{path}: is no model: {error}") from error


def parsed(content: bytes) -> Any:
    """JSON as others must take it, too; a ValueError says what is wrong with it."""

    def refuse(word: str) -> None:
        raise ValueError(f"it holds {word}.")

    def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            raise ValueError("a key stands twice in one object.")
        return made

    def whole(digits: str) -> float:
        return int(digits) if len(digits) < 400 else float(digits)

    try:
        return json.loads(
            content.decode("utf-8"),
            parse_int=whole,
            parse_constant=refuse,
            object_pairs_hook=without_repetition,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error}).") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text.") from None
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None


def _model(data: Any) -> Model:
    _require(isinstance(data, dict), "it must be a JSON object")
    _require(
        data.get("schema") == SCHEMA,
        f"'schema' must be '{SCHEMA}', as in the files of `ellzero fit --out`",
    )
    version = data.get("version")
    _require(
        _is_whole(version) and version == VERSION,
        f"this ellzero reads version {VERSION} of the format, the file has {shown(repr(version))}",
    )
    task = data.get("task")
    _require(task in TASKS, f"'task' must be one of {list(TASKS)}")
    classes = _classes(data.get("classes"), task)
    columns = {column.name: column for column in map(_column, _objects(data, "columns"))}
    _require(len(columns) == len(data["columns"]), "'columns' has a name twice")
    levels = {name: frozenset(column.levels or ()) for name, column in columns.items()}
    n_scores = len(classes) if len(classes) > 2 else 1
    terms, coefficients = [], []
    for item in _objects(data, "terms"):
        terms.append(_term(item, columns, levels))
        coefficients.append(_numbers(item.get("coefficients"), n_scores, "'coefficients'"))
    distinct = {(term.column.name, term.level) for term in terms}  # a Term hashes all levels
    _require(len(distinct) == len(terms), "'terms' has a term twice")
    return Model(
        task=task,
        target=_text(data.get("target"), "'target'"),
        terms=terms,
        coefficients=np.array(coefficients, dtype=np.float64).reshape(-1, n_scores).T,
        intercept=np.array(_numbers(data.get("intercept"), n_scores, "'intercept'")),
        classes=classes,
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"{message}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any, what: str) -> str:
    _require(isinstance(value, str), f"{what} must be text")
    return value


def _number(value: Any, what: str) -> float:
    _require(_is_whole(value) or isinstance(value, float), f"{what} must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    _require(isfinite(number), f"{what} must be finite")
    return number


def _numbers(value: Any, n: int, what: str) -> list[float]:
    _require(isinstance(value, list) and len(value) == n, f"{what} must be a list of {n} number(s)")
    return [_number(entry, f"an entry of {what}") for entry in value]


def _objects(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = data.get(key)
    _require(isinstance(items, list), f"'{key}' must be a list")
    _require(all(isinstance(item, dict) for item in items or ()), f"'{key}' must hold objects")
    return items or []


def _classes(value: Any, task: str) -> list[Any]:
    _require(isinstance(value, list), "'classes' must be a list")
    if task == "regression":
        _require(not value, "'classes' must be empty for a regression")
        return []
    _require(2 <= len(value) <= MOST_CLASSES, f"'classes' must be 2 to {MOST_CLASSES} of them")
    kind = type(value[0])
    _require(
        kind in (str, int, float, bool) and all(type(label) is kind for label in value),
        "'classes' must all be text, or all numbers",
    )
    if kind in (int, float):
        for label in value:
            _require(abs(_number(label, "a class")) < 2**63, "a class is too large a number")
    _require(len(set(value)) == len(value), "'classes' has a class twice")
    return value


def _column(item: dict[str, Any]) -> Column:
    name = _text(item.get("name"), "the 'name' of a column")
    kind, fill = item.get("kind"), item.get("missing")
    if kind == "numeric" and fill is None:
        return Column(name)
    what = f"column '{shown(name)}'"
    if kind == "numeric":
        return Column(name, None, _number(fill, f"{what}: 'missing'"))
    _require(kind == "categorical", f"{what}: 'kind' must be numeric or categorical")
    levels: Any = item.get("levels")
    _require(
        isinstance(levels, list) and bool(levels) and all(isinstance(v, str) for v in levels),
        f"{what}: 'levels' must be a list of words",
    )
    _require(len(set(levels)) == len(levels), f"{what}: 'levels' has a level twice")
    _require(fill is None or fill in levels, f"{what}: 'missing' must be one of its levels")
    return Column(name, tuple(levels), fill)


def _term(
    item: dict[str, Any], columns: dict[str, Column], levels: dict[str, frozenset[str]]
) -> Term:
    name = _text(item.get("column"), "the 'column' of a term")
    column, level = columns.get(name), item.get("level")
    if column is None:
        raise ValueError(f"a term is of column '{shown(name)}', which 'columns' has not.")
    if column.levels is None:
        if "level" in item:
            raise ValueError(f"column '{shown(name)}' is numeric and has no levels.")
        return Term(column)
    if not isinstance(level, str) or level not in levels[name]:
        raise ValueError(f"column '{shown(name)}' has no level '{shown(level)}'.")
    return Term(column, level)
