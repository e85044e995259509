"""Program -> induction pointers: an address that depends on a loop advances once per iteration.

`base + i·stride` in a loop over i becomes a pointer that starts at base and advances by stride.
LLVM has a pass for this, loop strength reduction, which takes a third of the compile time; here the
strides are known, so the pass is disabled (devices/cpu/llvm.py).
"""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_values import Writer, llvm_type, memory_type

RANGE, INDEX, MUL, SHL = Ops.RANGE, Ops.INDEX, Ops.MUL, Ops.SHL
MAX_ADVANCING = 6  # per loop, as each takes a register; beyond, they share the loop counter

Steps = dict[UOp, int]  # INDEX -> elements that it advances per iteration


def advancing_indices(uops: tuple[UOp, ...]) -> dict[UOp, Steps]:
    """For every loop: the INDEXes that advance by a constant from a base before the loop."""
    found: dict[UOp, Steps] = {}
    before = {uop: number for number, uop in enumerate(uops)}
    for uop in uops:
        if uop.op is RANGE:
            found[uop] = {}
        elif uop.op is INDEX and (step := _step(uop.src[1])):
            loop = uop.src[1].src[0]
            if before[uop.src[0]] < before[loop]:
                found[loop][uop] = step
    return {loop: steps for loop, steps in found.items() if 0 < len(steps) <= MAX_ADVANCING}


def _step(offset: UOp) -> int:
    """The growth per iteration of a product with a loop counter; 0 for anything else."""
    if offset.op not in (MUL, SHL) or offset.src[0].op is not RANGE or not offset.src[1].is_const:
        return 0
    amount = int(offset.src[1].arg)
    return amount if offset.op is MUL else 1 << amount


def start_pointer(w: Writer, index: UOp, step: int, first: str) -> str:
    """The pointer before its loop, which counts from `first`."""
    base, kind = w.name(index.src[0]), llvm_type(index.src[1].dtype)
    if first == "0":
        return base
    distance = w.line("mul", f"mul {kind} {first}, {step}")
    return w.line(
        "at", f"getelementptr {memory_type(index.dtype.scalar)}, ptr {base}, {kind} {distance}"
    )


def next_pointer(w: Writer, index: UOp, step: int) -> str:
    """The pointer in the next iteration."""
    element = memory_type(index.dtype.scalar)
    return w.line("at", f"getelementptr {element}, ptr {w.name(index)}, i64 {step}")
