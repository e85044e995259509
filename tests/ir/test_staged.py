"""The role of each loop of a STAGE: filling elements, accumulating, carrying a scan."""

from __future__ import annotations

import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Exclusive, Ops
from glassgrad.ir.spec import check
from glassgrad.ir.staged import accumulated_loops, carried_loops
from glassgrad.ir.uop import UOp, const, make_range

STEPS, ROWS = make_range(0, 4), make_range(1, 8)


def scanned(over: UOp, op: object = Ops.MAX) -> UOp:
    return UOp(Ops.SCAN, dtypes.float32, (const(1.0, dtypes.float32), over), op)


def kept(value: UOp) -> UOp:
    return UOp(Ops.STAGE, value.dtype, (value, ROWS, ROWS), (8,))


def test_steps_outside_of_the_indices_are_carried() -> None:
    assert carried_loops(kept(scanned(STEPS))) == (STEPS,)


def test_steps_along_an_index_are_scanned_in_a_register() -> None:
    assert carried_loops(kept(scanned(ROWS))) == ()


def test_a_register_is_carried_by_the_scan_itself() -> None:
    value = scanned(STEPS)
    assert carried_loops(UOp(Ops.STAGE, value.dtype, (value,), ())) == ()


def test_only_scans_are_carried() -> None:
    assert carried_loops(kept(const(1.0, dtypes.float32))) == ()


def test_loops_that_no_index_depends_on_accumulate() -> None:
    one = const(1.0, dtypes.float32)
    sums = UOp(Ops.STAGE, one.dtype, (one, ROWS, STEPS, ROWS), (8,))
    assert accumulated_loops(sums) == (STEPS,) and carried_loops(sums) == ()
    assert accumulated_loops(kept(one)) == ()


def test_carried_loops_do_not_accumulate() -> None:
    value = scanned(STEPS)
    inside = UOp(Ops.STAGE, value.dtype, (value, ROWS, STEPS, ROWS), (8,))
    assert carried_loops(inside) == (STEPS,) and accumulated_loops(inside) == ()


def test_only_carried_scratch_has_earlier_values() -> None:
    check((kept(scanned(STEPS, Exclusive(Ops.MAX))),), "kernel")
    with pytest.raises(AssertionError, match="carried in scratch"):
        check((kept(scanned(ROWS, Exclusive(Ops.MAX))),), "kernel")
