"""Storage -> the storages that overlap it in memory.

A storage is registered when it refers to memory of others, or when its own memory is exported.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

if TYPE_CHECKING:
    from glassgrad.memory.storage import Storage


class SortedExtents(NamedTuple):
    """Storages by address; `furthest_end` is the highest end of any storage up to here."""

    version: int
    starts: list[int]
    furthest_end: list[int]
    storages: list[ref[Storage]]


class SharedStorages:
    """The storages with shared memory. They are sorted only for a query."""

    def __init__(self) -> None:
        self.entries: dict[int, ref[Storage]] = {}
        self.version = 0
        self.extents = SortedExtents(0, [], [], [])

    def add(self, storage: Storage) -> None:
        """Register a storage, which is allocated by now."""
        key, entries = id(storage), self.entries
        if key not in entries:
            entries[key] = ref(storage, lambda _: entries.pop(key, None))
            self.version += 1

    def overlapping(self, storage: Storage) -> list[Storage]:
        """The other storages that have a byte in common with this one."""
        version = self.version
        if storage.unshared_version == version or not storage.is_allocated():
            return []
        extents = self._sorted()
        found = []
        index = bisect_left(extents.starts, storage.address + storage.nbytes) - 1
        while index >= 0 and extents.furthest_end[index] > storage.address:
            other = extents.storages[index]()
            if other is not None and other is not storage and overlap(other, storage):
                found.append(other)
            index -= 1
        if not found:
            storage.unshared_version = version
        return found

    def _sorted(self) -> SortedExtents:
        extents, version = self.extents, self.version
        if extents.version != version:
            held = [found for entry in list(self.entries.values()) if (found := entry())]
            held.sort(key=lambda storage: storage.address)
            furthest_end = accumulate((found.address + found.nbytes for found in held), max)
            starts = [found.address for found in held]
            extents = SortedExtents(
                version, starts, list(furthest_end), [ref(found) for found in held]
            )
            self.extents = extents
        return extents


def overlap(one: Storage, other: Storage) -> bool:
    """True if two allocated storages have a byte in common."""
    start, stop = max(one.address, other.address), one.address + one.nbytes
    return start < min(stop, other.address + other.nbytes)


SHARED_STORAGES = SharedStorages()
