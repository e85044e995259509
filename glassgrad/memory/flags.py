"""Flags: the memory layouts that a consumer accepts."""

from __future__ import annotations

from enum import IntFlag


class Flags(IntFlag):
    """Each accepts more than the flags it contains; FULL accepts all layouts, WRITABLE is a
    requirement.
    """

    SIMPLE = 0  # one row-major block
    WRITABLE = 1
    FORMAT = 2
    MULTI_DIMENSIONAL = 4
    STRIDES = 8 | MULTI_DIMENSIONAL
    ROW_MAJOR = 16 | STRIDES
    COLUMN_MAJOR = 32 | STRIDES
    ANY_CONTIGUOUS = ROW_MAJOR | COLUMN_MAJOR
    INDIRECT = 64 | STRIDES  # sub-offsets (rows behind pointers)
    FULL = INDIRECT | FORMAT


# Single bits as ints: testing an IntFlag takes a microsecond.
WRITABLE_BIT, STRIDES_BIT, ROWS_BIT, COLUMNS_BIT, POINTERS_BIT = 1, 8, 16, 32, 64
