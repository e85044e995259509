"""Keys and results of captures <-> text and JSON, for export files."""

from __future__ import annotations

from typing import Any

from glassgrad.base.errors import CaptureError
from glassgrad.ir.size import expression_text
from glassgrad.ir.uop import UOp
from glassgrad.tensor.jit.guards.kinds import PLAIN_TYPES
from glassgrad.tensor.jit.pytree import TENSOR, TensorPlaceholder

JSON_SCALARS = (type(None), bool, int, float, str)  # values that JSON represents exactly


def key_text(key: Any) -> str:
    """A key of `pytree.flatten` as readable text; equal keys have equal texts in all processes.

    >>> key_text(("tuple", TENSOR, ("dict", "n", (int, "2"))))
    'tuple(a tensor, {n: 2})'
    """
    if key == TENSOR:
        return TENSOR
    first, *rest = key
    if first == TENSOR:
        return _variable(rest[0])
    if isinstance(first, str) and first != "dict":
        return f"{first}({', '.join(map(key_text, rest))})"
    if first == "dict":
        pairs = zip(rest[::2], rest[1::2], strict=True)
        return "{" + ", ".join(f"{name}: {key_text(part)}" for name, part in pairs) + "}"
    if first in PLAIN_TYPES:
        return str(rest[0])
    return _of_class(first, rest)


def _variable(uop: UOp) -> str:
    found = [node for node in uop.toposort() if node.arg is not None and not node.src]
    bounds = [f"{n.arg[0]} from {n.arg[1]} to {n.arg[2]}" for n in found if not n.is_const]
    return f"{expression_text(uop)} ({', '.join(bounds)})"


def _of_class(kind: type, parts: list[Any]) -> str:
    """A dataclass by its fields; other constants by their repr."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if hasattr(kind, "__dataclass_fields__"):
        return f"{name}({', '.join(map(key_text, parts))})"
    shown = repr(parts[0])
    if " at 0x" in shown:
        raise CaptureError(
            f"a function with the argument {shown} cannot be exported: another process has "
            "no such object",
            hint="bind it to the function with a lambda or functools.partial",
        )
    return f"{name} {shown}"


def pack_result(template: Any) -> Any:
    """The structure of a result as JSON data."""
    if isinstance(template, TensorPlaceholder):
        return "tensor"
    kind = type(template)
    if kind in (tuple, list):
        return [kind.__name__, *map(pack_result, template)]
    if kind is dict and all(type(name) is str for name in template):
        return {name: pack_result(part) for name, part in template.items()}
    if kind in JSON_SCALARS:
        return ["plain", template]
    raise CaptureError(
        f"a function that returns a {kind.__name__} cannot be exported: a file cannot hold it",
        hint="return tensors and numbers in tuples, lists, or dicts with text for names",
    )


def unpack_result(packed: Any) -> Any:
    if packed == "tensor":
        return TensorPlaceholder()
    if isinstance(packed, dict):
        return {name: unpack_result(part) for name, part in packed.items()}
    kind, *parts = packed
    if kind == "plain":
        return parts[0]
    return (tuple if kind == "tuple" else list)(map(unpack_result, parts))


def unknown_call_error(asked: str, known: list[str]) -> CaptureError:
    """The error for a call that no capture in the file matches."""
    return CaptureError(
        f"the exported function was called with {asked}, and was captured with "
        f"{' or '.join(known)}",
        hint="call it as it was called before it was exported",
    )
