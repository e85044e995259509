"""Which register tiles are split from their epilogue."""

from __future__ import annotations

from dataclasses import replace

from support.compiler.nests import kernel_of, ops_of
from support.compiler.programs import TARGET, count, program_of
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps


def shaped(tensor: Tensor) -> Nest:
    return optimize(kernel_of(tensor), TARGET)


def test_gelu_behind_a_product_is_written_for_four_registers() -> None:
    nest = shaped((memory(600, 384) @ memory(384, 256)).gelu())
    assert [opt.arg for opt in nest.recipe if opt.op is OptOps.SPLIT_EPILOGUE] == [2], (
        "rows of two vectors"
    )
    program = program_of(nest)
    assert count(program, Ops.MULACC) < 150, "a tile of 12, and 4 times what gelu takes"


def test_a_bias_is_added_in_registers() -> None:
    nest = shaped(memory(600, 384) @ memory(384, 256) + memory(256))
    assert OptOps.SPLIT_EPILOGUE not in ops_of(nest)


def test_short_sums_do_not_hide_the_way_through_scratch() -> None:
    nest = shaped((memory(600, 24) @ memory(24, 256)).gelu())
    assert OptOps.SPLIT_EPILOGUE not in ops_of(nest)


def test_strided_results_are_stored_in_a_loop() -> None:
    nest = shaped(memory(8, 64, 14, 14).conv2d(memory(64, 64, 3, 3), padding=1))
    assert OptOps.SPLIT_EPILOGUE in ops_of(nest)


def test_long_epilogues_of_column_sums_run_a_few_at_a_time() -> None:
    x, y = memory(2048, 384), memory(2048, 384)
    both = x.sum(0) + (x * y).sum(0)
    assert OptOps.SPLIT_EPILOGUE not in ops_of(shaped(both))
    assert OptOps.SPLIT_EPILOGUE in ops_of(shaped(both.gelu().exp()))


def test_strided_lanes_are_transposed_where_a_tile_has_square_blocks() -> None:
    wide = replace(TARGET, vector_bytes=64, registers=32)
    kernel = kernel_of(memory(8, 64, 56, 56).conv2d(memory(64, 64, 3, 3), padding=1).relu())
    nest = optimize(kernel, wide)
    assert [opt.arg for opt in nest.recipe if opt.op is OptOps.SPLIT_EPILOGUE] == [8]
    written = [uop.src[1].dtype for uop in program_of(nest, wide).uops if uop.op is Ops.STORE]
    assert dtypes.float32 not in written, "whole vectors only"
    assert dtypes.float32.vec(8) in written, "eight elements of a row"


def test_long_epilogues_are_not_unrolled_to_be_transposed() -> None:
    wide = replace(TARGET, vector_bytes=64, registers=32)
    kernel = kernel_of(memory(8, 64, 56, 56).conv2d(memory(64, 64, 3, 3), padding=1).gelu())
    nest = optimize(kernel, wide)
    assert count(program_of(nest, wide), Ops.MULACC) < 120, "192 if all registers are written out"
