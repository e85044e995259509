"""Loops, accumulators, gates, memory and vectors of hand-written programs run correctly."""

import numpy as np
import pytest
from support.compiler.hand_programs import (
    I64,
    Lines,
    address,
    elementwise,
    integer,
    load,
    source_of,
    splat,
)
from support.compiler.on_cpu import cpu

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Program, Target
from glassgrad.ir.uop import UOp
from glassgrad.render import render
from glassgrad.render.llvm import LLVMRenderer

F32 = dtypes.float32
RANDOM = np.random.default_rng(0)


def run(program: Program, *arrays: np.ndarray, values: tuple[int, ...] = ()) -> None:
    cpu().compile(source_of(program))(tuple(map(address, arrays)), values)


def zero(count: int = 1) -> UOp:
    return UOp(Ops.CONST, F32.vec(count), (), 0.0)


def test_a_program_is_this_text() -> None:
    program = elementwise(lambda x, y: x + y, [F32, F32], F32, 32, width=8)
    text = LLVMRenderer().render("add", program.uops)
    assert (
        text
        == """\
define void @"add"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 0
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 1
  %param1 = load ptr, ptr %slot1, align 8
  %slot2 = getelementptr i64, ptr %args, i64 2
  %param2 = load ptr, ptr %slot2, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %loop0 ]
  %at0 = phi ptr [ %param1, %entry ], [ %at3, %loop0 ]
  %at1 = phi ptr [ %param2, %entry ], [ %at4, %loop0 ]
  %at2 = phi ptr [ %param0, %entry ], [ %at5, %loop0 ]
  %load0 = load <8 x float>, ptr %at0, align 4
  %load1 = load <8 x float>, ptr %at1, align 4
  %add0 = fadd <8 x float> %load0, %load1
  store <8 x float> %add0, ptr %at2, align 4
  %at3 = getelementptr float, ptr %at0, i64 8
  %at4 = getelementptr float, ptr %at1, i64 8
  %at5 = getelementptr float, ptr %at2, i64 8
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 4
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
"""
    )


def test_a_sum_is_a_phi() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    acc = lines.acc(zero())
    loop = lines.loop(0, 100)
    lines.assign(acc, lines.add(acc + load(x.index(loop))))
    end = lines.end(loop)
    lines.store(out.index(integer(0)), lines.after(acc, end))
    program = lines.program()
    assert "phi float [ 0x0000000000000000, %entry ]" in source_of(program).text
    data, got = RANDOM.random(100, np.float32), np.zeros(1, np.float32)
    run(program, got, data)
    assert got[0] == np.add.accumulate(data)[-1]


def test_accumulators_survive_nested_loops_and_restart_outside() -> None:
    """out[i] = sum over j, k of x[i, j, k]; total = sum of everything, as vectors of 4."""
    rows, columns, depth = 3, 5, 4
    lines = Lines()
    out, total, x = lines.param(0, F32), lines.param(1, F32), lines.param(2, F32)
    everything = lines.acc(zero(4), 0)
    i = lines.loop(0, rows)
    row = lines.acc(zero(4), 1)
    j = lines.loop(1, columns)
    k = lines.loop(2, depth)
    place = lines.add(((i * integer(columns) + j) * integer(depth) + k) * integer(4))
    value = lines.add(load(x.index(place), 4))
    lines.assign(row, lines.add(row + value))
    lines.end(k)
    inner = lines.end(j)
    found = lines.after(row, inner)
    lines.store(out.index(lines.add(i * integer(4))), found)
    lines.assign(everything, lines.add(everything + found))
    outer = lines.end(i)
    lines.store(total.index(integer(0)), lines.after(everything, outer))
    data = RANDOM.integers(0, 9, (rows, columns, depth, 4)).astype(np.float32)
    sums, total = np.zeros((rows, 4), np.float32), np.zeros(4, np.float32)
    run(lines.program(), sums, total, data)
    assert np.array_equal(sums, data.sum((1, 2)))
    assert np.array_equal(total, data.sum((0, 1, 2)))


def test_a_loop_of_variable_size_may_run_zero_times() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    size = lines.add(UOp(Ops.VARIABLE, I64, (), ("n", 0, 100)))
    scale = lines.add(UOp(Ops.VARIABLE, dtypes.int32, (), ("a", 0, 100)))
    acc = lines.acc(UOp(Ops.CONST, F32, (), 7.0))
    loop = lines.loop(0, size)
    lines.assign(acc, lines.add(acc + load(x.index(loop))))
    end = lines.end(loop)
    lines.store(out.index(integer(0)), lines.after(acc, end) * scale.cast(F32))
    execute = cpu().compile(source_of(lines.program()))
    data, got = np.arange(100, dtype=np.float32), np.zeros(1, np.float32)
    for count in (0, 1, 10):
        execute((address(got), address(data)), (2, count))  # ordered by name: a, n
        assert got[0] == 2 * (7 + data[:count].sum())


