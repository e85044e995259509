"""Thousands of kernels of realistic sizes, compiled as far as their sources and checked."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter, time

from sweep.dry_run import TARGETS
from sweep.runner import FAMILIES, Case, Report, cases, run

SHOWN = 10  # kernels that took longest


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="a fresh one unless given")
    parser.add_argument("--count", type=int, default=1500, help="programs")
    parser.add_argument("--only", nargs="*", default=[], choices=FAMILIES, metavar="FAMILY")
    parser.add_argument("--targets", nargs="*", default=["avx2", "avx512"], choices=TARGETS)
    parser.add_argument("--case", help="one program again: FAMILY:SEED:TARGET")
    return parser.parse_args()


def main() -> int:
    asked = parsed()
    seed = int(time()) % 100_000 if asked.seed is None else asked.seed
    if asked.case:
        family, number, target = asked.case.split(":")
        wanted = [Case(family, int(number), target)]
    else:
        wanted = list(cases(seed, asked.count, asked.targets, asked.only))
        print(f"seed {seed}: {len(wanted)} programs")
    start = perf_counter()
    reports: list[Report] = []
    for case in wanted:
        reports.append(run(case))
        if (failure := reports[-1].failure) is not None:
            print(f"FAILED {case}\n{failure}", flush=True)
    slow = sorted(reports, key=lambda report: -report.seconds)[:SHOWN]
    for report in slow:
        line = f"{report.seconds * 1e3:7.0f} ms {report.lines:6} lines  {report.slowest}"
        print(f"{line}  {report.case}")
    failed = [report for report in reports if report.failure is not None]
    kernels = sum(report.kernels for report in reports)
    took = perf_counter() - start
    print(f"{kernels} kernels of {len(reports)} programs in {took:.0f} s, {len(failed)} failed")
    for report in failed:
        print(f"  again: python -m sweep --case {report.case}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
