"""Open files that may be packed, and name what is wrong with their content."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ellzero.progress import progress

OPENERS: dict[str, Callable[[Any], Any]] = {
    "gz": lambda stream: gzip.GzipFile(fileobj=stream),
    "bz2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}

UNREADABLE = (ValueError, OverflowError, EOFError, OSError, KeyError, IndexError, TypeError,
              AttributeError, NotImplementedError, MemoryError, csv.Error, zlib.error,
              lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, Warning)  # fmt: skip
"""What damaged content makes the readers of all formats raise."""

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def content_errors(say: Callable[[str], str]) -> Iterator[None]:
    """Turn whatever damaged content raises into a ValueError with the message `say(reason)`.

    Errors about the file itself, such as one that is not there, pass as they are.
    """
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        if isinstance(error, OSError) and error.filename is not None:
            raise
        if isinstance(error, MemoryError):
            reason = "there is not enough memory to read it"
        else:
            reason = str(error).strip().rstrip(".") or type(error).__name__
        raise ValueError(say(reason)) from error


@contextmanager
def opened(
    path: Path,
    *,
    called: str = "",
    member: str = "",
    start_only: bool = False,
    show_progress: bool = False,
) -> Iterator[IO[bytes]]:
    """Open the one file that is packed in a file, or the file itself if it is not packed.

    Packed files are read to their end, where their checksums are.

    called : the name that says how the file is packed, if `path` does not
    member : the name of the file to open, if there may be several in the archive
    start_only : whether the end of the file, and so its checksum, does not matter
    """
    with _CountedFile(str(path)) as file, io.BufferedReader(file) as stream, ExitStack() as stack:
        if show_progress:
            bar = progress(f"reading {path.name!a}", path.stat().st_size)
            file.advance = stack.enter_context(bar)
        inside = unpacked(stream, called or path.name)
        content = next((part for name, part in inside if member in ("", name)), None)
        if content is None:
            raise ValueError(f"there is no {member} in it" if member else "it is empty")
        try:
            yield content
        except UnicodeError as error:
            raise ValueError(_encoding_fault(path, called or path.name)) from error
        for name, _ in () if start_only else inside:
            if not member:
                raise ValueError(f"there is more than one file in it, such as {name!a}")


def unpacked(stream: IO[bytes], name: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the names and contents of the files in a file, however deep archives are nested.

    A file that is not packed is yielded itself. Each content is to be read before the next one.
    """
    stem, _, suffix = name.rpartition(".")
    suffix = suffix.lower()
    if suffix in ("tgz", "tbz2"):
        stem, suffix = f"{stem}.tar", suffix.removeprefix("t")
    if suffix in OPENERS and stem:
        with OPENERS[suffix](stream) as inner:
            yield from unpacked(inner, stem)
            while inner.read(1 << 20):
                pass
    elif suffix == "tar":
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for info in tar:
                content = tar.extractfile(info)
                if content is not None:
                    yield from unpacked(content, PurePosixPath(info.name).name)
    elif suffix == "zip":
        seekable = stream if stream.seekable() else io.BytesIO(stream.read())
        with zipfile.ZipFile(seekable) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as content:
                        yield from unpacked(content, PurePosixPath(entry.filename).name)
    else:
        yield name, stream


class _CountedFile(io.FileIO):
    """A file that passes the number of bytes of each read to `advance`."""

    advance: Callable[[int], None] | None = None

    def readinto(self, buffer: Any) -> int | None:
        n = super().readinto(buffer)
        if self.advance is not None:
            self.advance(n or 0)
        return n


def _encoding_fault(path: Path, called: str) -> str:
    """Say how to make UTF-8 of a file, by a guess of what it is."""
    with path.open("rb") as file:
        inside = unpacked(file, called)
        start = next(inside)[1].read(100)
    is_utf16 = start.startswith(UTF16_MARKS) or 3 * start.count(0) >= len(start)
    if 0 in start and not is_utf16:
        return "it is not text; say what it is by the ending of its name, or with format=..."
    return (
        "it is not UTF-8 text; convert it, perhaps by `iconv -f "
        f"{'UTF-16' if is_utf16 else 'LATIN1'} -t UTF-8`, and read the new file"
    )
