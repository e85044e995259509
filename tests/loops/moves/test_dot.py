"""DOT: several steps of an int8 or int16 dot product, in dtypes that the machine takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.narrow_products import HOSTS, PAIRS, machine, narrow_product
from support.compiler.nests import binders, kernel_of, move, ops_of, product, refused, same
from support.compiler.schedules import memory

from glassgrad import Tensor, dtypes
from glassgrad.base.dtype import DType
from glassgrad.ir.dots import find_dot_reduction
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps


def nest_of(tensor: Tensor) -> Nest:
    kernel = kernel_of(tensor)
    return Nest(kernel.body, kernel.outer)


def factors(nest: Nest) -> list[DType]:
    (found, *_) = [b for b in binders(nest, Ops.REDUCE) if b.src[0].op is Ops.MUL]
    return [cast.src[0].dtype for cast in found.src[0].src]


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("depth", [8, 7])
def test_the_move_keeps_the_meaning(name: str, pair: tuple[str, str], depth: int) -> None:
    before = nest_of(narrow_product(4, depth, 6, pair)[0])
    for slot in (1, 2):
        after = move(before, OptOps.DOT, 2, slot, machine(name))
        same(before, after)
        assert find_dot_reduction(binders(after, Ops.REDUCE)[-1], machine(name)) is not None


@pytest.mark.parametrize(
    ("name", "pair", "taken"),
    [
        ("AVX2", ("int8", "int8"), [dtypes.int16, dtypes.int16]),
        ("AVX-VNNI", ("uint8", "int8"), [dtypes.uint8, dtypes.int8]),
        ("AVX-VNNI", ("int8", "int8"), [dtypes.uint8, dtypes.int8]),
        ("AVX-VNNI", ("uint8", "uint8"), [dtypes.int8, dtypes.uint8]),
        ("AVX-VNNI-INT8", ("int8", "int8"), [dtypes.int8, dtypes.int8]),
        ("NEON dotprod", ("uint8", "uint8"), [dtypes.uint8, dtypes.uint8]),
    ],
)
def test_operands_become_what_the_machine_takes(
    name: str, pair: tuple[str, str], taken: list[DType]
) -> None:
    nest = nest_of(narrow_product(4, 8, 6, pair)[0])
    assert factors(move(nest, OptOps.DOT, 2, 2, machine(name))) == taken


def test_a_correction_term_undoes_flipped_signedness() -> None:
    nest = nest_of(narrow_product(4, 8, 6, ("int8", "int8"))[0])
    for slot, kept in ((2, [(6,)]), (1, [])):  # of columns, once; of a row, in its loop
        moved = move(nest, OptOps.DOT, 2, slot, machine("AVX-VNNI"))
        assert [stage.arg for stage in binders(moved, Ops.STAGE)] == kept
        assert len(binders(moved, Ops.REDUCE)) == 2
    direct = move(nest, OptOps.DOT, 2, 2, machine("AVX-VNNI-INT8"))
    assert len(binders(direct, Ops.REDUCE)) == 1


def test_errors_say_why_a_move_is_illegal() -> None:
    bytes_ = nest_of(narrow_product(4, 8, 6, ("int8", "int8"))[0])
    avx2 = machine("AVX2")
    assert "no dot-product instruction" in refused(product(4, 6, 8), OptOps.DOT, 2, 2, avx2)
    assert "exactly one sum" in refused(bytes_, OptOps.DOT, 0, 2, avx2)
    assert "no dot-product instruction" in refused(bytes_, OptOps.DOT, 2, 2, replace(avx2, dots=()))
    unrolled = move(bytes_, OptOps.UNROLL, 2, 8)
    assert "unrolled" in refused(unrolled, OptOps.DOT, 3, 2, avx2)


@pytest.mark.parametrize("name", HOSTS)
def test_products_of_bytes_are_made_of_dot_products(name: str) -> None:
    left, right = memory(64, 64, dtype=dtypes.int8), memory(64, 64, dtype=dtypes.int8)
    target = machine(name)
    nest = optimize(kernel_of(left.matmul(right, dtype=dtypes.int32)), target)
    assert OptOps.DOT in ops_of(nest)
    staged = [b for b in binders(nest, Ops.STAGE) if b.src[0].op is not Ops.REDUCE]
    assert len(staged) == 2, "what is packed is also what is summed"
    narrow = {1} if target.dots[0].left is not dtypes.int16 else {2}
    assert {block.dtype.itemsize for block in staged} == narrow


def test_a_machine_without_dot_products_packs_numbers_as_it_adds_them() -> None:
    left, right = memory(64, 64, dtype=dtypes.int8), memory(64, 64, dtype=dtypes.int8)
    kernel = kernel_of(left.matmul(right, dtype=dtypes.int32))
    nest = optimize(kernel, replace(machine("AVX2"), dots=()))
    assert OptOps.DOT not in ops_of(nest)
    assert {block.dtype for block in binders(nest, Ops.STAGE)} == {dtypes.int32}


def test_products_of_floats_are_not() -> None:
    nest = optimize(kernel_of(memory(64, 64) @ memory(64, 64)), machine("AVX-VNNI"))
    assert OptOps.DOT not in ops_of(nest)


@pytest.mark.parametrize("shape", [(64, 64, 64), (50, 33, 40), (24, 5, 100), (7, 64, 9)])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_int8_products_on_this_machine_are_exact(
    shape: tuple[int, int, int], pair: tuple[str, str]
) -> None:
    tensor, want = narrow_product(*shape, pair)
    np.testing.assert_array_equal(tensor.numpy(), want)
