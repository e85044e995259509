"""Values -> how they are compared, and whether their code is user code or library code."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import ref

from glassgrad.ir.symbolic import SymbolicInt
from glassgrad.tensor.core import TensorCore

PLAIN_TYPES = frozenset(
    (int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented))
)
# Modules of the standard library whose values are immutable and compared with ==.
VALUE_MODULES = frozenset(("datetime", "decimal", "fractions", "pathlib", "uuid", "zoneinfo"))
OWN_CODE = "glassgrad.nn"  # treated as user code: its objects hold tensors
MAX_ITEMS_COMPARED = 1000  # longer tuples are compared by identity


def is_plain(value: Any) -> bool:
    """True for immutable values that are compared by value."""
    kind = type(value)
    if kind in PLAIN_TYPES or kind is range or kind is slice or kind is SymbolicInt:
        return True
    if kind is tuple or kind is frozenset:
        return len(value) <= MAX_ITEMS_COMPARED and all(map(is_plain, value))
    return kind.__module__ in VALUE_MODULES or is_numpy_scalar(value)


def is_numpy_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def is_numpy_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_array(value: Any) -> bool:
    """True for values with a buffer or __array__, whose contents may change."""
    if is_numpy_array(value):
        return True
    if isinstance(value, (TensorCore, ref, type)):
        return False
    try:
        memoryview(value)
    except TypeError:
        return not isinstance(value, ModuleType) and hasattr(type(value), "__array__")
    return True


def is_of_user(kind: type) -> bool:
    return not is_library(kind.__module__)


def is_equal(old: Any, new: Any) -> bool:
    """True if two plain values are interchangeable in a computation: 1, 1.0 and True are not."""
    if type(old) is not type(new):
        return False
    if isinstance(old, (tuple, frozenset)):
        return len(old) == len(new) and all(map(is_equal, old, new))
    if type(old) is SymbolicInt:
        return old.size.uop is new.size.uop and old.size.bound == new.size.bound
    return repr(old) == repr(new)


def is_tensor(value: Any) -> bool:
    return isinstance(value, TensorCore)


def shown(value: Any) -> str:
    """A value as text in an error message."""
    if is_plain(value):
        text = repr(value)
        return text if len(text) < 60 else f"{text[:57]}…"
    if isinstance(value, TensorCore):
        return f"a tensor of shape {value.shape}"
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return value.__qualname__
    return f"a {type(value).__name__}"


def is_layer_code(module: str | None) -> bool:
    """True for modules of glassgrad.nn: followed like user code, but functions and globals there
    never change.
    """
    return (module or "").startswith(OWN_CODE)


@lru_cache(maxsize=4096)
def is_library(module: str | None) -> bool:
    """True for modules of the standard library, of this package, and for installed ones that do not
    use tensors: the results of their functions depend on arguments alone.
    """
    if not module or module == "__main__":
        return False
    root = module.partition(".")[0]
    if root == "glassgrad":
        return not is_layer_code(module)
    if root in sys.stdlib_module_names or root == "builtins":
        return True
    found = sys.modules.get(root)
    file = getattr(found, "__file__", None) or ""
    if found is None or not ("site-packages" in file or "dist-packages" in file):
        return False
    return not _uses_tensors(sys.modules.get(module) or found)


def _uses_tensors(module: ModuleType) -> bool:
    return any(
        (getattr(value, "__module__", None) or "").startswith("glassgrad")
        or getattr(value, "__name__", None) == "glassgrad"
        for value in list(vars(module).values())
        if isinstance(value, (type, ModuleType)) or callable(value)
    )
