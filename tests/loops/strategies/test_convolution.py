"""Convolutions: which axis has the lanes, what is copied, and that values are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps


def shaped(batch: int, channels: int, out: int, size: int, padding: int = 0) -> Nest:
    y = memory(batch, channels, size, size).conv2d(memory(out, channels, 3, 3), padding=padding)
    (kernel,) = planned(y).kernels
    return optimize(kernel, TARGET, current_policy())


def moves(nest: Nest) -> list[OptOps]:
    return [opt.op for opt in nest.recipe]


def test_small_images_have_lanes_along_channels() -> None:
    found = moves(shaped(2, 32, 32, 9))
    assert OptOps.LANES in found
    assert OptOps.CACHE_READ not in found  # no zeros around: it is read where it is


def test_few_steps_of_the_sum_have_lanes_along_rows() -> None:
    assert OptOps.LANES not in moves(shaped(2, 1, 32, 34))


def test_a_padded_image_is_copied_with_its_zeros() -> None:
    nest = shaped(2, 32, 32, 14, padding=1)
    assert OptOps.CACHE_READ in moves(nest)
    shapes = [node.arg for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert (1, 16, 32, 16) in shapes, "rows of all channels, one behind the other"
    elements = sum(scratch_of(nest).values())
    assert elements <= 32 * 16 * 16 + 32 * 32 * 9  # an image and the weights, not every window


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize(("channels", "out", "size"), [(5, 7, 9), (16, 24, 7), (3, 33, 13)])
def test_values_are_right(channels: int, out: int, size: int, padding: int, stride: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((2, channels, size, size)).astype(np.float32)
    w = rng.standard_normal((out, channels, 3, 3)).astype(np.float32)
    found = Tensor(x).conv2d(Tensor(w), padding=padding, stride=stride).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("ncyxij,ocij->noyx", windows[:, :, ::stride, ::stride], w)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def scratch_of(nest: Nest) -> dict[int, int]:
    """Elements in scratch by argument that they come from."""
    found: dict[int, int] = {}
    for node in nest.body.toposort():
        if node.op is Ops.STAGE and node.src[0].op is not Ops.REDUCE:
            (slot,) = {n.arg.slot for n in node.src[0].toposort() if n.op is Ops.PARAM}
            found[slot] = int(np.prod(node.arg))
    return found


def test_image_rows_that_no_tile_fits_are_flattened() -> None:
    nest = shaped(8, 64, 64, 14, padding=1)
    assert OptOps.COALESCE in moves(nest)
    tiles = [opt.arg for opt in nest.recipe if opt.op is OptOps.UPCAST]
    assert 6 in tiles, "33 tiles of 6 for 196 pixels; three of 5 for every row of 14 waste more"


def test_an_image_that_fits_the_cache_is_copied_once_for_all_channels() -> None:
    nest = shaped(1, 128, 256, 7, padding=1)
    (copied,) = [n for n in nest.body.toposort() if n.op is Ops.STAGE and n.src[0].src[0].gate]
    assert not copied.ranges, "no loop is around the copy"


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_weights_that_outgrow_the_cache_are_packed_once(cores: int) -> None:
    y = memory(8, 256, 14, 14).conv2d(memory(256, 256, 3, 3), padding=1)
    (kernel,) = planned(y).kernels
    nest = optimize(kernel, replace(TARGET, cores=cores), current_policy())
    stages = [n for n in nest.body.toposort() if n.op is Ops.STAGE]
    (packed,) = [n for n in stages if n.src[0].op is Ops.LOAD and not n.src[0].src[0].gate]
    assert np.prod([r.size for r in packed.ranges], dtype=int) * np.prod(packed.arg) == 256 * 2304
    around = {r.axis for r in packed.ranges}
    images = next(r for r in nest.outer if r.size == 8 and r.axis == 0)
    assert images.axis not in around
    outside = nest.outer[: nest.outer.index(images)]
    assert all(r.kind is not AxisKind.LOOP or r.axis in around for r in outside)


def test_the_scratch_of_a_convolution_is_an_image_and_weights() -> None:
    found = scratch_of(shaped(8, 64, 64, 14, padding=1))
    assert found == {1: 64 * 16 * 16, 2: 64 * 64 * 9}
