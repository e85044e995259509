"""Graphs that differ in numbers alone -> one graph that takes those numbers as arguments.

A constant is part of the code, and so is the start of a slice: a loop that changes one would
compile a kernel in every iteration. So where a new graph equals an earlier one but for its numbers,
those that keep changing are lifted: constants become buffers of one element, starts of slices and
of padding become variables. All later iterations share a plan.
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
# Lowering looks for constants in their operands.
CONSTANT_MATCHING_OPS = frozenset((Ops.EXP2, Ops.SIN))
MIN_CHANGES = 2  # of a number before it is lifted: one change may be a coincidence
MAX_LIFTED = 32  # numbers per graph: each is an argument of the kernels that read it
NOT_LIFTED = frozenset((dtypes.bool, dtypes.index))


class Number(NamedTuple):
    """A number in a graph: a constant of a dtype, or a start between 0 and a largest value."""

    value: Any  # the bits of a constant
    kind: DType | int


class NumberHistory:
    """The numbers of a graph at its last visit, and how often each changed. Numbers that have
    always been equal to each other share a label.
    """

    def __init__(self, numbers: Sequence[Number]) -> None:
        self.last = list(numbers)
        self.changes = [0] * len(numbers)
        self.labels = _labels(numbers)

    def update(self, numbers: Sequence[Number]) -> None:
        for i, number in enumerate(numbers):
            self.changes[i] += number != self.last[i]
        self.last = list(numbers)
        self.labels = _labels(list(zip(self.labels, numbers, strict=True)))

    def changing(self) -> dict[int, int]:
        """The numbers to lift, with their labels."""
        return {i: label for i, label in enumerate(self.labels) if self.changes[i] >= MIN_CHANGES}


HISTORIES: Cache[NumberHistory] = Cache(256)  # by the key of a graph without its numbers


def lift_changing_numbers(roots: Sequence[UOp], device: str) -> list[UOp] | None:
    """The graph with its changing numbers as arguments; None if it is new or nothing changes."""
    nodes = list(_nodes(roots))
    fixed = {source for node in nodes if node.op in CONSTANT_MATCHING_OPS for source in node.src}
    numbers = [number for node in nodes for number in _numbers_of(node, fixed)]
    if not numbers:
        return None
    key = _key(nodes, roots, fixed)
    history = HISTORIES.get(key)
    if history is None:
        history = HISTORIES[key] = NumberHistory(numbers)
    else:
        history.update(numbers)
    changing = history.changing()
    if not changing or len(set(changing.values())) > MAX_LIFTED:
        return None
    arguments: dict[int, Any] = {}
    given = [
        arguments.setdefault(changing[i], _argument(number, changing[i], device))
        if i in changing
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
    """The graph with arguments in place of numbers; None leaves a number in place."""
    rebuilt: dict[UOp, UOp] = {}
    for node in nodes:
        if node.realized is not None:
            rebuilt[node] = rebuilt[node.realized]
            continue
        numbers = [next(given) for _ in _numbers_of(node, fixed)]
        src = tuple([rebuilt.get(source, source) for source in node.src])
        if all(number is None for number in numbers) and src == node.src:
            rebuilt[node] = node
            continue
        src, arg = _replace_numbers(node, fixed, src, numbers)
        rebuilt[node] = UOp(node.op, node.dtype, _with_variables(node, src, arg), arg)
        rebuilt[node].origin = rebuilt[node].origin or node.origin
    return [rebuilt.get(root, root) for root in roots]


def _with_variables(node: UOp, src: tuple[UOp, ...], arg: Any) -> tuple[UOp, ...]:
    """The sources of a node, with a BIND for each variable in its arg."""
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
    """The constants among the sources of a node, then the starts in its arg. Those of `fixed` nodes
    stay: e^x is 2^(x·log2 e), and lowering recognises that constant.
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


def _replace_numbers(
    node: UOp, fixed: set[UOp], src: Sequence[Any], numbers: Sequence[Any]
) -> tuple[Any, Any]:
    """The sources and the arg of a node with these in place of its numbers."""
    rest = iter(numbers)

    def next_number(old: Any) -> Any:
        number = next(rest)
        return old if number is None else number

    filled = tuple(
        [
            next_number(new) if _is_number(old) and node not in fixed else new
            for old, new in zip(node.src, src, strict=True)
        ]
    )
    steps = []
    for op, arg, shape in _movements(node):
        pairs = []
        for (begin, end), top in _starts(op, arg, shape):
            start = next_number(begin) if top else begin
            pairs.append(
                (
                    start,
                    begin + end - start if op is PAD else start + (end - begin),
                )
            )
        steps.append((op, tuple(pairs)))
    rest_of_chain = iter(steps)
    if node.op is ASSIGN:
        chain = [next(rest_of_chain) if op in STARTS else (op, arg) for op, arg in node.arg]
        return filled, tuple(chain)
    return filled, steps[0][1] if steps else node.arg


def _is_number(source: UOp) -> bool:
    return source.op is CONST and source.dtype not in NOT_LIFTED


def _movements(node: UOp) -> Iterator[tuple[Ops, Any, tuple[int, ...]]]:
    """The slices and paddings of a node, each with the shape of its operand."""
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
    """Each axis of a slice or of padding, and the largest value of its start; 0 if it is fixed."""
    for (begin, end), size in zip(arg, shape, strict=True):
        if any(isinstance(one, Size) for one in (begin, end, size)):
            yield (begin, end), 0
        else:
            yield (
                (begin, end),
                begin + end if op is PAD else size - (end - begin),
            )


# ---------------------------------------------------------------------- the graph without them


def _nodes(roots: Sequence[UOp]) -> Iterator[UOp]:
    """All nodes but constants, sources first, in an order that depends on structure alone."""
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
            src, arg = _replace_numbers(node, fixed, sources, kinds)
            words.append((node.op, node.dtype, arg.hex() if type(arg) is float else arg, src))
    return (*words, *[positions.get(root, root) for root in roots])


def _labels(values: Sequence[Any]) -> list[int]:
    """Equal values get equal labels."""
    found: dict[Any, int] = {}
    return [found.setdefault(value, len(found)) for value in values]
