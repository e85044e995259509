"""DLPack -> MemoryView: tensors of PyTorch, JAX, CuPy, NumPy, on whatever device they are."""

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
# (code, bits) -> format; what has no letter is so many bytes, and has a dtype of ours
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
    """What lies where; strides are in elements."""

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
    """DLManagedTensor: the layout before version 1."""

    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned: says its version, and whether it may be written."""

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
    """The memory of anything that speaks DLPack, or of a capsule that was made by it."""
    from glassgrad.memory.hub import check, counted

    if not hasattr(x, "__dlpack__") and type(x).__name__ != "PyCapsule":
        raise ExportError(f"{type(x).__name__} does not speak DLPack", hint="use get()")
    view = taken(x, x) if type(x).__name__ == "PyCapsule" else get(x, 0)
    try:
        check(view, Flags.INDIRECT)
    except BaseException:
        view.release()
        raise
    return counted(x, view)


def get(obj: Any, flags: int) -> MemoryView:
    """Ask for a versioned capsule; who does not know of versions is asked again without."""
    try:
        try:
            capsule = obj.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = obj.__dlpack__()
    except Exception as error:
        raise RefusedError(f"{type(obj).__name__} does not share its memory: {error}") from error
    return taken(capsule, obj)


def taken(capsule: Any, obj: Any) -> MemoryView:
    """The memory in a capsule, which is used up by it. What counts is the name that it has."""
    name = name_of(capsule)
    if name not in USED:
        raise RefusedError(f"a capsule named {name!r} cannot be taken", hint="take each one once")
    address = _pointer_of(capsule, name)
    _rename(capsule, USED[name])
    kind = Managed if name == LEGACY else ManagedVersioned
    managed: Any = kind.from_address(address)
    try:
        return _described(managed, obj)
    except BaseException:
        delete(managed)
        raise


def _described(managed: Any, obj: Any) -> MemoryView:
    is_versioned = isinstance(managed, ManagedVersioned)
    if is_versioned and managed.major != VERSION[0]:
        raise RefusedError(f"version {managed.major} of DLPack is not known here")
    tensor = managed.tensor
    if tensor.lanes != 1 or tensor.bits % 8:
        raise RefusedError(f"items of {tensor.lanes} x {tensor.bits} bits cannot be shared")
    if tensor.device_type not in DEVICES:
        raise RefusedError(f"DLPack's device {tensor.device_type} is not known here")
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
        release=give_back,
    )


def _ints(address: int | None, ndim: int) -> Ints:
    return tuple((ctypes.c_int64 * ndim).from_address(address)) if ndim and address else ()


def delete(managed: Any, call: Any = _DELETER) -> None:
    if managed.deleter:
        call(managed.deleter)(ctypes.addressof(managed))


def give_back(view: MemoryView, done: Any = delete) -> None:
    # Both functions are held by defaults: at exit the names of a module are gone before its users.
    done(view.private_data)


def device_pair(device: str) -> tuple[int, int]:
    """DLPack's numbers for a device.

    >>> device_pair("CPU"), device_pair("CUDA:1")
    ((1, 0), (2, 1))
    """
    family, _, number = device.partition(":")
    family = "CPU" if family in ("CLANG", "PYTHON", "DISK") else family
    for code, name in DEVICES.items():
        if name == family:
            return code, int(number or 0) if family != "CPU" else 0
    raise RefusedError(f"DLPack has no number for the device {device}")
