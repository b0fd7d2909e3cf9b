"""`python -m elea` is the `elea` command."""

import sys

from elea.cli import main

if __name__ == "__main__":
    sys.exit(main())
