"""gradients -> gradients that are not too large, by their common length or one by one."""

from __future__ import annotations

from collections.abc import Iterable

from glassgrad.nn.optim.sgd import norm
from glassgrad.tensor.tensor import Tensor


def clip_grad_norm_(params: Iterable[Tensor], max_norm: float) -> Tensor:
    """Shrink all gradients alike, so that together they are no longer than this.

    The result is how long they were; nothing is computed yet.

    >>> w = Tensor([3.0, 4.0])
    >>> _ = (w * w).sum().backward()
    >>> clip_grad_norm_([w], 1.0).item(), [round(g, 3) for g in w.grad.tolist()]
    (10.0, [0.6, 0.8])
    """
    owners = [param for param in params if param.grad is not None]
    lengths = [norm(param.grad) for param in owners if param.grad is not None]
    if not lengths:
        return Tensor(0.0, requires_grad=False)
    total = norm(Tensor.stack(*lengths)) if len(lengths) > 1 else lengths[0]
    scale = (max_norm / (total + 1e-6)).minimum(1.0)
    for param in owners:
        if param.grad is not None:
            param.grad = (param.grad * scale).cast(param.grad.dtype)
    return total


def clip_grad_value_(params: Iterable[Tensor], clip_value: float) -> None:
    """Keep every element of the gradients between -clip_value and clip_value.

    >>> w = Tensor([-3.0, 0.25])
    >>> _ = (w * w).sum().backward()
    >>> clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [-1.0, 0.5]
    """
    for param in params:
        if param.grad is not None:
            param.grad = param.grad.clamp(-clip_value, clip_value)
