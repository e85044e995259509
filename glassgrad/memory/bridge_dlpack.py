"""DLPack -> MemoryView: tensors of PyTorch, JAX, CuPy, NumPy, on any device."""

from __future__ import annotations

import ctypes
from typing import Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.memory.errors import ExportError, RefusedError
from glassgrad.memory.flags import Flags
from glassgrad.memory.layout import Ints
from glassgrad.memory.memory_view import MemoryView

VERSION = (1, 1)  # of the structures below
READ_ONLY, IS_COPIED = 1, 2  # flags of versioned tensors
LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"

DEVICES = {
    1: "CPU", 2: "CUDA", 3: "CPU", 4: "OPENCL", 7: "VULKAN", 8: "METAL", 10: "HIP", 11: "CPU",
    13: "CPU", 15: "WEBGPU",
}  # fmt: skip
# (code, bits) -> format; types without a letter are raw bytes with a dtype of ours
FORMATS = {
    (0, 8): "b", (0, 16): "h", (0, 32): "i", (0, 64): "q",
    (1, 8): "B", (1, 16): "H", (1, 32): "I", (1, 64): "Q",
    (2, 16): "e", (2, 32): "f", (2, 64): "d",
    (5, 64): "Zf", (5, 128): "Zd", (6, 8): "?",
}  # fmt: skip
WITHOUT_FORMAT: dict[tuple[int, int], DType] = {
    (4, 16): dtypes.bfloat16,
    (10, 8): dtypes.fp8e4m3,
    (12, 8): dtypes.fp8e5m2,
}


class DLTensor(ctypes.Structure):
    """The description of a tensor; strides are in elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensor: the structure before version 1."""

    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned: with a version and flags such as read-only."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_API = ctypes.pythonapi
name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _API))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _API)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _API)
)
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}


def from_dlpack(x: Any) -> MemoryView:
    """The memory of an object with __dlpack__, or of a DLPack capsule."""
    from glassgrad.memory.hub import check, count_export

    if not hasattr(x, "__dlpack__") and type(x).__name__ != "PyCapsule":
        raise ExportError(f"{type(x).__name__} does not support DLPack", hint="use get()")
    view = take_capsule(x, x) if type(x).__name__ == "PyCapsule" else get(x, 0)
    try:
        check(view, Flags.INDIRECT)
    except BaseException:
        view.release()
        raise
    return count_export(x, view)


def get(obj: Any, flags: int) -> MemoryView:
    """Request a versioned capsule; producers that do not know versions are asked without."""
    try:
        try:
            capsule = obj.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = obj.__dlpack__()
    except Exception as error:
        raise RefusedError(f"{type(obj).__name__} failed to export its memory: {error}") from error
    return take_capsule(capsule, obj)


def take_capsule(capsule: Any, obj: Any) -> MemoryView:
    """The memory of a capsule, which is marked as used by its new name."""
    name = name_of(capsule)
    if name not in USED:
        raise RefusedError(
            f"cannot import a capsule named {name!r}", hint="a capsule can be imported once"
        )
    address = _pointer_of(capsule, name)
    _rename(capsule, USED[name])
    kind = Managed if name == LEGACY else ManagedVersioned
    managed: Any = kind.from_address(address)
    try:
        return _to_view(managed, obj)
    except BaseException:
        delete(managed)
        raise


def _to_view(managed: Any, obj: Any) -> MemoryView:
    is_versioned = isinstance(managed, ManagedVersioned)
    if is_versioned and managed.major != VERSION[0]:
        raise RefusedError(f"DLPack version {managed.major} is not supported")
    tensor = managed.tensor
    if tensor.lanes != 1 or tensor.bits % 8:
        raise RefusedError(f"items of {tensor.lanes} x {tensor.bits} bits cannot be shared")
    if tensor.device_type not in DEVICES:
        raise RefusedError(f"DLPack device type {tensor.device_type} is not supported")
    size = tensor.bits // 8
    key = (tensor.code, tensor.bits)
    shape = _ints(tensor.shape, tensor.ndim)
    steps = _ints(tensor.strides, tensor.ndim) if tensor.strides else None
    count = 1
    for extent in shape:
        count *= extent
    family = DEVICES[tensor.device_type]
    return MemoryView(
        obj,
        (tensor.data or 0) + tensor.byte_offset,
        count * size,
        readonly=bool(is_versioned and managed.flags & READ_ONLY),
        format=FORMATS.get(key, f"{size}s"),
        item_size=size,
        shape=shape,
        strides=None if steps is None else tuple([step * size for step in steps]),
        private_data=managed,
        device=f"{family}:{tensor.device_id}" if tensor.device_id else family,
        dtype=WITHOUT_FORMAT.get(key),
        release=release_view,
    )


def _ints(address: int | None, ndim: int) -> Ints:
    return tuple((ctypes.c_int64 * ndim).from_address(address)) if ndim and address else ()


def delete(managed: Any, call: Any = _DELETER) -> None:
    if managed.deleter:
        call(managed.deleter)(ctypes.addressof(managed))


def release_view(view: MemoryView, done: Any = delete) -> None:
    # Bound as defaults: at exit a module's globals are cleared before its users.
    done(view.private_data)


def device_pair(device: str) -> tuple[int, int]:
    """DLPack's (device type, id) of a device.

    >>> device_pair("CPU"), device_pair("CUDA:1")
    ((1, 0), (2, 1))
    """
    family, _, number = device.partition(":")
    family = "CPU" if family in ("CLANG", "PYTHON", "DISK") else family
    for code, name in DEVICES.items():
        if name == family:
            return code, int(number or 0) if family != "CPU" else 0
    raise RefusedError(f"DLPack has no device type for {device}")
