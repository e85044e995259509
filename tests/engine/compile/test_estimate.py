"""The least memory traffic and the arithmetic of a kernel."""

from __future__ import annotations

from support.compiler.nests import kernel_of
from support.compiler.schedules import memory

from glassgrad import dtypes
from glassgrad.engine.compile.estimate import estimate


def test_an_addition_moves_three_buffers_and_adds_once_per_element() -> None:
    assert estimate(kernel_of(memory(64, 32) + memory(64, 32))) == (3 * 64 * 32 * 4, 64 * 32)


def test_a_matrix_product_multiplies_and_adds() -> None:
    moved, operations = estimate(kernel_of(memory(64, 32) @ memory(32, 16)))
    assert moved == (64 * 32 + 32 * 16 + 64 * 16) * 4
    assert operations == 2 * 64 * 32 * 16


def test_a_value_per_row_counts_once_per_row() -> None:
    _, operations = estimate(kernel_of(memory(64, 32) * (memory(64, 1) + 1)))
    assert operations == 64 * 32 + 64


def test_movement_and_casts_are_not_counted() -> None:
    kernel = kernel_of(memory(64, 32).transpose().cast(dtypes.int32).contiguous())
    assert estimate(kernel)[1] == 0
