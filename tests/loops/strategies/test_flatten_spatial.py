"""Image rows and columns as one axis: in one block while the image fits the cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.compiler.nests import kernel_of
from support.compiler.programs import TARGET
from support.compiler.schedules import memory

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.loops.strategies.flatten_spatial import flatten_spatial_axes
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder


def drafted(size: int, target: Target, channels: int = 16) -> RecipeBuilder:
    kernel = kernel_of(memory(2, channels, size, size).conv2d(memory(8, channels, 3, 3), padding=1))
    return RecipeBuilder(Nest(kernel.body, kernel.outer, kernel.may_alias), target)


def joined(builder: RecipeBuilder) -> dict[int, int]:
    """The sizes of the loops over results after joining, by number."""
    (reduce,) = builder.binders(Ops.REDUCE)
    image = next(index for index in builder.loads(reduce) if index.gate is not None)
    spatial_axes = {builder.nest.outer[-2], builder.nest.outer[-1]}
    number = flatten_spatial_axes(builder, image, spatial_axes, 4)
    assert number is not None
    sizes = {r.axis: r.size for r in builder.nest.outer}
    assert builder.nest.outer[-1].axis == number
    return sizes


def test_a_small_image_has_one_spatial_axis() -> None:
    assert list(joined(drafted(14, TARGET)).values()) == [2, 8, 196]


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_a_large_image_is_blocked_by_rows(cores: int) -> None:
    target = replace(TARGET, cores=cores, l2_bytes=64 << 10)
    sizes = list(joined(drafted(56, target)).values())
    blocks, pixels = sizes[-2:]
    rows = pixels // 56
    assert sizes[:2] == [2, 8] and blocks * rows >= 56 > (blocks - 1) * rows
    assert blocks % cores == 0
    assert 16 * (rows + 2) * 58 * 4 <= target.l2_bytes // 2, "a block with the rows around it"


def test_one_spatial_axis_is_not_flattened() -> None:
    kernel = kernel_of(memory(2, 4, 30).conv2d(memory(8, 4, 3)))
    builder = RecipeBuilder(Nest(kernel.body, kernel.outer, kernel.may_alias), TARGET)
    (reduce,) = builder.binders(Ops.REDUCE)
    spatial_axes = {r for r in builder.nest.outer[-1:] if r.kind is AxisKind.LOOP}
    before = builder.nest
    assert flatten_spatial_axes(builder, builder.loads(reduce)[0], spatial_axes, 4) is None
    assert builder.nest is before
