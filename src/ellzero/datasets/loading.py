"""From a name to a data set: a file in the data folder, or a download into it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ellzero.data.io.columns import pandas
from ellzero.datasets import fetch
from ellzero.datasets.parts import checked, read
from ellzero.datasets.preprocessing import Preprocessing
from ellzero.datasets.registry import ENTRIES, NAMES, Entry, Part, Source, Task
from ellzero.files import replacing
from ellzero.silence import warning_filter


@dataclass(frozen=True)
class Dataset:
    """Features as they were published and a target, with where they are from.

    X is a frame of numbers (float64) and categories; y is float64, 0 or 1 for a binary task.
    """

    name: str
    task: Task
    X: Any = field(repr=False)
    y: np.ndarray = field(repr=False)
    description: str = field(repr=False)
    source: str

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(self.X.columns)

    def prepare(self, **options: Any) -> tuple[Any, np.ndarray, Preprocessing]:
        """Return the paper's A and b, and the fitted `Preprocessing` (which takes the options)."""
        preprocessing = Preprocessing(**options)
        A = preprocessing.fit_transform(self.X)
        return A, self.y[preprocessing.complete(self.X)], preprocessing


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    rows: Literal["all", "paper"] = "all",
    target: str | None = None,
    sample: bool = False,
) -> Dataset:
    """Load one of the paper's data sets (`NAMES`) from the data folder or its public source.

    Parameters
    ----------
    data_home
        The data folder; None means `data_folder()`.
    download
        Whether a set that is not in the folder may be downloaded into it.
    rows
        "all" the file has, or those of the "paper": it took the first line of four files that
        have no header for one, used half of ijcnn1 and the train part of year.
    target
        Which binary target, where there are several: for letter "A-M" (the default) or "O".
    sample
        Whether a file with a sample of the rows will do where the whole is not in the folder.
        All rows of a sample are kept, whatever `rows` says.

    Raises
    ------
    FileNotFoundError
        The set is neither in the folder nor could be downloaded; says which file to put where.
    ValueError
        A file in the folder is cut or not what its name says.
    """
    entry = _entry(name)
    if rows not in ("all", "paper"):
        raise ValueError(f"rows: expected 'all' or 'paper', got {rows!r}.")
    if target is not None and target not in entry.positives:
        known = f"one of {list(entry.positives)}" if entry.positives else "None"
        raise ValueError(f"target: expected {known} for {entry.name}, got {target!r}.")
    folder = data_folder(data_home)

    source, paths = _locate(entry, folder, sample)
    if source:
        parts = zip(paths, source, strict=True)
        frame = _stacked([read(path, part, entry) for path, part in parts])
    elif download:
        frame, paths = _download(entry, folder)
    else:
        raise FileNotFoundError(_wanted(entry, folder, []))
    is_sample = source in entry.samples
    if rows == "paper" and not is_sample:
        frame = frame.iloc[slice(*entry.paper_rows)].reset_index(drop=True)
    labels = frame.pop("target")
    notes = [entry.about, entry.unknown]
    if is_sample:
        notes.append(f"This is a sample of {len(frame)} rows, not the whole set.")
    return Dataset(
        entry.name,
        entry.task,
        frame,
        _target(entry, labels, target),
        " ".join(filter(None, notes)),
        ", ".join(str(path) for path in paths),
    )


def locate(
    name: str, *, data_home: str | os.PathLike[str] | None = None, sample: bool = False
) -> tuple[Path, ...]:
    """Return the files in the data folder that `load` would read; none if it had to download."""
    return _locate(_entry(name), data_folder(data_home), sample)[1]


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return `data_home`, else the folder that ELLZERO_DATA names, else one in the user's cache."""
    if data_home is None:
        data_home = os.environ.get("ELLZERO_DATA") or None
    if data_home is not None:
        return Path(data_home).expanduser()
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "ellzero"


def _entry(name: str) -> Entry:
    for entry in ENTRIES.values():
        if str(name).replace("-", "_") == entry.name.replace("-", "_"):
            return entry
    raise ValueError(f"name: expected one of {', '.join(NAMES)}; got {name!r}.")


