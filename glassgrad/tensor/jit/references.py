"""Reference counts: does anything besides a tensor refer to its node?

Interpreter versions count differently, so a count is only compared with one that the same code took
when nothing else could refer to the node.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any


class _OnlyHolder:
    def __init__(self, uop: object) -> None:
        self.uop = uop


def references_to_node(tensor: Any) -> int:
    """The number of references to the node of a tensor."""
    return getrefcount(tensor.uop)


UNSHARED_COUNT = references_to_node(_OnlyHolder(object()))  # only the tensor refers to the node
