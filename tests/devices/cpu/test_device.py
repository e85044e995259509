"""The CPU device compiles sources and runs calls."""

from pathlib import Path

import numpy as np
from support.compiler.hand_programs import address, elementwise, source_of
from support.compiler.on_cpu import cpu

from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.base.events import Event, KernelCompiled, listen
from glassgrad.devices.cpu.device import CpuDevice
from glassgrad.devices.protocol import Batch, Call, Device
from glassgrad.ir.stages import Executable
from glassgrad.memory.allocator import HOST

F32 = dtypes.float32


def test_an_addition_runs_on_all_cores_and_lanes() -> None:
    size = 1 << 14
    program = elementwise(lambda x, y: x + y, [F32, F32], F32, size, width=8, cores=16)
    x, y = (np.random.default_rng(i).random(size, np.float32) for i in range(2))
    out = np.zeros(size, np.float32)
    device = cpu()
    execute = device.compile(source_of(program))
    execute((address(out), address(x), address(y)))
    assert np.array_equal(out, x + y)
    out[:] = 0
    device.run([Call(execute, (address(out), address(x), address(y)))])
    device.synchronize()
    assert np.array_equal(out, x + y)
    batch = device.prepare([Call(execute, (address(out), address(x), address(x)))])
    batch.run()
    assert np.array_equal(out, x + x)


def test_it_is_a_device() -> None:
    device: Device = CpuDevice("CPU:1")
    assert device.name == "CPU:1"
    assert device.target.language == "llvm"
    source = source_of(elementwise(lambda x: x, [F32], F32, 8))
    execute: Executable = device.compile(source)
    assert execute.address and execute.source is source
    batch: Batch = device.prepare([])
    batch.run()
    assert cpu().allocator is HOST


def test_compiling_is_announced(tmp_path: Path) -> None:
    seen: list[Event] = []
    source = source_of(elementwise(lambda x: x * 3.25, [F32], F32, 24))
    with listen(seen.append), Context(CACHE=str(tmp_path), CACHELEVEL=1):
        cpu().compile(source)
        cpu().compile(source)
    first, again = (event for event in seen if isinstance(event, KernelCompiled))
    assert first.source is source and not first.cached and again.cached


def test_assembly_can_be_printed() -> None:
    execute = cpu().compile(source_of(elementwise(lambda x: -x, [F32], F32, 8, width=8)))
    assert "elementwise:" in execute.assembly()


def test_many_kernels_are_loaded_and_unloaded() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for number in range(30):
        program = elementwise(lambda v, n=number: v + float(n), [F32], F32, 8)
        cpu().compile(source_of(program))((address(out), address(x)))
        assert np.array_equal(out, x + np.float32(number))
