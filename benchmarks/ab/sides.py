"""Make the two sides of an A/B run: an environment with one revision, and a worker in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".bench-ab"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
START_SECONDS = 300.0  # to start, to import, or to read a problem


class Failed(Exception):
    """Raised where a worker has no answer. `status` is "timeout", "crashed" or "error"."""

    def __init__(self, side: Side, status: str, why: str) -> None:
        super().__init__(f"{side.name}: {why}")
        self.side, self.status = side, status


class Side:
    """One revision of ellzero, installed in an environment of its own.

    `revision` is what git knows, or None for the working tree with its uncommitted changes.
    """

    def __init__(self, name: str, revision: str | None) -> None:
        self.name, self.revision = name, revision
        self.commit = _git("rev-parse", "--short", f"{revision or 'HEAD'}^{{commit}}")
        with _tree(self.commit if revision else None) as tree:
            self.python = _environment(name, tree)
        self._child: subprocess.Popen[str] | None = None

    def __str__(self) -> str:
        if self.revision:
            return f"{self.revision} ({self.commit})"
        changed = _git("status", "--porcelain", "--", "src", "pyproject.toml")
        return f"working tree ({self.commit}{' and changes' if changed else ''})"

    def ask(self, limit: float = START_SECONDS, **order: Any) -> dict[str, Any]:
        """Send one order to the worker and wait for its answer.

        Starts the worker if none is running. Kills the worker after `limit` seconds.
        """
        if self._child is None:
            self._child = self._start()
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        late = threading.Event()
        timer = threading.Timer(limit, lambda: (late.set(), child.kill()))
        timer.start()
        try:
            child.stdin.write(json.dumps(order) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            self.end()
            if late.is_set():
                raise Failed(self, "timeout", f"over {limit:g} s")
            raise Failed(self, "crashed", "the worker ended, see its messages above")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(self, "error", answer["error"])
        return answer

    def end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, "-m", "benchmarks.ab.worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_isolated(),
        )


def _isolated() -> dict[str, str]:
    """Return the environment variables without those that could add another ellzero."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"PYTHONNOUSERSITE": "1", "PYTHONHASHSEED": "0"}


@contextmanager
def _tree(commit: str | None) -> Iterator[Path]:
    """Yield a folder with the files of the commit, or the working tree itself for None."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="ellzero-ab-") as folder:
        archive = Path(folder) / "tree.tar"
        _git("archive", "--output", str(archive), commit)
        tree = Path(folder) / "tree"
        shutil.unpack_archive(archive, tree)
        yield tree


def _environment(name: str, tree: Path) -> Path:
    """Install the tree and return the interpreter that imports it.

    The environment is named after the side and the requirements, and is used again in later runs.
    """
    key = hashlib.sha256((tree / "pyproject.toml").read_bytes() + sys.version.encode())
    folder = CACHE / f"{name}-{key.hexdigest()[:12]}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    options = ["--force-reinstall", "--no-deps"]  # the version number of a new tree may be the same
    if not stamp.exists():
        sys.stderr.write(f"Making the environment of {name} in {folder} ...\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        options = []
    subprocess.run([python, *PIP, *options, tree], check=True, env=_isolated())
    stamp.touch()
    return python


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"benchmarks.ab: git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()
