"""Downloads that either give a whole, checked file or none."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ellzero.files import replacing
from ellzero.progress import progress

T = TypeVar("T")

ATTEMPTS = 3  # for faults that may pass
PAUSE = 1.0  # seconds before the second attempt; doubled after each
TIMEOUT = 30.0  # seconds without a byte
SLOWEST = 1024.0  # bytes per second; below it, after TIMEOUT, an attempt is given up


def download(url: str, path: Path, check: Callable[[Path], T], sha256: str = "") -> T:
    """Put the file of a URL at `path` once its length, its sha256 and its content are right.

    `check` gets the unfinished file and raises ValueError where the content is wrong; what it
    returns is returned. Faults that may pass are tried again, ATTEMPTS times in all. The last one
    is raised: an OSError or, for wrong content, a ValueError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            with replacing(path) as unfinished:
                _receive(url, unfinished, path.name, sha256)
                return check(unfinished)
        except http.client.HTTPException as error:
            fault: Exception = ConnectionError(str(error) or type(error).__name__)
        except (OSError, ValueError) as error:
            fault = error
            if isinstance(error, urllib.error.HTTPError):
                error.close()
        if _final(fault):
            break
    raise fault


def _final(error: Exception) -> bool:
    """Say whether trying again is of no use: the server said no, or the file cannot be stored."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code not in (408, 429)
    network = (urllib.error.URLError, ConnectionError, TimeoutError)
    return isinstance(error, OSError) and not isinstance(error, network)


def _receive(url: str, path: Path, label: str, sha256: str) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "ellzero"})
    digest, received, start = hashlib.sha256(), 0, time.monotonic()
    with path.open("wb") as file, urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length")
        expected = int(length) if length and length.isdigit() else None
        with progress(label, expected) as advance:
            while block := response.read1(1 << 18):
                file.write(block)
                digest.update(block)
                received += len(block)
                advance(len(block))
                seconds = time.monotonic() - start
                if seconds > TIMEOUT and received < SLOWEST * seconds:
                    raise TimeoutError(f"only {received} bytes in {seconds:.0f} s")
    if expected is not None and received != expected:
        raise ConnectionError(f"{received} of {expected} bytes came")
    if sha256 and digest.hexdigest() != sha256:
        raise ValueError(f"sha256 is {digest.hexdigest()}, not {sha256}")
