"""`python -m ellzero` is the command line."""

import sys

from ellzero.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