def shifted(width: int, per_lane: bool) -> Program:
    """out[i] = x[i - 3] if i >= 3 else 0, stored only where i < 13; 16 elements."""
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    step = lines.loop(0, 16 // width)
    base = lines.add(step * integer(width))
    if per_lane and width > 1:
        numbers = tuple(integer(lane) for lane in range(width))
        lane = UOp(Ops.STACK, I64.vec(width), numbers) + splat(base, width)
    else:
        lane = base
    can_load = lane.const_like(2) < lane
    can_store = lane < 13
    value = lines.add(load(x.index(lines.add(base - integer(3)), gate=can_load), width))
    lines.store(out.index(base, gate=can_store), value)
    lines.end(step)
    return lines.program()


@pytest.mark.parametrize("width", [1, 4, 8])
def test_false_gates_load_zero_and_store_nothing(width: int) -> None:
    x, got = np.arange(1, 17, dtype=np.float32), np.full(16, -1, np.float32)
    run(shifted(width, per_lane=True), got, x)
    want = np.where(np.arange(16) >= 3, np.roll(x, 3), 0)
    assert np.array_equal(got[:13], want[:13])
    assert (got[13:] == -1).all()


def test_a_scalar_gate_is_a_select_and_a_lane_gate_a_masked_load() -> None:
    scalar, lanes = (source_of(shifted(4, per_lane)).text for per_lane in (False, True))
    assert "ptr @zeros" in scalar and "masked.load" not in scalar
    assert "@llvm.masked.load.v4f32.p0" in lanes and "@llvm.masked.store.v4f32.p0" in lanes


def test_a_false_condition_skips_its_body() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    acc = lines.acc(zero())
    loop = lines.loop(0, 10)
    value = lines.add(load(x.index(loop)))
    condition = lines.add(UOp(Ops.IF, dtypes.void, (lines.add(value < 5.0),)))
    lines.assign(acc, lines.add(acc + value))
    lines.store(out.index(loop), value)
    lines.add(UOp(Ops.ENDIF, dtypes.void, (condition,)))
    end = lines.end(loop)
    lines.store(out.index(integer(10)), lines.after(acc, end))
    x_data = np.arange(10, dtype=np.float32)[::-1].copy()
    got = np.full(11, -1, np.float32)
    run(lines.program(), got, x_data)
    assert np.array_equal(got[:10], np.where(x_data < 5, x_data, -1))
    assert got[10] == 10


def test_bools_are_bytes_in_memory() -> None:
    lines = Lines()
    out, x = lines.param(0, dtypes.bool), lines.param(1, dtypes.bool)
    loop = lines.loop(0, 2)
    place = lines.add(loop * integer(4))
    flags = lines.add(load(x.index(place), 4))
    lines.store(out.index(place), flags.ne(flags.const_like(True)))
    lines.end(loop)
    x_data = np.array([0, 1, 2, 255, 0, 0, 1, 1], np.uint8)  # any nonzero byte is true
    got = np.full(8, 9, np.uint8)
    run(lines.program(), got, x_data)
    assert got.tolist() == [1, 0, 0, 0, 1, 1, 0, 0]


def test_vectors_are_built_from_scalars_and_extracted() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    scalars = [lines.add(load(x.index(integer(i)))) for i in (3, 1, 2, 0)]
    vector = lines.add(UOp(Ops.STACK, F32.vec(4), tuple(scalars)))
    same = lines.add(splat(scalars[0], 4))
    constants = tuple(UOp(Ops.CONST, F32, (), float(i)) for i in range(4))
    lines.store(out.index(integer(0)), vector + same)
    lines.store(out.index(integer(4)), UOp(Ops.GEP, F32, (vector,), 1))
    lines.store(out.index(integer(5)), UOp(Ops.STACK, F32.vec(4), constants))
    got = np.zeros(9, np.float32)
    run(lines.program(), got, np.array([10, 20, 30, 40], np.float32))
    assert got.tolist() == [80, 60, 70, 50, 20, 0, 1, 2, 3]


def test_chains_of_indices_advance_pointers_into_scratch() -> None:
    lines = Lines()
    out, x = lines.param(0, dtypes.int32), lines.param(1, dtypes.int32)
    room = lines.add(UOp(Ops.SCRATCH, dtypes.int32, (), (0, 8, 64)))
    loop = lines.loop(0, 8)
    lines.store(room.index(loop), load(x.index(integer(8)).index(loop)))
    end = lines.end(loop)
    back = lines.loop(1, 8)
    filled = lines.after(room, end)
    reverse = lines.add(integer(7) - back)
    lines.store(out.index(back), load(filled.index(reverse)))
    lines.end(back)
    got = np.zeros(8, np.int32)
    run(lines.program(scratch_bytes=64 + 32), got, np.arange(16, dtype=np.int32))
    assert got.tolist() == list(range(15, 7, -1))


def test_the_core_loop_runs_from_begin_to_end() -> None:
    lines = Lines()
    out = lines.param(0, I64)
    core = lines.loop(0, 10, AxisKind.CORE)
    lines.store(out.index(core), core + integer(1))
    lines.end(core)
    text = source_of(lines.program(cores=10)).text
    assert "phi i64 [ %begin, %entry ]" in text
    got = np.zeros(10, np.int64)
    run(lines.program(cores=10), got)
    assert got.tolist() == list(range(1, 11))


def test_only_innermost_loops_are_aligned() -> None:
    lines = Lines()
    out = lines.param(0, I64)
    outer = lines.loop(0, 3)
    for number in (1, 2):
        inner = lines.loop(number, 5)
        lines.store(out.index(inner), outer)
        lines.end(inner)
    lines.end(outer)
    text = source_of(lines.program()).text
    assert text.count("!llvm.loop !") == 2
    assert text.endswith("!2 = distinct !{!2, !1}\n!3 = distinct !{!3, !1}\n")


def test_an_unknown_language_is_an_error_that_lists_the_known() -> None:
    from glassgrad.base.errors import DeviceError

    program = elementwise(lambda x: x, [F32], F32, 8)
    with pytest.raises(DeviceError, match="llvm"):
        render(program, Target("X", "fortran"))


def test_nan_propagates_through_max_and_min_from_either_side() -> None:
    x = np.array([1, np.nan, np.nan, 2], np.float32)
    y = np.array([np.nan, 1, np.nan, 3], np.float32)
    program = elementwise(lambda a, b: a.maximum(b), [F32, F32], F32, 4, 4)
    got = np.zeros(4, np.float32)
    run(program, got, x, y)
    assert np.isnan(got[:3]).all() and got[3] == 3
