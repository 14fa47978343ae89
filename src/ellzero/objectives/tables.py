"""Tables in files, read by pyarrow piece by piece: columns of all kinds become rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.objectives.design import Design, check_weight
from ellzero.objectives.shards import Fingerprint
from ellzero.objectives.statistics import Statistics, some
from ellzero.objectives.streaming import RunningSum
from ellzero.supports import Vector

PIECE_BYTES = 1 << 25
"""Of a table so much is held at a time, and as much is read ahead."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are for."""

    features: tuple[str, ...] | None
    target: str
    weight: str | None
    levels: Mapping[str, tuple[str, ...] | None]
    """Of every categorical column; None where they are to be found."""
    drop_missing: bool

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        target: str,
        weight: str | None,
        categorical: Iterable[str] | Mapping[str, Iterable[Any] | None],
        missing: str,
    ) -> Columns:
        if missing not in ("error", "drop"):
            raise ValueError(f"missing: expected 'error' or 'drop', got {missing!r}.")
        if isinstance(columns, str) or isinstance(categorical, str):
            raise TypeError("columns, categorical: expected several names, got one text.")
        features = None if columns is None else tuple(columns)
        if features is not None and not 0 < len(features) == len({*features}):
            raise ValueError("columns: expected one name or more, none of them twice.")
        given = categorical if isinstance(categorical, Mapping) else dict.fromkeys(categorical)
        levels = {
            name: None if found is None else tuple(map(str, found)) for name, found in given.items()
        }
        if {target, weight} & {*(features or ()), *levels}:
            raise ValueError("columns: the target or the weight is among the features.")
        for name, found in levels.items():
            if found is not None and len({*found}) < len(found):
                raise ValueError(f"categorical: a level of {name!r} stands there twice.")
        unknown = set(levels) - set(levels if features is None else features)
        if unknown:
            raise ValueError(f"categorical: {some(unknown)} not among columns.")
        return cls(features, target, weight, levels, missing == "drop")

    def within(self, file: Path, names: Sequence[str]) -> tuple[str, ...]:
        """The features among the columns of a file, which must have all that is asked for."""
        others = {self.target, self.weight}
        features = self.features or tuple(name for name in names if name not in others)
        wanted = {*features, *self.levels, self.target, self.weight} - {None}
        lacking = wanted - set(names)
        if lacking:
            raise ValueError(
                f"{file}: has no column {some(map(str, lacking))}; its columns are "
                f"{some(map(str, names))}."
            )
        if not features:
            raise ValueError(f"{file}: has no column but target and weight.")
        return features


class Piece(NamedTuple):
    """Some rows of a file."""

    file: Path
    begin: int
    table: Any
    features: tuple[str, ...]
    group_ends: Vector | None = None
    """Where the row groups of the file end, if it has any."""

    def part(self, begin: int, n_rows: int) -> Piece:
        return self._replace(begin=self.begin + begin, table=self.table.slice(begin, n_rows))

    def place(self, row: int) -> str:
        row += self.begin
        if self.group_ends is None:
            return f"row {row}"
        return f"row {row} (row group {np.searchsorted(self.group_ends, row, side='right')})"


def read(pieces: Iterable[Piece], columns: Columns) -> Statistics:
    """The statistics of all pieces, each file being a shard."""
    encoder, total = Encoder(columns), RunningSum()
    shards: dict[Path, Fingerprint] = {}
    for piece in _ahead(pieces):
        fingerprint = shards.setdefault(piece.file, Fingerprint())
        begin = 0
        while begin < piece.table.num_rows:
            part = piece.part(begin, rows_at_once(encoder.width))
            begin += part.table.num_rows
            rows = encoder.encode(part)
            if not len(rows.y):
                continue
            try:
                w = check_weight(rows.w, len(rows.y), some=False)
                total.add(Design(rows.X), rows.y, w, encoder.names)
            except ValueError as error:
                raise ValueError(f"{piece.file}: {error}") from error
            rows.mark(fingerprint)
    return replace(total.statistics("the files"), shards=_distinct(shards))


def _distinct(shards: dict[Path, Fingerprint]) -> frozenset[str]:
    seen: dict[str, Path] = {}
    for file, fingerprint in shards.items():
        if not fingerprint.n_rows:
            continue
        twin = seen.setdefault(fingerprint.digest(), file)
        if twin is not file:
            raise ValueError(f"{file}: has the same rows as {twin}; leave one of them out.")
    return frozenset(seen)


