"""Measurements -> docs/accuracy.md: `python -m bench.accuracy [samples per function]`."""

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
    """The first cells of a function's row: what is promised. The tests look for them."""
    name = f"`{function.name}`" + (" ¹" if function.least else "")
    return f"| {name} | {function.float32:g} | {function.float64:g} |"


def functions(count: int) -> str:
    rows: list[str] = []
    for function in FUNCTIONS:
        cells: list[str] = []
        for dtype in ("float32", "float64"):
            worst, at = measure(function, samples(dtype, count))
            cells.append(f"{worst:.2f} at {at:.6g}")
        narrow = max(measure_narrow(function, dtype) for dtype in ("float16", "bfloat16"))
        rows.append(f"{bounds(function)} {' | '.join([*cells, f'{narrow:.3f}'])} |")
        print(rows[-1], flush=True)
    head = ["function", "bound, float32", "bound, float64", "worst seen, float32"]
    return table([*head, "worst seen, float64", "float16, bfloat16"], rows)


def sums(most: int) -> str:
    rows = [row(found.name, *_cells(found, most)) for found in SUMS]
    return table(["float32 reduction", *[f"10^{len(str(n)) - 1}" for n in LENGTHS]], rows)


def _cells(found: Sum, most: int) -> list[str]:
    cells: list[str] = []
    for count in LENGTHS:
        if count > min(most, found.most):
            cells.append("")
            continue
        cells.append(f"{max(found.error(count, kind) for kind in KINDS):.1e}")
    print(found.name, *cells, flush=True)
    return cells


def threads() -> str:
    """Which results differ from those of one thread."""
    alone = digests_in_process(1)
    rows = []
    for count in THREADS:
        found, again = digests_in_process(count), digests_in_process(count)
        assert found == again, f"{count} threads gave two different results"
        other = [name for name in alone if found[name] != alone[name]]
        rows.append(row(str(count), "; ".join(other) or "none"))
    return table(["THREADS", "results that differ from those of one thread"], rows)


def digests_in_process(count: int) -> dict[str, str]:
    command = [sys.executable, "-m", "bench.accuracy.determinism"]
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"THREADS": str(count)},
    )
    return digests_of(found.stdout)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    most = int(float(sys.argv[2])) if len(sys.argv) > 2 else LENGTHS[-1]
    parts = {"FUNCTIONS": functions(count), "SUMS": sums(most), "THREADS": threads()}
    parts |= {"NARROW_BOUND": f"{NARROW_BOUND:g}", "SUM_BOUND": f"{BOUND:.1e}"}
    text = TEMPLATE.read_text()
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    PAGE.write_text(text)
    print(f"wrote {PAGE}")
