"""Loop moves as data: an Opt is a move, an axis number and an argument."""

from __future__ import annotations

from enum import Enum
from typing import Any

from glassgrad.base.fast_dataclasses import frozen


class OptOps(Enum):
    """The kinds of moves; `loops/moves/table.py` implements them."""

    UPCAST = "unroll an output axis into registers"
    UNROLL = "unroll a reduction axis"
    DOT = "several steps of an int8 or int16 dot product per instruction"
    LANES = "make an unrolled axis the lanes of vectors"
    TILE = "split an axis into blocks (strip-mining)"
    COALESCE = "coalesce two loops into one"
    SWAP = "interchange two loops"
    CORE = "divide a loop among CPU cores"
    LOCAL = "divide an axis among the threads of a group"
    GROUP = "divide a reduction among threads, cyclically"
    GROUPTOP = "divide a reduction among threads, in contiguous parts"
    PADTO = "pad an axis to a multiple, masking the new elements"
    ACCUMULATE = "accumulate sums in the output buffer, several rows at a time"
    ROW_BLOCK = "strip-mine rows and distribute the statements over row blocks"
    K_BLOCK = "block a reduction (K) and accumulate partial sums in scratch"
    ONLINE_SOFTMAX = "strip-mine a softmax axis with a running maximum"
    ATTENTION_BACKWARD = "fuse row-wise results and column sums over row blocks"
    SPLIT_EPILOGUE = "stage a register tile in scratch and write it in a loop"
    CACHE_READ = "copy the footprint of a buffer under a loop into scratch"
    SKIP_ZEROS = "skip the steps of a sum that add only padding zeros"
    PACK = "copy a buffer into scratch in the order it is read"

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


@frozen
class Opt:
    """One move. `axis` is the number of a range; the meaning of `arg` depends on the move."""

    op: OptOps
    axis: int
    arg: Any = None

    def __repr__(self) -> str:
        return f"Opt({self.op!r}, {self.axis}, {self.arg!r})"


Recipe = tuple[Opt, ...]


class IllegalMove(ValueError):
    """The move cannot be applied to this nest; the message says why."""


def require(condition: bool, why: str) -> None:
    """Raise IllegalMove unless the condition holds."""
    if not condition:
        raise IllegalMove(why)
