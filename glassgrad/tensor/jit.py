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
from operator import is_
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

from glassgrad.base.config import TRAINING
from glassgrad.base.errors import CaptureError
from glassgrad.engine.recording import recorder, recording
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import UNBOUND, Bound, Size, bindings
from glassgrad.ir.uop import next_number
from glassgrad.tensor.core import LIVING, Core, living
from glassgrad.tensor.random import GENERATOR
from glassgrad.tensor.realize import finish_writes, realize, written_lazily
from glassgrad.tensor.structure import spread

if TYPE_CHECKING:
    from glassgrad.tensor.captured import Captured
    from glassgrad.tensor.watched import Constants

P = ParamSpec("P")
R = TypeVar("R")
BUFFER = Ops.BUFFER
MOST_CAPTURES = 32  # per function; the one used longest ago goes first


class Last(NamedTuple):
    """A replay that is likely to be asked for again, with the same tensors."""

    tensors: tuple[Any, ...]
    captured: Captured
    training: int

    def is_again(self, args: tuple[Any, ...]) -> bool:
        return (
            len(args) == len(self.tensors)
            and all(map(is_, args, self.tensors))
            and [tensor.uop for tensor in args] == self.captured.seen
            and TRAINING.value == self.training
            and self.captured.is_valid()
        )


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

    def __init__(self, fxn: Callable[P, R], *, strict: bool = False) -> None:
        self.fxn = fxn
        self.strict = strict
        self.captures: OrderedDict[Any, Captured | Constants] = OrderedDict()
        self._last: Last | None = None
        self._bound: WeakKeyDictionary[Any, TinyJit[..., R]] = WeakKeyDictionary()
        self._lock = RLock()
        update_wrapper(self, fxn)

    def reset(self) -> None:
        """Forget what was captured: the next call is a first one again."""
        self.captures.clear()
        self._last = None

    def __get__(self, owner: Any, kind: type | None = None) -> TinyJit[..., R]:
        """A method has captures of its own for each object."""
        if owner is None:
            return self
        if owner not in self._bound:
            self._bound[owner] = TinyJit(_method(self.fxn, owner), strict=self.strict)
        return self._bound[owner]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if recorder() is not None:  # inside of another capture: part of that
            return self.fxn(*args, **kwargs)
        last = self._last
        if last is not None and not kwargs and last.is_again(args):
            with self._lock:
                return last.captured(last.tensors, UNBOUND)  # type: ignore[no-any-return]
        tensors: list[Any] = []
        key = (spread(args, tensors), spread(kwargs, tensors) if kwargs else None, TRAINING.value)
        values: Bound = UNBOUND
        if Sizes.exist:
            values = bindings(tuple(tensors))
            tensors = [found for found in tensors if type(found) is not Size]
        with self._lock:
            lazy = [tensor for tensor in tensors if tensor.uop.op is not BUFFER]
            if lazy:
                realize(lazy)
            found = self.captures.get(key)
            if callable(found) and found.accepts(tensors) and found.is_valid():
                if not kwargs and not values and list(map(id, args)) == list(map(id, tensors)):
                    self._last = Last(args, found, TRAINING.value)
                return found(tensors, values)  # type: ignore[no-any-return]
            return self._watch(key, tensors, values, partial(self.fxn, *args, **kwargs))

    def _watch(self, key: Any, tensors: list[Core], values: Bound, call: Callable[[], R]) -> R:
        """A first or a second call."""
        from glassgrad.tensor.captured import Captured
        from glassgrad.tensor.watched import Before, Constants, found_lazy

        found = self.captures.get(key)
        if found is None and self.strict and self.captures:
            raise CaptureError(
                "a constant among the arguments is another one than in earlier calls",
                hint="pass it as a Tensor, or without strict=True it is captured again",
            )
        finish_writes()
        alive, nodes = dict(LIVING), {id(tensor): tensor.uop for tensor in living()}
        used, keys = GENERATOR.used, GENERATOR.keys
        before = Before(tensors, next_number(), used, keys, values, alive, nodes)
        returned: list[Core] = []
        with recording(is_strict=found is not None) as watching:
            result = call()
            spread(result, returned, is_key=False)
            realize([*returned, *written_lazily()])
        if found is None or found_lazy(before):
            self.captures[key] = Constants(watching, before, returned)
        else:
            self.captures[key] = Captured(found, watching, before, result, returned)
        if len(self.captures) > MOST_CAPTURES:
            self.captures.popitem(last=False)
        return result


def _method(function: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    """A function of an object that does not keep the object alive."""
    held = ref(owner)
    return update_wrapper(lambda *args, **kwargs: function(held(), *args, **kwargs), function)
