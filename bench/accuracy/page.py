"""Writes docs/accuracy.md: `python -m bench.accuracy [samples per function [longest sum]]`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.accuracy.determinism import digests_of
from bench.accuracy.functions import FUNCTIONS, NARROW_BOUND, Function
from bench.accuracy.measuring import measure, measure_narrow, samples
from bench.accuracy.sums import BOUND, KINDS, LENGTHS, SUMS, Sum

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
TEMPLATE = Path(__file__).with_name("page.md")
THREADS = (1, 2, 3, 4, 7)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: list[str], rows: list[str]) -> str:
    return "\n".join([row(*head), row(*["---"] * len(head)), *rows])


def bounds(function: Function) -> str:
    """The first cells of the row of a function: the stated bounds, which tests look for."""
    name = f"`{function.name}`" + (" ¹" if function.ulp_floor else "")
    return f"| {name} | {function.float32:g} | {function.float64:g} |"


def functions(count: int) -> str:
    rows: list[str] = []
    for function in FUNCTIONS:
        cells: list[str] = []
        for dtype in ("float32", "float64"):
            worst, argument = measure(function, samples(dtype, count))
            cells.append(f"{worst:.2f} at {argument:.6g}")
        narrow = max(measure_narrow(function, dtype) for dtype in ("float16", "bfloat16"))
        rows.append(f"{bounds(function)} {' | '.join([*cells, f'{narrow:.3f}'])} |")
        print(rows[-1], flush=True)
    head = ["function", "bound, float32", "bound, float64", "worst seen, float32"]
    return table([*head, "worst seen, float64", "float16, bfloat16"], rows)


def sums(max_count: int) -> str:
    rows = [row(one.name, *_cells(one, max_count)) for one in SUMS]
    return table(["float32 reduction", *[f"10^{len(str(n)) - 1}" for n in LENGTHS]], rows)


def _cells(reduction: Sum, max_count: int) -> list[str]:
    cells: list[str] = []
    for count in LENGTHS:
        if count > min(max_count, reduction.max_count):
            cells.append("")
            continue
        cells.append(f"{max(reduction.error(count, kind) for kind in KINDS):.1e}")
    print(reduction.name, *cells, flush=True)
    return cells


def threads() -> str:
    """A table of the results that differ from those of one thread."""
    single = digests_in_process(1)
    rows = []
    for count in THREADS:
        first, second = digests_in_process(count), digests_in_process(count)
        assert first == second, f"{count} threads gave two different results"
        different = [name for name in single if first[name] != single[name]]
        rows.append(row(str(count), "; ".join(different) or "none"))
    return table(["THREADS", "results that differ from those of one thread"], rows)


def digests_in_process(count: int) -> dict[str, str]:
    command = [sys.executable, "-m", "bench.accuracy.determinism"]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"THREADS": str(count)},
    )
    return digests_of(process.stdout)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    max_count = int(float(sys.argv[2])) if len(sys.argv) > 2 else LENGTHS[-1]
    parts = {"FUNCTIONS": functions(count), "SUMS": sums(max_count), "THREADS": threads()}
    parts |= {"NARROW_BOUND": f"{NARROW_BOUND:g}", "SUM_BOUND": f"{BOUND:.1e}"}
    text = TEMPLATE.read_text()
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    PAGE.write_text(text)
    print(f"wrote {PAGE}")
