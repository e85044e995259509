"""Program -> effects: each uop does in plain Python what its row in ir/ops.py says.

A vector is a list. A thread is a generator that yields at every BARRIER, so the threads of a group
run in lockstep between barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from glassgrad.base.dtype import wrap
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.base.rounding import from_bits, to_bits
from glassgrad.devices.python.memory import (
    AccessError,
    HostMemory,
    Memory,
    Pointer,
    ScratchMemory,
    ThreadState,
)
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.stages import Program
from glassgrad.ir.uop import UOp

OPENS = frozenset((Ops.RANGE, Ops.IF))
CLOSES = frozenset((Ops.END, Ops.ENDIF))
BARRIER = Ops.BARRIER
# Ops whose sources have another dtype than their result.
CONVERTING = OpGroup.COMPARISON | {Ops.CAST, Ops.BITCAST}


@mutable
class Block:
    """The lines of a loop, a condition, or the whole program."""

    opener: UOp | None
    lines: list[UOp | Block] = field(default_factory=list)


def blocks_of(uops: Sequence[UOp]) -> Block:
    """The flat list as a tree of loops and conditions."""
    opened = [Block(None)]
    for uop in uops:
        if uop.op in OPENS:
            inner = Block(uop)
            opened[-1].lines.append(inner)
            opened.append(inner)
        elif uop.op in CLOSES:
            opened.pop()
        else:
            opened[-1].lines.append(uop)
    return opened[0]


class Thread:
    """One thread: its computed values, and the memory that it can reach."""

    def __init__(
        self,
        run: ProgramRun,
        state: ThreadState,
        position: Mapping[str, int],
        shared: Shared,
    ) -> None:
        self.run = run
        self.state = state
        self.position = position
        self.shared = shared
        self.values: dict[UOp, Any] = {}

    def execute(self, block: Block) -> Iterator[None]:
        for line in block.lines:
            if isinstance(line, Block):
                yield from self.enter(line)
            elif line.op is BARRIER:
                yield
                self.state = self.state._replace(epoch=self.state.epoch + 1)
            else:
                self.values[line] = STEPS[line.op](self, line)

    def enter(self, block: Block) -> Iterator[None]:
        opener = block.opener
        assert opener is not None
        decides = self.values[opener.src[0]]
        for i in range(int(decides)):  # a condition is a loop of zero or one iterations
            self.values[opener] = i
            yield from self.execute(block)


Shared = dict[UOp, Memory]  # SCRATCH -> the memory that a group shares


class ProgramRun:
    """One launch of a program: its arguments, and the grid of threads."""

    def __init__(self, program: Program, pointers: Sequence[int], values: Sequence[int]) -> None:
        self.block = blocks_of(program.uops)
        specials = {u.arg[0]: u.arg[1] for u in program.uops if u.op is Ops.SPECIAL}
        self.groups = {name: size for name, size in specials.items() if name[0] == "g"}
        self.threads = {name: size for name, size in specials.items() if name[0] == "l"}
        self.has_threads = bool(specials)
        bound = sorted((u for u in program.uops if u.op is Ops.VARIABLE), key=lambda u: u.arg[0])
        self.variables = dict(zip(bound, values, strict=True))
        self.buffers: dict[int, Memory] = {}
        for uop in program.uops:
            if uop.op is Ops.PARAM:
                slot, size = uop.arg.slot, uop.arg.numel
                self.buffers[slot] = HostMemory(
                    f"data{slot}", uop.dtype, size, self.has_threads, pointers[slot]
                )

    def run(self) -> None:
        for group, position in enumerate(coordinates(self.groups)):
            shared: Shared = {}
            threads = [
                Thread(self, ThreadState(group, number, 0), {**position, **own}, shared)
                for number, own in enumerate(coordinates(self.threads))
            ]
            run_in_lockstep([thread.execute(self.block) for thread in threads])


def coordinates(sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Every point of a grid."""
    points = product(*(range(size) for size in sizes.values()))
    return [dict(zip(sizes, point, strict=True)) for point in points]


def run_in_lockstep(threads: list[Iterator[None]]) -> None:
    """Run threads from barrier to barrier until all are done."""
    while True:
        waiting = [thread for thread in threads if next(thread, DONE) is not DONE]
        if not waiting:
            return
        if len(waiting) < len(threads):
            raise AccessError("some threads of a group wait at a barrier that others never reach")


DONE = object()


# ---------------------------------------------------------------------- what each op does


def _const(t: Thread, u: UOp) -> Any:
    return u.arg if u.dtype.count == 1 else [u.arg] * u.dtype.count


def _param(t: Thread, u: UOp) -> Any:
    return Pointer(t.run.buffers[u.arg.slot], 0)


def _variable(t: Thread, u: UOp) -> Any:
    return t.run.variables[u]


