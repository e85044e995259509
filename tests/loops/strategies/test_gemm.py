"""Matrix products: a tile of sums in registers, panels packed for the cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.compiler.nests import kernel_of, kinds, ops_of
from support.compiler.schedules import TARGET, memory

from glassgrad import Tensor
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.loops import optimize
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.lower import lower

ONE_CORE = replace(TARGET, cores=1)


def transposed(n: int) -> Tensor:
    return memory(n, n).transpose()


def test_a_matrix_product_becomes_a_tile_of_six_rows_and_sixteen_columns() -> None:
    nest = optimize(kernel_of(memory(512, 512) @ memory(512, 512)), ONE_CORE)
    assert nest.recipe == (
        Opt(OptOps.UPCAST, 1, 16),
        Opt(OptOps.UPCAST, 0, 6),
        Opt(OptOps.TILE, 1, 8),
        Opt(OptOps.SWAP, 0, 1),
        Opt(OptOps.PACK, 1, 2),
        Opt(OptOps.UPCAST, 6, 8),
    )
    assert kinds(nest)[AxisKind.UPCAST][:2] == [2, 6]
    assert lower(nest, ONE_CORE).scratch_bytes == 8 * 16 * 512 * 4, "eight panels fill half of L2"


@pytest.mark.parametrize(
    ("left", "right"), [(memory, memory), (memory, transposed), (transposed, memory)]
)
def test_any_order_of_the_operands_gives_the_same_tile(left: object, right: object) -> None:
    sides = [side(512) if side is transposed else side(512, 512) for side in (left, right)]
    nest = optimize(kernel_of(sides[0] @ sides[1]), TARGET)
    found = ops_of(nest)
    assert found[:2] == [OptOps.UPCAST, OptOps.UPCAST]
    assert [nest.recipe[0].arg, nest.recipe[1].arg] == [16, 6]
    assert OptOps.PACK in found and OptOps.CORE in found


@pytest.mark.parametrize("columns", [16, 32, 64])
def test_a_left_operand_that_few_columns_read_is_not_packed(columns: int) -> None:
    nest = optimize(kernel_of(memory(512, 96).T @ memory(512, columns)), ONE_CORE)
    packed = [opt for opt in nest.recipe if opt.op is OptOps.PACK]
    assert [opt.axis for opt in packed] in ([], [1])


def test_a_left_operand_that_is_strided_is_packed_as_well() -> None:
    nest = optimize(kernel_of(transposed(512) @ memory(512, 512)), TARGET)
    assert ops_of(nest).count(OptOps.PACK) == 2


def test_bias_and_relu_stay_behind_the_sum() -> None:
    x = (memory(512, 256) @ memory(256, 384) + memory(384)).relu()
    nest = optimize(kernel_of(x), TARGET)
    assert [opt.arg for opt in nest.recipe[:2]] == [16, 6]
    assert sum(node.op is Ops.REDUCE for node in nest.body.toposort()) == 1


def test_accumulators_fit_the_registers() -> None:
    for m, n, k in ((512, 512, 512), (7, 100, 30), (1, 512, 64), (33, 17, 9), (100, 8, 8)):
        nest = optimize(kernel_of(memory(m, k) @ memory(k, n)), TARGET)
        program = lower(nest, TARGET)
        sums = sum(uop.op is Ops.ACC for uop in program.uops)
        assert sums < TARGET.registers


def test_few_rows_times_a_transposed_matrix_are_dot_products_and_pack_nothing() -> None:
    nest = optimize(kernel_of(memory(8, 768) @ memory(3072, 768).T), TARGET)
    assert OptOps.PACK not in ops_of(nest)
    (reduce,) = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    assert any(r.kind is AxisKind.LANE for r in reduce.bound), "lanes lie along the sum"
    loops = [r.size for r in nest.outer if not r.kind.is_unrolled]
    assert loops == sorted(loops, reverse=True), "the large matrix goes by once"


def test_blocks_of_columns_are_as_many_for_every_core() -> None:
    for columns in (384, 768):
        nest = optimize(kernel_of(memory(64, 384) @ memory(384, columns)), TARGET)
        (divided,) = [r for r in nest.outer if r.kind is AxisKind.CORE]
        assert divided.size < 11  # not the rows: a panel would be packed for each of their tiles
        assert divided.size % TARGET.cores == 0


@pytest.mark.parametrize("cores", [2, 5, 16, 64])
def test_a_large_product_has_parts_for_any_number_of_cores(cores: int) -> None:
    target = replace(TARGET, cores=cores)
    nest = optimize(kernel_of(memory(2048, 384) @ memory(384, 384)), target)
    columns, rows = [r for r in nest.outer if r.kind is AxisKind.CORE]
    assert columns.size * rows.size >= 4 * cores, "what one is late with, another does"
    (packed,) = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert columns in packed.ranges, "once for a block of columns"
    assert rows not in packed.ranges, "and not for every part of the rows"


def test_a_core_that_takes_tiles_of_rows_packs_nothing_for_each_of_them() -> None:
    w = memory(128, 784)  # 49 tiles of columns: no even number of blocks divides them
    step = w.assign(w - memory(64, 128).T @ memory(64, 784))
    nest = optimize(kernel_of(step), replace(TARGET, cores=2))
    (divided,) = [r for r in nest.outer if r.kind is AxisKind.CORE]
    copied = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert all(divided in node.ranges for node in copied), "what all cores need is read as it lies"
