"""Writing files so that others see a whole file or none."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STORAGE_FAULTS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EACCES", "EPERM", "ENAMETOOLONG")
    if hasattr(errno, name)
}
"""What the system says of a file that cannot be written, and never of a network."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path`, which takes its place if the block ends well.

    An OSError about the temporary file names `path` instead.
    """
    target = path.resolve()  # a link stays a link
    unfinished = target.with_name(f".{target.name[:40]}.{uuid.uuid4().hex}.part")
    try:
        with writing(path, unfinished):
            yield unfinished
            with unfinished.open("rb+") as file:
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, unfinished)
            os.replace(unfinished, target)
    finally:
        with suppress(OSError):  # the first error is the one to tell
            unfinished.unlink()


@contextmanager
def writing(name: Path | str, unfinished: Path | None = None) -> Iterator[None]:
    """Let errors of writing say what could not be written; the system often does not.

    name : what people call the file
    unfinished : the file that is written in its stead
    """
    try:
        yield
    except OSError as error:
        about = error.filename
        unnamed = about is None and error.errno in STORAGE_FAULTS
        if not unnamed and (about is None or str(about) not in (str(name), str(unfinished))):
            raise
        reason = f"could not be written: {error.strerror}"
        raise OSError(error.errno, reason, str(name)) from error


def write_text(path: Path, text: str) -> None:
    """Puts the text at `path` all at once; devices and pipes are written to as they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder, "a.txt"), "whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with writing(path):
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
