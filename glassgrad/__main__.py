"""`python -m glassgrad`: the command line."""

import sys

from glassgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
