"""Ctrl-C while the command line imports NumPy and all else, which takes a second or two."""

import os
import signal
import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class EndOnInterrupt:
    """A context in which Ctrl-C ends the process at once and quietly.

    It is for imports. An exception would not do there: compiled modules print a KeyboardInterrupt
    and raise another error. Where Ctrl-C raises no KeyboardInterrupt anyway, it is left alone.
    """

    def __init__(self, wanted: bool = True):
        self._wanted = wanted

    def __enter__(self) -> None:
        heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._wanted = self._wanted and heeded
        if self._wanted:
            try:
                signal.signal(signal.SIGINT, end)
            except ValueError:  # another thread than the main one, which gets no signals
                self._wanted = False

    def __exit__(self, *_: object) -> None:
        if self._wanted:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def end(*_: object) -> None:
    """End the process as one that was interrupted."""
    os.write(2, b"ellzero: interrupted\n")
    os._exit(INTERRUPTED)


def is_command() -> bool:
    """Say whether this process was started as `ellzero` or as `python -m ellzero`."""
    started = (getattr(sys, "argv", None) or [""])[0]
    if started == "-m":  # so it is while Python looks for the module to run
        return any(word.removeprefix("-m") == "ellzero" for word in sys.orig_argv)
    return os.path.basename(started).split(".")[0].removesuffix("-script") == "ellzero"
