"""Moves chosen from strides, reuse and sizes."""

from __future__ import annotations

from dataclasses import replace

from support.compiler.nests import kernel_of, kinds, ops_of
from support.compiler.schedules import TARGET, memory, planned

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps
from glassgrad.lower import lower

ONE_CORE = replace(TARGET, cores=1)


def test_elementwise_kernels_use_vectors_and_cores() -> None:
    nest = optimize(kernel_of(memory(1024, 1024) + memory(1024, 1024)), TARGET)
    assert ops_of(nest) == [OptOps.UPCAST, OptOps.CORE]
    assert kinds(nest)[AxisKind.LANE] == [8]


def test_small_kernels_stay_on_one_core() -> None:
    assert OptOps.CORE not in ops_of(optimize(kernel_of(memory(64) + 1), TARGET))


def test_one_core_is_not_divided() -> None:
    nest = optimize(kernel_of(memory(1024, 1024) + 1), ONE_CORE)
    assert OptOps.CORE not in ops_of(nest)


def test_a_row_sum_unrolls_its_reduction() -> None:
    rows = optimize(kernel_of(memory(64, 1024).sum(1)), TARGET)
    assert ops_of(rows) == [OptOps.UNROLL, OptOps.UPCAST]
    few = optimize(kernel_of(memory(3, 1024).sum(1)), TARGET)
    assert ops_of(few) == [OptOps.UNROLL]


def test_a_column_sum_walks_along_rows_and_collects_in_memory() -> None:
    columns = optimize(kernel_of(memory(1024, 1024).sum(0)), TARGET)
    found = ops_of(columns)
    assert OptOps.ACCUMULATE in found and OptOps.CORE in found
    assert kinds(columns)[AxisKind.LANE] == [8] * len(kinds(columns)[AxisKind.LANE])


def test_every_row_of_a_softmax_is_the_work_of_one_core() -> None:
    nest = optimize(kernel_of(memory(512, 1024).softmax()), TARGET)
    assert kinds(nest)[AxisKind.CORE] == [512]
    assert lower(nest, TARGET).scratch_bytes == 1024 * 4


def test_axes_read_in_both_directions_are_unrolled() -> None:
    x = memory(64, 2, 512)
    nest = optimize(kernel_of(x.minimum(x.flip(1)) + x.maximum(x.flip(1))), ONE_CORE)
    assert 2 in kinds(nest)[AxisKind.UPCAST]
    program = lower(nest, ONE_CORE)
    loads = [uop for uop in program.uops if uop.op is Ops.LOAD]
    stores = [uop for uop in program.uops if uop.op is Ops.STORE]
    assert len(loads) == len(stores)  # each element is loaded once


def test_an_axis_read_in_one_direction_is_not_unrolled() -> None:
    nest = optimize(kernel_of(memory(64, 2, 512).flip(1) + 1), ONE_CORE)
    assert 2 not in kinds(nest)[AxisKind.UPCAST]


def test_pooling_with_steps_of_two_has_lanes_along_its_rows() -> None:
    nest = optimize(kernel_of(memory(8, 16, 34, 34).max_pool2d(3, 2)), ONE_CORE)
    assert kinds(nest)[AxisKind.LANE] == [8]
    assert kinds(nest)[AxisKind.UNROLL] == [3, 3]
    loads = [uop for uop in lower(nest, ONE_CORE).uops if uop.op is Ops.LOAD]
    assert {load.dtype.count for load in loads} == {8}


def test_a_padded_row_has_no_loop() -> None:
    weights = memory(16, 1, 3, 3)
    for width, vectors in ((32, 4), (28, 4), (56, 7)):
        x = memory(8, 16, width, width)
        nest = optimize(kernel_of(x.conv2d(weights, groups=16, padding=1)), ONE_CORE)
        assert kinds(nest)[AxisKind.UPCAST] == [vectors]
        assert width not in kinds(nest)[AxisKind.LOOP][3:]


