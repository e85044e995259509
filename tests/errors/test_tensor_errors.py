"""Every mistake with tensors: class, message, line and hint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import glassgrad.tensor.lazy.realize
from glassgrad import Tensor, dtypes
from glassgrad.base.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    GlassgradError,
    GradientError,
    ShapeError,
)

Mistake = Callable[[], object]


def f(*shape: int) -> Tensor:
    return Tensor.empty(*shape)


MISTAKES: list[tuple[type[GlassgradError], str, str | None, Mistake]] = [
    # shapes that do not fit
    (
        ShapeError,
        "cannot add (4, 3) and (4, 5): axis 1 is 3 on one side and 5 on the other",
        "axes must be equal, or one of them 1",
        lambda: f(4, 3) + f(4, 5),
    ),
    (ShapeError, "cannot multiply (2, 3) and (4,): axis 1 is 3", None, lambda: f(2, 3) * f(4)),
    (ShapeError, "cannot compare (2,) and (3,)", None, lambda: f(2) < f(3)),
    (
        ShapeError,
        "cannot select between (2,) and (3,)",
        None,
        lambda: Tensor([True, False]).where(f(3), 0.0),
    ),
    (
        ShapeError,
        "cannot multiply matrices (2, 3) and (4, 5): 3 columns meet 4 rows",
        "the last axis of the left one must equal the second to last of the right one",
        lambda: f(2, 3) @ f(4, 5),
    ),
    (ShapeError, "one has no axes", "use * for numbers", lambda: f(2) @ Tensor(3.0)),
    (
        ShapeError,
        "cannot multiply (2, 1, 1, 3) and (4, 1, 2, 3): axis 0 is 2",
        None,
        lambda: f(2, 1, 3) @ f(4, 3, 2),
    ),
    (
        ShapeError,
        "cannot reshape (2, 3) to (4, 2): it has 6 elements, not 8",
        "the number of elements must stay the same",
        lambda: f(2, 3).reshape(4, 2),
    ),
    (
        ShapeError,
        "cannot reshape (2, 3) to (4, -1): it has 6 elements, not 4 times something",
        None,
        lambda: f(2, 3).reshape(4, -1),
    ),
    (
        ShapeError,
        "cannot reshape to (-1, -1)",
        "at most one size may be -1",
        lambda: f(2, 3).reshape(-1, -1),
    ),
    (ShapeError, "made of whole numbers, not 2.5", None, lambda: f(2, 3).reshape(2.5, 2)),
    (ShapeError, "None keeps the size of axis 2", None, lambda: f(2, 3).reshape(2, 3, None)),
    (
        ShapeError,
        "cannot expand (2, 3) to (2, 4)",
        "only axes of size 1 grow; new axes come in front",
        lambda: f(2, 3).expand(2, 4),
    ),
    (ShapeError, "shrink axis 1 of (2, 3) to 1…4", None, lambda: f(2, 3).shrink((None, (1, 4)))),
    (ShapeError, "padding (1, 2, 3) does not fit", None, lambda: f(2, 3).pad((1, 2, 3))),
    (
        ShapeError,
        "cannot join (2, 3) and (2, 4) along axis 0",
        "all other axes must be equal",
        lambda: f(2, 3).cat(f(2, 4)),
    ),
    (ShapeError, "cannot stack (2,) and (3,)", None, lambda: f(2).stack(f(3))),
    (ShapeError, "sizes (1, 1) do not add up to 3", None, lambda: f(3).split([1, 1])),
    (ShapeError, "negative sizes: (2, -1)", None, lambda: Tensor.zeros(2, -1)),
    (ShapeError, "a triangle needs two axes", None, lambda: f(3).tril()),
    (
        ShapeError,
        "cannot convolve (1, 3, 8, 8) with (4, 2, 3, 3) in 1 groups: 3 channels meet 2",
        None,
        lambda: f(1, 3, 8, 8).conv2d(f(4, 2, 3, 3)),
    ),
    (
        ShapeError,
        "a window of 5 does not fit axis 2 of (1, 1, 3, 3)",
        "use a smaller kernel, or padding",
        lambda: f(1, 1, 3, 3).conv2d(f(1, 1, 5, 5)),
    ),
    (ShapeError, "stride must be at least 1, not 0", None, lambda: f(1, 1, 4, 4).max_pool2d(2, 0)),
    (ShapeError, "no maximum of no elements", None, lambda: f(0, 3).max()),
    (
        ShapeError,
        "classes of shape (3,) do not fit logits of shape (2, 5)",
        "they need the shape (2,)",
        lambda: f(2, 5).cross_entropy(Tensor([1, 2, 3])),
    ),
    # axes and indices
    (
        AxisError,
        "axis 2 is out of range for a tensor of 2 axes",
        "use -2 to 1",
        lambda: f(2, 3).sum(2),
    ),
    (AxisError, "axis -2 is out of range for a tensor of 1 axis", None, lambda: f(2).softmax(-2)),
    (AxisError, "axes (0, 0) name one axis twice", None, lambda: f(2, 3).sum((0, 0))),
    (AxisError, "axis must be a whole number, not 'a'", None, lambda: f(2).sum("a")),
    (
        AxisError,
        "cannot permute (2, 3) by (0, 0)",
        "name every axis exactly once",
        lambda: f(2, 3).permute(0, 0),
    ),
    (
        AxisError,
        "index 5 is out of range for axis 1 of size 3",
        "use -3 to 2",
        lambda: f(2, 3)[0, 5],
    ),
    (
        AxisError,
        "3 indices are too many for a tensor of shape (2, 3)",
        None,
        lambda: f(2, 3)[0, 0, 0],
    ),
    (
        AxisError,
        "index 7 is out of range for axis 0 of size 5",
        "use -5 to 4",
        lambda: f(5, 2)[Tensor([1, 7])],
    ),
    (
        AxisError,
        "index -3 is out of range for axis 1 of size 2",
        None,
        lambda: f(5, 2)[:, [0, -3]],
    ),
    (
        AxisError,
        "index 9 is out of range for axis 1 of size 3",
        None,
        lambda: f(2, 3).cross_entropy(Tensor([0, 9])),
    ),
    (
        AxisError,
        "index -1 is out of range for axis 0 of size 2",
        "use 0 to 1",
        lambda: f(2, 3).gather(0, Tensor([[0, -1, 1]])),
    ),
    (AxisError, "at most one '...'", None, lambda: f(2, 3)[..., ...]),
    (AxisError, "cannot index axis 0 by 1.5", None, lambda: f(2)[1.5]),
    (AxisError, "cannot slice by None:None:0", "a step is not 0", lambda: f(2)[::0]),
    # dtypes and values
    (
        DTypeError,
        "cannot add a tensor and None",
        "use a Tensor, a NumPy array or a Python number",
        lambda: f(2) + None,
    ),
    (DTypeError, "cannot multiply a tensor and a str", None, lambda: f(2) * "x"),
    (
        DTypeError,
        "cannot subtract bools",
        "use ^, or cast to int first",
        lambda: Tensor([True]) - Tensor([True]),
    ),
    (DTypeError, "cannot negate bool", "use ~ for bools", lambda: -Tensor([True])),
    (DTypeError, "cannot and float32", "cast to an int dtype first", lambda: f(2) & 1),
    (
        DTypeError,
        "300 does not fit uint8",
        "cast the tensor to a wider dtype first",
        lambda: Tensor.zeros(2, dtype="uint8") + 300,
    ),
    (DTypeError, "there is no dtype 'float31'", "one of", lambda: f(2).cast("float31")),
    (DTypeError, "is not a dtype", None, lambda: f(2).cast(float)),
    (DTypeError, "tensors index by ints, not by float32", "cast it", lambda: f(2)[Tensor([0.0])]),
    (DTypeError, "rand makes floats, not int32", "randint", lambda: Tensor.rand(2, dtype="int32")),
    (DTypeError, "classes are ints, not float32", None, lambda: f(2, 3).cross_entropy(f(2))),
    (DTypeError, "neither true nor false", "use item()", lambda: bool(f(2))),
    (DTypeError, "clamp needs min_ or max_", None, lambda: f(2).clamp()),
    # data
    (
        ShapeError,
        "the list is ragged: data[1] has length 1, others at that depth have length 2",
        "all lists at one depth must have the same length",
        lambda: Tensor([[1, 2], [3]]),
    ),
    (ShapeError, "data[1] has a single value", None, lambda: Tensor([[1, 2], 3])),
    (ShapeError, "data[1][0] has length 1", None, lambda: Tensor([[[1, 2]], [[3]]])),
    (DTypeError, "cannot make a Tensor of None", "use a number", lambda: Tensor(None)),
    (DTypeError, "cannot make a Tensor of a dict", None, lambda: Tensor({})),
    (DTypeError, "data[1] is None, not a number", None, lambda: Tensor([1, None])),
    (DTypeError, "data[0][1] is a str, not a number", None, lambda: Tensor([[1, "a"]])),
    (DTypeError, "3000000000 does not fit int32", "int64", lambda: Tensor([3_000_000_000])),
    (DTypeError, "which fits no dtype", None, lambda: Tensor([1 << 70])),
    (DTypeError, "there is no dtype for NumPy's", None, lambda: Tensor(np.array(["a", "bcd"]))),
    (
        ShapeError,
        "3 bytes are no whole number of int16",
        None,
        lambda: Tensor(b"abc", dtype="int16"),
    ),
    # writing
    (
        ShapeError,
        "cannot write (3,) into a target of shape (2,)",
        None,
        lambda: f(2).assign(f(3)),
    ),
    (
        DTypeError,
        "cannot write int32 into a tensor of float32",
        "cast it first",
        lambda: f(2).assign(Tensor([1, 2])),
    ),
    (ShapeError, "cannot replace (2,) by (3,)", None, lambda: f(2).replace(f(3))),
    # looking
    (
        ShapeError,
        "item() needs exactly one element, but the shape is (2,)",
        "index it first, or use tolist()",
        lambda: f(2).item(),
    ),
    (ShapeError, "a tensor without axes has no length", None, lambda: len(Tensor(1.0))),
    (ShapeError, "cannot iterate over a tensor without axes", None, lambda: list(Tensor(1.0))),
    (ShapeError, "arange with step 0 never ends", None, lambda: Tensor.arange(0, 5, 0)),
    # gradients
    (
        GradientError,
        "the gradient of a value of shape (2,) is not one number per input",
        "take the sum() or mean() first, or pass gradient=",
        lambda: f(2).backward(),
    ),
    (
        GradientError,
        "the value has dtype int32, which has no gradient",
        "cast it to float",
        lambda: Tensor([1, 2]).sum().backward(),
    ),
    (
        GradientError,
        "target 0 of shape (2,) is no part of this value",
        "was it made before the value, and not detached?",
        lambda: f(2).sum().gradient(f(2)),
    ),
    (
        GradientError,
        "this value depends on no parameter",
        "is_param_()",
        lambda: f(2).detach().sum().backward(),
    ),
    (
        ShapeError,
        "the gradient has shape (3,), the value has shape (2,)",
        None,
        lambda: f(2).gradient(f(2), gradient=f(3)),
    ),
    # devices
    (DeviceError, "NOSUCH", None, lambda: Tensor([1], device="NOSUCH")),
    (DeviceError, "a device is named by a string, not 3", None, lambda: Tensor.zeros(2, device=3)),
]


@pytest.mark.parametrize(
    ("kind", "words", "hint", "mistake"),
    MISTAKES,
    ids=[f"{row[0].__name__}: {row[1][:50]}" for row in MISTAKES],
)
def test_a_mistake_is_reported_where_it_was_made(
    kind: type[GlassgradError],
    words: str,
    hint: str | None,
    mistake: Mistake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*values: object) -> object:
        raise AssertionError("something ran before the mistake was found")

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "plan_and_run", fail)
    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "look_up", fail)
    with pytest.raises(kind) as caught:
        mistake()
    assert words in caught.value.message
    if hint is not None:
        assert caught.value.hint is not None
        assert hint in caught.value.hint
    lines = str(caught.value).splitlines()
    assert lines[0] == caught.value.message
    assert "test_tensor_errors.py:" in lines[1]


def test_the_whole_message_names_line_and_hint() -> None:
    x, y = Tensor.empty(4, 3), Tensor.empty(4, 5)
    with pytest.raises(ShapeError) as caught:
        (x + y).sum()  # the user's line
    line, hint = str(caught.value).splitlines()[1:]
    assert line.endswith("(x + y).sum()  # the user's line")
    assert hint == "  hint: axes must be equal, or one of them 1"


def test_a_mistake_deep_in_a_composite_names_the_users_line() -> None:
    with pytest.raises(AxisError) as caught:
        Tensor.empty(2, 3).layernorm(axis=7)  # layernorm of mine
    assert "layernorm of mine" in str(caught.value)


def test_errors_are_also_the_builtin_kind_that_people_catch() -> None:
    with pytest.raises(ValueError, match="cannot reshape"):
        f(2).reshape(3)
    with pytest.raises(IndexError, match="out of range"):
        f(2)[4]
    with pytest.raises(TypeError, match="no dtype"):
        f(2).cast("nope")
    with pytest.raises(RuntimeError, match="no part of"):
        f(2).sum().gradient(f(2))


def test_misspelt_options_list_the_valid_ones() -> None:
    for mistake in (
        lambda: f(2).gelu("exact"),
        lambda: f(2).div(2, rounding_mode="up"),
        lambda: f(2, 3).cross_entropy(Tensor([1, 1]), reduction="max"),
        lambda: f(2).dropout(1.5),
        lambda: f(2, 3).cross_entropy(Tensor([1, 1]), label_smoothing=2),
    ):
        with pytest.raises(ValueError, match=r" not "):
            mistake()


def test_there_are_many_cases() -> None:
    assert len(MISTAKES) >= 60
    assert len({row[1] for row in MISTAKES}) == len(MISTAKES)


def test_default_dtypes_in_messages_are_the_actual_ones() -> None:
    assert Tensor.empty(1).dtype is dtypes.default_float
