"""Format <-> dtype: the dtype of an item of imported memory."""

from __future__ import annotations

import sys
from functools import lru_cache

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.memory.format import parse_format
from glassgrad.memory.item import single_number

LITTLE = sys.byteorder == "little"
KINDS = (
    dict.fromkeys("bhilqn", "int")
    | dict.fromkeys("BHILQNc", "uint")
    | dict.fromkeys("efd", "float")
)
KINDS["?"] = "bool"
BY_KIND: dict[tuple[str, int], DType] = {
    (dtype.kind, dtype.itemsize): dtype
    for dtype in (dtypes.bool, *dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64)
}
# ml_dtypes' and PyTorch's names for the dtypes that PEP 3118 has no letter for.
WITHOUT_FORMAT = {
    "bfloat16": dtypes.bfloat16,
    "float8_e4m3fn": dtypes.fp8e4m3,
    "float8_e5m2": dtypes.fp8e5m2,
}


@lru_cache(maxsize=512)
def dtype_of_format(fmt: str | None, item_size: int) -> DType | None:
    """The dtype of an item that is one number in native byte order; None for others."""
    size, components = parse_format(fmt)
    part = single_number(components)
    if part is None or size != part.size:
        return None
    # ctypes writes "<l" for the native long, whose standard size differs.
    if size != item_size and part.format not in "lL":
        return None
    if item_size > 1 and part.is_little != LITTLE:
        return None
    return BY_KIND.get((KINDS.get(part.format, ""), item_size))


def format_dtype(fmt: str | None, item_size: int) -> DType:
    """The dtype of a format; raises FormatError if there is none."""
    dtype = dtype_of_format(fmt, item_size)
    if dtype is None:
        raise FormatError(
            f"there is no dtype for elements of format {fmt!r} ({item_size} bytes)",
            hint="convert them to a number type in this machine's byte order first",
        )
    return dtype


def dtype_format(dtype: DType) -> str:
    """The format of a dtype; dtypes without a letter are raw bytes."""
    return dtype.format or f"{dtype.itemsize}s"
