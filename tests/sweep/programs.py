"""random.Random -> one program of a family, with sizes that models have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes

WIDTHS = (64, 256, 768, 1024, 2048, 2560, 3072, 4096, 5120, 8192)
LENGTHS = (1, 2, 7, 16, 32, 100, 128, 333, 512, 1024, 2048)
VOCABULARIES = (131, 1000, 32_000, 50_257, 128_256)
FLOATS = ("float32", "float16", "bfloat16", "float64")
ALL_DTYPES = tuple(str(d.name) for d in dtypes.all)
Program = Callable[[Random], None]
FAMILIES: dict[str, Program] = {}


def family(program: Program) -> Program:
    FAMILIES[program.__name__] = program
    return program


def some(*shape: int, dtype: str = "float32", learns: bool = False) -> Tensor:
    """A tensor in memory, which nobody has written."""
    return Tensor.empty(*shape, dtype=dtype, requires_grad=learns or None).realize()


def indices(*shape: int) -> Tensor:
    return some(*shape, dtype="int32")


def with_gradients(result: Tensor, *targets: Tensor) -> None:
    """A value and its gradients, computed together or one after the other."""
    Tensor.realize(result, *result.square().mean().gradient(*targets))
