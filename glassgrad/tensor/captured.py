"""Constants, Captured: what the first and the second call of a TinyJit leave for later ones."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sys import getrefcount
from threading import get_ident
from typing import Any, NamedTuple
from weakref import ref

from glassgrad.base.dtype import DType
from glassgrad.base.errors import CaptureError
from glassgrad.engine.capture import Capture, Replay, join
from glassgrad.engine.recording import Recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import LIVING, Core, living
from glassgrad.tensor.random import GENERATOR
from glassgrad.tensor.realize import OVERWRITTEN, realize
from glassgrad.tensor.structure import Hole, rebuilt

BUFFER = Ops.BUFFER
Ints = tuple[int, ...]


class Before(NamedTuple):
    """What is known before a call that is watched."""

    arguments: list[Core]
    first_number: int  # nodes made inside have greater numbers
    random_numbers: int  # that were handed out
    values: Bound  # of variables among the arguments
    tensors: dict[int, Any]  # the living


# ---------------------------------------------------------------------- constants


class Constants:
    """What a replay takes for constant: numbers in graphs, and data that became tensors."""

    def __init__(self, watching: Recorder, before: Before) -> None:
        self.numbers: dict[tuple[Any, ...], tuple[str, ...]] = {
            graph.outline: graph.values for graph in watching.numbers
        }
        self.data = {_contents(leaf.arg) for leaf in _made_inside(watching, before)}

    def check(self, watching: Recorder, before: Before) -> None:
        """Refuse to capture what was something else in the call before."""
        for graph in watching.numbers:
            known = self.numbers.get(graph.outline, graph.values)
            for new, old, origin in zip(graph.values, known, graph.origins, strict=True):
                if new != old:
                    raise CaptureError(
                        f"a captured function uses the number {new}, which was {old} in the call "
                        "before: replays would not see it change",
                        hint="pass it as a Tensor, or as an argument of the function",
                        origin=origin,
                    )
        for leaf in _made_inside(watching, before):
            if _contents(leaf.arg) not in self.data:
                raise CaptureError(
                    f"data of shape {leaf.shape} became a tensor inside of a captured function, "
                    "and was different in the call before: replays would not see it change",
                    hint="make the tensor outside and pass it as an argument",
                    origin=leaf.origin,
                )


def _made_inside(watching: Recorder, before: Before) -> dict[UOp, None]:
    """The buffers that a call read and that neither existed before nor were computed by it."""
    known = {leaf.arg.storage for leaf, _ in watching.counters}
    known |= {view.storage for run in watching.runs for view in run.made}
    known |= {tensor.uop.arg.storage for tensor in before.arguments}
    known |= {leaf.arg.storage for leaf in GENERATOR.keys.values()}
    leaves = {leaf: None for run in watching.runs for leaf in run.leaves}
    known |= {leaf.arg.storage for leaf in leaves if leaf.number < before.first_number}
    return {leaf: None for leaf in leaves if leaf.arg.storage not in known}


def _contents(view: View) -> tuple[DType, Ints, Ints, bytes]:
    return view.dtype, view.shape, view.strides, bytes(view.storage.as_buffer())


# ---------------------------------------------------------------------- arguments


class Layout(NamedTuple):
    """What a capture relies on in an argument: what it is, and where other arguments lie in it."""

    shape: Ints
    dtype: DType
    device: str
    strides: Ints
    alias: int  # the first argument in the same memory
    distance: int  # elements from its beginning to this one's


def layouts(arguments: Iterable[Core]) -> list[Layout]:
    first: dict[Storage, tuple[int, int]] = {}
    found = []
    for number, tensor in enumerate(arguments):
        view: View = tensor.uop.arg
        alias, start = first.setdefault(view.storage, (number, view.offset))
        where = (alias, view.offset - start)
        found.append(Layout(view.shape, view.dtype, view.device, view.strides, *where))
    return found


def _described(found: Layout) -> str:
    return f"{found.shape} {found.dtype.name} on {found.device}"


# ---------------------------------------------------------------------- memory of others


@dataclass(slots=True)
class Known:
    """Memory that tensors outside hold. It is read by reference: they may change what is in it."""

    storage: Storage
    holders: list[ref[Core]]
    is_written: bool

    def check(self) -> None:
        """A holder must still be there, or the function would read something else by now."""
        for held in self.holders:
            tensor = held()
            if tensor is not None:
                if tensor.uop.op is not BUFFER:
                    realize([tensor])
                if tensor.uop.arg.storage is self.storage:
                    return
        view = f"{self.storage.size} elements of {self.storage.dtype.name}"
        raise CaptureError(
            f"a tensor ({view}) that the captured function read is no longer there",
            hint="change it in place with assign(), or pass it as an argument",
        )

    def renew(self) -> None:
        for held in self.holders:
            if (tensor := held()) is not None and tensor.uop.arg.storage is self.storage:
                renew(tensor)


ALONE = 3  # references to a node that only a tensor holds: its own, a variable's and a call's


def renew(tensor: Core) -> None:
    """The memory was written: what the tensor holds from now on is another version.

    If nothing was made of the old one, nobody could tell them apart.
    """
    uop = tensor.uop
    if getrefcount(uop) == ALONE:
        return
    old: View = uop.arg
    OVERWRITTEN.add(old)
    tensor.uop = UOp(BUFFER, old.dtype, (), old.renewed())


# ---------------------------------------------------------------------- results


class Argument(NamedTuple):
    """Which base an argument is, and how many bytes before it the base began in the capture."""

    number: int
    base: int
    before: int


class Window(NamedTuple):
    """A view, without the storage."""

    dtype: DType
    shape: Ints
    strides: Ints
    offset: int


class Made:
    """Memory that a replay fills and hands out; used again once nobody can see it any more."""

    def __init__(self, base: int, like: Storage, windows: list[Window]) -> None:
        self.base = base
        self.like = like
        self.windows = windows
        self.idle: tuple[int, ...] = ()
        self.nodes: list[UOp] = []
        self.is_new = False

    def ready(self, replayed: Replay) -> list[UOp]:
        """The buffers to hand out, in memory that nobody looks at."""
        if not self.nodes or self._references() != self.idle:
            storage = Storage(self.like.device, self.like.size, self.like.dtype)
            replayed.point(self.base, storage.ensure_allocated(zeroed=False).address)
            self.nodes = [UOp(BUFFER, w.dtype, (), View(storage, *w)) for w in self.windows]
            del storage
            self.idle = self._references()
            self.is_new = True
        return self.nodes

    def settle(self) -> None:
        """Those who hold it now are the ones that get it again."""
        if self.is_new:
            self.idle = self._references()
            self.is_new = False

    def _references(self) -> tuple[int, ...]:
        """How many refer to each buffer, its view, its storage: more than when it was made?"""
        counts = [getrefcount(node) for node in self.nodes]
        counts += [getrefcount(node.arg) for node in self.nodes]
        return *counts, getrefcount(self.nodes[0].arg.storage)


class Output(NamedTuple):
    """How a returned tensor is found after a replay: an argument, the tensor itself, a window of
    an argument's memory, or a window of what was made.
    """

    argument: int | None = None
    tensor: Core | None = None
    window: Window | None = None
    made: int = 0
    number: int = 0


class Captured:
    """A call that can be replayed."""

    def __init__(
        self,
        first: Constants,
        watching: Recorder,
        before: Before,
        result: Any,
        returned: list[Core],
    ) -> None:
        first.check(watching, before)
        self.constants = first
        self.layouts = layouts(before.arguments)
        self.seen = [tensor.uop for tensor in before.arguments]
        escaped = _escaped(before, returned)
        stored = [tensor for tensor in escaped if tensor.uop.op is BUFFER]
        self.poisoned = [ref(tensor) for tensor in escaped if tensor.uop.op is not BUFFER]
        fresh = {tensor.uop.arg.storage for tensor in (*returned, *stored)}
        capture = join(watching.runs, fresh, _device(watching))
        _refuse_other_variables(capture, before.values)
        self.replayed = Replay(capture, before.values)
        self._sort_bases(watching, before)
        self.made = [Made(n, s, []) for n, s in enumerate(capture.made, len(capture.given))]
        self.kind: Any = type(returned[0]) if returned else Core
        self.outputs = [self._output(tensor, before.arguments) for tensor in returned]
        self.stored = [(ref(tensor), self._output(tensor, [])) for tensor in stored]
        returned_ones = {output.made for output in self.outputs}
        self.kept = [self.made[o.made] for _, o in self.stored if o.made not in returned_ones]
        self.template = rebuilt(result, iter([Hole()] * len(returned)))
        self.is_one_tensor = isinstance(self.template, Hole) and self.outputs == [Output()]

    def _sort_bases(self, watching: Recorder, before: Before) -> None:
        """Tell arguments, random counters and known memory apart; what is left is constant."""
        arguments = before.arguments
        written = {view.storage for run in watching.runs for view in run.written}
        starts: dict[Storage, int | None] = dict.fromkeys(
            leaf.arg.storage for leaf in GENERATOR.keys.values()
        )
        starts |= {leaf.arg.storage: n - before.random_numbers for leaf, n in watching.counters}
        holders = _holders()
        self.arguments: list[Argument] = []
        self.known: list[Known] = []
        self.random: list[int | None] = []  # where a counter starts in this call; None: the key
        self.random_total = GENERATOR.used - before.random_numbers
        random_bases = []
        for base, storage in enumerate(self.replayed.capture.given):
            own = [n for n, tensor in enumerate(arguments) if tensor.uop.arg.storage is storage]
            if own:
                view: View = arguments[own[0]].uop.arg
                self.arguments.append(Argument(own[0], base, view.offset * view.dtype.itemsize))
            elif storage in starts:
                self.random.append(starts[storage])
                random_bases.append(base)
            elif storage in holders:
                self.known.append(Known(storage, holders[storage], storage in written))
        self.written = [n for n, t in enumerate(arguments) if t.uop.arg.storage in written]
        self.cells = (ctypes.c_uint64 * max(len(self.random), 1))()
        for number, base in enumerate(random_bases):
            self.replayed.point(base, ctypes.addressof(self.cells) + 8 * number)

    def _output(self, tensor: Core, arguments: list[Core]) -> Output:
        view: View = tensor.uop.arg
        window = Window(view.dtype, view.shape, view.strides, view.offset)
        capture = self.replayed.capture
        if view.storage in capture.made:
            number = capture.made.index(view.storage)
            self.made[number].windows.append(window)
            return Output(made=number, number=len(self.made[number].windows) - 1)
        for number, argument in enumerate(arguments):
            if argument is tensor:
                return Output(number)
            if argument.uop.arg.storage is view.storage:
                start = argument.uop.arg.offset
                return Output(number, window=window._replace(offset=view.offset - start))
        return Output(tensor=tensor)

    # ------------------------------------------------------------------ later calls

    def accepts(self, arguments: list[Core]) -> bool:
        """Whether the arguments lie in memory as those of the capture did; other ones raise."""
        uops = [tensor.uop for tensor in arguments]
        if uops == self.seen:
            return True
        found = layouts(arguments)
        for number, (new, old) in enumerate(zip(found, self.layouts, strict=True)):
            if new[:3] != old[:3]:
                raise CaptureError(
                    f"argument {number} of a captured function is {_described(new)}; it was "
                    f"captured with {_described(old)}",
                    hint="call another TinyJit for it, or reset() this one",
                )
        if found != self.layouts:
            return False
        self.seen = uops
        for number, base, before in self.arguments:
            self.replayed.point(base, uops[number].arg.address - before)
        return True

    def __call__(self, arguments: Sequence[Core], values: Bound) -> Any:
        """Replay: point at this call's memory, run, and hand out the results."""
        if values:
            self.replayed.bind(values)
        for known in self.known:
            known.check()
        made = [found.ready(self.replayed) for found in self.made]
        if self.random:
            self._count_random()
        self.replayed.run()
        for known in self.known:
            if known.is_written:
                known.renew()
        for number in self.written:
            renew(arguments[number])
        if self.poisoned:
            self._poison()
        for held, output in self.stored:
            if (tensor := held()) is not None:
                tensor.uop = made[output.made][output.number]
        for found in self.kept:
            found.settle()
        if self.is_one_tensor:
            return self.kind._of(made[0][0])
        results = [self._result(output, made, arguments) for output in self.outputs]
        return rebuilt(self.template, iter(results))

    def _result(self, output: Output, made: list[list[UOp]], arguments: Sequence[Core]) -> Any:
        argument, tensor, window, *_ = output
        if tensor is not None:
            return tensor
        if argument is None:
            return self.kind._of(made[output.made][output.number])
        if window is None:
            return arguments[argument]
        view: View = arguments[argument].uop.arg
        moved = window._replace(offset=window.offset + view.offset)
        return self.kind._of(UOp(BUFFER, moved.dtype, (), View(view.storage, *moved)))

    def _count_random(self) -> None:
        """Random numbers go on where the last ones ended, as if the function had run."""
        for number, start in enumerate(self.random):
            self.cells[number] = GENERATOR.seed if start is None else GENERATOR.used + start
        GENERATOR.used += self.random_total

    def _poison(self) -> None:
        """Lazy tensors that the captured call left behind know nothing of this one: refuse them."""
        for held in self.poisoned:
            if (tensor := held()) is not None:
                gone = View.empty("CPU", tensor.uop.shape, tensor.uop.dtype)
                OVERWRITTEN.add(gone)
                tensor.uop = UOp(BUFFER, gone.dtype, (), gone)
        self.poisoned = []


