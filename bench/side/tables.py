"""Measured cells -> tables: times, ratios to the best, and how noisy the machine was."""

import statistics
import sys

from measuring import DISTURBED
from workloads import BY_NAME


def human(s):
    for unit, k in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if s * k >= 1 or unit == "us":
            return f"{s * k:.3g}{unit}"
    return None


def cell(c, best, value="s", show=human):
    if not c or c.get("missing"):
        return "-"
    if "timeout" in c:
        return f"t/o>{c['timeout']:.0f}s"
    if value not in c:
        return "err"
    return f"{show(c[value])} [{c[value] / best:.2f}]" + ("!" if "mismatch" in c else "")


def table(title, rows, peers, value="s", show=human, extra=None):
    print(f"\n## {title}\n")
    head = ["workload"] + peers + ([extra[0]] if extra else [])
    lines = [head]
    for name, cells in rows:
        best = min(
            (c[value] for c in cells.values() if c and value in c and "mismatch" not in c),
            default=float("nan"),
        )
        lines.append(
            [name]
            + [cell(cells.get(p), best, value, show) for p in peers]
            + ([extra[1](name, cells, best)] if extra else [])
        )
    widths = [max(len(l[i]) for l in lines) for i in range(len(head))]
    for i, l in enumerate(lines):
        print("| " + " | ".join(x.ljust(n) for x, n in zip(l, widths)) + " |")
        if i == 0:
            print("|" + "|".join("-" * (n + 2) for n in widths) + "|")
    sys.stdout.flush()


def rate(name, cells, best):
    w = BY_NAME[name]
    if w.items:
        return f"{w.items / best:.4g} items/s"
    if w.flops:
        return f"{w.flops / best / 1e9:.4g} GFLOP/s"
    return f"{w.bytes / best / 1e9:.3g} GB/s" if w.bytes else ""


def noise(rows):
    spread = [
        c["median"] / c["s"] - 1 for _, cells in rows for c in cells.values() if "median" in c
    ]
    others = [o for _, cells in rows for c in cells.values() for o in c.get("others", [])]
    if spread:
        print(
            f"\nmedian over fastest: half of the cells within {statistics.median(spread):.0%}, 90% within {sorted(spread)[int(len(spread) * 0.9)]:.0%};"
            f" rounds disturbed by other processes: {sum(o >= DISTURBED for o in others)} of {len(others)}"
        )
