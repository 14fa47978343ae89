"""`ellzero COMMAND ...`: parse, call the command, turn errors into messages and exit codes."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from types import ModuleType
from typing import NoReturn

import ellzero
from ellzero.cli import demo, fit, path, predict, report, reproduce
from ellzero.cli.console import OUTPUT, UsageError, note, warnings_as_notes
from ellzero.files import writing

# Each has `add_parser(commands)`, which sets `run`, a function of the arguments.
COMMANDS: tuple[ModuleType, ...] = (fit, path, report, predict, reproduce, demo)

OPTIONS = {"X": "DATA", "y": "--target", "sample_weight": "--weights", "cv": "--cv"}
"""What the library calls by other names, where only the data can show that they are wrong."""

FAILED, MISUSED, INTERRUPTED = 1, 2, 130

_one_at_a_time = RLock()
"""Held by a command that runs: streams and the display of warnings belong to the whole process."""


class Parser(argparse.ArgumentParser):
    """Leaves what is wrong with the command line to `main`, as all other errors are."""

    def error(self, message: str) -> NoReturn:
        first = "; DATA stands before options that take several columns" * message.endswith("DATA")
        raise UsageError(f"{message}{first} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(prog="ellzero", description=ellzero.__doc__)
    top.add_argument("--version", action="version", version=f"ellzero {ellzero.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


def in_options(message: str) -> str:
    """The library's errors name arguments of Python; here they are options."""
    name, colon, rest = message.partition(": ")
    return f"{OPTIONS.get(name, name)}{colon}{rest}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; docs/command-line.md says what they mean."""
    with _one_at_a_time, _any_character_written():
        return _run(arguments)


@contextmanager
def _any_character_written() -> Iterator[None]:
    """Write \\xd7 where a terminal knows no ×."""
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    before = [stream.errors for stream in streams]
    try:
        for stream in streams:
            stream.reconfigure(errors="backslashreplace")
        yield
    finally:
        for stream, errors in zip(streams, before, strict=True):
            with suppress(OSError, ValueError):  # where nobody reads on, or which was closed
                stream.reconfigure(errors=errors)


def _drop_unread() -> None:
    """Drop what is left in the buffer of stdout, which Python would try to write when it ends."""
    stdout, nowhere = sys.stdout.fileno(), os.open(os.devnull, os.O_WRONLY)
    kept = os.dup(stdout)
    os.dup2(nowhere, stdout)
    sys.stdout.flush()
    os.dup2(kept, stdout)
    os.close(kept)
    os.close(nowhere)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        args = parser().parse_args(arguments)
        with warnings_as_notes():
            args.run(args)
        with writing(OUTPUT):
            sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`
        _drop_unread()
        return FAILED
    except UsageError as error:
        note(str(error), "error")
        return MISUSED
    except OSError as error:
        if error.filename == OUTPUT:
            _drop_unread()
        about_file = error.filename is not None and error.strerror is not None
        note(f"{error.filename}: {error.strerror}." if about_file else str(error), "error")
        return FAILED
    except (ValueError, TypeError, ImportError) as error:
        note(in_options(str(error)), "error")
        return FAILED
    except MemoryError:
        note("there is not enough memory for this.", "error")
        return FAILED
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    return 0
