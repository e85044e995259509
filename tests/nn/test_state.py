"""Finding the tensors of a model."""

from __future__ import annotations

from glassgrad import Tensor
from glassgrad.nn import Linear
from glassgrad.nn.state import get_parameters, get_state_dict


class Model:
    def __init__(self) -> None:
        self.layers = [Linear(2, 3), Linear(3, 1, bias=False)]
        self.scale = Tensor([1.0])
        self.steps = Tensor([0], requires_grad=False)
        self.extra = {"shift": Tensor([2.0])}
        self.me = self


def test_tensors_are_named_by_the_path_to_them() -> None:
    names = list(get_state_dict(Model()))
    assert names == [
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "scale", "steps", "extra.shift",
    ]  # fmt: skip


def test_parameters_are_the_tensors_that_are_trained() -> None:
    model = Model()
    found = get_parameters(model)
    assert len(found) == 5
    assert all(tensor is not model.steps for tensor in found)
