"""Arguments of a wrong type: None, strings, numbers, lists and fractions where others belong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.errors import GlassgradError

Mistake = Callable[[], object]


def f(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, "float32"))


def i(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, "int32"))


IMAGE, WEIGHT = f(1, 3, 4, 4), f(2, 3, 3, 3)

MISTAKES: dict[str, list[Mistake]] = {
    # what a tensor cannot be made of
    "cannot make a Tensor of None": [lambda: Tensor(None)],
    "cannot make a Tensor of a str": [lambda: Tensor("abc")],
    "cannot make a Tensor of a dict": [lambda: Tensor({"a": 1})],
    "data[1] is None, not a number": [lambda: Tensor([1, None])],
    "data[0] is a complex, not a number": [lambda: Tensor([1j])],
    "there is no dtype for NumPy's complex128": [lambda: Tensor(np.array([1j]))],
    "there is no dtype for NumPy's object": [lambda: Tensor(np.array([object()]))],
    "<class 'int'> is not a dtype": [lambda: f(2).cast(int), lambda: Tensor([1], dtype=int)],
    "None is not a dtype": [lambda: f(2).cast(None)],
    "a device is named by a string, not": [
        lambda: f(2).to(dtypes.float16),
        lambda: Tensor([1], device=3),
        lambda: f(2).to(("CPU", "CPU:1")),
    ],
    "there is no device 'TPU'": [lambda: f(2).to("TPU")],
    "a seed is a whole number, not": [
        lambda: Tensor.manual_seed("a"),
        lambda: Tensor.manual_seed(None),
    ],
    # operands
    "cannot add a tensor and None": [
        lambda: f(2) + None,
        lambda: None + f(2),
        lambda: f(2).usum(None),
    ],
    "cannot add a tensor and a str": [lambda: f(2) + "a"],
    "cannot add a tensor and a list": [lambda: f(2) + [1, 2]],
    "cannot compare a tensor and None": [
        lambda: f(2) < None,
        lambda: f(2) == None,  # noqa: E711
        lambda: f(2).allclose(None),
    ],
    "cannot multiply a tensor and None": [lambda: f(2, 2) @ None],
    "cannot multiply a tensor and a str": [lambda: f(2).dot("a")],
    "cannot raise a tensor and a str": [lambda: f(2) ** "a"],
    "cannot take the maximum of a tensor and None": [lambda: f(2).maximum(None)],
    "cannot select between a tensor and None": [lambda: Tensor([True]).where(None, 1)],
    "cannot mask a tensor and None": [lambda: f(2).masked_fill(None, 1.0)],
    "cannot interpolate a tensor and None": [lambda: f(2).lerp(None, 0.5)],
    "a tensor is neither true nor false": [
        lambda: bool(f(1)),
        lambda: not f(2),
        lambda: 1.0 in f(2),
        lambda: max(f(2)),
        lambda: sorted(f(2)),
    ],
    "item() needs exactly one element": [lambda: float(f(2)), lambda: int(f(2, 2))],
    # sizes
    "the shape is made of whole numbers, not 'a'": [
        lambda: f(2).reshape("a"),
        lambda: Tensor.zeros("a"),
        lambda: Tensor.rand("a"),
    ],
    "the shape is made of whole numbers, not 2.5": [
        lambda: Tensor.zeros(2.5),
        lambda: Tensor.eye(2.5),
    ],
    "the order of axes is made of whole numbers, not 'ab'": [lambda: f(2, 3).permute("ab")],
    "cannot expand (1,) to (-3,)": [lambda: f(1).expand(-3)],
    "shrink of (2,) needs 1 pairs (start, stop) or None, not 1": [lambda: f(2).shrink(1)],
    "shrink of (2,) needs 1 pairs (start, stop) or None, not (1,)": [lambda: f(2).shrink((1,))],
    "shrink of (2,) needs 1 pairs (start, stop) or None, not ('ab',)": [
        lambda: f(2).shrink(("ab",))
    ],
    "cannot reshape (6,) to (2,)": [lambda: f(6).unflatten(0, 2)],
    "the size of the parts must be at least 1, not 0": [lambda: f(6).split(0)],
    "the size of the parts must be at least 1, not -1": [lambda: f(6).split(-1)],
    "the size of the parts must be a whole number, not 2.5": [lambda: f(6).split(2.5)],
    "the size of a part must be at least 0, not -2": [lambda: f(6).split([8, -2])],
    "the number of chunks must be a whole number, not 2.5": [lambda: f(6).chunk(2.5)],
    "a single number has no axis to cut": [
        lambda: Tensor(1.0).split(1),
        lambda: Tensor(1.0).chunk(1),
        lambda: Tensor(1.0).unfold(0, 1, 1),
    ],
    "the size of windows must be a whole number, not 1.5": [lambda: f(4).unfold(0, 1.5, 1)],
    "cannot repeat (2,) (-1,) times": [lambda: f(2).repeat(-1)],
    "the number of repeats must be at least 0, not -1": [lambda: f(2).repeat_interleave(-1)],
    "the number of repeats must be a whole number, not 1.5": [lambda: f(2).repeat_interleave(1.5)],
    "the number of steps must be at least 0, not -1": [lambda: Tensor.linspace(0, 1, -1)],
    "the number of steps must be a whole number, not 2.5": [lambda: Tensor.linspace(0, 1, 2.5)],
    "arange from 0 to inf by 1 has no end": [lambda: Tensor.arange(0, float("inf"))],
    "arange from 0 to nan by 1 has no end": [lambda: Tensor.arange(0, float("nan"))],
    "randint takes whole numbers, not 0.5 and 5": [lambda: Tensor.randint(2, low=0.5, high=5)],
    "int8 does not hold all numbers from 0 to 299": [
        lambda: Tensor.randint(2, high=300, dtype="int8")
    ],
    "the size of a permutation must be a whole number, not 2.5": [lambda: Tensor.randperm(2.5)],
    "the correction must be a whole number, not 'x'": [lambda: f(2).var(correction="x")],
    # tensors that are none
    "the weight of a convolution must be a tensor, not None": [
        lambda: IMAGE.conv2d(None),
        lambda: IMAGE.conv_transpose2d(None),
    ],
    "the bias of a convolution must be a tensor, not a str": [lambda: IMAGE.conv2d(WEIGHT, "b")],
    "the weight of linear must be a tensor, not None": [lambda: f(2, 3).linear(None)],
    "the indices of max_unpool2d must be a tensor, not None": [
        lambda: f(1, 1, 2, 2).max_unpool2d(None)
    ],
    "the classes must be a tensor, not None": [
        lambda: f(2, 3).cross_entropy(None),
        lambda: f(2, 3).nll_loss(None),
        lambda: f(2, 3).sparse_categorical_crossentropy(None),
    ],
    "the target must be a tensor, not None": [
        lambda: f(2, 3).binary_crossentropy(None),
        lambda: f(2, 3).binary_crossentropy_logits(None),
    ],
    "the mean must be a tensor, not None": [lambda: f(2, 3).batchnorm(None, None, None, None)],
    "the key must be a tensor, not None": [
        lambda: f(2, 3).scaled_dot_product_attention(None, None)
    ],
    "a vector of meshgrid must be a tensor, not None": [lambda: f(2).meshgrid(None)],
    "what replaces a tensor must be a tensor, not None": [lambda: f(2).replace(None)],
    "what is computed must be a tensor, not None": [
        lambda: f(2).realize(None),
        lambda: f(2).schedule(None),
    ],
    "the key of threefry must be a tensor, not None": [
        lambda: Tensor([1], dtype="uint64").threefry(None)
    ],
    "einsum takes tensors, not (3,)": [lambda: Tensor.einsum("i->", 3)],
    "the formula of einsum comes first": [
        lambda: Tensor.einsum(None, f(2)),
        lambda: Tensor.einsum(f(2), "i->"),
    ],
    "rearrange by None has no arrow": [lambda: f(2, 2).rearrange(None)],
    "sequential takes a list of functions, not [1]": [lambda: f(2).sequential([1])],
    "sequential takes a list of functions, not None": [lambda: f(2).sequential(None)],
    "only tensors are joined, not 3": [lambda: f(2).cat(3), lambda: f(2).stack(3)],
    "only tensors are joined, not None": [lambda: f(2).cat(None)],
    "only tensors are joined, not []": [lambda: Tensor.cat([])],
    "tensors index by tensors of ints, not by None": [lambda: f(2, 2).gather(0, None)],
    "tensors index by tensors of ints, not by [0, 1]": [lambda: f(2).gather(0, [0, 1])],
    "tensors index by tensors of ints, not by 1": [lambda: f(2).scatter(0, 1, f(1))],
    "what is combined must be a tensor, not None": [lambda: f(2).masked_select(None)],
    "the number of classes must be at least 1, not -1": [lambda: i(2).one_hot(-1)],
    "the number of classes must be a whole number, not 'a'": [lambda: i(2).one_hot("a")],
    "padding 'a' does not fit 1 axes": [lambda: f(2).pad("a")],
    "padding (1.5, 1) does not fit 1 axes": [lambda: f(2).pad((1.5, 1))],
    "a size to pad to must be at least 4, not 2": [lambda: f(4).pad_to(2)],
    # windows
    "stride must be a whole number, not 1.5": [lambda: IMAGE.conv2d(WEIGHT, stride=1.5)],
    "padding must be a whole number, not 'same'": [lambda: IMAGE.conv2d(WEIGHT, padding="same")],
    "padding must be a whole number, not None": [lambda: IMAGE.conv2d(WEIGHT, padding=None)],
    "padding must be at least 0, not -3": [lambda: IMAGE.conv2d(WEIGHT, padding=-3)],
    "in 0 groups: 3 channels meet 0": [lambda: IMAGE.conv2d(WEIGHT, groups=0)],
    "output_padding (1, 1, 1) needs 2 numbers": [
        lambda: IMAGE.conv_transpose2d(f(3, 2, 3, 3), output_padding=(1, 1, 1))
    ],
    "kernel_size must be a whole number, not 'a'": [lambda: IMAGE.max_pool2d("a")],
    "kernel_size must be a whole number, not 2.0": [lambda: IMAGE.avg_pool2d(2.0)],
    "kernel_size must be a whole number, not None": [lambda: IMAGE.max_pool2d(None)],
    "a kernel of 2 axes does not fit a tensor of shape (4,)": [lambda: f(4).max_pool2d(2)],
    "output_size 4 needs 2 numbers": [
        lambda: f(1, 1, 2, 2).max_unpool2d(i(1, 1, 2, 2), output_size=4)
    ],
    "queries (3,), keys (3,) and values (3,) lack axes": [
        lambda: f(3).scaled_dot_product_attention(f(3), f(3))
    ],
    "queries (2, 4), keys (2, 4) and values (2, 4) lack axes": [
        lambda: f(2, 4).scaled_dot_product_attention(f(2, 4), f(2, 4), enable_gqa=True)
    ],
    # bits
    "cannot shift bool": [lambda: Tensor([True]) << Tensor([True])],
    "cannot divide towards zero bool": [
        lambda: Tensor([True]).div(Tensor([True]), rounding_mode="trunc"),
        lambda: Tensor([True]).fmod(True),
    ],
}
ROWS = [(words, mistake) for words, mistakes in MISTAKES.items() for mistake in mistakes]


@pytest.mark.parametrize(("words", "mistake"), ROWS, ids=[words for words, _ in ROWS])
def test_messages_say_what_was_wrong_and_where(words: str, mistake: Mistake) -> None:
    with pytest.raises(GlassgradError) as caught:
        mistake()
    assert words in str(caught.value)
    assert "test_clumsy_uses.py:" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        ("p is a probability, not 'a'", lambda: f(2).dropout("a")),
        ("p is a probability, not 2", lambda: f(2).dropout(2)),
        ("beta of softplus must not be 0", lambda: f(2).softplus(0)),
        ("alpha of celu must not be 0", lambda: f(2).celu(0)),
        ('approximate is "tanh" or "none", not', lambda: f(2).gelu("fast")),
        ("reduction is one of mean, sum, none, not", lambda: f(2, 3).cross_entropy(i(2), "avg")),
        ('rounding_mode is "trunc" or "floor", not', lambda: f(2).div(2, rounding_mode="up")),
    ],
)
def test_errors_about_options_list_the_valid_values(words: str, mistake: Mistake) -> None:
    with pytest.raises(ValueError, match=words):
        mistake()


@pytest.mark.parametrize("value", [[0, 1], (0, 1), np.array([0, 1])])
def test_lists_and_arrays_serve_as_classes(value: object) -> None:
    assert f(2, 3).cross_entropy(value).item() == pytest.approx(np.log(3))


def test_a_list_of_tensors_is_joined_as_its_items_are() -> None:
    x, y = Tensor([1]), Tensor([2])
    assert Tensor.cat([x, y]).tolist() == Tensor.cat(x, y).tolist() == [1, 2]
    assert Tensor.stack((x, y), dim=1).tolist() == [[1, 2]]
