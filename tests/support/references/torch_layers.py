"""PyTorch's layers as references: the same weights on both sides, values and gradients compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import Tensor
from glassgrad.nn.state import get_state_dict, load_state_dict
from support.oracle import oracle

torch = oracle("torch")


def with_weights_of(theirs: Any, ours: Any) -> Any:
    """Our layer with the weights of theirs; all names must agree."""
    weights = {name: Tensor(value.numpy().copy()) for name, value in theirs.state_dict().items()}
    load_state_dict(ours, weights)
    return ours


def check_layer(theirs: Any, ours: Any, *shapes: tuple[int, ...], rtol: float = 2e-5) -> None:
    """Equal results and equal gradients, for inputs and for every parameter."""
    with_weights_of(theirs, ours)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    inputs, tensors = (
        [torch.tensor(a, requires_grad=True) for a in arrays],
        list(map(Tensor, arrays)),
    )
    wanted, found = theirs(*inputs), ours(*tensors)
    weight = random.standard_normal(tuple(wanted.shape)).astype(np.float32)
    (wanted * torch.tensor(weight)).sum().backward()
    (found * Tensor(weight)).sum().backward()
    close(found, wanted, rtol)
    for tensor, given in zip(tensors, inputs, strict=True):
        close(tensor.grad, given.grad, rtol)
    names = get_state_dict(ours)
    for name, parameter in theirs.named_parameters():
        close(names[name].grad, parameter.grad, rtol)


def close(found: Tensor | None, wanted: Any, rtol: float) -> None:
    assert found is not None
    array = wanted.detach().numpy()
    atol = rtol * max(float(np.abs(array).max(initial=0.0)), 1e-3)
    np.testing.assert_allclose(found.numpy(), array, rtol=rtol, atol=atol)