def _ahead(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The next piece is read while one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        waiting = iter(pieces)
        coming = reader.submit(next, waiting, None)
        while (piece := coming.result()) is not None:
            coming = reader.submit(next, waiting, None)
            yield piece


def rows_at_once(n_columns: int) -> int:
    return max(PIECE_BYTES // (8 * max(n_columns, 1)), 1)


# from columns to numbers


class Rows(NamedTuple):
    """Rows of numbers: some columns of X are `numeric`, the others stand for levels."""

    X: NDArray[np.float64]
    y: Vector
    w: Vector | None
    numeric: NDArray[np.intp]
    codes: list[NDArray[np.intp]]
    levels: list[list[str]]

    def mark(self, fingerprint: Fingerprint) -> None:
        rows = fingerprint.sample(len(self.y))
        others = [self.y[rows], *([] if self.w is None else [self.w[rows]])]
        numbers = np.column_stack([self.X[np.ix_(rows, self.numeric)], *others])
        words = [
            [levels[code] for code in codes[rows].tolist()]
            for codes, levels in zip(self.codes, self.levels, strict=True)
        ]
        lines = ("\t".join(line) + "\n" for line in zip(*words, strict=True))
        fingerprint.update(numbers, "".join(lines))


class Encoder:
    """Makes numbers of columns; remembers the levels that it found."""

    def __init__(self, columns: Columns):
        self.columns = columns
        self.features: tuple[str, ...] = ()
        self.levels = {name: list(levels or ()) for name, levels in columns.levels.items()}

    @property
    def width(self) -> int:
        found = [len(levels) for levels in self.levels.values()]
        return len(self.features) - len(found) + sum(found) + 2

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(
            name if level is None else f"{name}={level}"
            for name in self.features
            for level in self.levels.get(name, (None,))
        )

    def encode(self, piece: Piece) -> Rows:
        self._check_features(piece)
        codes = {name: self._codes(piece, name) for name in self.levels}
        block = np.zeros((piece.table.num_rows, self.width), order="F")
        numeric: dict[int, str] = {}
        n = 0
        for name in self.features:
            if name in codes:
                known = np.flatnonzero(codes[name] >= 0)
                block[known, n + codes[name][known]] = 1.0
                n += len(self.levels[name])
            else:
                numeric[n] = name
                block[:, n] = _numbers(piece, name)
                n += 1
        others = {n: self.columns.target}
        if self.columns.weight is not None:
            others[n + 1] = self.columns.weight
        for j, name in others.items():
            block[:, j] = _numbers(piece, name)
        complete = self._complete(piece, block, numeric | others, codes)
        if complete is not None:
            block = np.asfortranarray(block[complete])
            codes = {name: column[complete] for name, column in codes.items()}
        return Rows(
            block[:, :n],
            block[:, n],
            block[:, n + 1] if len(others) > 1 else None,
            np.array(list(numeric), dtype=np.intp),
            list(codes.values()),
            list(self.levels.values()),
        )

    def _check_features(self, piece: Piece) -> None:
        self.features = self.features or piece.features
        differ = {*self.features} ^ {*piece.features}
        if differ:
            raise ValueError(
                f"{piece.file}: its columns are not those of the files before: {some(differ)}."
            )

    def _codes(self, piece: Piece, name: str) -> NDArray[np.intp]:
        """Which level every row has, −1 where none; levels seen first go on record."""
        column = piece.table.column(name)
        if not hasattr(column, "dictionary"):
            column = column.dictionary_encode()
        levels = [None if level is None else str(level) for level in column.dictionary.to_pylist()]
        codes = column.indices.fill_null(len(levels)).to_numpy(zero_copy_only=False)
        levels.append(None)
        present = {word for code in np.unique(codes) if (word := levels[code]) is not None}
        new = present - set(self.levels[name])
        if new and self.columns.levels[name] is not None:
            raise ValueError(
                f"{piece.file}: column {name!r} has {some(new)}, not among the levels given."
            )
        if new:
            self.levels[name] = sorted({*self.levels[name], *new})
        at = {level: k for k, level in enumerate(self.levels[name])}
        return np.array(
            [-1 if word is None else at.get(word, -1) for word in levels], dtype=np.intp
        )[codes]

    def _complete(
        self,
        piece: Piece,
        block: NDArray[np.float64],
        numeric: dict[int, str],
        codes: dict[str, NDArray[np.intp]],
    ) -> NDArray[np.bool_] | None:
        """Which rows have nothing missing; None if all."""
        missing = {name: column < 0 for name, column in codes.items()}
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = not np.isfinite(block.sum())
        for j in np.flatnonzero(~np.isfinite(block).all(axis=0)).tolist() if suspect else ():
            missing[numeric[j]] = np.isnan(block[:, j])
            infinite = np.flatnonzero(np.isinf(block[:, j]))
            if len(infinite):
                where = f"{piece.file}: column {numeric[j]!r} in {piece.place(int(infinite[0]))}"
                raise ValueError(f"{where} is infinite.")
        missing = {name: rows for name, rows in missing.items() if rows.any()}
        if not missing:
            return None
        if not self.columns.drop_missing:
            name, rows = next(iter(missing.items()))
            raise ValueError(
                f"{piece.file}: column {name!r} has no value in "
                f"{piece.place(int(np.argmax(rows)))}; leave such rows out with missing='drop', or "
                "impute them."
            )
        return ~np.logical_or.reduce(list(missing.values()))


def _numbers(piece: Piece, name: str) -> Vector:
    """A column as float64, NaN where there is no value."""
    import pyarrow as pa

    column = piece.table.column(name)
    kinds = pa.types
    if not any(
        test(column.type)
        for test in (
            kinds.is_floating,
            kinds.is_integer,
            kinds.is_boolean,
            kinds.is_decimal,
            kinds.is_null,
        )
    ):
        raise ValueError(
            f"{piece.file}: column {name!r} holds {column.type}, not numbers; name it in "
            "categorical=, or leave it out of columns=."
        )
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy(zero_copy_only=False)
