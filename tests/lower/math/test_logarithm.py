"""log2 is within an ulp, everywhere."""

import numpy as np
from support.compiler.on_cpu import ulps
from support.values.float_samples import NUMPY, WIDE, both, every_float, needs_wide, run, some

from glassgrad.base.dtype import DType
from glassgrad.ir.ops import Ops


@needs_wide
@both
def test_log2_is_within_one_ulp(dtype: DType) -> None:
    kind = NUMPY[dtype]
    with np.errstate(all="ignore"):
        splat = np.exp2(some(kind, -120, 120))
    denormal = (np.arange(1, 2000) * np.finfo(kind).smallest_subnormal).astype(kind)
    x = np.concatenate([some(kind, 0.5, 2), splat, denormal])
    with np.errstate(all="ignore"):
        assert ulps(run(Ops.LOG2, x), np.log2(x.astype(WIDE))).max() <= 1.0


@needs_wide
def test_log2_is_right_for_floats_of_every_size() -> None:
    x = every_float(9973)
    with np.errstate(all="ignore"):
        assert ulps(run(Ops.LOG2, x), np.log2(x.astype(WIDE))).max() <= 1.0
