"""`ellzero COMMAND ...`: parse, call the command, turn errors into messages and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

import ellzero

# Each is a module here with `add_parser(commands)`, which sets `run`, a function of the arguments.
COMMANDS: tuple[str, ...] = ("reproduce",)

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
    args = parser().parse_args(arguments)
    try:
        args.run(args)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"ellzero: error: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("ellzero: interrupted\n")
        return INTERRUPTED
    return 0
