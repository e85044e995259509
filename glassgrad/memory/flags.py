"""Flags: what a consumer can deal with, and so what a producer may hand over."""

from __future__ import annotations

from enum import IntFlag


class Flags(IntFlag):
    """Each asks for more than the ones it contains; FULL takes anything, WRITABLE is extra."""

    SIMPLE = 0  # one row-major block
    WRITABLE = 1
    FORMAT = 2
    MULTI_DIMENSIONAL = 4
    STRIDES = 8 | MULTI_DIMENSIONAL
    ROW_MAJOR = 16 | STRIDES
    COLUMN_MAJOR = 32 | STRIDES
    ANY_CONTIGUOUS = ROW_MAJOR | COLUMN_MAJOR
    INDIRECT = 64 | STRIDES  # rows may lie behind pointers
    FULL = INDIRECT | FORMAT


# Single bits as plain numbers: asking an IntFlag takes a microsecond each time.
WRITABLE_BIT, STRIDES_BIT, ROWS_BIT, COLUMNS_BIT, POINTERS_BIT = 1, 8, 16, 32, 64
