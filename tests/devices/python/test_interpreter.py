"""Interpreted hand-written programs: loops, accumulators, lockstep threads, and errors."""

import numpy as np
import pytest
from support.compiler.hand_programs import I64, Lines, address, integer
from support.compiler.many_outputs import apply_all
from support.values.interesting import CASES, pairs, same

from glassgrad.base.dtype import DType, dtypes
from glassgrad.devices.python.device import PythonDevice
from glassgrad.devices.python.interpreter import ProgramRun
from glassgrad.devices.python.memory import AccessError
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import AxisKind, OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import numpy_dtype

F32 = dtypes.float32


def execute(lines: Lines, *arrays: np.ndarray, values: tuple[int, ...] = ()) -> None:
    ProgramRun(lines.program(), [address(array) for array in arrays], values).run()


def special(lines: Lines, name: str, size: int) -> UOp:
    return lines.add(UOp(Ops.SPECIAL, I64, (), (name, size)))


def scratch(lines: Lines, size: int, is_shared: bool) -> UOp:
    return lines.add(UOp(Ops.SCRATCH, F32, (), (0, size, 0, is_shared)))


def load(lines: Lines, coordinates_of_thread: UOp) -> UOp:
    return lines.add(UOp(Ops.LOAD, coordinates_of_thread.dtype, (coordinates_of_thread,)))


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint64, F32], ids=lambda d: d.name)
def test_ops_agree_with_fold_in_every_lane(dtype: DType) -> None:
    ops = [op for op, of in CASES if of is dtype]
    x, y = pairs(dtype)
    results = [dtypes.bool if op in OpGroup.COMPARISON else dtype for op in ops]
    functions = [
        (lambda *v, o=op: v[0].alu(o, *v[1 : o.arity]), result)
        for op, result in zip(ops, results, strict=True)
    ]
    found = apply_all(PythonDevice(), functions, [x, y], [dtype, dtype], 4)
    for op, result, got in zip(ops, results, found, strict=True):
        rows = zip(*(array.tolist() for array in (x, y)[: op.arity]), strict=True)
        same(got, np.array([fold(op, result, row, dtype) for row in rows], numpy_dtype(result)))


def test_a_register_keeps_its_value_through_a_loop() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32, 5)
    acc = lines.acc(UOp(Ops.CONST, F32, (), 0.5))
    size = lines.add(UOp(Ops.VARIABLE, I64, (), ("n", 0, 5)))
    loop = lines.loop(0, size)
    lines.assign(acc, lines.add(acc + load(lines, x.index(loop))))
    end = lines.end(loop)
    lines.store(out.index(integer(0)), lines.after(acc, end))
    result, given = np.zeros(1, np.float32), np.arange(5, dtype=np.float32)
    execute(lines, result, given, values=(4,))
    assert result[0] == 6.5


def test_a_condition_runs_its_body_at_most_once() -> None:
    lines = Lines()
    out = lines.param(0, F32, 4)
    loop = lines.loop(0, 4)
    small = lines.add(loop < integer(2))
    opened = lines.add(UOp(Ops.IF, dtypes.void, (small,)))
    lines.store(out.index(loop), UOp(Ops.CONST, F32, (), 7.0))
    lines.add(UOp(Ops.ENDIF, dtypes.void, (opened,)))
    lines.end(loop)
    result = np.zeros(4, np.float32)
    execute(lines, result)
    assert result.tolist() == [7, 7, 0, 0]


def reversed_through_scratch(has_barrier: bool) -> tuple[Lines, np.ndarray]:
    """Each thread stores its number and reads its opposite's."""
    lines = Lines()
    out = lines.param(0, F32, 8)
    group, thread = special(lines, "gidx0", 2), special(lines, "lidx0", 4)
    room = scratch(lines, 4, is_shared=True)
    number = lines.add((group * 4 + thread).cast(F32))
    done = lines.store(room.index(thread), number)
    if has_barrier:
        done = lines.add(UOp(Ops.BARRIER, dtypes.void, (done,)))
    seen = lines.after(room, done)
    other = load(lines, seen.index(integer(3) - thread))
    lines.store(out.index(group * 4 + thread), other)
    return lines, np.zeros(8, np.float32)


def test_threads_wait_for_each_other_at_a_barrier() -> None:
    lines, result = reversed_through_scratch(has_barrier=True)
    execute(lines, result)
    assert result.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_a_missing_barrier_is_found() -> None:
    lines, result = reversed_through_scratch(has_barrier=False)
    with pytest.raises(AccessError, match=r"before anything is stored|no barrier between"):
        execute(lines, result)


def test_a_barrier_that_some_threads_never_reach_is_found() -> None:
    lines = Lines()
    thread = special(lines, "lidx0", 4)
    opened = lines.add(UOp(Ops.IF, dtypes.void, (lines.add(thread < integer(2)),)))
    lines.add(UOp(Ops.BARRIER))
    lines.add(UOp(Ops.ENDIF, dtypes.void, (opened,)))
    with pytest.raises(AccessError, match="others never reach"):
        execute(lines)


def test_private_scratch_is_each_threads_own() -> None:
    lines = Lines()
    out = lines.param(0, F32, 4)
    thread = special(lines, "lidx0", 4)
    room = scratch(lines, 1, is_shared=False)
    done = lines.store(room.index(integer(0)), lines.add(thread.cast(F32)))
    barrier = lines.add(UOp(Ops.BARRIER, dtypes.void, (done,)))
    own = load(lines, lines.after(room, barrier).index(integer(0)))
    lines.store(out.index(thread), own)
    result = np.zeros(4, np.float32)
    execute(lines, result)
    assert result.tolist() == [0, 1, 2, 3]


def test_the_loop_over_cores_is_an_ordinary_loop() -> None:
    lines = Lines()
    out = lines.param(0, F32, 6)
    loop = lines.loop(0, 6, AxisKind.CORE)
    lines.store(out.index(loop), lines.add(loop.cast(F32)))
    lines.end(loop)
    result = np.zeros(6, np.float32)
    execute(lines, result)
    assert result.tolist() == [0, 1, 2, 3, 4, 5]