def test_a_padded_row_is_unrolled_as_long_as_the_code_is_short() -> None:
    for width, size, vectors in ((112, 3, 14), (224, 3, 28), (112, 5, 14)):
        x, weights = memory(2, 16, width, width), memory(16, 1, size, size)
        nest = optimize(kernel_of(x.conv2d(weights, groups=16, padding=size // 2)), ONE_CORE)
        assert kinds(nest)[AxisKind.UPCAST] == [vectors]
    wide = memory(2, 16, 224, 224).conv2d(memory(16, 1, 7, 7), groups=16, padding=3)
    assert kinds(optimize(kernel_of(wide), ONE_CORE))[AxisKind.UPCAST] != [28]


def test_rows_of_a_padded_window_are_a_loop_and_its_columns_are_unrolled() -> None:
    for size in (3, 5, 7):
        x, weights = memory(8, 16, 56, 56), memory(16, 1, size, size)
        nest = optimize(kernel_of(x.conv2d(weights, groups=16, padding=size // 2)), ONE_CORE)
        assert kinds(nest)[AxisKind.UNROLL] == [size]
        assert kinds(nest)[AxisKind.REDUCE] == [size]


def test_the_innermost_window_steps_are_unrolled_where_all_are_too_many() -> None:
    nest = optimize(kernel_of(memory(8, 16, 60, 60).max_pool2d(5, 1)), ONE_CORE)
    assert kinds(nest)[AxisKind.UNROLL] == [5]
    assert kinds(nest)[AxisKind.REDUCE] == [5]


def test_a_transposition_reads_whole_lines_of_the_cache() -> None:
    nest = optimize(kernel_of(memory(1000, 600).T.contiguous()), ONE_CORE)
    amounts = [opt.arg for opt in nest.recipe if opt.op is OptOps.UPCAST]
    assert amounts == [8, 16]


def test_a_transposition_writes_whole_lines_where_half_ones_would_not_stay_in_the_cache() -> None:
    nest = optimize(kernel_of(memory(1024, 1024).T.contiguous()), ONE_CORE)
    assert [opt.arg for opt in nest.recipe if opt.op is OptOps.UPCAST] == [16, 8]
    assert ops_of(nest)[-1] is OptOps.SWAP


def test_expensive_elements_are_unrolled_four_vectors_at_a_time() -> None:
    nest = optimize(kernel_of(memory(1024, 1024).gelu()), ONE_CORE)
    assert [opt.arg for opt in nest.recipe] == [32]


def test_a_long_padded_row_keeps_its_loop() -> None:
    nest = optimize(kernel_of(memory(8, 300).pad(((0, 0), (1, 1))) * 2), ONE_CORE)
    assert len(kinds(nest)[AxisKind.LOOP]) == 2


def test_two_sums_of_the_same_rows_read_them_side_by_side_once() -> None:
    x = memory(8, 256, 384) + memory(384)
    mean = x.mean(-1, keepdim=True)
    nest = optimize(kernel_of(((x - mean) * (x - mean)).sum(-1)), TARGET)
    copies = [opt for opt in nest.recipe if opt.op is OptOps.UPCAST]
    assert len(copies) == 1


def test_sums_along_rows_have_one_row_at_a_time_whichever_statement_is_first() -> None:
    logits, targets = memory(8, 256, 512), memory(8, 257, dtype="int32")[:, 1:]
    loss = logits.sparse_categorical_crossentropy(targets)
    made = planned(loss, *loss.gradient(logits), target=ONE_CORE).kernels
    programs = [lower(optimize(kernel, ONE_CORE), ONE_CORE) for kernel in made]
    registers = [sum(line.op is Ops.ACC for line in program.uops) for program in programs]
    assert max(registers) == 12, "four for each of three sums, not one for each of 64 rows"


def test_lookups_in_a_sum_are_emitted_once_per_vector() -> None:
    x, at = memory(8, 256, 512), memory(8, 257, dtype="int32")[:, 1:]
    is_meant = at != -1
    found = x.gather(2, at.reshape(8, 256, 1)).reshape(8, 256) * is_meant
    kernel = kernel_of(found.sum() / is_meant.cast("float32").sum())
    program = lower(optimize(kernel, ONE_CORE), ONE_CORE)
    assert sum(line.op is Ops.IF for line in program.uops) == 1, "eight indices are looked at once"
