"""Builder of the objects in PyTorch files: storages, tensors and parameters."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.mapped import Bytes, are_valid_sizes, tensor_view
from glassgrad.nn.files.plain_objects import NamespaceState, plain_object
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
    "storage.UntypedStorage": dtypes.uint8,  # its tensors have the dtype
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
REBUILD_TENSOR = ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
REBUILD_PARAMETER = (
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
)
MAX_OVERLAP = 64  # elements of a copied tensor per element of its storage, for overlapping windows
Find = Callable[[str, DType, int], Bytes]  # (key, dtype, number of elements) -> bytes of a storage


class TypedStorage(NamedTuple):
    """The bytes of a storage, and the dtype of its elements."""

    dtype: DType
    raw: Bytes
    elements: int


class Builder:
    """Builds the objects in a pickle of PyTorch; `find` returns the bytes of storages."""

    def __init__(self, find: Find) -> None:
        self.find = find

    def persistent(self, description: Any) -> TypedStorage:
        """("storage", class, key, device, number of elements); old files add a part, or None"""
        if not isinstance(description, tuple):
            raise FormatError(f"unsupported description of a storage: {description!r:.60}")
        if description[:1] == ("module",) and len(description) > 1:
            module = description[1]
            raise_object(module.name if isinstance(module, Call) else "an unknown class")
        if len(description) not in (5, 6) or description[0] != "storage":
            raise FormatError(f"unsupported description of a storage: {description!r:.60}")
        _, kind, key, _, count = description[:5]
        name = kind.name if isinstance(kind, Call) else ""
        dtype = STORAGES.get(name.removeprefix("torch."))
        if dtype is None:
            raise FormatError(f"there is no dtype for the elements of a {name!r:.40}")
        if not isinstance(key, str) or not are_valid_sizes([count]):
            raise FormatError(f"there is no storage {key!r:.40} of {name!r:.40} in this file")
        if len(description) == 6 and description[5] is not None:
            raise FormatError("a storage is a view of another one, which is not supported")
        return TypedStorage(dtype, self.find(key, dtype, count), count)

    def named(self, name: str) -> Any:
        return DTYPES.get(name, Call(name))

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        """The result of a call; only these few names are supported."""
        if name == REBUILD_TENSOR[0] and len(args) >= 4:
            return strided_tensor(*args[:4])
        if name == REBUILD_TENSOR[1] and len(args) >= 7:
            return strided_tensor(with_dtype(args[0], args[6]), *args[1:4])
        if name in REBUILD_PARAMETER and args and isinstance(args[0], Tensor):
            return args[0]
        if name == "torch._tensor._rebuild_from_type_v2" and len(args) == 4:
            return self._of_subclass(args[0], args[2])
        if name == "torch.Size" and len(args) == 1 and isinstance(args[0], tuple):
            return args[0]
        if name == "torch.device" and args and isinstance(args[0], str):
            return args[0]
        try:
            return plain_object(name, args)
        except TypeError:
            raise FormatError(
                f"the file asks to call {name:.80}, which is not allowed",
                hint="only tensors, numbers, strings, lists and dicts can be loaded",
            ) from None

    def _of_subclass(self, function: Any, args: Any) -> Any:
        """A tensor of a subclass becomes a plain tensor."""
        name = function.name if isinstance(function, Call) else ""
        if name not in (*REBUILD_TENSOR, *REBUILD_PARAMETER) or not isinstance(args, tuple):
            raise FormatError(f"unsupported constructor of a tensor: {name:.80}")
        return self.called(name, args)

    def created(self, name: str) -> Any:
        return NamespaceState() if name == "argparse.Namespace" else raise_object(name)


def with_dtype(storage: Any, dtype: Any) -> Any:
    """An untyped storage with the dtype of a tensor on it."""
    if not isinstance(dtype, DType):
        raise FormatError(f"there is no dtype for {getattr(dtype, 'name', dtype)!r:.40}")
    if not isinstance(storage, TypedStorage) or storage.dtype is not dtypes.uint8:
        raise FormatError("the pickle is damaged: a tensor has no valid storage")
    return TypedStorage(dtype, storage.raw, storage.elements // dtype.itemsize)


def strided_tensor(storage: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
    """A tensor on a storage; offset and strides are in elements.

    Axes with stride 0 are expanded again, so that they take no memory.
    """
    if not isinstance(storage, TypedStorage) or not are_valid_sizes([offset]):
        raise FormatError("the pickle is damaged: a tensor has no valid storage")
    if not are_valid_sizes(shape) or not are_valid_sizes(strides) or len(shape) != len(strides):
        raise FormatError(
            f"the pickle is damaged: a tensor has shape {shape!r:.40} and strides {strides!r:.40}"
        )
    dtype, _, count = storage
    if 0 in shape:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    max_index = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    stored = [1 if step == 0 else size for size, step in zip(shape, strides, strict=True)]
    if max_index >= count or prod(stored) > MAX_OVERLAP * count:
        raise FormatError(f"a tensor of shape {tuple(shape)} does not fit into {count} elements")
    made = _elements(storage, offset, tuple(stored), strides)
    if tuple(stored) == tuple(shape):
        return made
    return made.expand(*shape).is_param_(is_param=False)


def _elements(storage: TypedStorage, offset: int, shape: tuple[int, ...], strides: Any) -> Tensor:
    """A view of the storage if the elements are contiguous, else a copy."""
    dtype, raw, _ = storage
    size = dtype.itemsize
    row_major = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    axes = zip(shape, strides, row_major, strict=True)
    if all(length == 1 or stride == expected for length, stride, expected in axes):
        return tensor_view(raw[offset * size : (offset + prod(shape)) * size], dtype, shape)
    # NumPy lacks some of the dtypes: copy elements as groups of bytes.
    steps = (*(step * size for step in strides), 1)
    view = np.ndarray((*shape, size), np.uint8, raw, offset * size, steps)
    return tensor_view(np.ascontiguousarray(view).reshape(-1), dtype, shape)
