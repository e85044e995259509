"""Each op is rendered so that every language computes the same."""

from collections.abc import Callable

import pytest
from support.compiler.c_texts import F32, I32, number, written

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render import CUDARenderer, MetalRenderer, OpenCLRenderer


@pytest.mark.parametrize(
    ("build", "dtype", "want"),
    [
        (lambda x, y: x.maximum(y), F32, "(val0!=val0||val0>val1?val0:val1)"),
        (lambda x, y: x.minimum(2.0), F32, "(2.0f<val0?2.0f:val0)"),
        (lambda x, y: x.maximum(y), I32, "(val0>val1?val0:val1)"),
        (lambda x, y: x.alu(Ops.CDIV, y), dtypes.uint, "(val1==0?0:(val0/val1))"),
        (lambda x, y: x.alu(Ops.CMOD, x.const_like(7)), I32, "(val0%7)"),
        (lambda x, y: x + y, dtypes.uchar, "(uchar)(val0+val1)"),
        (lambda x, y: x + y, dtypes.bool, "(val0|val1)"),
        (lambda x, y: x - number(-1.0), F32, "(val0-(-1.0f))"),
        (lambda x, y: x << y, dtypes.uint, "(val1<32?(val0<<val1):0)"),
        (lambda x, y: x.cast(dtypes.int), dtypes.long, "((int)val0)"),
        (lambda x, y: x.bitcast(dtypes.uint), F32, "as_uint(val0)"),
        (lambda x, y: (x < y).where(x, y), F32, "((val0<val1)?val0:val1)"),
        (lambda x, y: x.alu(Ops.MULACC, y, x), F32, "fma(val0,val1,val0)"),
        (lambda x, y: x.alu(Ops.RECIPROCAL), F32, "(1.0f/val0)"),
        (lambda x, y: x + float("inf"), F32, "(val0+INFINITY)"),
        (lambda x, y: x * float("nan"), dtypes.double, "(val0*((double)(NAN)))"),
        (lambda x, y: x + -(2**63), dtypes.long, "(val0+(-9223372036854775807l-1))"),
        (lambda x, y: x & 0xFFFF_FFFF, dtypes.ulong, "(val0&4294967295ul)"),
    ],
)
def test_values_are_rendered(build: Callable[[UOp, UOp], UOp], dtype: DType, want: str) -> None:
    assert written(build, dtype, OpenCLRenderer()) == want


def test_a_float_saturates_at_the_range_of_an_int() -> None:
    text = written(lambda x, y: x.cast(dtypes.char), F32, OpenCLRenderer())
    assert text == "(val0<=-128.0f?-128:val0>=128.0f?127:val0==val0?((char)val0):0)"


def test_bitcasts_use_the_construct_of_each_language() -> None:
    ways = {
        "bitcast<unsigned int>(float(val0))": CUDARenderer("sm_80"),
        "as_type<uint>(val0)": MetalRenderer(),
        "as_uint(val0)": OpenCLRenderer(),
    }
    for want, language in ways.items():
        assert written(lambda x, y: x.bitcast(dtypes.uint), F32, language) == want
