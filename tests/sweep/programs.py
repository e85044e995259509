"""Families of random programs, with the sizes of real models."""

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
MakeInput = Callable[[tuple[int, ...], str], Tensor]
INPUTS: list[MakeInput] = [lambda shape, dtype: Tensor.empty(*shape, dtype=dtype)]


def family(program: Program) -> Program:
    FAMILIES[program.__name__] = program
    return program


def memory(*shape: int, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """A tensor in memory, made by the last of INPUTS."""
    made = INPUTS[-1](shape, dtype).realize()
    return made.requires_grad_() if requires_grad else made


def indices(*shape: int) -> Tensor:
    return memory(*shape, dtype="int32")


def with_gradients(result: Tensor, *targets: Tensor) -> None:
    """Compute a value together with gradients of it."""
    Tensor.realize(result, *result.square().mean().gradient(*targets))
