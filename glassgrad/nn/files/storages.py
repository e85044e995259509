"""storages and descriptions in a pickle of PyTorch's -> tensors; no code runs."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.mapped import Bytes, are_sizes, tensor
from glassgrad.nn.files.plain_objects import Options, plain_object
from glassgrad.nn.files.unpickler import Call, raise_object
from glassgrad.tensor.tensor import Tensor

STORAGES: dict[str, DType] = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
    "storage.UntypedStorage": dtypes.uint8,  # the tensors on it say what it holds
}
DTYPES: dict[str, DType] = {
    **{
        f"torch.{dtype.name}": dtype
        for dtype in (dtypes.bool, *dtypes.ints, *dtypes.floats)
        if dtype not in dtypes.fp8s
    },
    "torch.float8_e4m3fn": dtypes.fp8e4m3,
    "torch.float8_e5m2": dtypes.fp8e5m2,
}
REBUILT = ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
PARAMETERS = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
MAX_OVERLAP = 64  # how many times a copy may be as large as its storage: windows that overlap
Find = Callable[[str, DType, int], Bytes]  # a storage's key, dtype and number of elements


class Stored(NamedTuple):
    """A storage: its elements, not looked at yet."""

    dtype: DType
    raw: Bytes
    elements: int


class Builder:
    """What the names in a pickle of PyTorch's stand for; `find` knows where storages are."""

    def __init__(self, find: Find) -> None:
        self.find = find

    def persistent(self, found: Any) -> Stored:
        """("storage", kind, key, where it was, how many elements); old files add a part, or None"""
        if isinstance(found, tuple) and found[:1] == ("module",) and len(found) > 1:
            raise_object(found[1].name if isinstance(found[1], Call) else "no known kind")
        if not isinstance(found, tuple) or len(found) not in (5, 6) or found[0] != "storage":
            raise FormatError(f"a storage is described in an unknown way: {found!r:.60}")
        _, kind, key, _, count = found[:5]
        name = kind.name if isinstance(kind, Call) else ""
        dtype = STORAGES.get(name.removeprefix("torch."))
        if dtype is None:
            raise FormatError(f"there is no dtype for the elements of a {name!r:.40}")
        if not isinstance(key, str) or not are_sizes([count]):
            raise FormatError(f"there is no storage {key!r:.40} of {name!r:.40} in this file")
        if len(found) == 6 and found[5] is not None:
            raise FormatError("a storage is a part of another one")
        return Stored(dtype, self.find(key, dtype, count), count)

    def named(self, name: str) -> Any:
        return DTYPES.get(name, Call(name))

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        """The few calls that a pickle of tensors makes."""
        if name == REBUILT[0] and len(args) >= 4:
            return strided(*args[:4])
        if name == REBUILT[1] and len(args) >= 7:
            return strided(typed(args[0], args[6]), *args[1:4])
        if name in PARAMETERS and args and isinstance(args[0], Tensor):
            return args[0]
        if name == "torch._tensor._rebuild_from_type_v2" and len(args) == 4:
            return self._of_another_class(args[0], args[2])
        if name == "torch.Size" and len(args) == 1 and isinstance(args[0], tuple):
            return args[0]
        if name == "torch.device" and args and isinstance(args[0], str):
            return args[0]
        try:
            return plain_object(name, args)
        except TypeError:
            raise FormatError(
                f"the file asks to call {name:.80}",
                hint="only files of tensors, numbers, texts, lists and dicts are read",
            ) from None

    def _of_another_class(self, function: Any, args: Any) -> Any:
        """A tensor of a class that somebody derived; it comes as a tensor like others."""
        name = function.name if isinstance(function, Call) else ""
        if name not in (*REBUILT, *PARAMETERS) or not isinstance(args, tuple):
            raise FormatError(f"a tensor is made in an unknown way: {name:.80}")
        return self.called(name, args)

    def created(self, name: str) -> Any:
        return Options() if name == "argparse.Namespace" else raise_object(name)


def typed(storage: Any, dtype: Any) -> Any:
    """Bytes as elements of the dtype that a tensor names."""
    if not isinstance(dtype, DType):
        raise FormatError(f"there is no dtype for {getattr(dtype, 'name', dtype)!r:.40}")
    if not isinstance(storage, Stored) or storage.dtype is not dtypes.uint8:
        raise FormatError("a tensor without a storage")
    return Stored(dtype, storage.raw, storage.elements // dtype.itemsize)


def strided(storage: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
    """Elements of a storage, `offset` from its beginning and `strides` apart.

    Axes with stride 0 were expanded, and are expanded again: they take no memory.
    """
    if not isinstance(storage, Stored) or not are_sizes([offset]):
        raise FormatError("a tensor without a storage")
    if not are_sizes(shape) or not are_sizes(strides) or len(shape) != len(strides):
        raise FormatError(f"a tensor of shape {shape!r:.40} with strides {strides!r:.40}")
    dtype, _, count = storage
    if 0 in shape:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    held = [1 if step == 0 else size for size, step in zip(shape, strides, strict=True)]
    if last >= count or prod(held) > MAX_OVERLAP * count:
        raise FormatError(f"a tensor of shape {tuple(shape)} does not fit into {count} elements")
    made = _elements(storage, offset, tuple(held), strides)
    return made if tuple(held) == tuple(shape) else made.expand(*shape).is_param_(is_param=False)


def _elements(storage: Stored, offset: int, shape: tuple[int, ...], strides: Any) -> Tensor:
    """A window on the storage where the elements lie row by row, else a copy."""
    dtype, raw, _ = storage
    size = dtype.itemsize
    plain = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if all(n == 1 or step == usual for n, step, usual in zip(shape, strides, plain, strict=True)):
        return tensor(raw[offset * size : (offset + prod(shape)) * size], dtype, shape)
    # As bytes beside each other, put in order by a copy.
    steps = (*(step * size for step in strides), 1)
    view = np.ndarray((*shape, size), np.uint8, raw, offset * size, steps)
    return tensor(np.ascontiguousarray(view).reshape(-1), dtype, shape)
