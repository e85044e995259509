"""x^y is within a few ulp, and has the exceptions of the C library."""

import numpy as np
import pytest
from support.compiler.on_cpu import ulps
from support.values.float_samples import NUMPY, WIDE, both, edges, needs_wide, run

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops


@needs_wide
@pytest.mark.parametrize(
    ("dtype", "reach", "bound"),
    [
        (dtypes.float32, 126, 0.51),
        (dtypes.float64, 8, 1.2),
        (dtypes.float64, 1000, 2.5),
    ],
)
def test_pow_is_as_accurate_as_it_says(dtype: DType, reach: float, bound: float) -> None:
    kind = NUMPY[dtype]
    random = np.random.default_rng(3)
    x = np.exp2(random.uniform(-10, 10, 100_000)).astype(kind)
    y = (random.uniform(-reach, reach, 100_000) / np.log2(x.astype(WIDE))).astype(kind)
    assert ulps(run(Ops.POW, x, y), np.power(x.astype(WIDE), y.astype(WIDE))).max() <= bound


@both
def test_pow_has_the_exceptions_of_the_c_library(dtype: DType) -> None:
    kind = NUMPY[dtype]
    x, y = (axis.ravel() for axis in np.meshgrid(edges(kind), edges(kind)))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = run(Ops.POW, x, y)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[number]), np.signbit(want[number]))
    assert np.allclose(got[number], want[number], rtol=1e-6, atol=0)
