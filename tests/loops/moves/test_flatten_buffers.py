"""Buffer axes that one loop index addresses become one."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import kernel_of, results
from support.compiler.programs import TARGET
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops import optimize
from glassgrad.loops.moves.coalesce import coalesce_loops
from glassgrad.loops.moves.flatten_buffers import flatten_buffer_axes


def merged(tensor: Tensor) -> Nest:
    kernel = kernel_of(tensor)
    return coalesce_loops(Nest(kernel.body, kernel.outer, kernel.may_alias))


def shapes(nest: Nest) -> dict[int, tuple[int, ...]]:
    return {n.arg.slot: n.arg.shape for n in nest.body.toposort() if n.op is Ops.PARAM}


def joined_heads() -> Tensor:
    """The gradient of a weight: rows that were heads, times columns."""
    heads = memory(16, 3, 6, 8)
    return heads.reshape(16, 144).transpose() @ memory(16, 12)


def test_reshaped_buffers_are_flattened() -> None:
    before = merged(joined_heads())
    nest = flatten_buffer_axes(before)
    assert shapes(before)[1] == (16, 3, 6, 8) and shapes(nest)[1] == (16, 144)
    divisions = [n for n in nest.body.toposort() if n.op in (Ops.FLOORDIV, Ops.FLOORMOD)]
    assert not divisions
    for one, two in zip(results(before), results(nest), strict=True):
        np.testing.assert_allclose(one.reshape(-1), two.reshape(-1), rtol=1e-5)


def test_axes_that_are_indexed_separately_stay_separate() -> None:
    nest = merged(memory(16, 3, 6, 8).permute(1, 0, 2, 3).sum(0) + 1)
    assert shapes(flatten_buffer_axes(nest)) == {0: (16, 48), 1: (16, 3, 48)}


def test_axes_that_are_not_contiguous_stay_separate() -> None:
    turned = memory(6, 16, 8).permute(1, 0, 2).reshape(16, 48)
    nest = merged(turned.transpose() @ memory(16, 12))
    assert shapes(flatten_buffer_axes(nest))[1] in ((6, 16, 8), (16, 6, 8))


def test_a_gate_needs_its_axes() -> None:
    image = memory(4, 6, 8).pad(((0, 0), (1, 1), (1, 1))).reshape(4, 80)
    nest = merged(image.transpose() @ memory(4, 12))
    assert shapes(flatten_buffer_axes(nest)) == shapes(nest)


def test_gradients_of_concatenated_heads_pack_contiguous_runs() -> None:
    """1152 rows are cut at 576 for two cores, which no head ends at."""
    wide = replace(TARGET, vector_bytes=64, registers=32, cores=2)
    heads = memory(2048, 3, 6, 64).reshape(2048, 1152)
    nest = optimize(kernel_of(heads.transpose() @ memory(2048, 384)), wide)
    plain = optimize(kernel_of(memory(2048, 1152).transpose() @ memory(2048, 384)), wide)
    assert nest.name == plain.name


@pytest.mark.parametrize("seed", [1, 3])
def test_values_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = rng.integers(-4, 5, (40, 3, 6, 8)).astype(np.float32)
    other = rng.integers(-4, 5, (40, 24)).astype(np.float32)
    found = Tensor(heads).reshape(40, 144).transpose() @ Tensor(other)
    np.testing.assert_array_equal(found.numpy(), heads.reshape(40, 144).T @ other)


def test_an_axis_of_one_element_does_not_keep_others_apart() -> None:
    copied = memory(2, 8, 333, 32).unsqueeze(2).cast("float16").contiguous()
    nest = flatten_buffer_axes(merged(copied))
    assert shapes(nest) == {0: (170496,), 1: (170496,)}
    assert optimize(kernel_of(copied), TARGET)  # every element is proved to be written
