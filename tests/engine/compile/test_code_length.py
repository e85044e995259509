"""Code has a bounded length, which bounds the time of LLVM."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.compiler.nests import kernel_of
from support.compiler.schedules import TARGET, memory, planned
from sweep.dry_run import TARGETS, dry_cpu

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.engine.compile.code_length import (
    MAX_INSTRUCTIONS,
    halve_unrolling,
    lower_within_limit,
)
from glassgrad.ir.ops import AxisKind
from glassgrad.ir.stages import Kernel, Nest
from glassgrad.ir.strides import written_stride
from glassgrad.loops import optimize
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.lower import lower
from glassgrad.lower.scope import TooManyInstructionsError

SHORT = 1000  # instructions; a bound for expressions of a few ops
MakeTensor = Callable[[], Tensor]
EXPRESSIONS: dict[str, MakeTensor] = {
    "product of random matrices": lambda: Tensor.randn(64, 10) @ Tensor.randn(10, 1),
    "product with a random matrix": lambda: Tensor.randn(200, 3) @ memory(3, 1),
    "sum of random numbers": lambda: Tensor.randn(64, 10).sum(0),
    "random rows": lambda: Tensor.randn(64, 10).softmax(),
    "choices": lambda: memory(64, 10).softmax().multinomial(1),
    "permutation": lambda: Tensor.randperm(100),
    "gathered": lambda: memory(64, 10).gather(0, memory(20, 10, dtype=dtypes.int32)),
    "looked up": lambda: memory(640)[memory(309, dtype=dtypes.int32)],
    "looked up in two axes": lambda: memory(64, 10)[
        memory(309, dtype=dtypes.int32), memory(309, dtype=dtypes.int32)
    ],
    "sorted": lambda: memory(64, 10).sort()[0],
    "largest": lambda: memory(64, 10).topk(3)[0],
    "orthogonal": lambda: memory(8, 8).qr()[0],
    "normalised": lambda: memory(64, 10).layernorm(),
    "enlarged": lambda: memory(1, 8, 32, 32).interpolate((64, 64)),
    "powers": lambda: memory(64, 10).abs() ** memory(64, 10),
    "remainders": lambda: memory(64, 10) % 2.5,
    "convolved": lambda: memory(1, 8, 32, 32).conv2d(memory(8, 8, 3, 3), padding=1),
    "sound": lambda: memory(4, 1, 16_000).conv2d(memory(64, 1, 15), padding=7),
    "attention": lambda: memory(1, 2, 64, 32).scaled_dot_product_attention(
        memory(1, 2, 64, 32), memory(1, 2, 64, 32)
    ),
}
LONGER = {"random rows": 1100, "looked up in two axes": 1400, "sound": MAX_INSTRUCTIONS}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_an_expression_of_a_few_ops_becomes_short_code(name: str, target: str) -> None:
    Tensor.manual_seed(1)
    with dry_cpu(TARGETS[target]) as device:
        EXPRESSIONS[name]().realize()
    lengths = [len(source.program.uops) for source in device.sources]
    assert max(lengths) <= LONGER.get(name, SHORT)


def test_lanes_are_of_rows_and_not_of_the_one_number_that_each_row_has() -> None:
    """A lookup and its gradient: the kernel stores indices and rows."""
    table, at = memory(1000, 256), memory(100, dtype=dtypes.int32)
    rows = table[at]
    made = planned(rows, *rows.square().mean().gradient(table))
    kernel = next(k for k in made.kernels if {len(s.bound) for s in k.body.src} == {1, 2})
    nest = optimize(kernel, TARGET)
    wide = [store for store in nest.body.src if store.buffer.arg.shape == (100, 256)]
    assert wide
    for store in wide:
        (lanes,) = [r for r in store.bound if r.kind is AxisKind.LANE]
        assert written_stride(store, lanes) == 1


def long_nest() -> tuple[Kernel, Nest]:
    """A sum with excessive unrolling."""
    kernel = kernel_of(memory(64, 256).exp().sum(0))
    axis, (store,) = kernel.outer[0], kernel.body.src
    (step,) = store.value.bound
    recipe = (Opt(OptOps.UNROLL, step.axis, 64), Opt(OptOps.UPCAST, axis.axis, 256))
    return kernel, optimize(kernel, TARGET, lambda *_: recipe)


def test_a_nest_with_too_much_code_is_unrolled_less() -> None:
    kernel, nest = long_nest()
    with pytest.raises(TooManyInstructionsError):
        lower(nest, TARGET, MAX_INSTRUCTIONS)
    tried: list[Nest] = []
    shorter, program = lower_within_limit(kernel, nest, TARGET, tried.append)
    assert tried[0] is nest and tried[-1] is shorter and len(tried) > 1
    assert len(program.uops) <= MAX_INSTRUCTIONS < len(lower(nest, TARGET).uops)


def test_short_code_is_not_affected_by_the_limit() -> None:
    kernel = kernel_of(memory(64, 64).exp())
    nest = optimize(kernel, TARGET)
    assert lower_within_limit(kernel, nest, TARGET, lambda _: None)[1] == lower(nest, TARGET)


def test_without_unrolling_the_limit_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("glassgrad.engine.compile.code_length.MAX_INSTRUCTIONS", 3)
    kernel = kernel_of(memory(64, 64).exp())
    plain, program = lower_within_limit(kernel, optimize(kernel, TARGET), TARGET, lambda _: None)
    assert not any(opt.op is OptOps.UPCAST for opt in plain.recipe)
    assert len(program.uops) > 3


def test_the_largest_moves_are_halved_first() -> None:
    up, down = Opt(OptOps.UPCAST, 0, 64), Opt(OptOps.UNROLL, 1, 10)
    core = Opt(OptOps.CORE, 0)
    assert halve_unrolling((up, down, core)) == (Opt(OptOps.UPCAST, 0, 16), down, core)
    assert halve_unrolling((Opt(OptOps.UPCAST, 0, 8), down)) == (
        Opt(OptOps.UPCAST, 0, 4),
        Opt(OptOps.UNROLL, 1, 5),
    )
    assert halve_unrolling((Opt(OptOps.UNROLL, 1, 3), core)) == (core,)
    assert halve_unrolling((core,)) == (core,)
