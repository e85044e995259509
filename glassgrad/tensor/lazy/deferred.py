"""DEFERRED: a node for the result of a function, expanded only where its graph is needed.

Every step of a loop makes the same graph. Where a part of the graph is the result of a function,
such as the gradients or the updates of parameters, one node is enough to recognise it: DEFERRED(x,
…; DeferredFunction). It is expanded only if no equal graph was computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from operator import attrgetter
from threading import get_ident
from typing import NamedTuple, cast

from glassgrad.base.config import NO_GRAD, Context
from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import unique
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp, next_number, set_realized, toposort
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.buffer_versions import current_buffer, replace_write
from glassgrad.tensor.lazy.carried_state import track_replacements
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.unrealized import set_node, unrealized_holders
from glassgrad.tensor.record import cast_to, record

DEFERRED, ASSIGN, BUFFER, CONST = Ops.DEFERRED, Ops.ASSIGN, Ops.BUFFER, Ops.CONST
VOID = dtypes.void
NUMBER = attrgetter("number")
GraphFunction = Callable[..., Sequence[UOp]]


EXPANDING: list[int] = []  # ids of threads that are recording an expansion


@contextmanager
def expanding() -> Iterator[None]:
    """Record the expansion of a DEFERRED node: gradients on, no composites inside."""
    EXPANDING.append(get_ident())
    try:
        with Context(NO_GRAD=0) if NO_GRAD.value else nullcontext():
            yield
    finally:
        EXPANDING.remove(get_ident())


@unique
class DeferredFunction:
    """A function of its source nodes, which must depend on nothing else.

    Equal functions are one object. A function with several results has a node of dtype void and
    shape (), and `choose_result` makes a node for each result. `sees_graph`: the function looks at
    the graph of its first source, as gradients do, not only at its value.
    """

    function: GraphFunction
    shape: Shape = ()
    sees_graph: bool = False


class ResultChoice(NamedTuple):
    """One result of a function that has several."""

    number: int
    shape: Shape
    sees_graph: bool = False


@unique
class TensorExpression:
    """A function of constant options followed by tensors."""

    function: Callable[..., TensorCore]
    options: tuple[Hashable, ...]
    dtype: DType
    kind: type[TensorCore]

    def __call__(self, *nodes: UOp) -> tuple[UOp]:
        result = self.function(*self.options, *map(self.kind._from_uop, nodes))
        return (cast_to(result.uop, self.dtype),)


def defer(
    function: Callable[..., TensorCore],
    options: tuple[Hashable, ...],
    tensors: Sequence[TensorCore],
    shape: Shape,
    dtype: DType,
    origin: Origin | None = None,
) -> UOp:
    """function(*options, *tensors) as one node, cast to `dtype`."""
    src = tuple([tensor.uop for tensor in tensors])
    arg = _cached_expression(function, options, dtype, type(tensors[0]), shape)
    return record(DEFERRED, dtype, src, arg, origin)


@lru_cache(maxsize=4096)
def _cached_expression(
    function: Callable[..., TensorCore],
    options: tuple[Hashable, ...],
    dtype: DType,
    kind: type[TensorCore],
    shape: Shape,
) -> DeferredFunction:
    expression = TensorExpression(function, options, dtype, kind)
    return DeferredFunction(cast(GraphFunction, expression), shape)


def choose_result(results: UOp, number: int, like: UOp) -> UOp:
    """One result of a function that has several, with the shape and dtype of a node."""
    choice = ResultChoice(number, like.shape)
    return record(DEFERRED, like.dtype, (results,), choice, results.origin)


@exclusive
def expand_deferred(
    values: Sequence[UOp] = (), graphs: Sequence[UOp] = (), only: type = object
) -> dict[UOp, UOp]:
    """Expand every DEFERRED under these values and under the nodes of live tensors.

    Values in memory are not expanded, except under `graphs`. Live tensors hold the expanded nodes
    afterwards. Returns old node -> new node. With `only`, deferred functions of other classes stay.
    """
    changed = _expand([*values, *[holder.uop for holder in unrealized_holders()]], graphs, only)
    if changed:
        redirect_holders(changed)
    return changed


def redirect_readers(changed: dict[UOp, UOp], spares_gradients: bool = False) -> None:
    """Make live tensors read other nodes of the same values.

    With `spares_gradients`, graphs that deferred gradients differentiate stay as they are: no
    gradient would flow through the new nodes.
    """
    nodes, under = _pending_and_graphs([holder.uop for holder in unrealized_holders()], [])
    for node in nodes:
        if node in changed or changed.keys().isdisjoint(node.src):
            continue
        if spares_gradients and (node in under or (node.op is DEFERRED and node.arg.sees_graph)):
            continue
        made = with_sources(node, tuple([changed.get(source, source) for source in node.src]))
        changed[node] = made
        if (held := current_buffer(node)) is not None:
            set_realized(made, held)
    redirect_holders(changed)


def pending_nodes(values: Iterable[UOp]) -> list[UOp]:
    """The nodes to compute under these values and the graphs that their deferred gradients see, in
    topological order.
    """
    return _pending_and_graphs(values, [])[0]


def redirect_holders(changed: dict[UOp, UOp]) -> None:
    """Make live tensors hold the replacements of their nodes."""
    for holder in unrealized_holders():
        if (made := changed.get(holder.uop)) is not None:
            set_node(holder, made)
    track_replacements(changed)


def _expand(values: Iterable[UOp], graphs: Sequence[UOp], only: type) -> dict[UOp, UOp]:
    nodes, under = _pending_and_graphs(values, list(graphs))
    changed: dict[UOp, UOp] = {}
    results: dict[UOp, Sequence[UOp]] = {}
    for node in nodes if any(node.op is DEFERRED for node in nodes) else ():
        src = tuple([changed.get(source, source) for source in node.src])
        if node.op is DEFERRED and isinstance(node.arg, only):
            if node not in under and current_buffer(node) is not None:
                continue  # in memory, and nothing differentiates its graph
            if isinstance(node.arg, ResultChoice):
                made = results[node.src[0]][node.arg.number]
            else:
                results[node] = _expand_node(node, src)
                made = results[node][0]
                if node.dtype is VOID:
                    continue
            assert (made.shape, made.dtype) == (node.shape, node.dtype), (node, made)
        elif src != node.src:
            made = with_sources(node, src)
        else:
            continue
        changed[node] = made
        if (held := current_buffer(node)) is not None and made.op not in (BUFFER, CONST):
            set_realized(made, held)
    return changed


def _expand_node(node: UOp, src: tuple[UOp, ...]) -> Sequence[UOp]:
    """The results of a deferred function; new nodes get the origin of the DEFERRED node."""
    first = next_number()
    with expanding():
        results: Sequence[UOp] = node.arg.function(*src)
    for made in toposort(results, lambda found: found.number < first):
        if made.number > first and not node.arg.sees_graph:
            made.origin = node.origin
    return results


def with_sources(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The same operation on other sources of the same values."""
    made = UOp(node.op, node.dtype, src, node.arg)
    made.origin = made.origin or node.origin
    if node.op is ASSIGN:
        replace_write(node, made)
    return made


def _pending_and_graphs(values: Iterable[UOp], graphs: list[UOp]) -> tuple[list[UOp], set[UOp]]:
    """The nodes to compute under the values plus everything under the graphs that deferred
    gradients see, in topological order; and the latter alone.
    """
    seen: set[UOp] = set()
    stack = list(values)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if current_buffer(node) is None:
            stack.extend(node.src)
            if node.op is DEFERRED and node.arg.sees_graph:
                graphs.append(node.src[0])
    under = set(toposort(graphs))
    return sorted(seen | under, key=NUMBER), under
