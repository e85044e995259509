"""python -m fuzz: many seeds in a few processes, with a running count; 1 if anything failed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from random import SystemRandom


def main(arguments: list[str] | None = None) -> int:
    from fuzz.tally import Tally
    from fuzz.workers import messages

    options = parsed(arguments)
    print(f"SEED={options.seed} (program {options.seed} and those after it)", flush=True)
    tally = Tally(options)
    for message in messages(options, tally):
        tally.add(message)
    print(tally.summary())
    return 1 if tally.failures else 0


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="how many to run")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long; 0: never")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, default=None, help="the first one; default: fresh")
    parser.add_argument("--without", default="", help="modes or operations, with commas between")
    parser.add_argument("--out", type=Path, default=None, help="append failures to this file")
    parser.add_argument("--most", type=int, default=20, help="stop after so many failures")
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds for each failure")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = SystemRandom().randrange(1 << 32) << 20
    return options


if __name__ == "__main__":
    os.environ.setdefault("POISON", "1")
    os.environ.setdefault("CACHELEVEL", "0")
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
