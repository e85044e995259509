"""bitcast against NumPy's view."""

from __future__ import annotations

import numpy as np
import pytest
from support.values.arrays import numbers, same

from glassgrad import Tensor, dtypes
from glassgrad.base.errors import DTypeError

ON_BOTH_BACKENDS = True
DTYPES = ("uint8", "int8", "int16", "float16", "uint32", "float32", "int64", "float64")


@pytest.mark.parametrize("there", DTYPES)
@pytest.mark.parametrize("here", DTYPES)
def test_bytes_stay_what_they_are(here: str, there: str) -> None:
    raw = np.random.default_rng(0).integers(0, 60, (3, 16), "uint8")  # no nans
    x = raw.view(here)
    same(Tensor(x).bitcast(there), x.view(there))


def test_bitcast_is_one_kernel_either_way() -> None:
    x = Tensor(numbers((4, 8), "int32")).realize()
    assert len(x.bitcast("uint8").contiguous().schedule().kernels) == 1
    assert len(x.bitcast("int64").contiguous().schedule().kernels) == 1


def test_the_last_axis_must_hold_whole_items() -> None:
    with pytest.raises(DTypeError, match="they have 4 and 8 bytes"):
        Tensor([1, 2, 3]).bitcast(dtypes.int64)
    with pytest.raises(DTypeError, match=r"of shape \(\)"):
        Tensor(1).bitcast(dtypes.uint8)
