"""Coverage of stores: proofs are right, loop moves preserve coverage, planted defects are found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiler.index_expressions import (
    MEANING,
    RANGES,
    everywhere,
    expressions,
    memory,
    value_of,
)
from support.compiler.nests import GPU, kernel_of
from support.compiler.schedules import TARGET
from support.compiler.schedules import memory as in_memory
from support.random.recipes import RandomChooser

from glassgrad.base.dtype import dtypes
from glassgrad.ir.coverage import (
    CoverageError,
    Footprint,
    check_stores,
    coverage_of,
    difference,
    uncovered,
    whole_buffer,
)
from glassgrad.ir.divmod import conjunction, less
from glassgrad.ir.linear import add, minimum, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.ir.value_sets import Unproved
from glassgrad.loops import optimize
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.lower import lower

CONDITIONS = st.lists(st.builds(less, expressions(), st.integers(-3, 9)), max_size=2)


def store_at(place: UOp, *loops: UOp, size: int = 1 << 20, op: Ops | None = None) -> UOp:
    value = const(1.0, dtypes.float32)
    return UOp(Ops.STORE, dtypes.void, (memory(size).index(place), value, *loops), op)


def elements(found: Footprint) -> set[int]:
    """All addresses of a footprint."""
    assert not found.start
    steps = [[d.unit * k for k in range(int(d.size))] for d in found.digits]  # type: ignore[call-overload]
    return {found.first + sum(chosen) for chosen in product(*steps)}


# ---------------------------------------------------------------------- what is written


@settings(max_examples=400)
@given(expressions(), CONDITIONS)
def test_a_footprint_is_the_set_of_addresses_written(address: UOp, conditions: list[UOp]) -> None:
    index = memory(1 << 20).index(address, gate=conjunction(tuple(conditions)))
    store = UOp(Ops.STORE, dtypes.void, (index, const(1.0, dtypes.float32), *RANGES))
    try:
        footprint, is_injective = coverage_of(store)
    except Unproved:
        return
    gate = index.gate
    written = [value_of(address, at) for at in everywhere() if gate is None or value_of(gate, at)]
    assert elements(footprint) == set(written)
    assert not is_injective or len(set(written)) == len(written)


def test_a_condition_may_leave_one_element() -> None:
    one, two = RANGES[:2]
    index = memory(1 << 20).index(one, gate=less(sub(two, one), 0))
    store = UOp(Ops.STORE, dtypes.void, (index, const(1.0, dtypes.float32), *RANGES))
    footprint, is_injective = coverage_of(store)
    assert elements(footprint) == {1}
    assert not is_injective  # the third loop repeats it


def blocks_of(size: int, amount: int, number: int) -> tuple[UOp, tuple[UOp, ...]]:
    """for i in size, in blocks of which the last one ends with the axis."""
    coarse, fine = make_range(number, -(-size // amount)), make_range(number + 1, amount)
    start = scale(coarse, amount)
    if size % amount:
        start = minimum(start, const(size - amount))
    return add(start, fine), (coarse, fine)


@pytest.mark.parametrize("size", [1, 7, 64, 97, 1000, 1 << 24])
@pytest.mark.parametrize("amount", [3, 8, 64])
def test_blocks_with_a_tail_that_overlaps_are_the_whole_axis(size: int, amount: int) -> None:
    amount = min(amount, size)
    place, loops = blocks_of(size, amount, 0)
    footprint, is_injective = coverage_of(store_at(place, *loops, size=size))
    assert footprint == whole_buffer((size,), (1,))
    assert is_injective == (size % amount == 0)


def test_tails_of_tails() -> None:
    outer, outside = blocks_of(13, 5, 0)
    place = add(scale(outer, 8), make_range(2, 8))
    tail = minimum(place, const(13 * 8 - 11))  # the beginning of eleven elements each
    inner = make_range(3, 11)
    store = store_at(add(tail, inner), *outside, make_range(2, 8), inner, size=13 * 8)
    assert coverage_of(store).footprint == whole_buffer((104,), (1,))


def test_coalesced_axes_of_a_transposed_buffer_cover_it() -> None:
    kernel = kernel_of(in_memory(24, 36).T.contiguous())
    rows, columns = kernel.outer
    joined = apply_opt(
        Nest(kernel.body, kernel.outer), Opt(OptOps.COALESCE, rows.axis, columns.axis), TARGET
    )
    cut = apply_opt(joined, Opt(OptOps.UPCAST, rows.axis, 5), TARGET)
    assert difference(kernel.body, cut.body) is None
    assert uncovered(cut.body) == {}


def test_a_size_known_only_at_launch_stays_what_it_is() -> None:
    n, m = (UOp(Ops.VARIABLE, dtypes.index, (), (name, 1, 64)) for name in "nm")
    rows, columns = make_range(0, n), make_range(1, 8)
    whole = store_at(add(scale(rows, 8), columns), rows, columns, size=512)
    other = make_range(0, m)
    different = store_at(add(scale(other, 8), columns), other, columns, size=512)
    assert coverage_of(whole) != coverage_of(different)
    assert coverage_of(whole, at_largest=True).footprint == whole_buffer((512,), (1,))
    assert difference(sink(whole), sink(different)) is not None


def sink(*stores: UOp) -> UOp:
    return UOp(Ops.SINK, dtypes.void, stores)


def test_a_part_of_a_buffer_is_not_all_of_it() -> None:
    half = make_range(0, 50)
    assert uncovered(sink(store_at(half, half, size=50))) == {}
    (why,) = uncovered(sink(store_at(half, half, size=100))).values()
    assert why == "some are left out"
    (why,) = uncovered(sink(store_at(half, half, size=50, op=Ops.ADD))).values()
    assert why == "nothing is stored"
    both = sink(store_at(half, half, size=50), store_at(half, half, size=50, op=Ops.ADD))
    assert uncovered(both) == {}


# ---------------------------------------------------------------------- loop moves keep it


def some_kernels() -> dict[str, Kernel]:
    x = in_memory(70, 45)
    total = in_memory(1000, 64).sum(0)
    attention = in_memory(2, 3, 130, 16).scaled_dot_product_attention(
        in_memory(2, 3, 130, 16), in_memory(2, 3, 130, 16), is_causal=True
    )
    return {
        "elementwise": kernel_of(x.exp()),
        "transposed": kernel_of(x.T.contiguous()),
        "padded": kernel_of(x.pad(((1, 2), (3, 1))) * 2),
        "product": kernel_of((in_memory(37, 65) @ in_memory(65, 50)).relu()),
        "softmax": kernel_of(x.softmax()),
        "two outputs": kernel_of(total, total.unsqueeze(0)),
        "attention": kernel_of(attention),
        "convolution": kernel_of(in_memory(1, 8, 13, 13).conv2d(in_memory(8, 8, 3, 3), padding=1)),
        "scattered": kernel_of(in_memory(90, dtype=dtypes.int32).one_hot(128).float().sum(0)),
        "joined heads": kernel_of(in_memory(2, 5, 24, 8).permute(0, 2, 1, 3).reshape(48, 40) + 1),
    }


KERNELS = some_kernels()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", [TARGET, GPU], ids=["cpu", "gpu"])
def test_random_recipes_are_proved(name: str, target: Target) -> None:
    kernel = KERNELS[name]
    assert uncovered(kernel.body) == {}
    optimize(kernel, target)
    for seed in range(25):
        optimize(kernel, target, RandomChooser(seed))


# ---------------------------------------------------------------------- planted defects


def defects(body: UOp) -> Iterator[tuple[str, UOp]]:
    """The same nest with one mistake: a store is missing, or its loops or places are wrong."""
    for store in body.src:
        if store.op is not Ops.STORE:
            continue
        if store.arg is None:
            alike = [s for s in body.src if s.op is Ops.STORE and s.buffer is store.buffer]
            if len(alike) == 1:
                yield "a store is dropped", sink(*[s for s in body.src if s is not store])
        for number, loop in enumerate(store.bound):
            if loop.src[0].is_const and loop.size > 1:
                short = make_range(loop.axis, loop.size - 1, loop.kind)
                yield "a loop is shorter", exchanged(body, store, loop, short)
            if loop in store.src[0].ranges:
                kept = (*store.src[: 2 + number], *store.src[3 + number :])
                other = UOp(store.op, store.dtype, kept, store.arg)
                yield "a loop is not there", body.substitute({store: other})
        if store.arg is None:
            yield from wrong_places(body, store)


def exchanged(body: UOp, store: UOp, loop: UOp, other: UOp) -> UOp:
    """The body with another loop around one store; what it stores is of no account here."""
    src = [source.substitute({loop: other}) for source in (store.src[0], *store.src[2:])]
    value = store.value.const_like(1)
    return body.substitute(
        {store: UOp(store.op, store.dtype, (src[0], value, *src[1:]), store.arg)}
    )


def wrong_places(body: UOp, store: UOp) -> Iterator[tuple[str, UOp]]:
    index = store.src[0]
    moving = [(axis, i) for axis, i in enumerate(index.indices) if i.ranges]
    for axis, place in moving:
        narrow = less(place, int(place.vmax))
        if narrow.op is not Ops.CONST:
            gate = narrow if index.gate is None else index.gate & narrow
            gated = index.src[0].index(*index.indices, gate=gate)
            yield "a gate is too narrow", with_index(body, store, gated)
        apart = scale(place, 2)
        places = [apart if a == axis else i for a, i in enumerate(index.indices)]
        yield "places lie apart", with_index(body, store, index.src[0].index(*places))
    tails = [node for node in index.toposort() if node.op is Ops.MIN]
    for tail in tails:
        missed = index.substitute({tail: minimum(tail.src[0], const(tail.src[1].arg - 1))})
        yield "a tail begins too early", with_index(body, store, missed)


def with_index(body: UOp, store: UOp, index: UOp) -> UOp:
    return body.substitute({store: UOp(store.op, store.dtype, (index, *store.src[1:]), store.arg)})


def elements_written(body: UOp) -> dict[int, set[int]] | None:
    """What plain stores write, by running all of their loops; None where a loop is not there."""
    found: dict[int, set[int]] = {}
    for store in body.src:
        if store.op is not Ops.STORE or store.arg is not None:
            continue
        index, loops = store.src[0], store.bound
        if not index.ranges <= set(loops):
            return None
        grid = np.indices([r.size for r in loops]).reshape(len(loops), -1)
        known = dict(zip(loops, grid, strict=True))
        strides = index.src[0].arg.strides
        places = sum([value_at(i, known) * s for i, s in zip(index.indices, strides, strict=True)])
        places = np.broadcast_to(places, grid.shape[1:])
        if index.gate is not None:
            places = places[np.broadcast_to(value_at(index.gate, known), places.shape)]
        found.setdefault(index.src[0].arg.slot, set()).update(places.tolist())
    return found


ELEMENTWISE = {**MEANING, Ops.MIN: np.minimum, Ops.AND: np.logical_and}


def value_at(node: UOp, known: dict[UOp, Any]) -> Any:
    if node.op is Ops.CONST:
        return node.arg
    if node not in known:
        known[node] = ELEMENTWISE[node.op](*[value_at(source, known) for source in node.src])
    return known[node]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", [TARGET, GPU], ids=["cpu", "gpu"])
def test_planted_defects_are_refused(name: str, target: Target) -> None:
    kernel = KERNELS[name]
    wanted = elements_written(kernel.body)
    recipes: list[Any] = [heuristic, *[RandomChooser(seed) for seed in range(6)]]
    found: set[str] = set()
    for choose in recipes:
        nest = optimize(kernel, target, choose)
        assert elements_written(nest.body) == wanted
        for what, body in defects(nest.body):
            if elements_written(body) != wanted:  # a shorter loop may have been longer than needed
                assert difference(kernel.body, body, nest.may_alias) is not None, what
                found.add(what)
    assert {"a loop is not there", "a loop is shorter", "a gate is too narrow"} <= found


def test_an_axis_in_blocks_without_its_tail_is_refused() -> None:
    kernel = kernel_of(in_memory(100).exp())
    (store,) = kernel.body.src
    coarse, fine = make_range(0, 12), make_range(1, 8)
    missed = store.src[0].src[0].index(add(scale(coarse, 8), fine))
    body = sink(UOp(Ops.STORE, dtypes.void, (missed, store.value.const_like(1), coarse, fine)))
    assert difference(kernel.body, body) == "argument 0: other elements are stored"


def test_what_is_read_and_written_is_not_written_twice() -> None:
    x = in_memory(100)
    x += 1
    kernel = kernel_of(x)
    assert kernel.may_alias
    (loop,), (store,) = kernel.outer, kernel.body.src
    place, loops = blocks_of(100, 8, 0)
    moved = [source.substitute({loop: place}) for source in store.src[:2]]
    twice = sink(UOp(Ops.STORE, dtypes.void, (*moved, *loops)))
    assert difference(kernel.body, twice) is None
    assert "stored twice" in str(difference(kernel.body, twice, may_alias=True))


def test_sums_accumulate_only_in_initialized_memory() -> None:
    kernel = KERNELS["two outputs"]
    nest = optimize(kernel, TARGET)
    kept = [store for store in nest.body.src if store.arg is Ops.ADD]
    assert kept, "this kernel collects its sum in memory"
    last = sink(*[s for s in nest.body.src if s not in kept], *kept)
    swapped = sink(*kept, *[s for s in nest.body.src if s not in kept])
    assert difference(kernel.body, last) is None
    assert "never stored" in str(difference(kernel.body, swapped))


def test_scattered_additions_happen_as_often_as_before() -> None:
    kernel = KERNELS["scattered"]
    start, added = kernel.body.src
    twice = sink(start, UOp(added.op, added.dtype, (*added.src, make_range(99, 2)), added.arg))
    assert "more or less often" in str(difference(kernel.body, twice))


# ---------------------------------------------------------------------- instructions


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", [TARGET, GPU], ids=["cpu", "gpu"])
def test_a_program_without_one_of_its_stores_is_refused(name: str, target: Target) -> None:
    nest = optimize(KERNELS[name], target)
    if any(s.op is not Ops.STORE or s.src[0].gate is not None for s in nest.body.src):
        pytest.skip("how often a store under a condition runs is not counted")
    program = lower(nest, target).uops
    stores = [line for line in program if line.op is Ops.STORE and is_argument(line)]
    assert stores
    for store in stores:
        with pytest.raises(CoverageError, match="its instructions"):
            check_stores(nest.body, [line for line in program if line is not store])


def is_argument(line: UOp) -> bool:
    pointer = line.src[0]
    while pointer.op in (Ops.INDEX, Ops.AFTER):
        pointer = pointer.src[0]
    return pointer.op is Ops.PARAM


def test_a_store_that_is_listed_twice_is_one_line() -> None:
    x = in_memory(24)
    x.assign(x * x)
    kernel = kernel_of(x)
    twice = Nest(sink(*kernel.body.src, *kernel.body.src), kernel.outer, may_alias=True)
    assert len([n for n in lower(twice, TARGET).uops if n.op is Ops.STORE]) == 1
