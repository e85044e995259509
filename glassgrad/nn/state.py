"""Models -> their tensors: every Tensor that an object holds, by the path to it."""

from __future__ import annotations

from typing import Any

from glassgrad.tensor.tensor import Tensor


def get_state_dict(obj: Any, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of a model by name: "layers.0.weight".

    >>> from glassgrad.nn import Linear
    >>> list(get_state_dict([Linear(2, 3)]))
    ['0.weight', '0.bias']
    """
    found: dict[str, Tensor] = {}
    stack: list[tuple[Any, str]] = [(obj, prefix.strip("."))]
    seen: set[int] = set()
    while stack:
        item, name = stack.pop()
        if isinstance(item, Tensor):
            found[name] = item
        elif id(item) not in seen:
            seen.add(id(item))
            stack.extend((part, f"{name}.{key}".strip(".")) for key, part in _parts(item)[::-1])
    return found


def _parts(item: Any) -> list[tuple[Any, Any]]:
    if isinstance(item, dict):
        return list(item.items())
    if isinstance(item, (list, tuple)):
        return list(enumerate(item))
    return list(vars(item).items()) if hasattr(item, "__dict__") else []


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of a model that take part in training."""
    return [tensor for tensor in get_state_dict(obj).values() if tensor.is_param]
