"""Errors of composite methods: class, message, line and hint."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import glassgrad.tensor.lazy.realize
from glassgrad import Tensor
from glassgrad.base.errors import AxisError, DTypeError, GlassgradError, ShapeError

Mistake = Callable[[], object]


def f(*shape: int) -> Tensor:
    return Tensor.empty(*shape)


def i(*shape: int) -> Tensor:
    return Tensor.zeros(*shape, dtype="int32") + 0


MISTAKES: list[tuple[type[GlassgradError], str, Mistake]] = [
    # formulas
    (ShapeError, "names 2 operands, not 1", lambda: Tensor.einsum("ij,jk->ik", f(2, 3))),
    (
        ShapeError,
        "'ij' of einsum 'ij,jk->ik' does not fit (2, 3, 4)",
        lambda: Tensor.einsum("ij,jk->ik", f(2, 3, 4), f(3, 4)),
    ),
    (
        ShapeError,
        "'j' of einsum 'ij,jk->ik' is 3 for one operand and 5 for another",
        lambda: Tensor.einsum("ij,jk->ik", f(2, 3), f(5, 4)),
    ),
    (ShapeError, "cannot read einsum 'ij->ix'", lambda: Tensor.einsum("ij->ix", f(2, 3))),
    (ShapeError, "cannot read einsum 'i?->i'", lambda: Tensor.einsum("i?->i", f(2, 3))),
    (ShapeError, "'i' stands for 2 and 3", lambda: Tensor.einsum("ii->i", f(2, 3))),
    (ShapeError, "has no arrow", lambda: f(2, 3).rearrange("a b")),
    (ShapeError, "cannot read '? c' in 'a b ? c -> a'", lambda: f(2).rearrange("a b ? c -> a")),
    (ShapeError, "a bracket of 'a -> (a' is not closed", lambda: f(2).rearrange("a -> (a")),
    (ShapeError, "does not fit a tensor of 2 axes", lambda: f(2, 3).rearrange("a b c -> a")),
    (ShapeError, "(a b) of '(a b) -> a b' does not fit", lambda: f(6).rearrange("(a b) -> a b")),
    (
        ShapeError,
        "(a b) of '(a b) -> b a' does not fit an axis of 6",
        lambda: f(6).rearrange("(a b) -> b a", a=4),
    ),
    (ShapeError, "names no axis c, which was given", lambda: f(2).rearrange("a -> a", c=2)),
    (ShapeError, "cannot rearrange by 'a b -> a'", lambda: f(2, 3).rearrange("a b -> a")),
    # arrangement and padding
    (ShapeError, "roll by (1, 2) needs one axis for each", lambda: f(2, 3).roll((1, 2))),
    (ShapeError, "2 shifts do not fit 1 axes", lambda: f(2, 3).roll((1, 2), 0)),
    (AxisError, "axis 2 is out of range", lambda: f(2, 3).roll(1, 2)),
    (ShapeError, "a diagonal of (2, 3) needs two axes", lambda: f(2, 3).diagonal(0, 1, 1)),
    (ShapeError, "diag takes one or two axes", lambda: f(2, 3, 4).diag()),
    (ShapeError, "meshgrid takes vectors", lambda: f(2).meshgrid(f(2, 3))),
    (
        ShapeError,
        "cannot pad axis 1 of size 3 by (3, 0) in mode 'reflect'",
        lambda: f(2, 3).pad((3, 0), mode="reflect"),
    ),
    (
        ShapeError,
        "cannot pad axis 1 of size 3 by (0, 4) in mode 'circular'",
        lambda: f(2, 3).pad((0, 4), mode="circular"),
    ),
    # scans, sorting, scattering
    (AxisError, "axis 3 is out of range", lambda: f(2, 3).cumsum(3)),
    (AxisError, "axis -3 is out of range", lambda: f(2, 3).cummax(-3)),
    (AxisError, "axis 5 is out of range", lambda: f(2, 3).sort(5)),
    (ShapeError, "cannot take the top 4 of 3 elements on axis 1", lambda: f(2, 3).topk(4)),
    (
        ShapeError,
        "scatter into (3,) by (2, 2) from (2, 2)",
        lambda: f(3).scatter(0, i(2, 2), f(2, 2)),
    ),
    (
        ShapeError,
        "scatter into (3, 2) by (2, 3) from (2, 3): axis 1 of the index is too long",
        lambda: f(3, 2).scatter(0, i(2, 3), f(2, 3)),
    ),
    (
        ShapeError,
        "scatter into (3,) by (4,) from (2,): axis 0 of the index is too long",
        lambda: f(3).scatter_reduce(0, i(4), f(2), "sum"),
    ),
    (DTypeError, "tensors index by ints", lambda: f(3).scatter(0, f(2), f(2))),
    (
        AxisError,
        "index 3 is out of range for axis 0 of size 3",
        lambda: f(3).scatter(0, Tensor([0, 3]), f(2)),
    ),
    (DTypeError, "cannot scatter a tensor and None", lambda: f(3).scatter(0, i(2), None)),
    (ShapeError, "cannot combine (2, 3) and (4,)", lambda: f(2, 3).masked_select(f(4) > 0, 1)),
    # masks
    (DTypeError, "tensors index by ints, not by bool", lambda: f(3).gather(0, f(3) > 0)),
    (
        AxisError,
        "a mask of shape (3,) does not fit axes of shape (2,)",
        lambda: f(2, 3)[Tensor([True, False, True])],
    ),
    (AxisError, "a mask of shape (2, 2) does not fit", lambda: f(2, 3)[f(2, 2) > 0]),
    (AxisError, "a mask of shape () does not fit", lambda: f(2)[Tensor(True)]),
    (
        AxisError,
        "a mask of shape (3,) does not fit axes of shape (2, 3)",
        lambda: f(2, 3).__setitem__(f(3) > 0, 1.0),
    ),
    (
        ShapeError,
        "cannot write (4,) into a target of shape (2, 3)",
        lambda: f(5, 3).__setitem__(Tensor([1, 2]), f(4)),
    ),
    # drawing
    (
        ShapeError,
        "the size of a permutation must be at least 0, not -1",
        lambda: Tensor.randperm(-1),
    ),
    (ShapeError, "cannot draw 3 of 2 places", lambda: f(2).multinomial(3)),
    (ShapeError, "cannot draw 0 places", lambda: f(2).multinomial(0)),
    (ShapeError, "weights of shape (2, 2, 2)", lambda: f(2, 2, 2).multinomial(1)),
    # images
    (ShapeError, "cannot interpolate (2, 3) to (1, 2, 3)", lambda: f(2, 3).interpolate((1, 2, 3))),
    (ShapeError, "cannot interpolate (2, 3) to (0,)", lambda: f(2, 3).interpolate((0,))),
    (
        ShapeError,
        "values (1, 1, 2, 2) and indices (1, 1, 2, 3) differ in shape",
        lambda: f(1, 1, 2, 2).max_unpool2d(i(1, 1, 2, 3)),
    ),
    (
        ShapeError,
        "cannot convolve (1, 3, 4, 4) backwards with (2, 3, 2, 2)",
        lambda: f(1, 3, 4, 4).conv_transpose2d(f(2, 3, 2, 2)),
    ),
    (
        ShapeError,
        "2 groups do not divide 3 channels",
        lambda: f(1, 3, 4, 4).conv_transpose2d(f(3, 1, 2, 2), groups=2),
    ),
    # matrices and bytes
    (ShapeError, "cannot factorise (3,)", lambda: f(3).qr()),
    (ShapeError, "cannot factorise (0, 2)", lambda: f(0, 2).svd()),
    (ShapeError, "cannot orthogonalise (3,)", lambda: f(3).newton_schulz(5, (1.5, -0.5))),
    (DTypeError, "cannot factorise int32", lambda: i(2, 2).svd()),
    (
        DTypeError,
        "cannot bitcast float32 of shape (3,) to int64: they have 4 and 8 bytes",
        lambda: f(3).bitcast("int64"),
    ),
    (DTypeError, "threefry takes unsigned counters", lambda: i(2).threefry(i(2))),
]


@pytest.mark.parametrize(
    ("kind", "words", "mistake"), MISTAKES, ids=[f"{row[0].__name__}: {row[1]}" for row in MISTAKES]
)
def test_a_mistake_is_found_before_anything_runs(
    kind: type[GlassgradError], words: str, mistake: Mistake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*values: object) -> object:
        raise AssertionError("something ran before the mistake was found")

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "plan_and_run", fail)
    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "look_up", fail)
    with pytest.raises(kind) as caught:
        mistake()
    assert words in str(caught.value)
    assert "test_method_errors.py:" in str(caught.value)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: f(2).meshgrid(f(2), indexing="yx"),
        lambda: f(2).pad((1, 1), mode="mirror"),
        lambda: f(2).scatter(0, i(2), f(2), reduce="max"),
        lambda: f(2).scatter_reduce(0, i(2), f(2), "max"),
        lambda: f(2, 2).interpolate((3,), mode="bicubic"),
        lambda: f(2, 2).interpolate((3,), mode="nearest", align_corners=True),
    ],
)
def test_misspelt_options_list_the_valid_ones(mistake: Mistake) -> None:
    with pytest.raises(ValueError, match=r" not "):
        mistake()
