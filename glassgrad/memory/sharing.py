"""Storage -> the storages that have bytes in common with it: memory that is seen more than once.

A storage is entered when it looks at memory of others, or when others are let look at its own.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

if TYPE_CHECKING:
    from glassgrad.memory.storage import Storage


class Extents(NamedTuple):
    """Storages in order of their starts; `reach` is how far any of those up to here goes."""

    age: int
    starts: list[int]
    reach: list[int]
    storages: list[ref[Storage]]


class Register:
    """The storages whose memory somebody else may see. They are sorted only when one asks."""

    def __init__(self) -> None:
        self.entries: dict[int, ref[Storage]] = {}
        self.age = 0
        self.extents = Extents(0, [], [], [])

    def enter(self, storage: Storage) -> None:
        """Somebody else may see this storage's memory, which it has by now."""
        key, entries = id(storage), self.entries
        if key not in entries:
            entries[key] = ref(storage, lambda _: entries.pop(key, None))
            self.age += 1

    def sharing(self, storage: Storage) -> list[Storage]:
        """The other storages that have a byte in common with this one."""
        age = self.age
        if storage.alone_at == age or not storage.is_allocated():
            return []
        extents = self._sorted()
        found = []
        place = bisect_left(extents.starts, storage.address + storage.nbytes) - 1
        while place >= 0 and extents.reach[place] > storage.address:
            other = extents.storages[place]()
            if other is not None and other is not storage and touch(other, storage):
                found.append(other)
            place -= 1
        if not found:
            storage.alone_at = age
        return found

    def _sorted(self) -> Extents:
        extents, age = self.extents, self.age
        if extents.age != age:
            held = [found for entry in list(self.entries.values()) if (found := entry())]
            held.sort(key=lambda storage: storage.address)
            reach = accumulate((found.address + found.nbytes for found in held), max)
            starts = [found.address for found in held]
            extents = Extents(age, starts, list(reach), [ref(found) for found in held])
            self.extents = extents
        return extents


def touch(one: Storage, other: Storage) -> bool:
    """Whether two storages that have memory have a byte of it in common."""
    start, stop = max(one.address, other.address), one.address + one.nbytes
    return start < min(stop, other.address + other.nbytes)


SEEN = Register()
