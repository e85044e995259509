"""Gradient clipping, by global norm or by value."""

from __future__ import annotations

from collections.abc import Iterable

from glassgrad.nn.optim.sgd import norm
from glassgrad.tensor.tensor import Tensor


def clip_grad_norm_(params: Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale all gradients so that their global norm is at most `max_norm`; lazy.

    Returns the norm before clipping.

    >>> w = Tensor([3.0, 4.0])
    >>> _ = (w * w).sum().backward()
    >>> clip_grad_norm_([w], 1.0).item(), [round(g, 3) for g in w.grad.tolist()]
    (10.0, [0.6, 0.8])
    """
    params_with_grad = [param for param in params if param.grad is not None]
    norms = [norm(param.grad) for param in params_with_grad if param.grad is not None]
    if not norms:
        return Tensor(0.0, requires_grad=False)
    total = norm(Tensor.stack(*norms)) if len(norms) > 1 else norms[0]
    scale = (max_norm / (total + 1e-6)).minimum(1.0)
    for param in params_with_grad:
        if param.grad is not None:
            param.grad = (param.grad * scale).cast(param.grad.dtype)
    return total


def clip_grad_value_(params: Iterable[Tensor], clip_value: float) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value].

    >>> w = Tensor([-3.0, 0.25])
    >>> _ = (w * w).sum().backward()
    >>> clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [-1.0, 0.5]
    """
    for param in params:
        if param.grad is not None:
            param.grad = param.grad.clamp(-clip_value, clip_value)
