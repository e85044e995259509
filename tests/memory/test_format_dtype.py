"""Formats of single numbers have a dtype; others do not."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.memory.format_dtype import dtype_format, dtype_of_format, format_dtype


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_every_dtype_with_a_letter_round_trips(dtype: DType) -> None:
    found = dtype_of_format(dtype_format(dtype), dtype.itemsize)
    assert found is (dtype if dtype.format else None)


@pytest.mark.parametrize("name", ["l", "L", "n", "N", "<q", "=f", "@d", "c", None])
def test_letters_that_mean_the_same_size_are_the_same_dtype(name: str) -> None:
    size = (
        memoryview(np.zeros(1)).itemsize if name == "@d" else {"=f": 4, "c": 1, None: 1}.get(name)
    )
    found = format_dtype(name, size or 8)
    assert found.itemsize == (size or 8)


@pytest.mark.parametrize(
    ("fmt", "size"), [(">f", 4), ("Zf", 8), ("T{f:a:}", 4), ("2f", 8), ("f", 8), ("3s", 3)]
)
def test_formats_without_a_dtype_are_an_error(fmt: str, size: int) -> None:
    assert dtype_of_format(fmt, size) is None
    with pytest.raises(FormatError, match="there is no dtype"):
        format_dtype(fmt, size)
