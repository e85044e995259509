"""Steps of reductions: loop moves keep how many there are, and planted defects are found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nests import GPU, kernel_of
from random_recipes import RandomChooser
from schedules import TARGET, planned
from schedules import memory as in_memory

from glassgrad.base.dtype import dtypes
from glassgrad.base.records import replace
from glassgrad.ir.coverage import CoverageError, difference
from glassgrad.ir.linear import add, minimum, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops import optimize
from glassgrad.loops.moves import apply_moves
from glassgrad.loops.opts import Opt, OptOps


def cross_entropy() -> list[Kernel]:
    logits, classes = in_memory(96, 50), in_memory(96, dtype=dtypes.int32)
    loss = logits.sparse_categorical_crossentropy(classes)
    return list(planned(loss, *loss.gradient(logits)).kernels)


def attention_backward() -> list[Kernel]:
    q, k, v = (in_memory(2, 4, 128, 16) for _ in range(3))
    loss = (q.scaled_dot_product_attention(k, v) ** 2).sum()
    return list(planned(*loss.gradient(q, k, v)).kernels)


def some_kernels() -> dict[str, Kernel]:
    x = in_memory(70, 45)
    return {
        "sum": kernel_of(x.sum(1)),
        "column sum": kernel_of(in_memory(1000, 64).sum(0)),
        "column max": kernel_of(in_memory(1000, 64).max(0)),
        "max": kernel_of(x.max(1)),
        "argmax": kernel_of(x.argmax(1)),
        "product": kernel_of(in_memory(37, 65) @ in_memory(65, 50)),
        "softmax": kernel_of(x.softmax()),
        **{f"cross-entropy {n}": kernel for n, kernel in enumerate(cross_entropy())},
        **{f"attention backward {n}": kernel for n, kernel in enumerate(attention_backward())},
    }


KERNELS = some_kernels()


def defects(body: UOp) -> Iterator[tuple[str, UOp]]:
    """The same nest with one mistake in a reduction."""
    for node in body.toposort():
        if node.op is Ops.REDUCE:
            yield (
                "it is done twice",
                body.substitute({node: with_loops(node, [*node.bound, TWICE])}),
            )
            yield "it is left out", body.substitute({node: node.value})
            for number, loop in enumerate(node.bound):
                short = make_range(loop.axis, loop.size - 1, loop.kind)
                loops = [*node.bound[:number], short, *node.bound[number + 1 :]]
                if loop.size > 1:
                    wrong = UOp(Ops.REDUCE, node.dtype, (node.value, *loops), node.arg)
                    wrong = wrong.substitute({loop: short})
                    yield "a loop is shorter", body.substitute({node: wrong})
    for store in body.src:
        if len(body.src) > 1:
            yield "a store is dropped", sink(*[one for one in body.src if one is not store])
        if store.arg is not None:
            twice = with_loops(store, [*store.bound, TWICE])
            yield "it is combined twice", body.substitute({store: twice})


TWICE = make_range(9999, 2)


def with_loops(node: UOp, loops: list[UOp]) -> UOp:
    fixed = node.src[: len(node.src) - len(node.bound)]
    return UOp(node.op, node.dtype, (*fixed, *loops), node.arg)


def sink(*stores: UOp) -> UOp:
    return UOp(Ops.SINK, dtypes.void, stores)


# Padded loops may be longer than needed; what threads made of their parts is not counted.
NOT_COUNTED = frozenset((OptOps.PADTO, OptOps.GROUP, OptOps.GROUPTOP, OptOps.WINDOW))


@pytest.mark.parametrize("name", KERNELS)
def test_planted_defects_are_refused(name: str) -> None:
    kernel = KERNELS[name]
    for choose in (None, *[RandomChooser(seed) for seed in range(8)]):
        nest = optimize(kernel, TARGET) if choose is None else optimize(kernel, TARGET, choose)
        if NOT_COUNTED.isdisjoint([opt.op for opt in nest.recipe]):
            for what, body in defects(nest.body):
                assert difference(kernel.body, body, nest.rewrites) is not None, what


@pytest.mark.parametrize("name", KERNELS)
def test_random_recipes_are_proved(name: str) -> None:
    for target in (TARGET, GPU):
        for seed in range(15):
            optimize(KERNELS[name], target, RandomChooser(seed))


def moved(kernel: Kernel, *recipe: Opt) -> Nest:
    return apply_moves(Nest(kernel.body, kernel.outer), recipe, TARGET)


@pytest.mark.parametrize("name", ["column sum", "column max"])
def test_a_reduction_in_memory_needs_all_of_its_stores(name: str) -> None:
    """Without the store that combines, a maximum would be -inf."""
    kernel = KERNELS[name]
    (axis,) = kernel.body.src[0].value.bound
    nest = moved(kernel, Opt(OptOps.ACCUMULATE, axis.axis, 8))
    start, more = nest.body.src
    assert difference(kernel.body, nest.body, nest.rewrites) is None
    (coarse,) = [loop for loop in more.bound if loop not in more.src[0].ranges]
    (inner,) = [loop for loop in more.bound if loop in more.src[0].ranges]
    short = make_range(coarse.axis, coarse.size - 1, coarse.kind)
    other = UOp(start.op, start.dtype, (start.src[0], start.value.const_like(7), *start.bound))
    overlapping = minimum(scale(inner, 8), const(inner.size - 8))  # the last elements: twice
    again = more.src[0].substitute({inner: add(overlapping, make_range(9998, 8))})
    blocks = [coarse, make_range(inner.axis, 9), make_range(9998, 8)]
    twice = UOp(more.op, more.dtype, (again, more.value.const_like(1), *blocks), more.arg)
    wrong = {
        "the store that combines is dropped": sink(start),
        "the store that begins is dropped": sink(more),
        "it begins behind the others": sink(more, start),
        "it begins with something": sink(other, more),
        "it is done twice": sink(start, with_loops(more, [*more.bound, TWICE])),
        "two stores combine": sink(start, more, with_loops(more, [*more.bound[1:], coarse])),
        "a step is left out": sink(start, more.substitute({coarse: short})),
        "elements are combined twice": sink(start, twice),
    }
    for what, body in wrong.items():
        assert difference(kernel.body, body, nest.rewrites) is not None, what


def test_a_move_that_loses_what_combines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = KERNELS["column max"]
    (axis,) = kernel.body.src[0].value.bound

    def recipe(nest: Nest, target: Target) -> tuple[Opt, ...]:
        return (Opt(OptOps.ACCUMULATE, axis.axis, 8),)

    def losing(nest: Nest, moves: tuple[Opt, ...], target: Target) -> Nest:
        made = apply_moves(nest, moves, target)
        return replace(made, body=sink(*[s for s in made.body.src if s.arg is None]))

    optimize(kernel, TARGET, recipe)
    monkeypatch.setattr("glassgrad.loops.apply_moves", losing)
    with pytest.raises(CoverageError, match="MAX combines no steps instead of 1000"):
        optimize(kernel, TARGET, recipe)


def test_a_product_in_parts_has_all_of_them() -> None:
    kernel = kernel_of(in_memory(64, 96) @ in_memory(96, 48))
    (reduce,) = [node for node in kernel.body.toposort() if node.op is Ops.REDUCE]
    nest = moved(kernel, Opt(OptOps.PARTIAL, reduce.bound[0].axis, (kernel.outer[0].axis, 24)))
    assert difference(kernel.body, nest.body) is None
    (stage,) = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    (part,) = [loop for loop in stage.bound if loop.size == 4]
    short = make_range(part.axis, 3)
    assert difference(kernel.body, nest.body.substitute({part: short})) is not None
    without = UOp(stage.op, stage.dtype, tuple(s for s in stage.src if s is not part), stage.arg)
    assert difference(kernel.body, nest.body.substitute({stage: without})) is not None
