"""Methods are one kernel or few, and store little beside their results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.compiler.schedules import memory, planned, sizes

from glassgrad import Tensor, dtypes


def ints(*shape: int) -> Tensor:
    return memory(*shape, dtype=dtypes.int32)


def rows() -> Tensor:
    return memory(512, 256)


ONE_KERNEL: dict[str, Callable[[], Tensor]] = {
    "gather": lambda: rows().gather(1, ints(512, 300)),
    "embedding": lambda: memory(32_000, 64)[ints(8, 128)],
    "embedding of computed indices": lambda: memory(32_000, 64)[ints(8, 128) % 7],
    "one_hot @ W": lambda: ints(128).one_hot(1000).float() @ memory(1000, 64),
    "comparison with arange": lambda: (
        (Tensor.arange(1000) == ints(64, 1)).where(memory(1000), 0).sum(1)
    ),
    "triangle": lambda: rows().tril(),
    "max pooling": lambda: memory(4, 8, 32, 32).max_pool2d(2),
    "average pooling": lambda: memory(4, 8, 32, 32).avg_pool2d(3, padding=1),
    "average pooling without padding": lambda: memory(4, 8, 32, 32).avg_pool2d(
        3, padding=1, count_include_pad=False
    ),
    "short cumsum": lambda: memory(1000).cumsum(0),
    "cumsum of rows": lambda: rows().cumsum(1),
    "cat": lambda: rows().cat(rows(), rows()),
    "stack": lambda: rows().stack(rows(), dim=1),
    "pad": lambda: rows().pad((1, 1, 2, 2)),
    "pad reflect": lambda: rows().pad((1, 1, 2, 2), mode="reflect"),
    "pad circular": lambda: rows().pad((1, 1, 2, 2), mode="circular"),
    "roll": lambda: rows().roll((1, 2), (0, 1)),
    "flip and transpose": lambda: rows().flip(0).T + 1,
    "argmax": lambda: rows().argmax(1),
    "standard deviation": lambda: rows().std(1),
    "softplus": lambda: rows().softplus(),
    "elu": lambda: rows().elu(),
    "logaddexp": lambda: rows().logaddexp(rows()),
    "rand": lambda: Tensor.rand(512, 256),
    "random mask": lambda: (Tensor.rand(512, 256) >= 0.5).where(rows(), 0),
    "einsum": lambda: Tensor.einsum("bqhd,bkhd->bhqk", memory(2, 16, 4, 8), memory(2, 16, 4, 8)),
    "transposed convolution": lambda: memory(1, 4, 8, 8).conv_transpose2d(
        memory(4, 3, 3, 3), stride=2
    ),
    "rearrange": lambda: memory(8, 64, 32).rearrange("b (h w) c -> b c h w", h=8) + 1,
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_methods_of_one_kernel(name: str) -> None:
    assert len(planned(ONE_KERNEL[name]()).kernels) == 1


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax"])
def test_a_long_scan_works_in_blocks_and_stores_little_beside_its_result(name: str) -> None:
    found = getattr(memory(1_000_000), name)(0)
    schedule = planned(found[0] if isinstance(found, tuple) else found)
    assert len(schedule.kernels) < 20
    others = sorted(sizes(schedule))[:-1]
    assert max(sizes(schedule)) == 1_000_000
    assert sum(others) < 300_000


def test_interpolation_stores_each_axis_once() -> None:
    schedule = planned(memory(2, 3, 32, 32).interpolate((64, 64)))
    assert sizes(schedule) <= {2 * 3 * 32 * 32, 2 * 3 * 32 * 64, 2 * 3 * 64 * 64, 64}


def test_stacking_many_makes_few_kernels() -> None:
    schedule = planned(Tensor.stack(*[memory(16) for _ in range(100)]))
    assert len(schedule.kernels) <= 10
    assert max(sizes(schedule)) == 1600
