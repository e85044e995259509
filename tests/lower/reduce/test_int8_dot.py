"""Sums of low-precision products become DOTs, which give the results of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.narrow_products import HOSTS, PAIRS, machine, narrow_product
from support.compiler.nests import kernel_of
from support.compiler.run_schedules import run_on
from support.random.recipes import RandomChooser

from glassgrad import Tensor, dtypes
from glassgrad.devices.python.device import PythonDevice
from glassgrad.engine import pipeline
from glassgrad.engine.pipeline import write_source
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.opts import Opt, OptOps


def dots(tensor: Tensor, name: str) -> list[UOp]:
    program = write_source(kernel_of(tensor), machine(name)).program
    return [uop for uop in program.uops if uop.op is Ops.DOT]


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_instruction_gives_what_the_product_means(name: str, pair: tuple[str, str]) -> None:
    tensor, want = narrow_product(34, 9, 96, pair)
    found = run_on(PythonDevice("PYTHON", machine(name)), [tensor.uop])
    np.testing.assert_array_equal(found[0], want)
    assert dots(tensor, name)


def test_a_whole_tile_is_dot_products_of_whole_vectors() -> None:
    tensor, _ = narrow_product(60, 64, 64, ("uint8", "int8"))
    found = dots(tensor, "AVX-VNNI")
    assert len(found) == 12, "six rows of two vectors"
    left, right, total = found[0].src
    assert left.dtype is dtypes.uint8.vec(32) and right.dtype is dtypes.int8.vec(32)
    assert total.dtype is dtypes.int32.vec(8)


def test_sums_that_correct_a_sign_are_dot_products_with_one() -> None:
    tensor, _ = narrow_product(60, 64, 64, ("int8", "int8"))
    found = dots(tensor, "AVX-VNNI")
    ones = [dot for dot in found if dot.src[0].op is Ops.STACK]
    assert len(found) == 12 + len(ones) and ones
    assert {source.arg for dot in ones for source in dot.src[0].src} == {1}


def test_too_few_columns_for_a_vector_are_computed_one_by_one() -> None:
    tensor, want = narrow_product(60, 16, 4, ("int8", "int8"))
    assert not dots(tensor, "AVX-VNNI")
    np.testing.assert_array_equal(tensor.numpy(), want)


class DotChooser(RandomChooser):
    """Dot products, then random legal moves."""

    def __call__(self, nest: Nest, target: Target) -> tuple[Opt, ...]:
        slot = self.rng.choice((1, 2))
        return super().__call__(apply_opt(nest, Opt(OptOps.DOT, 2, slot), target), target)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_dot_products_are_exact_with_any_recipe(
    pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(15):
        chooser = DotChooser(seed)
        monkeypatch.setattr(pipeline, "current_policy", lambda chooser=chooser: chooser)
        tensor, want = narrow_product(12, 9, 16, pair)
        device = PythonDevice("PYTHON", machine(("AVX-VNNI", "SSE4.2", "NEON dotprod")[seed % 3]))
        found = run_on(device, [tensor.uop])
        np.testing.assert_array_equal(found[0], want, err_msg=f"{chooser.recipes}")
