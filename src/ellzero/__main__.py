"""The command `ellzero`, also `python -m ellzero`."""

import sys

from ellzero.interrupts import INTERRUPTED, EndOnInterrupt


def main() -> int:
    """Run the command line of this process and return its exit code."""
    try:
        with EndOnInterrupt():
            from ellzero.cli.main import main as run

        return run()
    except KeyboardInterrupt:  # a second one, while the first is dealt with
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
