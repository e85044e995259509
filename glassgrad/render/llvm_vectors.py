"""STACK, GEP, SHUFFLE -> LLVM: vectors built from scalars, their elements, and shuffles."""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_values import Row, Writer, llvm_type


def _stack(w: Writer, u: UOp) -> str:
    kind, scalar, count = llvm_type(u.dtype), llvm_type(u.dtype.scalar), u.dtype.count
    if all(source.is_const for source in u.src):
        return f"<{', '.join(f'{scalar} {w.name(source)}' for source in u.src)}>"
    vector = _shuffled_vector(u)
    if vector is not None:
        return _shuffle(w, u, vector)
    if all(source is u.src[0] for source in u.src):
        one = w.line("splat", f"insertelement {kind} poison, {scalar} {w.name(u.src[0])}, i64 0")
        lanes = f"<{count} x i32> zeroinitializer"
        return w.line("splat", f"shufflevector {kind} {one}, {kind} poison, {lanes}")
    vector_so_far = "poison"
    for lane, source in enumerate(u.src):
        element = f"{scalar} {w.name(source)}"
        vector_so_far = w.line(
            "stack", f"insertelement {kind} {vector_so_far}, {element}, i64 {lane}"
        )
    return vector_so_far


def is_shuffle(u: UOp) -> bool:
    """True if a STACK reorders the elements of one vector."""
    return _shuffled_vector(u) is not None


def _shuffled_vector(u: UOp) -> UOp | None:
    """The vector whose elements a STACK reorders, apart from constants."""
    vectors = {source.src[0] for source in u.src if source.op is Ops.GEP}
    known = all(source.op is Ops.GEP or source.is_const for source in u.src)
    vector = vectors.pop() if known and len(vectors) == 1 else None
    return vector if vector is not None and vector.dtype is u.dtype else None


def _shuffle(w: Writer, u: UOp, vector: UOp) -> str:
    kind, scalar, count = llvm_type(u.dtype), llvm_type(u.dtype.scalar), u.dtype.count
    numbers = [f"{scalar} {w.name(s) if s.is_const else 'poison'}" for s in u.src]
    lanes = [count + i if s.is_const else s.arg for i, s in enumerate(u.src)]
    order = f"<{count} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"
    rest = f"{kind} <{', '.join(numbers)}>"
    return w.line("shuffle", f"shufflevector {kind} {w.name(vector)}, {rest}, {order}")


def _shuffled(w: Writer, u: UOp) -> str:
    kind, (one, two) = llvm_type(u.dtype), u.src
    order = f"<{len(u.arg)} x i32> <{', '.join(f'i32 {lane}' for lane in u.arg)}>"
    vectors = f"{kind} {w.name(one)}, {kind} {w.name(two)}"
    return w.line("shuffle", f"shufflevector {vectors}, {order}")


def _gep(w: Writer, u: UOp) -> str:
    source = u.src[0]
    kind = llvm_type(source.dtype)
    return w.line("lane", f"extractelement {kind} {w.name(source)}, i64 {u.arg}")


VECTORS: dict[Ops, Row] = {Ops.STACK: _stack, Ops.GEP: _gep, Ops.SHUFFLE: _shuffled}
