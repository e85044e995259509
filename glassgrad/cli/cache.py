"""`glassgrad cache`: what is kept on disk; shrink it, or empty it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from glassgrad.base.folders import cache_folder
from glassgrad.base.terminal import size_to_str
from glassgrad.devices import objects


def run(options: Namespace) -> int:
    folder = Path(cache_folder())
    before = measured(folder / "objects")
    if options.action == "prune":
        objects.prune(options.most)
    elif options.action == "clear":
        objects.clear()
    count, size = measured(folder / "objects")
    print(f"{folder}")
    print(f"  compiled kernels  {count:6}  {size_to_str(size)}")
    downloads, bytes_of = measured(folder / "downloads")
    print(f"  downloads         {downloads:6}  {size_to_str(bytes_of)}")
    if options.action != "show":
        print(f"removed {before[0] - count} kernels, {size_to_str(before[1] - size)}")
    return 0


def measured(folder: Path) -> tuple[int, int]:
    """How many files, and how many bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)
