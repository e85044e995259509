"""TinyJit: a function of tensors -> one native call.

The first call runs the function, the second runs it and captures what was computed, later ones
replay that. Memory that a replay reads or writes is of one of these kinds:

    argument    passed at each call
    known       held by a tensor outside, as weights are; read by reference, perhaps written
    random      counters of random numbers, which advance as if the function had run
    constant    made inside from Python's data, and the same in the first two calls
    returned    made anew for each call
    hidden      everything else, in an arena of the capture

What fits none of them would silently stay what it was, and is an error instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial, update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

from glassgrad.base.config import JIT, TRAINING
from glassgrad.base.errors import CaptureError
from glassgrad.engine.recording import recorder, recording
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import UNBOUND, Bound, Size, bindings
from glassgrad.tensor.again import MISSED, Again, again
from glassgrad.tensor.captured import Captured
from glassgrad.tensor.core import Core, living
from glassgrad.tensor.exclusive import exclusive
from glassgrad.tensor.guards import Guards, Seen
from glassgrad.tensor.history import as_leaves, forget_history
from glassgrad.tensor.realize import all_in_memory, finish_writes, realize, written_lazily
from glassgrad.tensor.structure import spread
from glassgrad.tensor.views import leave_lent_memory
from glassgrad.tensor.watched import Before, Constants, found_lazy

P = ParamSpec("P")
R = TypeVar("R")
BUFFER = Ops.BUFFER
MOST_CAPTURES = 32  # per function; the one used longest ago goes first


class TinyJit(Generic[P, R]):
    """Capture a function's kernels at its second call, and replay them from then on.

    Constants among the arguments are part of what is captured: another value means another
    capture, or with `strict=True` an error.

    >>> @TinyJit
    ... def twice(x):
    ...     return x + x
    >>> [twice(Tensor([n])).item() for n in range(4)]
    [0, 2, 4, 6]
    """

    def __init__(
        self, fxn: Callable[P, R], *, strict: bool = False, owner: ref[Any] | None = None
    ) -> None:
        self.fxn = fxn
        self.strict = strict
        self.owner = owner  # the object, if this is one of its methods
        self.captures: OrderedDict[Any, Captured] = OrderedDict()
        self.waiting: dict[Any, Constants] = {}  # called once
        self._guards: Guards | None = None
        self._again: Again = _never
        self._last: tuple[Captured, Seen] | None = None  # what that replays
        self._bound: WeakKeyDictionary[Any, TinyJit[..., R]] = WeakKeyDictionary()
        self._lock = RLock()
        update_wrapper(self, fxn)

    def reset(self) -> None:
        """Forget what was captured: the next call is a first one again."""
        with self._lock:
            self.captures.clear()
            self.waiting.clear()
            self._again, self._last = _never, None

    def __get__(self, owner: Any, kind: type | None = None) -> TinyJit[..., R]:
        """A method has captures of its own for each object."""
        if owner is None:
            return self
        if owner not in self._bound:
            self._bound[owner] = TinyJit(
                _method(self.fxn, owner), strict=self.strict, owner=ref(owner)
            )
        return self._bound[owner]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if recorder() is not None:  # inside of another capture: part of that
            return self.fxn(*args, **kwargs)
        if not kwargs and (result := self._again(args)) is not MISSED:
            return result  # type: ignore[no-any-return]
        if not JIT.value:
            return self.fxn(*args, **kwargs)
        tensors: list[Any] = []
        key = (spread(args, tensors), spread(kwargs, tensors) if kwargs else None, TRAINING.value)
        values: Bound = UNBOUND
        if Sizes.exist:
            values = bindings(tuple(tensors))
            tensors = [found for found in tensors if type(found) is not Size]
        with self._lock:
            is_plain = not kwargs and list(map(id, args)) == list(map(id, tensors))
            call = partial(self.fxn, *args, **kwargs)
            lazy = [tensor for tensor in tensors if tensor.uop.op is not BUFFER]
            if not lazy:
                return self._replay_or_watch(key, tensors, values, call, is_plain)
            with all_in_memory(lazy):
                return self._replay_or_watch(key, tensors, values, call, is_plain)

    def _replay_or_watch(
        self, key: Any, tensors: list[Core], values: Bound, call: Callable[[], R], is_plain: bool
    ) -> R:
        """A call whose arguments are in memory; `is_plain` if they are tensors and nothing else."""
        guards = self._read_guards()
        found = self.captures.get((*key, guards.key))
        if found is not None and found.accepts(tensors) and found.is_valid():
            self.captures.move_to_end((*key, guards.key))
            if is_plain and not values:
                self._expect(found, guards)
            return found(tensors, values)  # type: ignore[no-any-return]
        return self._watch(key, guards, found, tensors, values, call)

    def _expect(self, found: Captured, guards: Seen) -> None:
        """Be ready for the same capture once more."""
        if self._last is None or self._last[0] is not found or not self._last[1].are_still():
            self._last = (found, guards)
            self._again = again(found, self._lock, guards)

    def _read_guards(self) -> Seen:
        if self._guards is None:
            self._guards = Guards(self.fxn, self.owner)
        return self._guards.seen()

    @exclusive
    def _watch(
        self,
        key: Any,
        guards: Seen,
        found: Captured | None,
        tensors: list[Core],
        values: Bound,
        call: Callable[[], R],
    ) -> R:
        """A first or a second call."""
        earlier = found or self.waiting.get(key)
        if earlier is None and self.strict and self.captures:
            self._refuse_another(key, guards)
        finish_writes()
        before = Before.now(tensors, values)
        returned: list[Core] = []
        older = frozenset(map(id, living()))
        with recording(earlier is not None, older) as watching, as_leaves(tensors):
            result = call()
            spread(result, returned, is_key=False)
            realize([*returned, *written_lazily()])
            for one in [tensor for tensor in returned if id(tensor) not in older]:
                leave_lent_memory(one)
            forget_history(before.first_number)  # a replay makes none either
        guards = guards.without_changed()
        if earlier is None or found_lazy(before):
            self.waiting[key] = Constants(watching, before, returned)
        else:
            made = Captured(earlier, watching, before, result, returned)
            self.waiting.pop(key, None)
            self.captures[*key, guards.key] = made
        for kept in (self.captures, self.waiting):
            if len(kept) > MOST_CAPTURES:
                del kept[next(iter(kept))]
        return result

    def _refuse_another(self, key: Any, guards: Seen) -> None:
        """In strict mode a function is captured once."""
        known = next((one for one in reversed(self.captures) if one[:3] == key), None)
        if known is None:
            raise CaptureError(
                "a constant among the arguments is another one than in earlier calls",
                hint="pass it as a Tensor, or without strict=True it is captured again",
            )
        raise CaptureError(
            f"a captured function reads {guards.changed_since(known[3])}",
            hint="pass it as an argument, or without strict=True it is captured again",
        )


def _never(args: tuple[Any, ...]) -> Any:
    return MISSED


def _method(function: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    """A function of an object that does not keep the object alive."""
    held = ref(owner)
    return update_wrapper(lambda *args, **kwargs: function(held(), *args, **kwargs), function)
