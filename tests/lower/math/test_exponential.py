"""2^x and e^x are within about an ulp, everywhere."""

import math

import numpy as np
import pytest
from support.compiler.on_cpu import apply, ulps
from support.values.float_samples import NUMPY, WIDE, both, every_float, needs_wide, run, some

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.exponential import exp2, times_log2_e

LOG2_E = math.log2(math.e)


@needs_wide
@both
def test_exp2_is_within_one_ulp(dtype: DType) -> None:
    kind = NUMPY[dtype]
    for reach in (1.0, 160.0 if kind is np.float32 else 1100.0):
        x = some(kind, -reach, reach)
        with np.errstate(all="ignore"):
            assert ulps(run(Ops.EXP2, x), np.exp2(x.astype(WIDE))).max() <= 1.0


@needs_wide
def test_exp2_is_right_for_floats_of_every_size() -> None:
    x = every_float(9973)
    with np.errstate(all="ignore"):
        assert ulps(run(Ops.EXP2, x), np.exp2(x.astype(WIDE))).max() <= 1.0


@needs_wide
@both
@pytest.mark.parametrize("multiple", [1, -1, 2, 0.5, -3])
def test_exp_through_exp2_loses_nothing_at_large_arguments(dtype: DType, multiple: float) -> None:
    kind = NUMPY[dtype]
    x = some(kind, -750 / abs(multiple), 750 / abs(multiple))
    function = lambda v: exp2(v * (multiple * LOG2_E))  # noqa: E731
    got = apply(function, [x], [dtype], dtype)
    with np.errstate(all="ignore"):
        assert ulps(got, np.exp(x.astype(WIDE) * multiple)).max() <= 1.25


def test_other_factors_are_not_taken_for_log2_e() -> None:
    x = UOp(Ops.VARIABLE, dtypes.float32, (), ("x", 0, 1))
    assert times_log2_e(x * LOG2_E) == (x, 1.0)
    assert times_log2_e(UOp(Ops.MUL, x.dtype, (x.const_like(-2 * LOG2_E), x))) == (x, -2.0)
    assert times_log2_e(x * float(np.float32(LOG2_E))) == (x, 1.0)
    for factor in (1.1, 1.44, 3.0, LOG2_E * 1.0001, 1e9 * LOG2_E):
        assert times_log2_e(x * factor) is None
    assert times_log2_e(x + LOG2_E) is None
