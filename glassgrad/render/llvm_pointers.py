"""Program -> pointers that walk: what a loop adds to an address, it adds once per step.

`base + i·stride` in a loop over i becomes a pointer that starts at base and moves by stride. LLVM
has a pass that finds this out for itself, which takes a third of the time of compiling; here it is
known from the start, so that pass is left out (devices/cpu/native.py).
"""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_values import Writer, llvm_type, memory_type

RANGE, INDEX, MUL, SHL = Ops.RANGE, Ops.INDEX, Ops.MUL, Ops.SHL
MOST = 6  # each has a register; where there are more, they share the one that counts

Steps = dict[UOp, int]  # INDEX -> how many elements further it is after each step of a loop


def walking(uops: tuple[UOp, ...]) -> dict[UOp, Steps]:
    """For every loop: the places that move by a constant, from a place known before it."""
    found: dict[UOp, Steps] = {}
    before = {uop: number for number, uop in enumerate(uops)}
    for uop in uops:
        if uop.op is RANGE:
            found[uop] = {}
        elif uop.op is INDEX and (step := _step(uop.src[1])):
            loop = uop.src[1].src[0]
            if before[uop.src[0]] < before[loop]:
                found[loop][uop] = step
    return {loop: steps for loop, steps in found.items() if 0 < len(steps) <= MOST}


def _step(place: UOp) -> int:
    """How much a product with a loop's number grows in each step; 0 for anything else."""
    if place.op not in (MUL, SHL) or place.src[0].op is not RANGE or not place.src[1].is_const:
        return 0
    amount = int(place.src[1].arg)
    return amount if place.op is MUL else 1 << amount


def start_of(w: Writer, index: UOp, step: int, first: str) -> str:
    """Where a pointer stands before its loop, which counts from `first`."""
    base, kind = w.name(index.src[0]), llvm_type(index.src[1].dtype)
    if first == "0":
        return base
    away = w.line("mul", f"mul {kind} {first}, {step}")
    return w.line(
        "at", f"getelementptr {memory_type(index.dtype.scalar)}, ptr {base}, {kind} {away}"
    )


def further(w: Writer, index: UOp, step: int) -> str:
    """Where a pointer stands in the next step."""
    element = memory_type(index.dtype.scalar)
    return w.line("at", f"getelementptr {element}, ptr {w.name(index)}, i64 {step}")
