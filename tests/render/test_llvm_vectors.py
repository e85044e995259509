"""Reordered elements of one or two vectors are one shuffle."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, const, toposort
from glassgrad.render.llvm import LLVMRenderer


def rendered(*lanes: int | None, kept: int | None = None) -> str:
    """x[i], …, None stands for the constant 1; optionally stores one element separately."""
    pointer = UOp(Ops.PARAM, dtypes.float32, (), Param(0, (4,), (1,)))
    zero, one = const(0, dtypes.int64), const(1.0, dtypes.float32)
    place = UOp(Ops.INDEX, dtypes.float32, (pointer, zero))
    vector = UOp(Ops.LOAD, dtypes.float32.vec(4), (place,))
    parts = [one if i is None else UOp(Ops.GEP, dtypes.float32, (vector,), i) for i in lanes]
    made = UOp(Ops.STACK, dtypes.float32.vec(4), tuple(parts))
    values = [made] if kept is None else [made, UOp(Ops.GEP, dtypes.float32, (vector,), kept)]
    stores = [UOp(Ops.STORE, dtypes.void, (place, value)) for value in values]
    return LLVMRenderer().render("f", toposort(stores))


def test_a_reversed_vector_is_a_shuffle() -> None:
    text = rendered(3, 2, 1, 0)
    assert "<i32 3, i32 2, i32 1, i32 0>" in text
    assert "insertelement" not in text


def test_constants_may_be_shuffled_in() -> None:
    text = rendered(None, 0, None, 2)
    assert "<i32 4, i32 0, i32 6, i32 2>" in text
    assert "float 0x3FF0000000000000" in text


def test_elements_are_extracted_only_for_other_uses_than_shuffles() -> None:
    assert "extractelement" not in rendered(3, 2, 1, 0)
    assert rendered(3, 2, 1, 0, kept=2).count("extractelement") == 1


def test_elements_of_two_vectors_are_one_shuffle() -> None:
    pointer = UOp(Ops.PARAM, dtypes.float32, (), Param(0, (4,), (1,)))
    places = [UOp(Ops.INDEX, dtypes.float32, (pointer, const(i, dtypes.int64))) for i in (0, 4)]
    one, two = [UOp(Ops.LOAD, dtypes.float32.vec(4), (place,)) for place in places]
    made = UOp(Ops.SHUFFLE, one.dtype, (one, two), (0, 4, 1, 5))
    store = UOp(Ops.STORE, dtypes.void, (places[0], made))
    text = LLVMRenderer().render("f", store.toposort())
    assert "<4 x i32> <i32 0, i32 4, i32 1, i32 5>" in text
    assert "extractelement" not in text
