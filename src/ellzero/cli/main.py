"""`ellzero COMMAND ...`: parse, call the command, turn errors into messages and exit codes."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import ellzero
from ellzero.cli.console import note, warnings_as_notes

# Each is a module here with `add_parser(commands)`, which sets `run`, a function of the arguments.
COMMANDS: tuple[str, ...] = ("fit", "path", "report", "predict", "reproduce", "demo")

FAILED, INTERRUPTED = 1, 130  # argparse itself leaves with 2 for a wrong command line


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="ellzero", description=ellzero.__doc__)
    top.add_argument("--version", action="version", version=f"ellzero {ellzero.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"ellzero.cli.{name}").add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 after an error, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no × gets \xd7
            stream.reconfigure(errors="backslashreplace")
    args = parser().parse_args(arguments)
    try:
        with warnings_as_notes():
            args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (ValueError, TypeError, OSError, ImportError) as error:
        note(str(error), "error")
        return FAILED
    except MemoryError:
        note("there is not enough memory for this.", "error")
        return FAILED
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    return 0
