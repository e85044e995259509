"""Write hazards: which values are copied first."""

from __future__ import annotations

import numpy as np
from support.compiler.schedules import assign, leaf

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.graph.copies_before_writes import (
    copy_versions,
    previous_versions,
    resolve_write_hazards,
)


def array() -> UOp:
    return leaf(np.arange(12.0).reshape(3, 4))


def copies(roots: list[UOp]) -> int:
    return sum(node.op is Ops.CONTIGUOUS for node in toposort(roots))


def test_a_graph_without_writes_stays_as_it_is() -> None:
    roots = [array() + 1.0]
    assert resolve_write_hazards(roots) == roots


def test_a_value_that_reads_the_same_elements_is_not_copied() -> None:
    x = array()
    roots = [assign(x, x * 2.0 + array())]
    assert resolve_write_hazards(roots) == roots


def test_a_value_that_reads_other_elements_is_copied_first() -> None:
    x = array()
    (root,) = resolve_write_hazards([assign(x, UOp(Ops.FLIP, x.dtype, (x,), (0,)))])
    assert root.src[1].op is Ops.CONTIGUOUS


def test_a_value_made_of_a_broadcast_of_the_buffer_is_computed_aside() -> None:
    x = array()
    row = UOp(Ops.SHRINK, x.dtype, (x,), ((0, 1), (0, 4)))
    assert copies(resolve_write_hazards([assign(x, x + row)])) == 1


def test_a_reduction_is_aside_already() -> None:
    x = array()
    total = UOp(Ops.REDUCE, x.dtype, (x,), (Ops.ADD, (1,)))
    column = UOp(Ops.RESHAPE, x.dtype, (total,), (3, 1))
    assert copies(resolve_write_hazards([assign(x, x - column)])) == 0


def test_old_contents_that_are_a_result_themselves_are_copied() -> None:
    x = array()
    written = assign(x, x + 1.0)
    _, old = resolve_write_hazards([written, x])
    assert old.op is Ops.CONTIGUOUS and old.src[0] is x


def test_versions_are_listed_newest_first() -> None:
    x = array()
    first = assign(x, x + 1.0)
    second = assign(first, first * 2.0)
    assert previous_versions(second) == [first, x]
    assert previous_versions(x) == []


def test_readers_of_a_blocked_version_read_a_copy_and_the_write_does_not() -> None:
    x, y = array(), array()
    written, other = copy_versions([assign(x, y), assign(y, x)], {x})
    assert written.src[0] is x, "the buffer itself is written"
    assert other.src[1].op is Ops.CONTIGUOUS
    assert other.src[1].src[0] is x


def test_a_copy_that_is_there_already_is_used() -> None:
    x, y = array(), array()
    own = UOp(Ops.CONTIGUOUS, x.dtype, (x,))
    roots = copy_versions([assign(x, y), own + 1.0], {x})
    assert copies(roots) == 1
