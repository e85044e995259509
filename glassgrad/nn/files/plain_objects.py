"""Plain objects in pickles: sets, paths, argparse.Namespace, and arrays and scalars of NumPy.

Training loops save them with their models. No other names are called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from pathlib import PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import numpy as np

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.mapped import are_valid_sizes
from glassgrad.nn.files.unpickler import Call, Unfinished, is_plain

DTYPE = re.compile(
    r"[biufcSU][1-9]\d{0,3}"
)  # numbers and strings; the bytes of object arrays are addresses
BYTE_ORDERS = ("<", ">", "|", "=")


def plain_object(name: str, args: tuple[Any, ...]) -> Any:
    """The result of calling a name; a TypeError if the name or the arguments are not supported."""
    construct = CONSTRUCTORS.get(name)
    if construct is None:
        raise TypeError(name)
    return construct(*args)


# ---------------------------------------------------------------------- Python


def _require(are_valid: bool) -> None:
    if not are_valid:
        raise TypeError("unsupported arguments")


def _items(items: Any) -> list[Any]:
    """The checked items of a set."""
    _require(isinstance(items, list) and all(map(is_plain, items)))
    return list(items)


def _ordered_dict(pairs: Any = ()) -> dict[Any, Any]:
    """A dict. Python 3 sets the items afterwards; Python 2 passes them."""
    made = {}
    for key, value in pairs:
        _require(is_plain(key))
        made[key] = value
    return made


def _default_dict(factory: Any = None) -> dict[Any, Any]:
    """A plain dict: the factory of a defaultdict is ignored."""
    return {}


def _counter(counts: Any) -> dict[Any, Any]:
    _require(isinstance(counts, dict))
    return dict(counts)


def _encode(text: Any, encoding: Any) -> bytes:
    """bytes, as protocols before 3 write them."""
    _require(isinstance(text, str) and encoding == "latin1")
    return bytes(text, "latin1")


def _bytearray(raw: Any = b"", encoding: Any = None) -> bytearray:
    _require(isinstance(raw, bytes) or (isinstance(raw, str) and encoding == "latin-1"))
    return bytearray(raw, "latin-1") if isinstance(raw, str) else bytearray(raw)


def _range(*numbers: Any) -> range:
    _require(all(type(number) is int for number in numbers))
    return range(*numbers)


def _complex(real: Any, imaginary: Any) -> complex:
    _require(type(real) is float and type(imaginary) is float)
    return complex(real, imaginary)


def _path(*parts: Any) -> PurePosixPath:
    _require(all(isinstance(part, str) for part in parts))
    return PurePosixPath(*parts)


def _windows_path(*parts: Any) -> PureWindowsPath:
    _require(all(isinstance(part, str) for part in parts))
    return PureWindowsPath(*parts)


class NamespaceState(Unfinished):
    """An argparse.Namespace, whose attributes follow."""

    def finished(self, state: Any) -> SimpleNamespace:
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise FormatError("the pickle is damaged: the attributes of a Namespace have no names")
        return SimpleNamespace(**state)


# ---------------------------------------------------------------------- NumPy


class DTypeState(Unfinished):
    """A dtype, whose byte order follows."""

    def __init__(self, text: Any, *rest: Any) -> None:
        super().__init__()
        if not isinstance(text, str) or not DTYPE.fullmatch(text):
            raise FormatError(f"unsupported NumPy dtype {text!r:.40}")
        self.dtype = np.dtype(text)

    def finished(self, state: Any) -> np.dtype[Any]:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in BYTE_ORDERS:
            raise FormatError("the pickle is damaged: a dtype has no byte order")
        return self.dtype.newbyteorder(state[1])


class ArrayState(Unfinished):
    """An array, whose shape, dtype and bytes follow."""

    def __init__(self, kind: Any, *rest: Any) -> None:
        super().__init__()
        _require(kind == Call("numpy.ndarray"))

    def finished(self, state: Any) -> np.ndarray[Any, Any]:
        if not isinstance(state, tuple) or len(state) != 5:
            raise FormatError("the pickle is damaged: an array without a shape")
        _, shape, dtype, is_fortran, raw = state
        if (
            not isinstance(dtype, np.dtype)
            or not are_valid_sizes(shape)
            or not isinstance(raw, bytes)
        ):
            raise FormatError("the pickle is damaged: an array without numbers")
        if len(raw) != prod(shape) * dtype.itemsize:
            raise FormatError(
                f"the pickle is damaged: an array of shape {tuple(shape)} has {len(raw)} bytes"
            )
        flat = np.frombuffer(raw, dtype) if raw else np.zeros(0, dtype)
        return flat.reshape(shape, order="F" if is_fortran is True else "C").copy()


def _scalar(dtype: Any, raw: Any) -> Any:
    _require(isinstance(dtype, np.dtype) and isinstance(raw, bytes) and len(raw) == dtype.itemsize)
    return np.frombuffer(raw, dtype)[0]


Constructor = Callable[..., Any]
BUILTIN: dict[str, Constructor] = {
    "set": lambda items: set(_items(items)),
    "frozenset": lambda items: frozenset(_items(items)),
    "bytes": lambda: b"",  # bytes that are not empty are encoded strings
    "bytearray": _bytearray,
    "complex": _complex,
    "range": _range,
    "xrange": _range,
}
PATHS: dict[str, Constructor] = {
    "PosixPath": _path,
    "PurePosixPath": _path,
    "WindowsPath": _windows_path,
    "PureWindowsPath": _windows_path,
}
ARRAYS: dict[str, Constructor] = {"_reconstruct": ArrayState, "scalar": _scalar}
CONSTRUCTORS: dict[str, Constructor] = {
    "collections.OrderedDict": _ordered_dict,
    "collections.defaultdict": _default_dict,
    "collections.Counter": _counter,
    "_codecs.encode": _encode,
    "numpy.dtype": DTypeState,
    # Modules differ between versions of Python and NumPy.
    **{
        f"{module}.{name}": BUILTIN[name]
        for module in ("__builtin__", "builtins")
        for name in BUILTIN
    },
    **{
        f"{module}.{name}": PATHS[name]
        for module in ("pathlib", "pathlib._local")
        for name in PATHS
    },
    **{f"numpy.core.multiarray.{name}": make for name, make in ARRAYS.items()},
    **{f"numpy._core.multiarray.{name}": make for name, make in ARRAYS.items()},
}
