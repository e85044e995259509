"""Values used once are inlined; others are named."""

from support.compiler.c_texts import F32, body, number
from support.compiler.hand_programs import Lines, integer

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def test_a_value_used_twice_is_named() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    value = lines.add(UOp(Ops.LOAD, F32, (x.index(integer(0)),)))
    double = value + value
    lines.store(out.index(integer(0)), double * double)
    assert body(lines.uops) == [
        "float val0 = *(data1+0);",
        "float alu0 = (val0+val0);",
        "*(data0+0) = (alu0*alu0);",
    ]


def test_a_value_outside_of_a_loop_is_not_inlined_into_it() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    value = lines.add(UOp(Ops.LOAD, F32, (x.index(integer(0)),)))
    double = lines.add(value * 2.0)
    loop = lines.loop(0, 8)
    lines.store(out.index(loop), double)
    lines.end(loop)
    assert body(lines.uops) == [
        "float val0 = *(data1+0);",
        "float alu0 = (val0*2.0f);",
        "for (long ridx0 = 0; ridx0 < 8; ridx0++) {",
        "*(data0+ridx0) = alu0;",
        "}",
    ]


def test_a_value_is_named_before_its_accumulator_changes() -> None:
    lines = Lines()
    out = lines.param(0, F32)
    first, second = lines.acc(number(1.0), 0), lines.acc(number(2.0), 1)
    loop = lines.loop(0, 3)
    new_first, new_second = lines.add(first + second), lines.add(first * second)
    lines.assign(first, new_first)
    lines.assign(second, new_second)
    end = lines.end(loop)
    lines.store(out.index(integer(0)), lines.after(second, end))
    assert body(lines.uops)[3:6] == [
        "float alu0 = (acc0*acc1);",
        "acc0 = (acc0+acc1);",
        "acc1 = alu0;",
    ]


def test_sums_have_no_unnecessary_parentheses() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    value = lines.add(UOp(Ops.LOAD, F32, (x.index(integer(0)),)))
    total = value
    for _ in range(3):
        total = total + value
    lines.store(out.index(integer(0)), total)
    assert body(lines.uops)[-1] == "*(data0+0) = (val0+val0+val0+val0);"


def test_deeply_nested_expressions_are_split() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    value = lines.add(UOp(Ops.LOAD, F32, (x.index(integer(0)),)))
    for _ in range(300):
        value = value.alu(Ops.SQRT)
    lines.store(out.index(integer(0)), value)
    deepest = max(line.count("(") for line in body(lines.uops))
    assert deepest < 100
