"""From pieces of a table to rows of numbers: levels become columns, missing values are found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellzero.data.io.columns import level_codes, word, word_codes
from ellzero.data.io.pieces import Piece, rows_in_piece
from ellzero.supports import Vector
from ellzero.wording import listed


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for."""

    features: tuple[str, ...] | None
    target: str
    weight: str | None
    levels: Mapping[str, tuple[str, ...] | None]
    """The levels of each categorical column; None where they are to be found."""
    drop_missing: bool

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        target: str,
        weight: str | None,
        categorical: Iterable[str] | Mapping[str, Iterable[Any] | None],
        missing: str,
    ) -> Roles:
        """Check what a caller says of the columns; see `Statistics.from_parquet`."""
        if missing not in ("error", "drop"):
            raise ValueError(f"missing: expected 'error' or 'drop', got {missing!r}.")
        if isinstance(columns, str) or isinstance(categorical, str):
            raise TypeError("columns, categorical: expected several names, got one text.")
        features = None if columns is None else tuple(columns)
        if features is not None and not 0 < len(features) == len({*features}):
            raise ValueError("columns: expected one name or more, none of them twice.")
        given = categorical if isinstance(categorical, Mapping) else dict.fromkeys(categorical)
        levels = {
            name: None if found is None else tuple(map(word, found))
            for name, found in given.items()
        }
        if {target, weight} & {*(features or ()), *levels}:
            raise ValueError("columns: the target or the weight is among the features.")
        for name, found in levels.items():
            if found is not None and len({*found}) < len(found):
                raise ValueError(f"categorical: a level of {name!r} stands there twice.")
        unknown = set(levels) - set(levels if features is None else features)
        if unknown:
            raise ValueError(f"categorical: {listed(sorted(unknown))} not among columns.")
        return cls(features, target, weight, levels, missing == "drop")

    @property
    def others(self) -> list[str]:
        """The target, and the weight if there is one."""
        return [self.target] if self.weight is None else [self.target, self.weight]

    def features_of(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the features of a file with these columns."""
        return self.features or tuple(name for name in columns if name not in self.others)

    def chosen(self, columns: tuple[str, ...]) -> Collection[str]:
        """Return which columns of a file to read, or say which of them it lacks."""
        features = self.features_of(columns)
        needed = {*features, *self.levels, *self.others}
        lacking = needed - set(columns)
        if lacking:
            raise ValueError(
                f"has no column {listed(sorted(lacking))}; its columns are {listed(columns)}"
            )
        if not features:
            raise ValueError("has no column but target and weight")
        return needed


class Rows(NamedTuple):
    """Rows of numbers from a file; each row of `codes` says which levels a row of X has."""

    file: Path
    X: NDArray[np.float64]
    y: Vector
    w: Vector | None
    names: tuple[str, ...]
    numeric: NDArray[np.intp]  # the columns of X that do not stand for a level
    codes: NDArray[np.intp]
    levels: list[list[str]]

    def sample(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], str]:
        """Return the numbers in some rows, and the words in them as lines of text."""
        others = [self.y[rows], *([] if self.w is None else [self.w[rows]])]
        numbers = np.column_stack([self.X[np.ix_(rows, self.numeric)], *others])
        lines = (
            "\t".join(levels[code] for levels, code in zip(self.levels, codes, strict=True)) + "\n"
            for codes in self.codes[rows].tolist()
        )
        return numbers, "".join(lines) if self.levels else ""


def rows_of(pieces: Iterable[Piece], roles: Roles) -> Iterator[Rows]:
    """Yield the complete rows of all pieces; levels that are found late add columns to X."""
    encoder = _Encoder(roles)
    for piece in pieces:
        begin = 0
        while begin < len(piece.frame):
            part = piece.rows(begin, rows_in_piece(encoder.width))
            begin += len(part.frame)
            yield encoder.encode(part)


class _Encoder:
    """Makes numbers of columns, and keeps the levels that it found."""

    def __init__(self, roles: Roles):
        self.roles = roles
        self.features: tuple[str, ...] = ()
        self.levels = {name: list(levels or ()) for name, levels in roles.levels.items()}

    @property
    def width(self) -> int:
        """The numbers in a row: X, y and w."""
        n_numeric = len(self.features) - len(self.levels)
        return n_numeric + sum(map(len, self.levels.values())) + 2

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
        complete = np.ones(len(piece.frame), dtype=bool)
        block = np.zeros((len(piece.frame), self.width), order="F")
        numeric, n = [], 0
        for name in (*self.features, *self.roles.others):
            if name in codes:
                known = codes[name] >= 0
                block[known.nonzero()[0], n + codes[name][known]] = 1.0
                n += len(self.levels[name])
            else:
                block[:, n] = piece.numbers(name)
                known = ~np.isnan(block[:, n])
                numeric.append(n)
                n += 1
            if not known.all():
                self._check_missing(piece, name, known)
                complete &= known
        by_row = np.column_stack(list(codes.values())) if codes else np.empty((len(block), 0), int)
        if not complete.all():
            block, by_row = np.asfortranarray(block[complete]), by_row[complete]
        weight = None if self.roles.weight is None else block[:, -1]
        X, y = block[:, : self.width - 2], block[:, self.width - 2]
        among = np.array([j for j in numeric if j < X.shape[1]], dtype=np.intp)
        levels = list(self.levels.values())
        return Rows(piece.file, X, y, weight, self.names, among, by_row, levels)

    def _check_features(self, piece: Piece) -> None:
        features = self.roles.features_of(piece.columns)
        self.features = self.features or features
        differ = {*self.features} ^ {*features}
        if differ:
            raise ValueError(
                f"{piece.file}: its columns are not those of the files before: "
                f"{listed(sorted(differ))}."
            )

    def _check_missing(self, piece: Piece, name: str, known: NDArray[np.bool_]) -> None:
        if not self.roles.drop_missing:
            raise ValueError(
                f"{piece.file}: column {name!r} has no value in "
                f"{piece.place(int(known.argmin()))}; leave such rows out with missing='drop', or "
                "impute them."
            )

    def _codes(self, piece: Piece, name: str) -> NDArray[np.intp]:
        """Return which level every row has, −1 where it has none; keep levels that are new."""
        words, codes = word_codes(piece.frame[name])
        new = {*words} - {*self.levels[name]}
        if new and self.roles.levels[name] is not None:
            raise ValueError(
                f"{piece.file}: column {name!r} has {listed(sorted(new))}, not among the levels "
                "given."
            )
        if new:
            self.levels[name] = sorted({*self.levels[name], *new})
        return level_codes(words, codes, self.levels[name])
