"""`glassgrad cache`: show, prune or clear the cache on disk."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from glassgrad.base.folders import cache_folder
from glassgrad.base.terminal import size_to_str
from glassgrad.devices.cpu import object_cache as objects

PLANS = b'{"sources": '  # start of a plan; other JSON objects are sources of kernels
KINDS = ("compiled kernels", "their sources", "plans of graphs", "facts, recipes")


def run(options: Namespace) -> int:
    folder = Path(cache_folder())
    before = entry_sizes()
    if options.action == "prune":
        objects.prune(options.most)
    elif options.action == "clear":
        objects.clear()
    print(f"{folder}")
    after = entry_sizes()
    for kind, sizes in (*after.items(), ("downloads", download_sizes(folder))):
        print(f"  {kind:<16}  {len(sizes):6}  {size_to_str(sum(sizes))}")
    if options.action != "show":
        was, is_now = (
            [size for sizes in one.values() for size in sizes] for one in (before, after)
        )
        print(f"removed {len(was) - len(is_now)} files, {size_to_str(sum(was) - sum(is_now))}")
    return 0


def entry_sizes() -> dict[str, list[int]]:
    """The sizes of all cache entries by kind."""
    found: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for start, size in objects.entry_prefixes(len(PLANS)):
        found[_kind(start)].append(size)
    return found


def _kind(start: bytes) -> str:
    code, sources, plans, others = KINDS
    if start == PLANS:
        return plans
    if start.startswith(b"{"):
        return sources
    # ELF starts with 0x7f, Mach-O with 0xcf, COFF with "d\x86", which no text does.
    return others if start.isascii() and start[:1].decode().isprintable() else code


def download_sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in (folder / "downloads").rglob("*") if path.is_file()]
