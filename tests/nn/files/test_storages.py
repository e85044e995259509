from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.storages import Stored, strided

NOTHING = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (5,), (1,)),
        (3, (2,), (1,)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (0, (2, 3), (1,)),
        (0, (1 << 60,), (0,)),
        (0, (100,), (0,)),
        (0, (1 << 40, 1 << 40), (0, 0)),
        (0, "ab", (1, 1)),
    ],
)
def test_tensors_that_leave_their_storage_are_refused(
    offset: Any, shape: Any, strides: Any
) -> None:
    from glassgrad import dtypes

    storage = Stored(dtypes.float32, NOTHING.view(np.uint8), 4)
    with pytest.raises(FormatError):
        strided(storage, offset, shape, strides)
