"""The command `ellzero`, also `python -m ellzero`."""

import os
import signal
import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def end_at_once(*_: object) -> None:
    """End the process on Ctrl-C.

    An exception would not do: compiled modules print it while they are imported, and raise others.
    """
    os.write(2, b"ellzero: interrupted\n")
    os._exit(INTERRUPTED)


def main() -> int:
    """Run the command line of this process and return its exit code."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, end_at_once)
    try:
        from ellzero.cli.main import main as run

        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:  # a second one, while the first is dealt with
        return INTERRUPTED
    finally:
        if heeded:  # Python takes a while to end
            signal.signal(signal.SIGINT, end_at_once)


if __name__ == "__main__":
    sys.exit(main())