def _special(t: Thread, u: UOp) -> Any:
    return t.position[u.arg[0]]


def _scratch(t: Thread, u: UOp) -> Any:
    number, size = u.arg[:2]
    is_shared = t.run.has_threads and bool(u.arg[3:]) and u.arg[3]
    if not is_shared:
        return Pointer(ScratchMemory(f"buf{number}", u.dtype, size, False), 0)
    if u not in t.shared:
        t.shared[u] = ScratchMemory(f"buf{number}", u.dtype, size, True)
    return Pointer(t.shared[u], 0)


def _source_value(t: Thread, u: UOp) -> Any:
    """ACC starts as its source; AFTER is its source."""
    return t.values[u.src[0]]


def _assign(t: Thread, u: UOp) -> Any:
    acc, value = u.src
    t.values[acc] = t.values[value]
    return t.values[acc]


def _index(t: Thread, u: UOp) -> Any:
    pointer = t.values[u.src[0]]
    return Pointer(pointer.memory, pointer.at + t.values[u.src[1]])


def _gates(t: Thread, index: UOp, count: int) -> list[bool]:
    """True for each lane that may be accessed."""
    gate = index.gate
    if gate is None:
        return [True] * count
    found = t.values[gate]
    return found if isinstance(found, list) else [found] * count


def _load(t: Thread, u: UOp) -> Any:
    memory, at = t.values[u.src[0]]
    zero = 0.0 if u.dtype.kind == "float" else False if u.dtype.kind == "bool" else 0
    found = [
        memory.read(at + lane, t.state) if is_open else zero
        for lane, is_open in enumerate(_gates(t, u.src[0], u.dtype.count))
    ]
    return found[0] if u.dtype.count == 1 else found


def _store(t: Thread, u: UOp) -> Any:
    (memory, at), value = t.values[u.src[0]], t.values[u.src[1]]
    lanes = value if isinstance(value, list) else [value]
    for lane, is_open in enumerate(_gates(t, u.src[0], len(lanes))):
        if is_open:
            memory.write(at + lane, lanes[lane], t.state)


def _no_op(t: Thread, u: UOp) -> Any:
    """Prefetches have no effect here."""


def _stack(t: Thread, u: UOp) -> Any:
    return [t.values[source] for source in u.src]


def _gep(t: Thread, u: UOp) -> Any:
    return t.values[u.src[0]][u.arg]


def _shuffle(t: Thread, u: UOp) -> Any:
    both = [*t.values[u.src[0]], *t.values[u.src[1]]]
    return [both[i] for i in u.arg]


def _dot(t: Thread, u: UOp) -> Any:
    x, y, totals = [t.values[source] for source in u.src]
    steps, found = u.arg.steps, []
    for lane, total in enumerate(totals):
        inside = slice(lane * steps, (lane + 1) * steps)
        added = sum(a * b for a, b in zip(x[inside], y[inside], strict=True))
        found.append(wrap(total + added, u.dtype.scalar))
    return found


def _bitcast(t: Thread, u: UOp) -> Any:
    """Bits read as another dtype; the number of lanes changes with their width."""
    before, after = u.src[0].dtype, u.dtype
    if before.count == after.count:
        return _elementwise(t, u)
    value = t.values[u.src[0]]
    bits = 0
    for lane, one in enumerate(value if before.count > 1 else [value]):
        bits |= to_bits(one, before.scalar) << (lane * before.bits)
    mask = (1 << after.bits) - 1
    lanes = [from_bits(bits >> (i * after.bits) & mask, after.scalar) for i in range(after.count)]
    return lanes if after.count > 1 else lanes[0]


def _elementwise(t: Thread, u: UOp) -> Any:
    args = [t.values[source] for source in u.src]
    source = u.src[0].dtype.scalar if u.op in CONVERTING else None
    dtype = u.dtype.scalar
    if u.dtype.count == 1:
        return fold(u.op, dtype, tuple(args), source)
    return [fold(u.op, dtype, lanes, source) for lanes in zip(*args, strict=True)]


STEPS: dict[Ops, Callable[[Thread, UOp], Any]] = {
    **dict.fromkeys(OpGroup.ELEMENTWISE, _elementwise),
    Ops.BITCAST: _bitcast,
    Ops.CONST: _const,
    Ops.PARAM: _param,
    Ops.VARIABLE: _variable,
    Ops.SPECIAL: _special,
    Ops.SCRATCH: _scratch,
    Ops.ACC: _source_value,
    Ops.AFTER: _source_value,
    Ops.ASSIGN: _assign,
    Ops.INDEX: _index,
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.PREFETCH: _no_op,
    Ops.STACK: _stack,
    Ops.GEP: _gep,
    Ops.SHUFFLE: _shuffle,
    Ops.DOT: _dot,
}
