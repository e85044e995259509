"""Every function has an expansion into ops that all machines have."""

import pytest

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.transcendental import FUNCTION_EXPANSIONS, expand

CASES = [
    (op, dtype)
    for op in (Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW)
    for dtype in (dtypes.float32, dtypes.float64)
] + [(Ops.THREEFRY, dtypes.uint64)]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(("op", "dtype"), CASES, ids=lambda value: value.name)
def test_an_expansion_is_plain_arithmetic_of_the_same_dtype(
    op: Ops, dtype: DType, lanes: int
) -> None:
    names = ("x", "y")[: op.arity]
    sources = tuple(UOp(Ops.VARIABLE, dtype.vec(lanes), (), (name, 0, 1)) for name in names)
    node = UOp(op, dtype.vec(lanes), sources)
    made = expand(node)
    assert made.dtype is node.dtype
    found = {uop.op for uop in made.toposort()} - {Ops.CONST, Ops.VARIABLE}
    assert found <= OpGroup.ELEMENTWISE - set(FUNCTION_EXPANSIONS)
    counts = {uop.dtype.count for uop in made.toposort()}
    assert counts == {lanes}
