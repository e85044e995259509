"""INDEX, LOAD, STORE -> LLVM: places in memory, what is there, and what goes there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import NON_TEMPORAL, Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_streaming import Blocks, Streams
from glassgrad.render.llvm_values import constant, llvm_type, memory_type, short_type

ZERO_BYTES = 64  # what a load reads whose gate is false; wider loads make it longer


class MemoryWriter(Blocks, Protocol):
    """What these rows need besides."""

    names: dict[UOp, str]
    zero_bytes: int
    streams: Streams


MemoryRow = Callable[[MemoryWriter, UOp], str]


def _index(w: MemoryWriter, u: UOp) -> str:
    if u in w.names:  # it walks
        return w.names[u]
    base, place = u.src[0], u.src[1]
    element, kind = memory_type(u.dtype.scalar), llvm_type(place.dtype)
    return w.line("at", f"getelementptr {element}, ptr {w.name(base)}, {kind} {w.name(place)}")


def _load(w: MemoryWriter, u: UOp) -> str:
    place = u.src[0]
    gate, pointer = place.gate, w.name(place)
    kind, align = memory_type(u.dtype), u.dtype.scalar.itemsize
    if gate is not None and gate.dtype.count > 1:
        loaded = w.line("load", _masked_load(w, kind, pointer, align, gate))
    else:
        if gate is not None:  # reading zeros elsewhere is cheaper than a branch
            w.zero_bytes = max(w.zero_bytes, ZERO_BYTES, u.dtype.itemsize)
            pointer = w.line("at", f"select i1 {w.name(gate)}, ptr {pointer}, ptr @zeros")
        loaded = w.line("load", f"load {kind}, ptr {pointer}, align {align}")
    if u.dtype.kind != "bool":
        return loaded
    return w.line(
        "load", f"icmp ne {kind} {loaded}, {constant(0, dtypes.uint8.vec(u.dtype.count))}"
    )


def _masked_load(w: MemoryWriter, kind: str, pointer: str, align: int, gate: UOp) -> str:
    name = f"masked.load.{short_type(kind)}.p0"
    mask = f"{llvm_type(gate.dtype)} {w.name(gate)}"
    return w.intrinsic(
        kind, name, f"ptr {pointer}", f"i32 {align}", mask, f"{kind} zeroinitializer"
    )


def _store(w: MemoryWriter, u: UOp) -> str:
    place, value = u.src[0], u.src[1]
    gate, pointer, name = place.gate, w.name(place), w.name(value)
    kind, align = memory_type(value.dtype), value.dtype.scalar.itemsize
    if value.dtype.kind == "bool":
        name = w.line("byte", f"zext {llvm_type(value.dtype)} {name} to {kind}")
    if u.arg is NON_TEMPORAL:
        w.streams.write(w, u)
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
    """Some machines take ten times as long with a mask, and most vectors lie inside."""
    flags, count, label = llvm_type(gate.dtype), gate.dtype.count, w.fresh("store")
    bits = w.line("bits", f"bitcast {flags} {w.name(gate)} to i{count}")
    every = w.line("every", f"icmp eq i{count} {bits}, -1")
    w.do(f"br i1 {every}, label %{label}, label %{label}.some")
    w.start_block(label)
    w.do(f"store {kind} {name}, ptr {pointer}, align {align}")
    w.do(f"br label %{label}.done")
    w.start_block(f"{label}.some")
    arguments = f"{kind} {name}", f"ptr {pointer}", f"i32 {align}", f"{flags} {w.name(gate)}"
    w.do(w.intrinsic("void", f"masked.store.{short_type(kind)}.p0", *arguments))
    w.do(f"br label %{label}.done")
    w.start_block(f"{label}.done")


def _prefetch(w: MemoryWriter, u: UOp) -> str:
    """Into the nearest cache, of data."""
    arguments = f"ptr {w.name(u.src[0])}", f"i32 {int(u.arg)}", "i32 3", "i32 1"
    w.do(w.intrinsic("void", "prefetch.p0", *arguments))
    return ""


MEMORY: dict[Ops, MemoryRow] = {
    Ops.INDEX: _index,
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.PREFETCH: _prefetch,
}
