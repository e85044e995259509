"""Reachable values -> Guards: a snapshot of them, and the check against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

from glassgrad.base.errors import CaptureError
from glassgrad.tensor.jit.guards.exclusions import Exclusions
from glassgrad.tensor.jit.guards.kinds import is_plain, is_tensor, shown
from glassgrad.tensor.jit.guards.names import is_only_updated
from glassgrad.tensor.jit.guards.reach import ReachableValues
from glassgrad.tensor.jit.guards.sources import Elements, GuardCode, Items, all_same

GONE = (AttributeError, KeyError, ValueError, TypeError, IndexError, ReferenceError, RuntimeError)
NOTHING = object()


class Roots(NamedTuple):
    """Where the reachable values of a captured function start.

    `state` are objects that the user names instead: then all of their attributes are guarded, and
    nothing else is.
    """

    function: Callable[..., Any]
    owner: ref[Any] | None = None  # the object whose method the function is
    constants: tuple[Any, ...] = ()
    state: tuple[Any, ...] | None = None

    def reach(self, arguments: Iterable[Any], updated: frozenset[str]) -> ReachableValues:
        paths = frozenset(one for one in self.constants if isinstance(one, str))
        values = tuple(one for one in self.constants if not isinstance(one, str))
        skipped = Exclusions(values, paths, updated)
        owner = None if self.owner is None else self.owner()
        named = [(f"argument {n}", value) for n, value in enumerate(arguments)]
        if self.state is not None:
            named += [(f"state[{n}]", value) for n, value in enumerate(self.state)]
            return ReachableValues(named, skipped, owner, reads_all=True)
        own = [("self", owner)] if owner is not None else []
        return ReachableValues([("", self.function), *own, *named], skipped, owner)


class Change(NamedTuple):
    """A guarded value that changed."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}, which was {shown(self.old)} and is {shown(self.new)}"

    def replaces_an_object(self) -> bool:
        """True if an object or a tensor was replaced, which the snapshot should not keep alive."""
        kept = (FunctionType, BuiltinFunctionType, ModuleType, type)
        return not (is_plain(self.old) or self.old is NOTHING or isinstance(self.old, kept))


class Guards:
    """A snapshot of the values, with a generated function that compares them."""

    def __init__(
        self, roots: Roots, arguments: Sequence[Any] = (), updated: frozenset[str] = frozenset()
    ) -> None:
        self.roots, self.arguments, self.updated = roots, arguments, updated
        reach = roots.reach(arguments, updated)
        self.codes = list(reach.codes)
        self.opaque = reach.opaque
        self._sources = reach.sources
        self._saved = [source.values() for source in reach.sources]

    @cached_property
    def compare(self) -> Callable[[], bool]:
        """A function that is True if no value changed; it raises one of `GONE` if an attribute or
        item is gone.
        """
        code = GuardCode()
        pairs = zip(self._sources, self._saved, strict=True)
        return code.function(
            [term for source, saved in pairs for term in source.terms(code, saved)]
        )

    def are_valid(self) -> bool:
        """True if no value changed."""
        try:
            return self.compare()
        except GONE:
            return False

    def changes(self) -> Iterator[Change]:
        """The values that changed."""
        for source, saved in zip(self._sources, self._saved, strict=True):
            try:
                now = source.values()
            except GONE:
                yield Change(source.path(0), saved[0] if saved else NOTHING, NOTHING)
                continue
            if len(now) != len(saved):
                count = f"{len(saved)} items", f"{len(now)} items"
                yield Change(_container(source), *count)
                continue
            for number, (new, old) in enumerate(zip(now, saved, strict=True)):
                if not all_same([new], [old]):
                    yield Change(source.path(number), old, new)

    def keep_replaced_objects_alive(self) -> bool:
        """True if the snapshot keeps objects or tensors alive that were replaced."""
        return any(change.replaces_an_object() for change in self.changes())

    # ------------------------------------------------------------------ effects of the function

    def after_call(self) -> Guards:
        """The guards after the function ran. A value that the function changes itself must not be
        read by it, as a replay would not change it.
        """
        updated = set(self.updated)
        for change in self.changes():
            name = change.path.rpartition(".")[2].partition("[")[0]
            if is_tensor(change.old) or is_tensor(change.new) or is_only_updated(self.codes, name):
                updated.update((change.path, change.path.partition("[")[0]))
                continue
            raise CaptureError(
                f"a captured function changes {change.path} from {shown(change.old)} to "
                f"{shown(change.new)}, and reads it: replays would do neither",
                hint="keep it in a Tensor and assign() to it, change it outside, or name it in "
                f"TinyJit(function, constants=[{change.path!r}])",
            )
        if len(updated) == len(self.updated):
            return self
        return Guards(self.roots, self.arguments, frozenset(updated))

    def refuse_opaque(self) -> None:
        """Raise an error for reachable values that no snapshot can hold."""
        for found in self.opaque:
            raise CaptureError(
                f"a captured function uses {found.what}"
                + (f" as {found.path}" if found.path not in found.what else "")
                + ": replays would not, and whatever it decides would stay as it was",
                hint="pass its result as an argument; if nothing is computed from it, name it in "
                f"TinyJit(function, constants=[{found.path!r}])",
                origin=found.origin,
            )


def _container(source: Any) -> str:
    path: str = source.path(0)
    is_container = isinstance(source, (Items, Elements))
    return path.removeprefix("a key of ").rpartition("[")[0] if is_container else path
