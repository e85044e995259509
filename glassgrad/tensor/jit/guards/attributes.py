"""Objects -> their attributes, read without running code of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from types import MemberDescriptorType
from typing import Any

NOT_CALLED = frozenset(
    (
        "__init__", "__new__", "__post_init__", "__del__", "__repr__", "__str__", "__format__",
        "__hash__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__doc__",
        "__module__", "__dict__", "__weakref__", "__annotations__", "__qualname__", "__dir__",
        "__init_subclass__", "__class_getitem__", "__sizeof__", "__subclasshook__",
        "__abstractmethods__", "__parameters__", "__orig_bases__", "__firstlineno__",
        "__static_attributes__", "__match_args__",
    )
)  # fmt: skip
CREATES = frozenset(("__init__", "__new__", "__post_init__"))


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def is_used(name: str, may_be_called: bool) -> bool:
    """True if a special method may be called without its name in the code."""
    return name not in NOT_CALLED or (may_be_called and name in CREATES)


def dict_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object, without running code of its class."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def slots_of(kind: type) -> list[str]:
    return [
        name
        for base in kind.__mro__
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    ]


def has_slot(value: Any, name: str) -> bool:
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True


def attributes(value: Any, names: Sequence[str]) -> list[Any]:
    return [object.__getattribute__(value, name) for name in names]


def is_direct(kind: type, name: str) -> bool:
    """True if `object.name` just reads its __dict__, without running code of the class."""
    plain: Any = object.__getattribute__
    if kind.__getattribute__ is not plain or not name.isidentifier():
        return False
    found = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
    return not found or not hasattr(type(found[0]), "__set__")
