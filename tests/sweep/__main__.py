"""python -m sweep: write, or run and check, thousands of kernels of realistic sizes."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from time import perf_counter, time

from sweep.dry_run import TARGETS
from sweep.real_run import TooLarge, run_for_real
from sweep.runner import FAMILIES, Case, Report, cases, run

SHOWN = 10  # slowest kernels


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh seed")
    parser.add_argument("--count", type=int, default=1500, help="number of programs")
    parser.add_argument("--only", nargs="*", default=[], choices=FAMILIES, metavar="FAMILY")
    parser.add_argument("--targets", nargs="*", default=["avx2", "avx512"], choices=TARGETS)
    parser.add_argument("--case", help="run only FAMILY:SEED:TARGET")
    parser.add_argument(
        "--run", action="store_true", help="run the kernels here, and compare with plain loops"
    )
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    seed = int(time()) % 100_000 if options.seed is None else options.seed
    if options.case:
        family, number, target = options.case.split(":")
        selected = [Case(family, int(number), target)]
    else:
        selected = list(cases(seed, options.count, options.targets, options.only))
        print(f"seed {seed}: {len(selected)} programs")
    return run_all(selected) if options.run else write_all(selected)


def run_all(selected: list[Case]) -> int:
    """Run the programs that are small enough."""
    results: Counter[str] = Counter()
    for case in selected:
        if case.family not in FAMILIES:
            continue
        try:
            failure = run_for_real(case.family, case.seed)
        except TooLarge:
            results["too large"] += 1
            continue
        results["equal" if failure is None else "failed"] += 1
        if failure is not None:
            print(f"FAILED {case}\n{failure}", flush=True)
            print(f"  reproduce: python -m sweep --run --case {case}")
    print(", ".join(f"{count} {what}" for what, count in results.items()))
    return 1 if results["failed"] else 0


def write_all(selected: list[Case]) -> int:
    """Write the sources of all kernels for their targets."""
    start = perf_counter()
    reports: list[Report] = []
    for case in selected:
        reports.append(run(case))
        if (failure := reports[-1].failure) is not None:
            print(f"FAILED {case}\n{failure}", flush=True)
    slow = sorted(reports, key=lambda report: -report.seconds)[:SHOWN]
    for report in slow:
        line = f"{report.seconds * 1e3:7.0f} ms {report.lines:6} lines  {report.slowest}"
        print(f"{line}  {report.case}")
    failed = [report for report in reports if report.failure is not None]
    kernels = sum(report.kernels for report in reports)
    seconds = perf_counter() - start
    print(f"{kernels} kernels of {len(reports)} programs in {seconds:.0f} s, {len(failed)} failed")
    for report in failed:
        print(f"  reproduce: python -m sweep --case {report.case}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
