"""Writing files so that others see a whole file or none."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place if the block ends well, else goes."""
    path = path.resolve()  # a link stays a link
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Puts the text at `path` all at once; devices and pipes are written to as they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder, "a.txt"), "whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_text(text, encoding="utf-8", newline="")
        return
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="")


def check_writable(path: Path) -> None:
    """An error now, and not after hours of work, where no file can come to be at `path`."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written to.")
    replaced = path.is_file() or not path.exists()  # not a device or a pipe
    if replaced and not os.access(path.resolve().parent, os.W_OK):
        raise PermissionError(f"{path.parent} cannot be written to.")
