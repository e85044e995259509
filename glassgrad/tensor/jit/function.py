"""TinyJit: a function of tensors -> one native call.

The first call runs the function, the second runs it and captures what was computed, later calls
replay that. Against stale values: guards/ compares Python values, guards/impure.py refuses what it
cannot compare, `capture` compares outside tensors, and `trace` now and then whole expressions.

Memory that a replay reads or writes is of one of these kinds:

    argument    passed at each call
    captured    held by an outside tensor, as weights are; read by reference, perhaps written
    random      counters of random numbers, which advance as if the function had run
    constant    made inside from Python data, and the same in the first two calls
    returned    new for each call
    temporary   everything else, in an arena of the capture

Guards compare every Python value that the function can reach before each replay; after a change the
function is captured again. What no guard can compare (clocks, files, iterators) raises an error at
the capture. Replays number 3, 4, 8, 16, ... run the function instead and compare what it computed
with the capture; a difference is an error.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial, update_wrapper
from threading import RLock
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary, ref

from glassgrad.base.config import JIT, JIT_CHECK
from glassgrad.base.errors import CaptureError
from glassgrad.engine.capture.recorder import Recorder, active_recorder, recording
from glassgrad.engine.debug import report_capture
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import UNBOUND, Bound, Size, bindings
from glassgrad.tensor.autograd.history import forget_history, treat_as_leaves
from glassgrad.tensor.core import TensorCore, live_tensors
from glassgrad.tensor.jit.argument_specs import shapes_dtypes_devices
from glassgrad.tensor.jit.capture import CapturedGraph, settings_key
from glassgrad.tensor.jit.checks import (
    FirstCall,
    PriorState,
    computed_preexisting_tensors,
    pending_gradients,
    refuse_lost_effects,
    touched_storages,
)
from glassgrad.tensor.jit.fast_path import MISSED, FastPath, fast_path
from glassgrad.tensor.jit.guards import Guards, Roots
from glassgrad.tensor.jit.pytree import flatten
from glassgrad.tensor.jit.trace import Trace
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.realize import (
    all_in_memory,
    finish_writes,
    realize,
    tensors_with_pending_writes,
)
from glassgrad.tensor.lazy.views import leave_shared_memory

P = ParamSpec("P")
R = TypeVar("R")
BUFFER = Ops.BUFFER
MAX_CAPTURES = 32  # per function; the least recently used is dropped
FIRST_VERIFICATION = 3  # number of the first replay that is compared; then 4, 8, 16, ...
ALWAYS, NEVER = 1, 0  # values of JIT_CHECK
NEVER_REACHED = 1 << 62


class Call(NamedTuple):
    """One call: its key, its tensor and other object arguments, and the values of variables."""

    key: Any
    tensors: list[TensorCore]
    objects: list[Any]
    values: Bound
    run: Callable[[], Any]
    is_plain: bool  # the arguments are tensors and nothing else


class CaptureEntry(NamedTuple):
    """A first call or a capture, with the guards of the Python values that it depends on."""

    guards: Guards
    found: FirstCall | CapturedGraph


class TinyJit(Generic[P, R]):
    """Capture a function's kernels at its second call, and replay them from then on.

    Where a Python value that the function can reach changes, or an argument has another shape, the
    function is captured once more; with `strict=True` that is an error. `constants` are objects,
    or names such as "config.rate", which never change. With `state`, a list of objects such as a
    model and its optimizer, only what these hold is compared, and all else is constant.

    >>> @TinyJit
    ... def twice(x):
    ...     return x + x
    >>> [twice(Tensor([n])).item() for n in range(4)]
    [0, 2, 4, 6]
    """

    def __init__(
        self,
        fxn: Callable[P, R],
        *,
        strict: bool = False,
        constants: Iterable[Any] = (),
        state: Iterable[Any] | None = None,
        owner: ref[Any] | None = None,
    ) -> None:
        self.fxn = fxn
        self.strict = strict
        self.roots = Roots(fxn, owner, tuple(constants), None if state is None else tuple(state))
        # Most recently used first
        self.captures: OrderedDict[Any, list[CaptureEntry]] = OrderedDict()
        # Calls that the next equal call captures
        self.first_calls: OrderedDict[Any, CaptureEntry] = OrderedDict()
        self._updated: frozenset[str] = frozenset()  # paths that the function only updates
        self._fast_path: FastPath = _always_miss
        # its capture, and its last replay
        self._fast_path_key: tuple[CaptureEntry, int] | None = None
        self._bound: WeakKeyDictionary[Any, TinyJit[..., R]] = WeakKeyDictionary()
        self._lock = RLock()
        update_wrapper(self, fxn)

    def reset(self) -> None:
        """Forget all captures: the next call is a first call again."""
        with self._lock:
            self.captures.clear()
            self.first_calls.clear()
            self._clear_fast_path()

    def count_captures(self) -> int:
        return sum(map(len, self.captures.values()))

    def valid_captures(self) -> dict[Any, CapturedGraph]:
        """The captures whose guards hold now, by their keys."""
        pairs = [(k, row) for k, rows in self.captures.items() for row in reversed(rows)]
        return {k: cast(CapturedGraph, row.found) for k, row in pairs if row.guards.are_valid()}

    def __get__(self, owner: Any, kind: type | None = None) -> TinyJit[..., R]:
        """A method has separate captures for each object."""
        if owner is None:
            return self
        if owner not in self._bound:
            self._bound[owner] = TinyJit(
                _method(self.fxn, owner),
                strict=self.strict,
                constants=self.roots.constants,
                state=self.roots.state,
                owner=ref(owner),
            )
        return self._bound[owner]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if active_recorder() is not None:  # becomes part of the outer capture
            return self.fxn(*args, **kwargs)
        if not kwargs and (result := self._fast_path(args)) is not MISSED:
            return result  # type: ignore[no-any-return]
        if not JIT.value:
            return self.fxn(*args, **kwargs)
        call = self._call(args, kwargs)
        with self._lock:
            lazy = [tensor for tensor in call.tensors if tensor.uop.op is not BUFFER]
            with all_in_memory(lazy):
                return cast(R, self._replay_or_run(call))

    def _call(self, args: Any, kwargs: Any) -> Call:
        """Flatten the arguments of a call."""
        found: list[Any] = []
        objects: list[Any] = []
        structure = (
            flatten(args, found, objects),
            flatten(kwargs, found, objects) if kwargs else None,
        )
        values: Bound = UNBOUND
        tensors = found
        if Sizes.exist:
            values = bindings(tuple(found))
            tensors = [one for one in found if type(one) is not Size]
        key = (*structure, settings_key(), shapes_dtypes_devices(tensors))
        is_plain = not kwargs and list(map(id, args)) == list(map(id, tensors))
        return Call(key, tensors, objects, values, partial(self.fxn, *args, **kwargs), is_plain)

    # ------------------------------------------------------------------ replays

    def _replay_or_run(self, call: Call) -> Any:
        """A call whose arguments are in memory."""
        finish_writes()
        row = self._find_capture(call)
        if row is None:
            waiting = self.first_calls.get(call.key)
            is_second = waiting is not None and waiting.guards.are_valid()
            return self._run_watched(call, waiting if is_second else None)
        captured = cast(CapturedGraph, row.found)
        if not captured.accepts(call.tensors) or not captured.is_valid():
            if self.strict:
                raise CaptureError(
                    "tensors that a captured function is given or reads lie elsewhere in memory",
                    hint="change them in place with assign(); without strict=True the function is "
                    "captured again",
                )
            return self._run_watched(call, row)
        captured.replays += 1
        if captured.replays == (check := next_verification(captured.replays - 1)):
            return self._run_watched(call, row, must_agree=True)
        if call.is_plain and not call.values:
            self._set_fast_path(row, check - 1)
        return captured(call.tensors, call.values)

    def _find_capture(self, call: Call) -> CaptureEntry | None:
        """The capture with this key whose guards hold."""
        rows = self.captures.get(call.key, [])
        found = next((row for row in rows if row.guards.are_valid()), None)
        if found is not None:
            self.captures.move_to_end(call.key)
            if found is not rows[0]:
                rows.remove(found)
                rows.insert(0, found)
            return found
        if self.strict and (self.captures or self.first_calls):
            self._refuse_recapture(call, rows)
        for row in [row for row in rows if row.guards.keep_replaced_objects_alive()]:
            self._drop(call, row)
        return None

    def _set_fast_path(self, row: CaptureEntry, until: int) -> None:
        """Install the fast path for a capture, up to replay `until`."""
        if self._fast_path_key != (row, until):
            self._fast_path_key = row, until
            self._fast_path = fast_path(
                cast(CapturedGraph, row.found), self._lock, row.guards, until
            )

    def _clear_fast_path(self) -> None:
        self._fast_path, self._fast_path_key = _always_miss, None

    # ------------------------------------------------------------------ calls that run the function

    @exclusive
    def _run_watched(self, call: Call, row: CaptureEntry | None, must_agree: bool = False) -> Any:
        """Run the function. A first call (no `row`) makes the next call a capture. Otherwise
        compare with the call of `row` and capture; with `must_agree` a difference is an error.
        """
        self._clear_fast_path()
        finish_writes()  # of other threads, which must not become part of the capture
        if row is not None and isinstance(row.found, CapturedGraph):
            row.found.replay.free_arena()
        before = PriorState.now(call.tensors, call.values)
        guards = Guards(self.roots, call.objects, self._updated) if row is not None else None
        recorder, result, returned = self._run(call, before, is_strict=row is not None)
        is_first = row is None or guards is None or computed_preexisting_tensors(before)
        if not is_first:
            refuse_lost_effects(recorder, before)
        trace = Trace(recorder, before, result, returned)
        if is_first or row is None or guards is None:
            first = FirstCall(trace, touched_storages(recorder, before, returned))
            self._restart(call, row, first)
            return result
        try:
            row.found.trace.refuse_changed_numbers(trace)
            if must_agree:
                row.found.trace.refuse_changed_computation(trace)
        except CaptureError:
            self._restart(call, row, FirstCall(trace, touched_storages(recorder, before, returned)))
            raise
        captured = CapturedGraph(row.found, trace, recorder, before, result, returned)
        guards = guards.after_call()
        guards.refuse_opaque()
        self._updated = guards.updated
        self._keep(call, CaptureEntry(guards, captured), row)
        return result

    def _run(
        self, call: Call, before: PriorState, is_strict: bool
    ) -> tuple[Recorder, Any, list[TensorCore]]:
        """Run the function, and record what it computes."""
        older = frozenset(map(id, live_tensors()))
        returned: list[TensorCore] = []
        with recording(is_strict, older) as recorder, treat_as_leaves(call.tensors):
            result = call.run()
            flatten(result, returned)
            realize(
                [*returned, *tensors_with_pending_writes(), *pending_gradients(recorder, before)]
            )
            for one in [tensor for tensor in returned if id(tensor) not in older]:
                leave_shared_memory(one)
            forget_history(before.first_number)  # as replays make none
        return recorder, result, returned

    def _keep(self, call: Call, row: CaptureEntry, replaced: CaptureEntry) -> None:
        self.first_calls.pop(call.key, None)
        rows = self.captures.setdefault(call.key, [])
        is_another = all(one is not replaced for one in rows)
        rows[:] = [row, *(one for one in rows if one is not replaced)]
        self.captures.move_to_end(call.key)
        if is_another and (count := self.count_captures()) > 1:
            report_capture(getattr(self.fxn, "__name__", "a function"), count)
        while self.count_captures() > MAX_CAPTURES:
            oldest = next(iter(self.captures))
            self.captures[oldest].pop()
            if not self.captures[oldest]:
                del self.captures[oldest]

    def _restart(self, call: Call, row: CaptureEntry | None, first: FirstCall) -> None:
        """Treat this call as a first call: the next one is captured."""
        self._drop(call, row)
        self.first_calls[call.key] = CaptureEntry(
            Guards(self.roots, call.objects, self._updated), first
        )
        _drop_oldest(self.first_calls)

    def _drop(self, call: Call, row: CaptureEntry | None) -> None:
        rows = [one for one in self.captures.pop(call.key, []) if one is not row]
        if rows:
            self.captures[call.key] = rows

    def _refuse_recapture(self, call: Call, rows: list[CaptureEntry]) -> None:
        """In strict mode, raise an error for a second capture."""
        waiting = self.first_calls.get(call.key)
        if not rows and waiting is not None and waiting.guards.are_valid():
            return
        for row in [*rows, *([waiting] if waiting is not None else [])]:
            change = next(row.guards.changes(), "a value that was replaced")
            text = f"reads {change}"
            raise CaptureError(
                f"a captured function {text}",
                hint="pass it as an argument, or without strict=True it is captured again",
            )
        raise CaptureError(
            "a constant or the shape of a tensor among the arguments is another one than in "
            "earlier calls",
            hint="pass numbers as Tensors; without strict=True the function is captured again",
        )


def next_verification(done: int) -> int:
    """The first replay after number `done` that runs the function instead, to compare."""
    mode = JIT_CHECK.value
    if mode in (ALWAYS, NEVER):
        return done + 1 if mode == ALWAYS else NEVER_REACHED
    return FIRST_VERIFICATION if done < FIRST_VERIFICATION else 1 << done.bit_length()


def _drop_oldest(kept: OrderedDict[Any, Any]) -> None:
    if len(kept) > MAX_CAPTURES:
        kept.popitem(last=False)


def _always_miss(args: tuple[Any, ...]) -> Any:
    return MISSED


def _method(function: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    """A bound function that does not keep its object alive."""
    held = ref(owner)
    return update_wrapper(lambda *args, **kwargs: function(held(), *args, **kwargs), function)
