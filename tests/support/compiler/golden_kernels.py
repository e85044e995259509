"""The kernels whose text is kept in tests/golden, and the machines that they are written for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.stages import Choose, Nest, Program, Target
from glassgrad.loops import optimize
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.lower import lower
from glassgrad.render import render
from glassgrad.render.c import c_target
from glassgrad.render.cuda import cuda_target
from glassgrad.render.metal import metal_target
from glassgrad.render.opencl import opencl_target
from glassgrad.schedule import schedule
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute
from support.compiler.schedules import memory

TARGETS = {
    "llvm": Target("CPU", "llvm", features="+fma"),
    "c": replace(c_target(), vector_bytes=32, features="+fma"),
    "cuda": cuda_target("sm_80"),
    "metal": metal_target(),
    "opencl": opencl_target(),
}


def no_moves(nest: Nest, target: Target) -> tuple[()]:
    return ()


def add() -> Tensor:
    return memory(4, 4) + memory(4, 4)


def chain() -> Tensor:
    x = memory(8)
    return ((x * 2 + 1).exp() - x).maximum(0)


def sum_rows() -> Tensor:
    return memory(8, 32).sum(1)


def sum_all() -> Tensor:
    return memory(4096).sum()


def softmax() -> Tensor:
    return memory(4, 16).softmax()


def matmul() -> Tensor:
    return memory(4, 8) @ memory(8, 8)


def linear_relu() -> Tensor:
    return (memory(4, 8) @ memory(8, 8) + memory(8)).relu()


def transpose() -> Tensor:
    return memory(6, 4).transpose(0, 1).contiguous()


def conv2d() -> Tensor:
    return memory(1, 2, 5, 5).conv2d(memory(3, 2, 3, 3), padding=1)


def embedding() -> Tensor:
    return memory(10, 8)[memory(3, dtype=dtypes.int32)]


def cast_half() -> Tensor:
    return memory(8, dtype=dtypes.half).cast(dtypes.float) * 3


def round_to_half() -> Tensor:
    return (memory(8) * 3).cast(dtypes.half)


def assign_in_place() -> Tensor:
    x = memory(8)
    return x.assign(x * 0.5 + 1)


def integer_division() -> Tensor:
    return memory(4, dtype=dtypes.int32) // memory(4, dtype=dtypes.int32)


def padded() -> Tensor:
    return memory(5).pad(((2, 1),)) + 1


KERNELS: dict[str, tuple[Callable[[], Tensor], Choose]] = {
    "add": (add, heuristic),
    "add_without_moves": (add, no_moves),
    "chain": (chain, heuristic),
    "sum_rows": (sum_rows, heuristic),
    "sum_all": (sum_all, heuristic),
    "softmax": (softmax, no_moves),
    "matmul": (matmul, heuristic),
    "linear_relu": (linear_relu, no_moves),
    "transpose": (transpose, heuristic),
    "conv2d": (conv2d, no_moves),
    "embedding": (embedding, heuristic),
    "cast_half": (cast_half, heuristic),
    "round_to_half": (round_to_half, heuristic),
    "assign_in_place": (assign_in_place, heuristic),
    "integer_division": (integer_division, no_moves),
    "padded": (padded, heuristic),
}


def programs(kernel: str, target: Target) -> list[Program]:
    """The programs that a target gets for one of the kernels."""
    build, choose = KERNELS[kernel]
    roots, *_ = collect_values([build().uop])
    made = schedule(graph_to_compute(roots), target)
    return [lower(optimize(found, target, choose), target) for found in made.kernels]


def written(kernel: str, language: str) -> str:
    """The text of a kernel in a language."""
    target = TARGETS[language]
    texts = [render(program, target).text for program in programs(kernel, target)]
    return "\n\n".join(text.rstrip() for text in texts) + "\n"
