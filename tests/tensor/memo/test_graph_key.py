"""Graph keys are equal where nothing differs that decides how to compute."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from glassgrad.base.config import Context
from glassgrad.tensor.memo.graph_key import GraphKey
from glassgrad.tensor.tensor import Tensor

Make = Callable[[Tensor, Tensor], Tensor]


def key(*tensors: Tensor, holders: tuple[Tensor, ...] = ()) -> tuple[object, ...]:
    graph_key = GraphKey()
    graph_key.add([tensor.uop for tensor in tensors])
    graph_key.add_holders([tensor.uop for tensor in holders])
    graph_key.add_graphs(())
    return graph_key.key()


def pair(*shape: int) -> tuple[Tensor, Tensor]:
    return Tensor.ones(*shape).contiguous().realize(), Tensor.ones(*shape).contiguous().realize()


SAME: list[Make] = [
    lambda x, y: x + y,
    lambda x, y: (x * 2.0).exp() - y,
    lambda x, y: (x @ y).softmax(),
    lambda x, y: x + Tensor.zeros(2, 2),  # which has a name of its own each time
    lambda x, y: x.reshape(4)[1:3].sum() * y,
]
OTHER: list[tuple[Make, Make]] = [
    (lambda x, y: x + y, lambda x, y: x + x),
    (lambda x, y: x - y, lambda x, y: x - y * 1.0),
    (lambda x, y: x + 0.0, lambda x, y: x + -0.0),
    (lambda x, y: x.sum(0), lambda x, y: x.sum(1)),
    (lambda x, y: (x * y) + (x * y), lambda x, y: (x * y) + (y * x)),
    (lambda x, y: x + y, lambda x, y: x.detach() + y),
]


@pytest.mark.parametrize("make", SAME)
def test_graphs_of_other_buffers_have_the_same_key(make: Make) -> None:
    make(*pair(2, 2))  # composites are recorded the first time
    assert key(make(*pair(2, 2))) == key(make(*pair(2, 2)))


@pytest.mark.parametrize(("make", "other"), OTHER)
def test_other_graphs_have_another_key(make: Make, other: Make) -> None:
    x, y = pair(2, 2)
    assert key(make(x, y)) != key(other(x, y))


def test_layouts_dtypes_and_settings_are_part_of_the_key() -> None:
    (x, y), (wide, _) = pair(2, 2), pair(2, 3)
    assert key(x + 1) != key(wide + 1)
    assert key(x + 1) != key(x.cast("int32") + 1)
    first = key(x + y)
    with Context(NOOPT=1):
        assert key(x + y) != first


def test_what_was_computed_is_its_buffer() -> None:
    x, y = pair(2, 2)
    z = x * y
    before = key(z + 1)
    z.numpy()
    assert key(z + 1) != before
    other = x * y
    other.numpy()
    assert key(z + 1) == key(other + 1)


def test_keys_of_gradients_include_the_differentiated_graph() -> None:
    def gradient(kind: str, looks: bool) -> tuple[object, ...]:
        x, y = pair(2, 2)
        x.is_param_()
        loss = (getattr(x * y, kind)() * x).sum()
        loss.backward()
        if looks:
            loss.item()
        assert x.grad is not None
        return key(x.grad)

    for looks in (False, True):
        assert gradient("tanh", looks) == gradient("tanh", looks) != gradient("relu", looks)


def test_live_tensors_are_part_of_the_key_where_they_hold_written_buffers() -> None:
    x, y = pair(2, 2)
    assert key(x + 1, holders=(x,)) != key(x + 1, holders=())
    assert key(x + 1, holders=(y,)) == key(x + 1, holders=())
    assert key(x + 1, holders=(y * 2,)) != key(x + 1, holders=())
