"""Numbers and nested lists -> a shape, a dtype and packed bytes."""

from __future__ import annotations

import struct
import sys
from typing import Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.base.rounding import convert, to_bits
from glassgrad.memory.layout import Ints

NUMBER_KINDS = {bool: "bool", int: "int", float: "float"}


def parse_nested(data: Any) -> tuple[Ints, list[Any]]:
    """The shape of nested lists, and their items in row-major order."""
    shape: list[int] = []
    level: list[Any] = [data]
    while level and all(isinstance(item, (list, tuple)) for item in level):
        sizes = {len(item) for item in level}
        if len(sizes) > 1:
            raise ShapeError(
                f"the list is ragged: at depth {len(shape)} there are lengths "
                f"{', '.join(map(str, sorted(sizes)))}",
                hint="all lists at one depth must have the same length",
            )
        shape.append(sizes.pop())
        level = [one for item in level for one in item]
    if any(isinstance(item, (list, tuple)) for item in level):
        raise ShapeError(
            f"the list is ragged: at depth {len(shape)} lists and single values are mixed",
            hint="all lists at one depth must have the same length",
        )
    return tuple(shape), level


def dtype_for(items: list[Any], wanted: DType | None) -> DType:
    """The default dtype of the items: bool for bools alone, int32 for ints, float32 for floats."""
    kinds = {NUMBER_KINDS.get(type(item), type(item).__name__) for item in items}
    strange = sorted(kinds - set(NUMBER_KINDS.values()))
    if strange:
        raise DTypeError(f"the data holds {', '.join(strange)}, not only numbers")
    if wanted is not None:
        return wanted
    if "bool" in kinds and len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        raise DTypeError(f"the data mixes {found}", hint="pass a dtype, or convert some of it")
    if "float" in kinds or not kinds:
        return dtypes.default_float
    return dtypes.bool if kinds == {"bool"} else dtypes.default_int


def pack_numbers(items: list[Any], dtype: DType) -> bytes:
    """The numbers as bytes of a dtype. Floats are rounded; ints must fit."""
    kind = dtype.kind
    if kind == "bool":
        return bytes([bool(item) for item in items])
    if kind == "float":
        return _pack_floats(items, dtype)
    low, high = dtypes.min(dtype), dtypes.max(dtype)
    for item in items:
        if isinstance(item, float) and not item.is_integer():
            raise DTypeError(f"{item} is no {dtype.name}", hint="pass a float dtype")
        if not low <= item <= high:
            raise DTypeError(f"{item} does not fit {dtype.name}", hint="pass a wider dtype")
    return struct.pack(f"{len(items)}{dtype.format}", *map(int, items))


def _pack_floats(items: list[Any], dtype: DType) -> bytes:
    if dtype.format is None:
        size = dtype.itemsize
        return b"".join([to_bits(item, dtype).to_bytes(size, sys.byteorder) for item in items])
    return struct.pack(f"{len(items)}{dtype.format}", *[convert(item, dtype) for item in items])
