"""INDEX, LOAD, STORE -> LLVM: addresses, loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import NON_TEMPORAL, Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_non_temporal import BlockWriter, NonTemporalStores
from glassgrad.render.llvm_values import constant, llvm_type, mangled_type, memory_type

ZERO_BYTES = 64  # read by loads whose gate is false; wider loads enlarge it


class MemoryWriter(BlockWriter, Protocol):
    """What these rows need besides."""

    names: dict[UOp, str]
    zero_bytes: int
    non_temporal: NonTemporalStores


MemoryRow = Callable[[MemoryWriter, UOp], str]


def _index(w: MemoryWriter, u: UOp) -> str:
    if u in w.names:  # advances with its loop
        return w.names[u]
    base, index = u.src[0], u.src[1]
    element, kind = memory_type(u.dtype.scalar), llvm_type(index.dtype)
    return w.line("at", f"getelementptr {element}, ptr {w.name(base)}, {kind} {w.name(index)}")


def _load(w: MemoryWriter, u: UOp) -> str:
    index = u.src[0]
    gate, pointer = index.gate, w.name(index)
    kind, align = memory_type(u.dtype), u.dtype.scalar.itemsize
    if gate is not None and gate.dtype.count > 1:
        loaded = w.line("load", _masked_load(w, kind, pointer, align, gate))
    else:
        if gate is not None:  # loading from a block of zeros is cheaper than a branch
            w.zero_bytes = max(w.zero_bytes, ZERO_BYTES, u.dtype.itemsize)
            pointer = w.line("at", f"select i1 {w.name(gate)}, ptr {pointer}, ptr @zeros")
        loaded = w.line("load", f"load {kind}, ptr {pointer}, align {align}")
    if u.dtype.kind != "bool":
        return loaded
    return w.line(
        "load", f"icmp ne {kind} {loaded}, {constant(0, dtypes.uint8.vec(u.dtype.count))}"
    )


def _masked_load(w: MemoryWriter, kind: str, pointer: str, align: int, gate: UOp) -> str:
    name = f"masked.load.{mangled_type(kind)}.p0"
    mask = f"{llvm_type(gate.dtype)} {w.name(gate)}"
    return w.intrinsic(
        kind, name, f"ptr {pointer}", f"i32 {align}", mask, f"{kind} zeroinitializer"
    )


def _store(w: MemoryWriter, u: UOp) -> str:
    index, value = u.src[0], u.src[1]
    gate, pointer, name = index.gate, w.name(index), w.name(value)
    kind, align = memory_type(value.dtype), value.dtype.scalar.itemsize
    if value.dtype.kind == "bool":
        name = w.line("byte", f"zext {llvm_type(value.dtype)} {name} to {kind}")
    if u.arg is NON_TEMPORAL:
        w.non_temporal.write(w, u)
    elif gate is None:
        w.do(f"store {kind} {name}, ptr {pointer}, align {align}")
    elif gate.dtype.count > 1:
        _masked_store(w, kind, name, pointer, align, gate)
    else:
        label = w.fresh("store")
        w.do(f"br i1 {w.name(gate)}, label %{label}, label %{label}.done")
        w.start_block(label)
        w.do(f"store {kind} {name}, ptr {pointer}, align {align}")
        w.do(f"br label %{label}.done")
        w.start_block(f"{label}.done")
    return ""


def _masked_store(
    w: MemoryWriter, kind: str, name: str, pointer: str, align: int, gate: UOp
) -> None:
    """Masked stores can be ten times slower, and most vectors are fully inside: branch on that."""
    flags, count, label = llvm_type(gate.dtype), gate.dtype.count, w.fresh("store")
    bits = w.line("bits", f"bitcast {flags} {w.name(gate)} to i{count}")
    every = w.line("every", f"icmp eq i{count} {bits}, -1")
    w.do(f"br i1 {every}, label %{label}, label %{label}.some")
    w.start_block(label)
    w.do(f"store {kind} {name}, ptr {pointer}, align {align}")
    w.do(f"br label %{label}.done")
    w.start_block(f"{label}.some")
    arguments = f"{kind} {name}", f"ptr {pointer}", f"i32 {align}", f"{flags} {w.name(gate)}"
    w.do(w.intrinsic("void", f"masked.store.{mangled_type(kind)}.p0", *arguments))
    w.do(f"br label %{label}.done")
    w.start_block(f"{label}.done")


def _prefetch(w: MemoryWriter, u: UOp) -> str:
    """Prefetch data into L1."""
    arguments = f"ptr {w.name(u.src[0])}", f"i32 {int(u.arg)}", "i32 3", "i32 1"
    w.do(w.intrinsic("void", "prefetch.p0", *arguments))
    return ""


MEMORY: dict[Ops, MemoryRow] = {
    Ops.INDEX: _index,
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.PREFETCH: _prefetch,
}
