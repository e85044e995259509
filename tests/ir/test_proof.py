"""Bounds proofs: what is proved is in bounds, and everything else gets a gate."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiler.index_expressions import RANGES, everywhere, expressions, memory, value_of

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import conjunction, less, within
from glassgrad.ir.linear import add, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.proof import guard_unproved, is_in_bounds, unproved_indices
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, const

CONDITIONS = st.lists(st.builds(less, expressions(), st.integers(-3, 9)), max_size=2)
ROWS, COLUMNS = RANGES[2], RANGES[3]  # 4 and 5 steps


def index_of(place: UOp, conditions: list[UOp], size: int) -> UOp:
    return memory(size).index(place, gate=conjunction(tuple(conditions)))


def is_open(index: UOp, at: dict[UOp, int]) -> bool:
    return index.gate is None or bool(value_of(index.gate, at))


@settings(max_examples=150)
@given(expressions(), CONDITIONS, st.integers(1, 12))
def test_what_is_proved_to_lie_inside_does(place: UOp, conditions: list[UOp], size: int) -> None:
    index = index_of(place, conditions, size)
    if is_in_bounds(index):
        for at in everywhere():
            assert not is_open(index, at) or 0 <= value_of(place, at) < size


@settings(max_examples=150)
@given(expressions(), CONDITIONS, st.integers(1, 12))
def test_a_guard_closes_what_lies_outside_and_nothing_else(
    place: UOp, conditions: list[UOp], size: int
) -> None:
    index = index_of(place, conditions, size)
    guarded = guard_unproved(index)
    assert unproved_indices(guarded) == []
    for at in everywhere():
        is_inside = 0 <= value_of(place, at) < size
        assert is_open(guarded, at) == (is_open(index, at) and is_inside)


def test_ranges_that_fill_an_axis_need_no_gate() -> None:
    assert is_in_bounds(memory(4, 5).index(ROWS, COLUMNS))
    assert is_in_bounds(memory(20).index(add(scale(ROWS, 5), COLUMNS)))
    assert not is_in_bounds(memory(19).index(add(scale(ROWS, 5), COLUMNS)))


def test_the_gate_of_a_padded_image_proves_its_indices() -> None:
    place = sub(add(ROWS, COLUMNS), 2)
    image = memory(4)
    assert not is_in_bounds(image.index(place))
    assert is_in_bounds(image.index(place, gate=conjunction(within(place, 0, 4))))
    assert not is_in_bounds(image.index(place, gate=conjunction(within(place, 0, 5))))


def test_what_is_never_read_lies_inside() -> None:
    never = less(const(1), 0)
    assert is_in_bounds(memory(1).index(add(ROWS, 100), gate=never))


def test_a_kernel_without_doubts_stays_the_same_node() -> None:
    load = memory(4, 5).index(ROWS, COLUMNS).load()
    assert guard_unproved(load) is load


def test_an_index_that_is_read_at_a_doubtful_index_is_guarded_as_well() -> None:
    numbers = UOp(Ops.PARAM, dtypes.int32, (), Param(1, (4,), (1,)))
    read = numbers.index(add(ROWS, 2)).load()
    load = memory(5).index(read.cast(dtypes.index)).load()
    assert len(unproved_indices(load)) == 2
    assert unproved_indices(guard_unproved(load)) == []


def test_what_is_stored_and_read_again_stays_one_store() -> None:
    """The store is read at doubtful places, and is itself made of what stands at such places."""
    value = memory(3).index(ROWS).load()
    store = UOp(Ops.STORE, dtypes.void, (memory(4).index(ROWS), value, ROWS))
    again = UOp(Ops.INDEX, dtypes.float32, (store, COLUMNS)).load()
    other = UOp(Ops.STORE, dtypes.void, (memory(5).index(COLUMNS), again, COLUMNS))
    body = guard_unproved(UOp(Ops.SINK, dtypes.void, (store, other)))
    assert {node for node in body.toposort() if node.op is Ops.STORE} == set(body.src)