def _locate(entry: Entry, folder: Path, sample: bool) -> tuple[Source, tuple[Path, ...]]:
    for source in entry.sources + (entry.samples if sample else ()):
        paths = [_find(part, folder) for part in source]
        if all(paths):
            return source, tuple(path for path in paths if path)
    return (), ()


def _find(part: Part, folder: Path) -> Path | None:
    paths = (folder / file for file in part.files)
    return next((path for path in paths if path.is_file()), None)


def _stacked(frames: list[Any]) -> Any:
    """Stack frames; categories that are not the same become those of both."""
    if len(frames) == 1:
        return frames[0]
    pd = pandas()
    columns = {}
    for name in frames[0].columns:
        pieces = [frame[name] for frame in frames]
        if isinstance(pieces[0].dtype, pd.CategoricalDtype):
            union = pd.api.types.union_categoricals(pieces, sort_categories=True)
            columns[name] = pd.Series(union)
        else:
            columns[name] = pd.concat(pieces, ignore_index=True)
    return pd.DataFrame(columns)


def _target(entry: Entry, labels: Any, target: str | None) -> np.ndarray:
    if entry.positives:
        ones = entry.positives[target or next(iter(entry.positives))]
        return labels.isin(list(ones)).to_numpy(np.float64)
    y = labels.to_numpy(np.float64)
    return (y > 0).astype(np.float64) if entry.task == "binary" else y


# downloads


def _download(entry: Entry, folder: Path) -> tuple[Any, tuple[Path, ...]]:
    """Return the frame from the first source that can be had, and the files it is in now."""
    reasons: list[str] = []
    for source in entry.sources:
        if not all(part.downloads or part.openml for part in source):
            continue
        try:
            got = [_fetch(part, entry, folder, reasons) for part in source]
        except FileNotFoundError:
            continue
        return _stacked([frame for frame, _ in got]), tuple(path for _, path in got)
    raise FileNotFoundError(_wanted(entry, folder, reasons))


def _fetch(part: Part, entry: Entry, folder: Path, reasons: list[str]) -> tuple[Any, Path]:
    found = _find(part, folder)  # another part may have come in the same archive
    if found:
        return read(found, part, entry), found
    for source in part.downloads:
        path = folder / source.file
        try:
            check = partial(read, part=part, entry=entry, called=source.file)
            return fetch.download(source.url, path, check, source.sha256), path
        except (OSError, ValueError) as error:
            reasons.append(f"{source.url}: {error}")
    if part.openml:
        try:
            return _fetch_openml(part, entry, folder)
        except (OSError, ValueError) as error:
            reasons.append(f"OpenML {part.openml}: {error}")
    raise FileNotFoundError


def _fetch_openml(part: Part, entry: Entry, folder: Path) -> tuple[Any, Path]:
    """Fetch a part with scikit-learn, which checks OpenML's md5; keep it as a plain CSV file."""
    from sklearn.datasets import fetch_openml

    pandas()
    with warning_filter("ignore", Warning, r"sklearn\.datasets\."):  # it warns at each retry
        bunch = fetch_openml(
            data_id=part.openml, cache=False, as_frame=True, n_retries=fetch.ATTEMPTS - 1
        )
    whole = bunch.data.assign(target=bunch.target)
    frame = checked(whole, part, entry)
    path = folder / f"{entry.name.replace('-', '_')}.csv"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        frame.to_csv(unfinished, index=False)
    return frame, path


def _wanted(entry: Entry, folder: Path, reasons: list[str]) -> str:
    """Say which files to get by hand, and where to put them."""
    lines = [f"{entry.name} is not in {folder}{' and could not be downloaded' * bool(reasons)}."]
    lines += [f"  {reason}" for reason in reasons]
    lines += ["Get one of these by hand and put it there under the name given:"]
    for source in entry.sources:
        if any(part.downloads for part in source):
            files = {d.file: d.url for part in source for d in part.downloads}
            lines += [f"  {folder / file}  from {url}" for file, url in files.items()]
    own = entry.sources[0][0].name
    lines += [f"or {own}; or say where it is with data_home= or ELLZERO_DATA."]
    if _locate(entry, folder, sample=True)[0]:
        lines += ["A sample of its rows is there: sample=True reads it."]
    return "\n".join(lines)
