"""Schedule -> NumPy arrays: every kernel walks the road to one device and runs there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glassgrad.devices.protocol import Device
from glassgrad.engine.pipeline import write_source
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.schedule import base_buffer, schedule
from support.references.graph import Array, numpy_dtype


def run_on(device: Device, roots: Sequence[UOp]) -> list[Array]:
    """The values of these nodes, computed by a device from copies of their buffers."""
    made = schedule(roots, device.target)
    memory: dict[UOp, Array] = {}
    for kernel, slots in zip(made.kernels, made.buffers, strict=True):
        executable = device.compile(write_source(kernel, device.target))
        arrays = [_memory(memory, node) for node in slots]
        executable(tuple([View.from_host(array).address for array in arrays]))
    return [_memory(memory, output).reshape(output.shape) for output in made.outputs]


def _memory(memory: dict[UOp, Array], node: UOp) -> Array:
    base = base_buffer(node)
    if base not in memory:
        is_buffer = base.op is Ops.BUFFER
        empty = np.zeros(base.shape, numpy_dtype(base.dtype))
        memory[base] = np.array(base.arg.numpy()) if is_buffer else empty
    return memory[base]
