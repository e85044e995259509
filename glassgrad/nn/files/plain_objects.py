"""what Python and NumPy put into pickles beside tensors -> values; nothing else is called.

Sets, paths, options of command lines, and NumPy's numbers and arrays: a training loop saves them
with its model.
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
from glassgrad.nn.files.mapped import are_sizes
from glassgrad.nn.files.unpickler import Call, Unfinished, is_plain

KIND = re.compile(r"[biufcSU][1-9]\d{0,3}")  # numbers and texts; an object's bytes are addresses
ORDERS = ("<", ">", "|", "=")


def plain_object(name: str, args: tuple[Any, ...]) -> Any:
    """What a call of this name gives; a TypeError for all that is not known."""
    make = MADE.get(name)
    if make is None:
        raise TypeError(name)
    return make(*args)


# ---------------------------------------------------------------------- Python's


def _wanted(is_fine: bool) -> None:
    if not is_fine:
        raise TypeError("arguments of another kind")


def _items(found: Any) -> list[Any]:
    """What may be in a set."""
    _wanted(isinstance(found, list) and all(map(is_plain, found)))
    return list(found)


def _ordered(pairs: Any = ()) -> dict[Any, Any]:
    """A dict, empty unless Python 2 wrote it."""
    found = {}
    for key, value in pairs:
        _wanted(is_plain(key))
        found[key] = value
    return found


def _grouped(factory: Any = None) -> dict[Any, Any]:
    """A dict that makes what is missing; here it does not."""
    return {}


def _counted(counts: Any) -> dict[Any, Any]:
    _wanted(isinstance(counts, dict))
    return dict(counts)


def _encoded(text: Any, encoding: Any) -> bytes:
    """How old pickles write bytes."""
    _wanted(isinstance(text, str) and encoding == "latin1")
    return bytes(text, "latin1")


def _mutable(raw: Any = b"", encoding: Any = None) -> bytearray:
    _wanted(isinstance(raw, bytes) or (isinstance(raw, str) and encoding == "latin-1"))
    return bytearray(raw, "latin-1") if isinstance(raw, str) else bytearray(raw)


def _numbers(*numbers: Any) -> range:
    _wanted(all(type(number) is int for number in numbers))
    return range(*numbers)


def _complex(real: Any, imaginary: Any) -> complex:
    _wanted(type(real) is float and type(imaginary) is float)
    return complex(real, imaginary)


def _path(*parts: Any) -> PurePosixPath:
    _wanted(all(isinstance(part, str) for part in parts))
    return PurePosixPath(*parts)


def _windows_path(*parts: Any) -> PureWindowsPath:
    _wanted(all(isinstance(part, str) for part in parts))
    return PureWindowsPath(*parts)


class Options(Unfinished):
    """argparse.Namespace: names and values."""

    def finished(self, state: Any) -> SimpleNamespace:
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise FormatError("the pickle is damaged: options have no names")
        return SimpleNamespace(**state)


# ---------------------------------------------------------------------- NumPy's


class Described(Unfinished):
    """A dtype, whose order of bytes follows."""

    def __init__(self, text: Any, *rest: Any) -> None:
        super().__init__()
        if not isinstance(text, str) or not KIND.fullmatch(text):
            raise FormatError(f"an array or number of NumPy's {text!r:.40} cannot be read")
        self.dtype = np.dtype(text)

    def finished(self, state: Any) -> np.dtype[Any]:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ORDERS:
            raise FormatError("the pickle is damaged: a dtype has no order of bytes")
        return self.dtype.newbyteorder(state[1])


class Reconstructed(Unfinished):
    """An array, whose shape, dtype and bytes follow."""

    def __init__(self, kind: Any, *rest: Any) -> None:
        super().__init__()
        _wanted(kind == Call("numpy.ndarray"))

    def finished(self, state: Any) -> np.ndarray[Any, Any]:
        if not isinstance(state, tuple) or len(state) != 5:
            raise FormatError("the pickle is damaged: an array without a shape")
        _, shape, dtype, is_fortran, raw = state
        if not isinstance(dtype, np.dtype) or not are_sizes(shape) or not isinstance(raw, bytes):
            raise FormatError("the pickle is damaged: an array without numbers")
        if len(raw) != prod(shape) * dtype.itemsize:
            raise FormatError(f"an array of shape {tuple(shape)} has {len(raw)} bytes")
        flat = np.frombuffer(raw, dtype) if raw else np.zeros(0, dtype)
        return flat.reshape(shape, order="F" if is_fortran is True else "C").copy()


def _scalar(dtype: Any, raw: Any) -> Any:
    _wanted(isinstance(dtype, np.dtype) and isinstance(raw, bytes) and len(raw) == dtype.itemsize)
    return np.frombuffer(raw, dtype)[0]


Make = Callable[..., Any]
BUILTIN: dict[str, Make] = {
    "set": lambda items: set(_items(items)),
    "frozenset": lambda items: frozenset(_items(items)),
    "bytes": lambda: b"",  # others are encoded texts
    "bytearray": _mutable,
    "complex": _complex,
    "range": _numbers,
    "xrange": _numbers,
}
PATHS: dict[str, Make] = {
    "PosixPath": _path,
    "PurePosixPath": _path,
    "WindowsPath": _windows_path,
    "PureWindowsPath": _windows_path,
}
ARRAYS: dict[str, Make] = {"_reconstruct": Reconstructed, "scalar": _scalar}
MADE: dict[str, Make] = {
    "collections.OrderedDict": _ordered,
    "collections.defaultdict": _grouped,
    "collections.Counter": _counted,
    "_codecs.encode": _encoded,
    "numpy.dtype": Described,
    # The same things had other homes in other versions.
    **{f"{home}.{name}": BUILTIN[name] for home in ("__builtin__", "builtins") for name in BUILTIN},
    **{f"{home}.{name}": PATHS[name] for home in ("pathlib", "pathlib._local") for name in PATHS},
    **{f"numpy.core.multiarray.{name}": make for name, make in ARRAYS.items()},
    **{f"numpy._core.multiarray.{name}": make for name, make in ARRAYS.items()},
}
