"""The CLANG device: C compiled by this machine's compiler agrees with the CPU device."""

import shutil
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support.compiler.hand_programs import Lines, address, elementwise, integer
from support.compiler.on_device import realize_on
from support.random.graphs import describe, differences, random_graph
from support.references.graph import evaluate_all

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CompileError, DeviceError
from glassgrad.base.events import Event, KernelCompiled, listen
from glassgrad.devices.clang.device import COMPILERS, ClangDevice, find_compiler, load_library
from glassgrad.devices.protocol import Call, Device
from glassgrad.devices.registry import Registry
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Source
from glassgrad.ir.uop import UOp
from glassgrad.render import render

F32 = dtypes.float32
has_compiler = any(shutil.which(name) for name in COMPILERS)
needs_compiler = pytest.mark.skipif(not has_compiler, reason="no C compiler is installed")


@pytest.fixture(scope="module")
def device() -> ClangDevice:
    return ClangDevice()


@needs_compiler
def test_an_addition_runs_on_all_cores_and_lanes(device: ClangDevice) -> None:
    size = 1 << 14
    program = elementwise(lambda x, y: x + y, [F32, F32], F32, size, width=8, cores=16)
    x, y = (np.random.default_rng(i).random(size, np.float32) for i in range(2))
    out = np.zeros(size, np.float32)
    execute = device.compile(render(program, device.target))
    execute((address(out), address(x), address(y)))
    assert np.array_equal(out, x + y)
    batch = device.prepare([Call(execute, (address(out), address(x), address(x)))])
    batch.run()
    assert np.array_equal(out, x + x)
    device.run([Call(execute, (address(out), address(y), address(y)))])
    device.synchronize()
    assert np.array_equal(out, y + y)


@needs_compiler
def test_it_is_a_device_of_the_registry(device: ClangDevice) -> None:
    as_device: Device = device
    assert as_device.target.language == "c" and as_device.target.name == "CLANG"
    assert isinstance(Registry()["clang:1"], ClangDevice)
    assert "CLANG" in list(Registry().get_available_devices())


@needs_compiler
def test_gated_lanes_and_variables_are_respected(device: ClangDevice) -> None:
    lines = Lines()
    out, x = lines.param(0, F32, 8), lines.param(1, F32, 4)
    size = lines.add(UOp(Ops.VARIABLE, dtypes.int64, (), ("n", 0, 4)))
    numbers = UOp(Ops.STACK, dtypes.int64.vec(4), tuple(integer(i) for i in range(4)))
    most = UOp(Ops.STACK, dtypes.int64.vec(4), (size,) * 4)
    gate = lines.add(numbers < most)
    some = lines.add(UOp(Ops.LOAD, F32.vec(4), (x.index(integer(0), gate=gate),)))
    lines.store(out.index(integer(0)), some)
    lines.store(out.index(integer(4), gate=gate), some)
    execute = device.compile(render(lines.program(), device.target))
    result, given = np.full(8, 9, np.float32), np.arange(1, 5, dtype=np.float32)
    execute((address(result), address(given)), (3,))
    assert result.tolist() == [1, 2, 3, 0, 1, 2, 3, 9]


@needs_compiler
def test_compiling_is_announced_and_cached(device: ClangDevice, tmp_path: Path) -> None:
    seen: list[Event] = []
    program = elementwise(lambda x: x * 3.25, [F32], F32, 24)
    source = render(program, device.target)
    with listen(seen.append), Context(CACHE=str(tmp_path), CACHELEVEL=1):
        device.compile(source)
        device.compile(source)
    first, again = (event for event in seen if isinstance(event, KernelCompiled))
    assert first.source is source and not first.cached and again.cached


@needs_compiler
def test_a_damaged_entry_is_compiled_again(device: ClangDevice, tmp_path: Path) -> None:
    source = render(elementwise(lambda x: -x, [F32], F32, 8), device.target)
    with Context(CACHE=str(tmp_path), CACHELEVEL=1):
        device.compile(source)
        (file,) = tmp_path.glob("objects/*/*")
        file.write_bytes(b"rubbish")
        assert device.compile(source).address


@needs_compiler
def test_errors_of_the_c_compiler_are_shown(device: ClangDevice) -> None:
    program = elementwise(lambda x: x, [F32], F32, 8)
    with pytest.raises(CompileError, match=r"failed to compile a kernel[\s\S]*this is no C"):
        device.compile(Source("broken", "this is no C", "c", program))


def test_invalid_libraries_are_an_error() -> None:
    with pytest.raises(CompileError, match="cannot be loaded"):
        load_library(b"this is no library")


def test_a_missing_compiler_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="needs a C compiler") as caught:
        find_compiler(str(tmp_path))
    assert "install clang or gcc" in str(caught.value)


@needs_compiler
def test_many_kernels_are_loaded_and_unloaded(device: ClangDevice) -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for number in range(5):
        program = elementwise(lambda v, n=number: v + float(n), [F32], F32, 8)
        device.compile(render(program, device.target))((address(out), address(x)))
        assert np.array_equal(out, x + np.float32(number))


@needs_compiler
def test_tensors_can_use_the_device() -> None:
    x = Tensor([[1.0, -2.0], [3.0, 4.0]], device="CLANG")
    assert (x @ x).relu().sum(0).tolist() == [15.0, 10.0]


@needs_compiler
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_graphs_agree_with_numpy(device: ClangDevice, first: int) -> None:
    for seed in range(first, first + 10):
        roots = random_graph(Random(seed), 14, numel=256)
        want = evaluate_all(roots)
        assert not differences(roots, realize_on(device, roots), want), describe(roots)
