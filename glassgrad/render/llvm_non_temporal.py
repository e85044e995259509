"""NON_TEMPORAL stores -> LLVM: used if the buffer starts at a whole vector, else plain stores.

Imported memory may be unaligned, and non-temporal stores require aligned vectors. All offsets are
multiples of vectors, so one test of the buffer's address decides for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from glassgrad.ir.ops import NON_TEMPORAL
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_values import Writer, memory_type

METADATA = "!0 = !{i32 1}"
# Non-temporal stores are weakly ordered, so a fence precedes the end of the kernel.
FENCE = "  fence seq_cst"


class BlockWriter(Writer, Protocol):
    """A Writer that can also start blocks."""

    def do(self, text: str) -> None: ...

    def fresh(self, stem: str) -> str: ...

    def start_block(self, label: str) -> None: ...


class NonTemporalStores:
    """The NON_TEMPORAL stores of a program: neighbours to one buffer share a branch."""

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.runs: dict[UOp, list[UOp]] = {}  # first STORE of a run -> all of the run; others -> []
        self.vectors: dict[UOp, int] = {}  # PARAM -> bytes of the vectors stored to it
        self.is_aligned: dict[UOp, str] = {}  # PARAM -> the name of its alignment test
        if any(uop.arg is NON_TEMPORAL for uop in uops):
            for param, run in groupby(uops, key=_non_temporal_target):
                if param is not None:
                    self._take(param, list(run))

    def _take(self, param: UOp, run: list[UOp]) -> None:
        first, *others = run
        assert self.runs.keys().isdisjoint(run), f"this is stored twice\n{first}"
        self.vectors[param] = first.src[1].dtype.itemsize
        self.runs |= {first: run, **{store: [] for store in others}}

    def test_alignment(self, w: BlockWriter, param: UOp, pointer: str) -> None:
        """Test if the memory of a PARAM starts at a whole vector."""
        if param in self.vectors:
            address = w.line("address", f"ptrtoint ptr {pointer} to i64")
            rest = w.line("rest", f"and i64 {address}, {self.vectors[param] - 1}")
            self.is_aligned[param] = w.line("whole", f"icmp eq i64 {rest}, 0")

    def write(self, w: BlockWriter, store: UOp) -> None:
        """if aligned: all stores of the run, non-temporal; else all of them, plain"""
        run, param = self.runs[store], _non_temporal_target(store)
        if not run or param is None:
            return
        label = w.fresh("stream")
        w.do(f"br i1 {self.is_aligned[param]}, label %{label}, label %{label}.near")
        for block, is_streamed in ((label, True), (f"{label}.near", False)):
            w.start_block(block)
            for one in run:
                w.do(_stored(w, one, is_streamed))
            w.do(f"br label %{label}.done")
        w.start_block(f"{label}.done")


def _stored(w: BlockWriter, store: UOp, is_streamed: bool) -> str:
    index, value = store.src
    text = f"store {memory_type(value.dtype)} {w.name(value)}, ptr {w.name(index)}"
    if is_streamed:
        return f"{text}, align {value.dtype.itemsize}, !nontemporal !0"
    return f"{text}, align {value.dtype.scalar.itemsize}"


def _non_temporal_target(uop: UOp) -> UOp | None:
    """The PARAM of a NON_TEMPORAL store."""
    if uop.arg is not NON_TEMPORAL:
        return None
    node = uop.src[0]
    while node.src:
        node = node.src[0]
    return node
