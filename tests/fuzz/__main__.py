"""python -m fuzz: run many seeds in a few processes; the exit code is 1 if any program failed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from random import SystemRandom


def main(arguments: list[str] | None = None) -> int:
    from fuzz.tally import Tally
    from fuzz.workers import messages

    options = parse_arguments(arguments)
    print(f"SEED={options.seed} (program {options.seed} and those after it)", flush=True)
    tally = Tally(options)
    for message in messages(options, tally):
        tally.add(message)
    print(tally.summary())
    return 1 if tally.failures else 0


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="number of programs")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after this time; 0: never")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, default=None, help="the first one; default: fresh")
    parser.add_argument(
        "--without", default="", help="comma-separated modes or operations to exclude"
    )
    parser.add_argument("--out", type=Path, default=None, help="append failures to this file")
    parser.add_argument(
        "--most",
        dest="max_failures",
        type=int,
        default=20,
        help="stop after this number of failures",
    )
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds to shrink each failure")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = SystemRandom().randrange(1 << 32) << 20
    return options


if __name__ == "__main__":
    os.environ.setdefault("POISON", "1")
    os.environ.setdefault("CACHELEVEL", "0")
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
