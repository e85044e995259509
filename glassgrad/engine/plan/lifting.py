"""graphs that are equal but for numbers -> one graph that is given those numbers at launch.

A constant is part of the code, and so is where a slice begins: a loop in which one of them changes
would compile a kernel in every step. So where a graph is new, but was met before with other
numbers, those that keep changing are lifted out of it: constants become buffers of one element,
starts of slices and of what is padded become variables. All later graphs of the loop share a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.rounding import to_bits
from glassgrad.engine.cache.graph_keys import Cache
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Size, Value, bindings
from glassgrad.ir.uop import UOp, variable
from glassgrad.memory.view import View

CONST, BUFFER, ASSIGN, BIND = Ops.CONST, Ops.BUFFER, Ops.ASSIGN, Ops.BIND
SHRINK, PAD, RESHAPE, CUSTOM = Ops.SHRINK, Ops.PAD, Ops.RESHAPE, Ops.CUSTOM
STARTS = frozenset((SHRINK, PAD))
FUNCTIONS = frozenset((Ops.EXP2, Ops.SIN))  # whose lowering recognises what they are given
MAX_CHANGES = 2  # of a number, before it is lifted
MAX_LIFTED = 32  # different numbers of a graph: each is an argument of the kernels that read it
LEFT_OUT = frozenset((dtypes.bool, dtypes.index))


class Number(NamedTuple):
    """A number in a graph: a constant of a dtype, or a start from 0 to a largest one."""

    value: Any  # of a constant, its bits
    kind: DType | int


class History:
    """What the numbers of a graph were when it was met. Numbers that were always equal to each
    other have the same label.
    """

    def __init__(self, numbers: Sequence[Number]) -> None:
        self.last = list(numbers)
        self.changes = [0] * len(numbers)
        self.labels = _ranks(numbers)

    def notice(self, numbers: Sequence[Number]) -> None:
        for i, number in enumerate(numbers):
            self.changes[i] += number != self.last[i]
        self.last = list(numbers)
        self.labels = _ranks(list(zip(self.labels, numbers, strict=True)))

    def moving(self) -> dict[int, int]:
        """The numbers that are lifted, with their labels."""
        return {i: label for i, label in enumerate(self.labels) if self.changes[i] >= MAX_CHANGES}


KNOWN: Cache[History] = Cache(256)  # by the graph without its numbers


def lifted(roots: Sequence[UOp], device: str) -> list[UOp] | None:
    """The graph with its changing numbers as arguments, if it was met before with others."""
    nodes = list(_nodes(roots))
    fixed = {source for node in nodes if node.op in FUNCTIONS for source in node.src}
    numbers = [number for node in nodes for number in _numbers_of(node, fixed)]
    if not numbers:
        return None
    key = _key(nodes, roots, fixed)
    history = KNOWN.get(key)
    if history is None:
        history = KNOWN[key] = History(numbers)
    else:
        history.notice(numbers)
    moving = history.moving()
    if not moving or len(set(moving.values())) > MAX_LIFTED:
        return None
    arguments: dict[int, Any] = {}
    given = [
        arguments.setdefault(moving[i], _argument(number, moving[i], device))
        if i in moving
        else None
        for i, number in enumerate(numbers)
    ]
    return _with_arguments(nodes, roots, fixed, iter(given))


def _argument(number: Number, label: int, device: str) -> Any:
    """A buffer that holds a constant, or a variable that is bound to a start."""
    value, kind = number
    if isinstance(kind, int):
        symbol = variable(f"_start{label}", 0, kind)
        return Size(symbol, {symbol: Value(value)})
    raw = bytearray(value.to_bytes(kind.itemsize, "little"))
    return UOp(BUFFER, kind, (), View.from_host(raw, kind, (), device))


def _with_arguments(
    nodes: list[UOp], roots: Sequence[UOp], fixed: set[UOp], given: Iterator[Any]
) -> list[UOp]:
    """The graph with arguments in place of numbers; None leaves a number as it is."""
    made: dict[UOp, UOp] = {}
    for node in nodes:
        if node.realized is not None:
            made[node] = made[node.realized]
            continue
        numbers = [next(given) for _ in _numbers_of(node, fixed)]
        src = tuple([made.get(source, source) for source in node.src])
        if all(number is None for number in numbers) and src == node.src:
            made[node] = node
            continue
        src, arg = _filled(node, fixed, src, numbers)
        made[node] = UOp(node.op, node.dtype, _with_variables(node, src, arg), arg)
        made[node].origin = made[node].origin or node.origin
    return [made.get(root, root) for root in roots]


def _with_variables(node: UOp, src: tuple[UOp, ...], arg: Any) -> tuple[UOp, ...]:
    """The sources of a node with the values of the variables in its arg."""
    values = bindings(arg)
    if not values:
        return src
    bound = tuple([UOp(BIND, one.dtype, (one,), value) for one, value in values.items()])
    if node.op is not ASSIGN:
        return src + tuple([one for one in bound if one not in src])
    target, value = src
    return target, UOp(RESHAPE, value.dtype, (value, *bound), value.shape)


# ---------------------------------------------------------------------- the numbers of a node


def _numbers_of(node: UOp, fixed: set[UOp]) -> list[Number]:
    """The constants among the sources of a node, then the starts in its arg. Those of
    `fixed` nodes stay: e^x is 2^(x·log2 e), and the lowering of 2^ looks for that number.
    """
    if node.op is BUFFER or node.realized is not None:
        return []
    found = [
        Number(to_bits(source.arg, source.dtype), source.dtype)
        for source in node.src
        if _is_number(source) and node not in fixed
    ]
    for op, arg, shape in _movements(node):
        found += [Number(pair[0], top) for pair, top in _starts(op, arg, shape) if top]
    return found


def _filled(
    node: UOp, fixed: set[UOp], src: Sequence[Any], numbers: Sequence[Any]
) -> tuple[Any, Any]:
    """The sources and the arg of a node with these in place of its numbers."""
    rest = iter(numbers)

    def take(old: Any) -> Any:
        number = next(rest)
        return old if number is None else number

    filled = tuple(
        [
            take(new) if _is_number(old) and node not in fixed else new
            for old, new in zip(node.src, src, strict=True)
        ]
    )
    steps = []
    for op, arg, shape in _movements(node):
        pairs = []
        for (begin, end), top in _starts(op, arg, shape):
            start = take(begin) if top else begin
            pairs.append((start, begin + end - start if op is PAD else start + (end - begin)))
        steps.append((op, tuple(pairs)))
    rest_of_chain = iter(steps)
    if node.op is ASSIGN:
        chain = [next(rest_of_chain) if op in STARTS else (op, arg) for op, arg in node.arg]
        return filled, tuple(chain)
    return filled, steps[0][1] if steps else node.arg


def _is_number(source: UOp) -> bool:
    return source.op is CONST and source.dtype not in LEFT_OUT


def _movements(node: UOp) -> Iterator[tuple[Ops, Any, tuple[int, ...]]]:
    """The slices and the padding that a node does, each with the shape of what it is done to."""
    if node.op in STARTS:
        yield node.op, node.arg, node.src[0].shape
    elif node.op is ASSIGN:
        target = UOp(BUFFER, node.dtype, (), _base(node).arg)
        for op, arg in node.arg:
            if op in STARTS:
                yield op, arg, target.shape
            target = UOp(op, target.dtype, (target,), arg)


def _base(write: UOp) -> UOp:
    while write.op is ASSIGN:
        write = write.src[0]
    return write if write.realized is None else write.realized


def _starts(op: Ops, arg: Any, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], int]]:
    """Each axis of a slice or of padding, and how large its start may be; 0 if it is fixed."""
    for (begin, end), size in zip(arg, shape, strict=True):
        if any(isinstance(one, Size) for one in (begin, end, size)):
            yield (begin, end), 0
        else:
            yield (begin, end), begin + end if op is PAD else size - (end - begin)


# ---------------------------------------------------------------------- the graph without them


def _nodes(roots: Sequence[UOp]) -> Iterator[UOp]:
    """All nodes but constants, sources first, in an order that their structure decides."""
    seen: set[UOp] = set()
    stack = [root for root in reversed(roots) if root.op is not CONST]
    while stack:
        node = stack[-1]
        below = [source for source in _sources(node) if source not in seen]
        if below and node not in seen:
            stack.extend(reversed(below))
            continue
        stack.pop()
        if node not in seen:
            seen.add(node)
            yield node


def _sources(node: UOp) -> list[UOp]:
    below = node.src if node.realized is None else (node.realized,)
    return [source for source in below if source.op is not CONST]


def _key(nodes: Sequence[UOp], roots: Sequence[UOp], fixed: set[UOp]) -> tuple[Any, ...]:
    """Equal for graphs that differ in numbers alone."""
    positions = {node: i for i, node in enumerate(nodes)}
    storages: dict[int, int] = {}
    words: list[Any] = []
    for node in nodes:
        if node.op is BUFFER:
            view = node.arg
            storage = storages.setdefault(id(view.storage), len(storages))
            words.append((node.dtype, view.shape, view.strides, storage))
        elif node.realized is not None:
            words.append(positions[node.realized])
        elif node.op is BIND:
            words.append(node.src[0].arg)
        else:
            kinds = [number.kind for number in _numbers_of(node, fixed)]
            sources = [positions.get(source, source) for source in node.src]
            src, arg = _filled(node, fixed, sources, kinds)
            words.append((node.op, node.dtype, arg.hex() if type(arg) is float else arg, src))
    return (*words, *[positions.get(root, root) for root in roots])


def _ranks(values: Sequence[Any]) -> list[int]:
    """Equal values have equal numbers."""
    found: dict[Any, int] = {}
    return [found.setdefault(value, len(found)) for value in values]
