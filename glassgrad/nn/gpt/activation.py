"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.tensor.tensor import Tensor


def gelu_exact(x: Tensor) -> Tensor:
    """GELU by the error function; GPT-2 uses the tanh approximation."""
    return x.gelu("none")


def relu_squared(x: Tensor) -> Tensor:
    return x.relu().square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu_exact,
    "gelu_tanh": Tensor.gelu,
    "hardswish": Tensor.hardswish,
    "leaky_relu": Tensor.leaky_relu,
    "linear": lambda x: x,
    "mish": Tensor.mish,
    "quick_gelu": Tensor.quick_gelu,
    "relu": Tensor.relu,
    "relu2": relu_squared,
    "relu6": Tensor.relu6,
    "sigmoid": Tensor.sigmoid,
    "silu": Tensor.silu,
    "tanh": Tensor.tanh,
}
