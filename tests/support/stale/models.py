"""Models, optimizers, tensors, and what scripts do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from glassgrad import Tensor, nn
from support.stale.kinds import (
    MUTATIONS,
    Mutation,
    identity_layer,
    mutation,
    row,
    triple,
)

# ---------------------------------------------------------------------- models


class Net:
    def __init__(self) -> None:
        self.layers = [identity_layer(2.0), identity_layer(3.0)]
        self.is_training = False
        self.scale = 1.0
        self.extra = row(1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return (x * 0.5 if self.is_training else x) * self.scale * self.extra


MODEL_CHANGES: dict[str, Callable[[Any], Any]] = {
    "train flag": lambda net: setattr(net, "is_training", True),
    "number": lambda net: setattr(net, "scale", 3.0),
    "tensor": lambda net: setattr(net, "extra", row(5, 5)),
    "lazy tensor": lambda net: setattr(net, "extra", row(5, 5) + 1),
    "weight": lambda net: setattr(net.layers[0], "weight", row(7, 0, 0, 7).reshape(2, 2)),
    "weight in place": lambda net: net.layers[0].weight.assign(row(7, 0, 0, 7).reshape(2, 2)),
    "weight replaced": lambda net: net.layers[0].weight.replace(row(7, 0, 0, 7).reshape(2, 2)),
    "bias": lambda net: setattr(net.layers[0], "bias", row(7, 7)),
    "layer": lambda net: net.layers.__setitem__(0, identity_layer(7.0)),
    "fresh layer": lambda net: net.layers.__setitem__(0, nn.Linear(2, 2)),
    "fewer layers": lambda net: net.layers.pop(),
    "more layers": lambda net: net.layers.append(identity_layer(7.0)),
    "other layers": lambda net: setattr(net, "layers", [identity_layer(7.0)]),
    "other order": lambda net: net.layers.append(net.layers.pop(0)) or net.layers.append(triple),
}


def of_model(change: Callable[[Any], Any], is_called: bool) -> Callable[[], Mutation]:
    def made() -> Mutation:
        net = Net()
        return Mutation(net if is_called else (lambda x: net(x)), lambda: change(net))

    return made


for _name, _change in MODEL_CHANGES.items():
    MUTATIONS[f"a model by name: {_name}"] = of_model(_change, is_called=False)
    MUTATIONS[f"a model itself: {_name}"] = of_model(_change, is_called=True)


@mutation
def the_active_one_of_several_models() -> Any:
    nets = {"best": identity_layer(2.0), "last": identity_layer(5.0)}
    active = nets["last"]

    def change() -> None:
        nonlocal active
        active = nets["best"]

    return lambda x: active(x), change


@mutation
def tensors_that_swap() -> Any:
    a, b = row(2, 3), row(5, 6)

    def change() -> None:
        nonlocal a, b
        a, b = b, a

    return lambda x: x * a - b, change


@mutation
def a_tensor_made_of_the_old_one() -> Any:
    w = row(2, 3)

    def change() -> None:
        nonlocal w
        w = w * 2

    return lambda x: x * w, change


@mutation
def a_tensor_in_a_dict_of_two() -> Any:
    state = {"w": row(2, 3), "v": row(1, 1)}
    return lambda x: x * state["w"] + state["v"], lambda: state.update(w=row(5, 6))


@mutation
def a_buffer_of_a_norm() -> Any:
    norm = nn.BatchNorm(2)
    return (
        lambda x: norm(x.reshape(1, 2)),
        lambda: setattr(norm, "running_mean", row(1, 2)),
    )


@mutation
def an_optimizer_s_rate() -> Any:
    w = Tensor([1.0, 2.0]).realize()
    optimizer = nn.optim.SGD([w], lr=0.1)

    def f(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * x).sum().backward()
        optimizer.step()
        return loss + w.sum()

    return f, lambda: setattr(optimizer, "lr", 0.5)


@mutation
def a_learning_rate_tensor_that_is_replaced() -> Any:
    w = Tensor([1.0, 2.0]).realize()
    optimizer = nn.optim.SGD([w], lr=0.1)

    def f(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * x).sum().backward()
        optimizer.step()
        return loss + w.sum()

    return f, lambda: setattr(optimizer, "lr", row(0.5))


@mutation
def a_gradient_that_is_replaced() -> Any:
    w = Tensor([1.0, 2.0]).requires_grad_()
    w.grad = row(1, 1)

    def f(x: Tensor) -> Tensor:
        return x * w.grad  # type: ignore[operator]

    return f, lambda: setattr(w, "grad", row(5, 6))


@mutation
def a_gradient_that_is_added_to() -> Any:
    w = Tensor([1.0, 2.0]).requires_grad_()

    def f(x: Tensor) -> Tensor:
        (w * x).sum().backward()
        return w.grad.square().sum().sqrt()  # type: ignore[union-attr]

    return f, lambda: setattr(w, "grad", None)


@mutation
def an_attribute_of_a_scheduler() -> Any:
    @dataclass
    class Schedule:
        rates: list[float] = field(default_factory=lambda: [2.0, 5.0])
        step: int = 0

        def get(self) -> float:
            return self.rates[self.step]

    schedule = Schedule()
    return lambda x: x * schedule.get(), lambda: setattr(schedule, "step", 1)


@mutation
def the_training_mode() -> Any:
    def change() -> None:
        Tensor.training = True

    return lambda x: x * (2 if Tensor.training else 5), change


@mutation
def two_equal_graphs_with_other_numbers() -> Any:
    n = 2

    def f(x: Tensor) -> Tensor:
        return (x * n).realize() + (x * 3).realize()

    def change() -> None:
        nonlocal n
        n = 7

    return f, change


@mutation
def a_returned_number() -> Any:
    n = 2

    def f(x: Tensor) -> Any:
        return x * 3, n

    def change() -> None:
        nonlocal n
        n = 7

    return f, change
