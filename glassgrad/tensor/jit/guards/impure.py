"""Values -> why no snapshot can hold them: clocks, files, Python's random numbers, iterators.

A function that uses one of these may get another result in every call; a replay would not.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

ALL = None  # every attribute of the module
CLOCKS = frozenset(
    f"{name}{ending}"
    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
    for ending in ("", "_ns")
)
SYSTEM = frozenset(
    ("urandom", "getpid", "getcwd", "stat", "listdir", "times", "scandir", "popen", "getloadavg")
)
MODULES: dict[str, frozenset[str] | None] = {
    "time": CLOCKS | {"localtime", "gmtime", "ctime", "strftime"},
    "random": ALL,
    "numpy.random": ALL,
    "secrets": ALL,
    "uuid": frozenset(("uuid1", "uuid4")),
    "os": SYSTEM,
    "posix": SYSTEM,
    "io": frozenset(("open",)),
    "_io": frozenset(("open",)),
    "sys": frozenset(("_getframe",)),
    "subprocess": ALL,
    "socket": ALL,
    "urllib.request": ALL,
    "numpy": frozenset(("load", "loadtxt", "genfromtxt", "fromfile", "memmap")),
}
BUILTINS = frozenset(("open", "input", "eval", "exec", "__import__"))
NOW = frozenset(("now", "utcnow", "today"))  # class methods of datetime and date
FILES = frozenset(("read_text", "read_bytes", "iterdir", "getmtime", "getsize"))


def impure_names(module: ModuleType, names: frozenset[str]) -> list[str]:
    """The attributes among `names` of a module whose results differ from call to call."""
    own = module.__name__
    found = [f"{own}.{name}" for name in _members(own, names) if hasattr(module, name)]
    return [*found, *(f"{own}.{n}" for n in names if f"{own}.{n}" in MODULES and own != "os")]


def _members(module: str, names: frozenset[str]) -> frozenset[str]:
    if module not in MODULES:
        return frozenset()
    found = MODULES[module]
    return names if found is None else names & found


def why_impure(value: Any, names: frozenset[str] = frozenset()) -> str | None:
    """Why reading this value is impure, given the attribute names looked up on it; None if it is
    not.
    """
    if isinstance(value, (random.Random, io.IOBase)):
        return f"a {type(value).__name__}"
    if isinstance(value, type):
        looked = sorted(NOW & names)
        return f"{value.__name__}.{looked[0]}()" if _is_clock(value) and looked else None
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and isinstance(value, (numpy.Generator, numpy.RandomState)):
        return f"a {type(value).__name__}"
    if isinstance(value, Iterator):
        return f"an iterator ({type(value).__name__})"
    return _why_impure_function(value)


def _is_clock(kind: type) -> bool:
    return kind.__module__ == "datetime"


def _why_impure_function(value: Any) -> str | None:
    if not isinstance(value, (FunctionType, BuiltinFunctionType, MethodType)):
        return None
    name, owner = value.__name__, getattr(value, "__self__", None)
    if isinstance(owner, random.Random):
        return f"random.{name}()"
    is_method = owner is not None and not isinstance(owner, ModuleType)
    module = type(owner).__module__ if is_method else value.__module__ or ""
    return f"{module.lstrip('_')}.{name}()" if _members(module, frozenset((name,))) else None
