"""A Program that uses only some of its Kernel's arguments -> one that declares all of them.

A launch passes the Kernel's arguments: an address per slot, then the values of variables by name.
Simplification may drop uses of an argument, but must not shift the others.
"""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Param, Program
from glassgrad.ir.uop import UOp

PARAM, VARIABLE, CHECK = Ops.PARAM, Ops.VARIABLE, Ops.CHECK


def with_all_arguments(program: Program, kernel: Kernel) -> Program:
    """The program with a PARAM for every slot, and every VARIABLE."""
    there = {_name(uop) for uop in program.uops if uop.op in (PARAM, VARIABLE)}
    missing = {name: uop for uop in _arguments(kernel) if (name := _name(uop)) not in there}
    return replace(program, uops=(*missing.values(), *program.uops)) if missing else program


def _arguments(kernel: Kernel) -> list[UOp]:
    found = []
    for uop in kernel.body.toposort():
        if uop.op is PARAM:
            found.append(uop)
        elif uop.op is VARIABLE:
            found.append(uop.replace(dtype=dtypes.int64))
        elif uop.op is CHECK:  # reports to a slot of its own
            found.append(UOp(PARAM, dtypes.int64, (), Param(uop.arg[1], (1,), (1,))))
    return found


def _name(argument: UOp) -> tuple[Ops, int | str]:
    return argument.op, argument.arg.slot if argument.op is PARAM else argument.arg[0]
