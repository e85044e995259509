"""NON_TEMPORAL stores -> LLVM: past the caches if memory starts at a whole vector, else as others.

Memory that was handed in may start anywhere, and the instructions for this want whole vectors. All
places are multiples of vectors from the start, so one look at the start decides for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from glassgrad.ir.ops import NON_TEMPORAL
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_values import Writer, memory_type

METADATA = "!0 = !{i32 1}"
# Before others are told that the results are there; these stores keep no order by themselves.
FENCE = "  fence seq_cst"


class Blocks(Writer, Protocol):
    """A Writer that can also start blocks."""

    def do(self, text: str) -> None: ...

    def fresh(self, stem: str) -> str: ...

    def start_block(self, label: str) -> None: ...


class Streams:
    """The NON_TEMPORAL stores of a program: neighbours to one buffer are written together."""

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.runs: dict[UOp, list[UOp]] = {}  # a STORE -> all of its run, if it is the first
        self.vectors: dict[UOp, int] = {}  # PARAM -> bytes of what is written there
        self.whole: dict[UOp, str] = {}  # PARAM -> the name of what decides
        if any(uop.arg is NON_TEMPORAL for uop in uops):
            for param, run in groupby(uops, key=_streamed_to):
                if param is not None:
                    self._take(param, list(run))

    def _take(self, param: UOp, run: list[UOp]) -> None:
        first, *others = run
        assert self.runs.keys().isdisjoint(run), f"this is stored twice\n{first}"
        self.vectors[param] = first.src[1].dtype.itemsize
        self.runs |= {first: run, **{store: [] for store in others}}

    def look_at(self, w: Blocks, param: UOp, pointer: str) -> None:
        """Does the memory of a PARAM start at a whole vector?"""
        if param in self.vectors:
            address = w.line("address", f"ptrtoint ptr {pointer} to i64")
            rest = w.line("rest", f"and i64 {address}, {self.vectors[param] - 1}")
            self.whole[param] = w.line("whole", f"icmp eq i64 {rest}, 0")

    def write(self, w: Blocks, store: UOp) -> None:
        """if it starts at a whole vector: all of a run, past the caches; else all of a run"""
        run, param = self.runs[store], _streamed_to(store)
        if not run or param is None:
            return
        label = w.fresh("stream")
        w.do(f"br i1 {self.whole[param]}, label %{label}, label %{label}.near")
        for block, is_past in ((label, True), (f"{label}.near", False)):
            w.start_block(block)
            for one in run:
                w.do(_stored(w, one, is_past))
            w.do(f"br label %{label}.done")
        w.start_block(f"{label}.done")


def _stored(w: Blocks, store: UOp, is_past: bool) -> str:
    place, value = store.src
    text = f"store {memory_type(value.dtype)} {w.name(value)}, ptr {w.name(place)}"
    if is_past:
        return f"{text}, align {value.dtype.itemsize}, !nontemporal !0"
    return f"{text}, align {value.dtype.scalar.itemsize}"


def _streamed_to(uop: UOp) -> UOp | None:
    """The PARAM of a NON_TEMPORAL store."""
    if uop.arg is not NON_TEMPORAL:
        return None
    node = uop.src[0]
    while node.src:
        node = node.src[0]
    return node