def _refuse_other_variables(capture: Capture, values: Bound) -> None:
    for variable in {found for launch in capture.launches for found in launch.variables}:
        if variable not in values:
            raise CaptureError(
                f"a captured function uses the variable {variable.arg[0]}, which is none of its "
                "arguments: replays would not see it change",
                hint="pass it, bound to its value, as an argument",
            )


def _device(watching: Recorder) -> Any:
    """The one device that everything ran on."""
    from glassgrad.devices.registry import Device

    found = {run.device.name: run.device for run in watching.runs}
    if len(found) > 1:
        raise CaptureError(
            f"a captured function ran on {' and '.join(found)}",
            hint="capture the work of each device on its own",
        )
    return next(iter(found.values()), None) or Device[Device.DEFAULT]


def _holders() -> dict[Storage, list[ref[Core]]]:
    """For each storage, the tensors that hold it."""
    found: dict[Storage, list[ref[Core]]] = {}
    for tensor in living():
        if tensor.uop.op is BUFFER:
            found.setdefault(tensor.uop.arg.storage, []).append(ref(tensor))
    return found


def _escaped(before: Before, returned: list[Core]) -> list[Core]:
    """Tensors that were made inside of the call and are still there, but were not returned."""
    own, thread = {id(tensor) for tensor in returned}, get_ident()
    return [
        tensor
        for key, held in list(LIVING.items())
        if held.thread == thread
        and before.tensors.get(key) is not held
        and (tensor := held()) is not None
        and id(tensor) not in own
    ]
