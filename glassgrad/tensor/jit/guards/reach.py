"""Roots -> ReachableValues: every value that a function may read, and where each is read.

The names in reachable code decide which attributes of objects are followed, and code found on the
way adds names. So the walk repeats until no name is new.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from operator import attrgetter, itemgetter
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any
from weakref import ref

from glassgrad.base.errors import CaptureError
from glassgrad.tensor.jit.guards.attributes import (
    attributes,
    dict_of,
    has_slot,
    is_direct,
    is_special,
    is_used,
    slots_of,
)
from glassgrad.tensor.jit.guards.exclusions import Exclusions, UnguardableValue, origin_of
from glassgrad.tensor.jit.guards.impure import BUILTINS, FILES, impure_names, why_impure
from glassgrad.tensor.jit.guards.kinds import (
    is_array,
    is_layer_code,
    is_library,
    is_of_user,
    is_plain,
    is_tensor,
)
from glassgrad.tensor.jit.guards.names import line_of, names_in
from glassgrad.tensor.jit.guards.sources import (
    Attributes,
    Cell,
    ClassOf,
    Contents,
    Elements,
    Entries,
    Items,
    Length,
    Source,
    contents_of,
)

MAX_VALUES = 50_000  # Python values compared before each replay
MAX_BYTES = 1 << 20  # bytes of an array that is compared by contents
MAX_WALKS = 16  # walks until no name is new
FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")


class ReachableValues:
    """Everything reachable from the roots, which are named values.

    `sources` are the places where values are read. The `owner` is followed but not kept alive.
    """

    def __init__(
        self,
        roots: Iterable[tuple[str, Any]],
        skipped: Exclusions,
        owner: Any = None,
        reads_all: bool = False,
    ) -> None:
        self.roots = list(roots)
        self.skipped = skipped
        self.owner = owner
        self.names: set[str] = set()
        self.reads_all = reads_all
        for _ in range(MAX_WALKS):
            before = len(self.names), self.reads_all
            self._walk()
            if (len(self.names), self.reads_all) == before:
                break

    def _walk(self) -> None:
        self.codes: dict[CodeType, None] = {}
        self.sources: list[Source] = []
        self.opaque: list[UnguardableValue] = []
        self._count = 0
        self._met: dict[tuple[int, bool], Any] = {}  # keeping the values keeps their ids unique
        self._waiting: deque[tuple[str, Any, bool]] = deque(
            (name, value, True) for name, value in self.roots
        )
        while self._waiting:
            path, value, is_root = self._waiting.popleft()
            if not is_plain(value) and not is_tensor(value):
                self._visit(path, value, is_root)

    def _visit(self, path: str, value: Any, may_be_called: bool) -> None:
        is_class = isinstance(value, type)
        key = (id(value), is_class and may_be_called)
        if key in self._met or isinstance(value, CodeType) or self.skipped.has(value, path):
            return
        self._met[key] = value
        if is_class:
            self._class(path, value, may_be_called)
            return
        if (why := why_impure(value)) is not None:
            self.opaque.append(UnguardableValue(why, path, None))
            return
        for kinds, visit in VISITS:
            if isinstance(value, kinds):
                visit(self, path, value)
                if is_of_user(type(value)):  # a container class with attributes of its own
                    self._instance(path, value)
                return
        if is_array(value):
            self._array(path, value)
        else:
            self._instance(path, value)

    # ------------------------------------------------------------------ what a value refers to

    def _read(self, source: Source) -> None:
        """Guard these values, and follow them."""
        try:
            values = source.values()
        except (AttributeError, ValueError, KeyError, ReferenceError):
            return
        if isinstance(source, Length) and source.path(0) in self.skipped.updated:
            return
        self.sources.append(source)
        self._count += len(values)
        if self._count > MAX_VALUES:
            raise CaptureError(
                f"a captured function can reach more than {MAX_VALUES:,} Python values "
                f"({source.path(0)} is one): too many to compare at every call",
                hint="pass what it needs as arguments, name what does not change in "
                "TinyJit(function, constants=[...]), or name its state in TinyJit(state=[...])",
            )
        for number, value in enumerate(values):
            self._follow(source.path(number), value)

    def _read_items(self, path: str, owner: Mapping[str, Any], names: list[str]) -> None:
        """Guard these entries of a namespace."""
        dot = f"{path}." if path else ""
        kept = [n for n in names if not self.skipped.has(owner[n], dot + n)]
        if kept:
            self._read(Entries(owner, kept, dot))

    def _add_names(self, code: CodeType) -> frozenset[str]:
        self.codes[code] = None
        found = names_in(code)
        self.names |= found.loaded | found.texts
        self.reads_all = self.reads_all or found.reads_all
        return found.loaded | found.texts if "globals" in found.loaded else found.loaded

    # ------------------------------------------------------------------ functions

    def _function(self, path: str, function: FunctionType) -> None:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if is_library(function.__module__):  # a wrapper, perhaps around user code
            for cell in cells.values():
                self._cell(path, cell, is_library=True)
            self._follow(path, getattr(function, "__wrapped__", None))
            return
        code = function.__code__
        names = self._add_names(code)
        is_fixed = is_layer_code(function.__module__)
        if not is_fixed:
            self._read(Attributes(function, FUNCTION, path or code.co_name))
        for name, cell in cells.items():
            self._cell(name, cell)
        space = function.__globals__
        for name in sorted(names - space.keys() - cells.keys()):
            if name in BUILTINS and hasattr(builtins, name):
                self._refuse(f"{name}()", name, code, getattr(builtins, name))
        own = sorted(names & space.keys())
        self._check_impure(code, space, own, names)
        if is_fixed:
            for name in own:
                self._follow(name, space[name])
        else:
            self._read_items("", space, own)
        for name in sorted(names_in(code).modules & sys.modules.keys()):
            self._follow(name, sys.modules[name])
        own_dict = vars(function)
        self._read_items(path, own_dict, sorted(self._named(own_dict)))
        self._follow(path, own_dict.get("__wrapped__"))

    def _check_impure(
        self, code: CodeType, space: Mapping[str, Any], own: list[str], names: frozenset[str]
    ) -> None:
        for name in own:
            value = space[name]
            if isinstance(value, ModuleType):
                for path in impure_names(value, names):
                    last = path.rpartition(".")[2]
                    self._refuse(f"{path}()", path, code, getattr(value, last, None))
            elif (why := why_impure(value, names)) is not None:
                self._refuse(why, name, code, value)
        if not names.isdisjoint(("environ", "getenv")):
            self._follow("os.environ", os.environ)
        for name in FILES & names:
            self._refuse(f"{name}()", name, code, name)

    def _refuse(self, what: str, path: str, code: CodeType, value: Any) -> None:
        if not self.skipped.has(value, path):
            line = line_of(code, path.rpartition(".")[2])
            self.opaque.append(UnguardableValue(what, path, origin_of(code, line)))

    def _cell(self, name: str, cell: CellType, is_library: bool = False) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            return
        if self.skipped.has(value, name) or (is_library and not _may_hold_code(value)):
            return
        self._read(Cell(cell, name))

    def _follow(self, path: str, value: Any) -> None:
        if value is not None and not is_plain(value) and not is_tensor(value):
            self._waiting.append((path, value, True))

    def _partial(self, path: str, value: functools.partial[Any]) -> None:
        self._read(Attributes(value, ("func", "args", "keywords"), path))

    def _method(self, path: str, value: MethodType) -> None:
        self._follow(path, value.__func__)
        self._follow(path.rpartition(".")[0] or "self", value.__self__)

    def _builtin(self, path: str, value: BuiltinFunctionType) -> None:
        if not isinstance(value.__self__, ModuleType):
            self._follow(path, value.__self__)

    def _wrapped(self, path: str, value: Any) -> None:
        self._follow(path, value.__func__)

    def _property(self, path: str, value: property) -> None:
        self._follow(path, value.fget)

    # ------------------------------------------------------------------ containers

    def _sequence(self, path: str, value: Any) -> None:
        self._read(Elements(value, path))

    def _dict(self, path: str, value: Mapping[Any, Any]) -> None:
        keys = list(value)

        def name(number: int) -> str:
            key = number - len(keys)
            if not keys:
                return path
            return f"a key of {path}" if key < 0 else f"{path}[{keys[key]!r}]"

        self._read(Items(value, _keys_and_values, name))
        if (factory := getattr(value, "default_factory", None)) is not None:
            self._follow(path, factory)

    def _array(self, path: str, value: Any) -> None:
        size = len(contents_of(value)[-1])
        if size > MAX_BYTES:
            raise CaptureError(
                f"a captured function reads {path}, an array of {size:,} bytes outside: too large "
                "to compare at every call",
                hint="pass it as an argument, make a Tensor of it outside, or name it in "
                "TinyJit(function, constants=[...]) if it never changes",
            )
        self._read(Contents(value, path))

    # ------------------------------------------------------------------ objects

    def _named(self, space: Iterable[Any]) -> list[str]:
        return [n for n in space if isinstance(n, str) and (self.reads_all or n in self.names)]

    def _class(self, path: str, kind: type, may_be_called: bool) -> None:
        """The attributes and special methods of a user's class and of its bases."""
        for base in kind.__mro__:
            if is_library(base.__module__):
                continue
            space = vars(base)
            for name in space.get("__match_args__", ()):
                self.names.add(name)
            own = [n for n in self._named(space) if not is_special(n)]
            special = [n for n in space if is_special(n) and is_used(n, may_be_called)]
            slots = (MemberDescriptorType, GetSetDescriptorType)
            found = [n for n in {*own, *special} if not isinstance(space[n], slots)]
            self._read_items(base.__name__, space, sorted(found))
            self._read(Length(space, base.__name__))
        if type(kind) is not type:
            self._class(path, type(kind), may_be_called=False)

    def _module(self, path: str, value: ModuleType) -> None:
        space = vars(value)
        names = [n for n in self._named(space) if not is_special(n) and n in self.names]
        if is_library(value.__name__):  # only its plain values may change
            names = [n for n in names if is_plain(space[n]) or type(space[n]) is list]
        self._read_items(path, space, names)

    def _instance(self, path: str, value: Any) -> None:
        kind = type(value)
        self._waiting.append((kind.__name__, kind, False))
        reads_all, is_ours = self.reads_all, kind.__module__.startswith("glassgrad.")
        if is_library(kind.__module__):
            if is_ours:  # our own objects hold no Python state of the user
                self._follow(path, getattr(value, "fxn", None))
                return
            self.reads_all = True
        try:
            self._attributes(path, value)
        finally:
            self.reads_all = reads_all
        self._follow_wrapped(path, value)

    def _attributes(self, path: str, value: Any) -> None:
        kind = type(value)
        slots = [name for name in self._named(slots_of(kind)) if has_slot(value, name)]
        found = dict_of(value)
        space = {} if found is None else found
        names = [n for n in self._named(space) if not self.skipped.has(space[n], f"{path}.{n}")]
        self._read(Length(space, path))
        if value is self.owner:  # by weak reference
            if slots:
                self._read(
                    Items(ref(value), lambda held: attributes(held(), slots), slots.__getitem__)
                )
            self._read(Entries(space, names, f"{path}."))
            return
        direct = [name for name in names if is_direct(kind, name)]
        self._read(ClassOf(value, path))
        self._read(Attributes(value, [*slots, *direct], path))
        self._read(Entries(space, [n for n in names if n not in direct], f"{path}."))

    def _follow_wrapped(self, path: str, value: Any) -> None:
        """Follow values inside of C objects: names in attrgetter, weak references, cached
        functions.
        """
        if isinstance(value, ref):
            self._follow(path, value())
        elif isinstance(value, ContextVar):
            self._read(Items(value, lambda held: (held.get(None),), lambda _: path))
        elif isinstance(value, (attrgetter, itemgetter)):
            for name in value.__reduce__()[1]:
                self.names.update(str(name).split("."))
        elif isinstance(value, functools.cached_property):
            self._follow(path, value.func)
        else:
            self._follow(path, getattr(type(value), "__wrapped__", None) and value.__wrapped__)
            if type(value) is functools._lru_cache_wrapper:
                self._follow(path, value.__wrapped__)


Visit = Callable[[ReachableValues, str, Any], None]
VISITS: list[tuple[Any, Visit]] = [
    (FunctionType, ReachableValues._function),
    (MethodType, ReachableValues._method),
    (BuiltinFunctionType, ReachableValues._builtin),
    (functools.partial, ReachableValues._partial),
    (ModuleType, ReachableValues._module),
    ((staticmethod, classmethod), ReachableValues._wrapped),
    (property, ReachableValues._property),
    ((list, tuple, set, frozenset, deque), ReachableValues._sequence),
    ((dict, MappingProxyType), ReachableValues._dict),
]


def _may_hold_code(value: Any) -> bool:
    """True if a library wrapper may call user functions through this value."""
    return callable(value) or type(value) is dict


def _keys_and_values(mapping: Mapping[Any, Any]) -> list[Any]:
    return [*mapping, *mapping.values()]
