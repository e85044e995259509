from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.storages import TypedStorage, strided_tensor

FOUR_ZEROS = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (5,), (1,)),
        (3, (2,), (1,)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (0, (2, 3), (1,)),
        (0, (1 << 60,), (0,)),
        (0, (3, 3, 3, 3, 3, 3), (1, 0, 1, 0, 0, 1)),
        (4, (100,), (0,)),
        (0, (1 << 40, 1 << 40), (0, 0)),
        (0, "ab", (1, 1)),
    ],
)
def test_tensors_outside_of_their_storage_are_refused(
    offset: Any, shape: Any, strides: Any
) -> None:
    from glassgrad import dtypes

    storage = TypedStorage(dtypes.float32, FOUR_ZEROS.view(np.uint8), 4)
    with pytest.raises(FormatError):
        strided_tensor(storage, offset, shape, strides)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (1, (100,), (0,)),
        (0, (3, 4), (0, 1)),
        (1, (3, 2), (1, 0)),
        (2, (5, 1, 2, 7), (0, 9, 1, 0)),
        (0, (3, 2), (1, 1)),  # overlapping windows, as of unfold()
        (3, (1 << 20, 1 << 20), (0, 0)),
    ],
)
def test_expanded_and_overlapping_tensors_are_read(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    from glassgrad import dtypes
    from glassgrad.nn.state import get_parameters

    array = np.arange(4, dtype=np.float32)
    storage = TypedStorage(dtypes.float32, array.view(np.uint8), 4)
    found = strided_tensor(storage, offset, shape, strides)
    assert found.shape == shape
    steps = tuple(4 * step for step in strides)
    wanted = np.lib.stride_tricks.as_strided(array[offset:], shape, steps)
    corner = (slice(0, 7),) * len(shape)
    np.testing.assert_array_equal(found[corner].numpy(), wanted[corner])
    assert get_parameters([found]) == []


def test_overlapping_tensors_that_would_fill_the_memory_are_refused() -> None:
    from glassgrad import dtypes

    storage = TypedStorage(dtypes.uint8, np.zeros(1024, np.uint8), 1024)
    with pytest.raises(FormatError, match="does not fit into 1024 elements"):
        strided_tensor(storage, 0, (30,) * 6, (1,) * 6)
