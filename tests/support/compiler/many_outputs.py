"""One program for many functions: a C compiler takes long to start, the interpreter does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glassgrad.base.dtype import DType
from glassgrad.devices.protocol import Device
from glassgrad.ir.stages import Program
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import numpy_dtype
from glassgrad.render import render
from support.compiler.hand_programs import Lines, address, integer, load

Function = tuple[Callable[..., UOp], DType]  # of vectors, and the dtype of its result


def program_of(
    functions: Sequence[Function], sources: Sequence[DType], size: int, width: int
) -> Program:
    """out_k[i] = function_k(a[i], b[i], …), `width` elements at a time."""
    lines = Lines()
    outs = [lines.param(slot, dtype, size) for slot, (_, dtype) in enumerate(functions)]
    ins = [lines.param(len(outs) + slot, dtype, size) for slot, dtype in enumerate(sources)]
    loop = lines.loop(0, size // width)
    place = lines.add(loop * integer(width))
    values = [lines.add(load(buffer.index(place), width)) for buffer in ins]
    for out, (function, _) in zip(outs, functions, strict=True):
        lines.store(out.index(place), function(*values))
    lines.end(loop)
    return lines.program("many")


def apply_all(
    device: Device,
    functions: Sequence[Function],
    arrays: Sequence[np.ndarray],
    sources: Sequence[DType],
    width: int,
) -> list[np.ndarray]:
    """Every function of the arrays' elements; arrays are repeated to fit the width."""
    size = -(-len(arrays[0]) // width) * width
    padded = [np.resize(array, size) for array in arrays]
    outs = [np.zeros(size, numpy_dtype(dtype)) for _, dtype in functions]
    program = program_of(functions, sources, size, width)
    execute = device.compile(render(program, device.target))
    execute(tuple(map(address, (*outs, *padded))))
    return [out[: len(arrays[0])] for out in outs]
