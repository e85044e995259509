"""Index expressions for tests: random ones, what they mean, and every value of their ranges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import floordiv, mod
from glassgrad.ir.linear import add, minimum, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, make_range

RANGES = tuple(make_range(number, size) for number, size in enumerate((2, 3, 4, 5)))
MEANING = {
    Ops.ADD: lambda x, y: x + y,
    Ops.MUL: lambda x, y: x * y,
    Ops.FLOORDIV: lambda x, y: x // y,
    Ops.FLOORMOD: lambda x, y: x % y,
    Ops.MIN: min,
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.AND: lambda x, y: x and y,
}


def value_of(node: UOp, at: dict[UOp, int]) -> int:
    """What an index expression or a condition is, by the plain meaning of its ops."""
    if node in at:
        return at[node]
    if node.op is Ops.CONST:
        return node.arg
    return MEANING[node.op](*[value_of(source, at) for source in node.src])


def everywhere(ranges: tuple[UOp, ...] = RANGES) -> Iterator[dict[UOp, int]]:
    """Every value that ranges have together."""
    for values in product(*(range(r.size) for r in ranges)):
        yield dict(zip(ranges, values, strict=True))


def expressions() -> st.SearchStrategy[UOp]:
    """Sums, multiples, quotients, remainders and minima of ranges."""
    return st.recursive(st.sampled_from(RANGES), _larger, max_leaves=5)


def _larger(inner: st.SearchStrategy[UOp]) -> st.SearchStrategy[UOp]:
    factor, divisor = st.integers(-4, 4), st.integers(1, 7)
    return st.one_of(
        st.builds(add, inner, st.one_of(inner, factor)),
        st.builds(sub, inner, inner),
        st.builds(scale, inner, factor),
        st.builds(floordiv, inner, divisor),
        st.builds(mod, inner, divisor),
        st.builds(minimum, inner, inner),
    )


def memory(*shape: int) -> UOp:
    """An argument of a kernel whose elements lie row by row."""
    strides = [1]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * n)
    return UOp(Ops.PARAM, dtypes.float32, (), Param(0, shape, tuple(reversed(strides))))
