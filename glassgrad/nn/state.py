"""State dicts: model -> tensors by name, and back.

Any object whose attributes hold tensors is a model. A name is an attribute path, such as
`layers.0.weight`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from types import FunctionType, MethodType, ModuleType
from typing import Any

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.safetensors import safe_load, safe_load_metadata, safe_save
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.tensor import Tensor

__all__ = [
    "get_parameters",
    "get_state_dict",
    "load_state_dict",
    "safe_load",
    "safe_load_metadata",
    "safe_save",
]

# Readers of other formats, imported on first use.
LAZY_IMPORTS = {
    "TensorIO": "glassgrad.nn.files.tensor_io",
    "accept_filename": "glassgrad.nn.files.tensor_io",
    "gguf_load": "glassgrad.nn.files.gguf",
    "npy_load": "glassgrad.nn.files.npy",
    "npy_save": "glassgrad.nn.files.npy",
    "npz_load": "glassgrad.nn.files.npy",
    "tar_extract": "glassgrad.nn.files.archive",
    "torch_load": "glassgrad.nn.files.pytorch",
    "zip_extract": "glassgrad.nn.files.archive",
}
OPAQUE = (type, ModuleType, FunctionType, MethodType, TinyJit)  # tensors in these are not state
MAX_LISTED_NAMES = 8  # in one error message


def __getattr__(name: str) -> Any:
    if name not in LAZY_IMPORTS:
        raise AttributeError(f"module 'glassgrad.nn.state' has no attribute {name!r}")
    return getattr(import_module(LAZY_IMPORTS[name]), name)


def get_state_dict(
    obj: Any, prefix: str = "", tensor_type: type[Tensor] = Tensor
) -> dict[str, Tensor]:
    """The tensors of a model by name: "layers.0.weight".

    >>> from glassgrad.nn import Linear
    >>> list(get_state_dict([Linear(2, 3)]))
    ['0.weight', '0.bias']
    """
    found: dict[str, Tensor] = {}
    stack: list[tuple[Any, str]] = [(obj, prefix.strip("."))]
    seen: set[int] = set()  # a model may contain itself
    while stack:
        item, name = stack.pop()
        if isinstance(item, tensor_type):
            found[name] = item
        elif id(item) not in seen and not _is_opaque(item):
            seen.add(id(item))
            stack.extend((part, f"{name}.{key}".strip(".")) for key, part in _parts(item)[::-1])
    return found


def _is_opaque(item: Any) -> bool:
    return isinstance(item, OPAQUE) or getattr(type(item), "holds_state", True) is False


def _parts(item: Any) -> list[tuple[Any, Any]]:
    if isinstance(item, dict):
        return list(item.items())
    if hasattr(item, "_asdict"):  # a named tuple
        return list(item._asdict().items())
    if isinstance(item, (list, tuple)):
        return list(enumerate(item))
    slots = [(name, getattr(item, name)) for name in _slots(type(item)) if hasattr(item, name)]
    return slots + (list(vars(item).items()) if hasattr(item, "__dict__") else [])


def _slots(kind: type) -> list[str]:
    """The attribute names that a class and its bases declare in __slots__."""
    found: list[str] = []
    for one in reversed(kind.__mro__):
        names = vars(one).get("__slots__", ())
        found += [names] if isinstance(names, str) else list(names)
    return [name for name in found if not name.startswith("__")]


def get_parameters(obj: Any) -> list[Tensor]:
    """The trained tensors of a model, each once even if it has several names.

    These are all float tensors that were not detached or made with requires_grad=False. From now
    on backward() leaves a gradient in each of them.

    >>> from glassgrad.nn import BatchNorm
    >>> len(get_parameters(BatchNorm(3))), len(get_state_dict(BatchNorm(3)))
    (2, 5)
    """
    tensors = {id(tensor): tensor for tensor in get_state_dict(obj).values() if is_trained(tensor)}
    for tensor in tensors.values():
        tensor.is_param = True  # results of operations are not parameters by default
    return list(tensors.values())


def is_trained(tensor: Tensor) -> bool:
    """True if a model that holds this tensor trains it.

    >>> is_trained(Tensor.randn(2) * 0.02), is_trained(Tensor.arange(2))
    (True, False)
    """
    return tensor.dtype.kind == "float" and tensor._requires_grad is not False


# ---------------------------------------------------------------------- loading


def load_state_dict(
    model: Any,
    state_dict: dict[str, Any],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Assign the values of a state dict to the tensors of a model; returns the tensors assigned.

    A tensor that was never computed adopts the value, including the pages of a mapped file; others
    are written in place. Values may be arrays (which are copied) and are cast to the dtypes of the
    model. Names or shapes that do not match are an error; with `strict=False` they are skipped, and
    listed in a warning if `verbose`. `consume` removes used values from `state_dict`.

    >>> from glassgrad.nn import Linear
    >>> layer = Linear(1, 2, bias=False)
    >>> _ = load_state_dict(layer, {"weight": Tensor([[1.0], [2.0]])})
    >>> layer.weight.tolist()
    [[1.0], [2.0]]
    """
    wanted = get_state_dict(model)
    mismatches = _mismatches(wanted, state_dict)
    if mismatches and strict:
        raise FormatError(
            f"the state dict does not match the model: {'; '.join(mismatches)}",
            hint="pass strict=False to load what matches",
        )
    if mismatches and verbose:
        warnings.warn(f"not loaded: {'; '.join(mismatches)}", stacklevel=2)
    loaded = []
    for name, tensor in wanted.items():
        given = state_dict.get(name)
        if given is not None and _has_shape(given, tensor):
            value = given if isinstance(given, Tensor) else Tensor(given)
            value = value.reshape(tensor.shape).to(tensor.device)
            tensor.assign(value.cast(tensor.dtype))
            loaded.append(tensor)
            if consume:
                del state_dict[name]
    if realize and loaded:
        Tensor.realize(*loaded)
    return loaded


def _has_shape(given: Any, wanted: Tensor) -> bool:
    """Equal shapes; () and (1,) match, because libraries differ in how they store scalars."""
    shape = getattr(given, "shape", None)
    return shape == wanted.shape or {shape, wanted.shape} == {(), (1,)}


def _mismatches(wanted: dict[str, Tensor], given: Mapping[str, Any]) -> list[str]:
    """What does not match: one entry for each kind of mismatch."""
    missing = [name for name in wanted if name not in given]
    unexpected = [name for name in given if name not in wanted]
    misshaped = [
        f"{name} is {_shown(given[name])} instead of {tensor.shape}"
        for name, tensor in wanted.items()
        if name in given and not _has_shape(given[name], tensor)
    ]
    kinds = {"missing": missing, "unexpected": unexpected, "of another shape": misshaped}
    return [f"{kind}: {_listed(names)}" for kind, names in kinds.items() if names]


def _shown(given: Any) -> str:
    return str(given.shape) if hasattr(given, "shape") else f"a {type(given).__name__}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more
