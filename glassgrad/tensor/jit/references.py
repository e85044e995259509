"""True if anybody but a tensor refers to its buffer.

What the interpreter counts for its own sake differs from version to version. So a count is only
compared with one that the same code took when nobody else could refer to the buffer.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any


class _OnlyHolder:
    def __init__(self, uop: object) -> None:
        self.uop = uop


def references_to_node(tensor: Any) -> int:
    """References to what a tensor holds."""
    return getrefcount(tensor.uop)


UNSHARED_COUNT = references_to_node(_OnlyHolder(object()))  # where only the tensor holds it
