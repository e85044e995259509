"""Overwritten elements are read only at the index that is written."""

from __future__ import annotations

from support.compiler.nests import kernel_of
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.ir.in_place import is_in_place
from glassgrad.ir.linear import add
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def stores_of(tensor: Tensor) -> tuple[UOp, ...]:
    return kernel_of(tensor).body.src


def test_an_update_reads_where_it_writes() -> None:
    x = memory(8, 8)
    assert is_in_place(stores_of(x.assign(x * 2 + memory(8, 8))))


def test_neighbours_of_what_is_written_are_read_elsewhere() -> None:
    x = memory(8, 8)
    (store,) = stores_of(x.assign(x * 2))
    moved = store.src[1].substitute({store.src[0]: _next_to(store.src[0])})
    assert not is_in_place([store.replace(src=(store.src[0], moved, *store.src[2:]))])


def test_what_was_read_before_does_not_count() -> None:
    x = memory(8, 8)
    (store,) = stores_of(x.assign(x * 2))
    moved = store.src[1].substitute({store.src[0]: _next_to(store.src[0])})
    later = store.replace(src=(store.src[0], moved, *store.src[2:]))
    assert is_in_place([later], lambda node: node.op is Ops.MUL)


def _next_to(index: UOp) -> UOp:
    return index.src[0].index(*[add(i, 1) for i in index.indices])
