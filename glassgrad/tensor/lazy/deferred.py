"""a function of values -> a node that stands for its result, until somebody must know the graph.

A step of a loop makes the same graph as the last one. Where a part of it is the result of a
function of its own, as gradients and updates of parameters are, one node is enough to recognise
it: DEFERRED(x, …; Later). Only where nothing like it was computed before, its graph is written.
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
from glassgrad.ir.uop import UOp, next_number, note, toposort
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


EXPANDING: list[int] = []  # the threads that write graphs, once for each


@contextmanager
def expanding() -> Iterator[None]:
    """Write the graph of a DEFERRED: with gradients, and with no other DEFERRED in it."""
    EXPANDING.append(get_ident())
    try:
        with Context(NO_GRAD=0) if NO_GRAD.value else nullcontext():
            yield
    finally:
        EXPANDING.remove(get_ident())


@unique
class DeferredFunction:
    """A function of the nodes it is given, which must depend on nothing else.

    There is one object for what is the same. A function that gives several results has a node of no
    shape, and `chosen` a node for each of them. `sees_graph`: it looks at what its first argument
    is made of, as gradients do, not only at its value.
    """

    function: GraphFunction
    shape: Shape = ()
    sees_graph: bool = False


class ResultChoice(NamedTuple):
    """One of several results."""

    number: int
    shape: Shape
    sees_graph: bool = False


@unique
class TensorExpression:
    """A function of options and of tensors that follow them."""

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
    """function(*options, *tensors), which has this shape, as this dtype."""
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
    """One result of a function that gives several, of the shape and dtype of a node."""
    choice = ResultChoice(number, like.shape)
    return record(DEFERRED, like.dtype, (results,), choice, results.origin)


@exclusive
def expand_deferred(
    values: Sequence[UOp] = (), graphs: Sequence[UOp] = (), only: type = object
) -> dict[UOp, UOp]:
    """Write the graphs of all DEFERRED under these values and under what living tensors hold.

    What is in memory needs no graph, but under `graphs` it gets one. The tensors hold the graphs
    from then on. What changed is given back, and what it became. With `only`, others than functions
    of this class stay.
    """
    changed = _expand([*values, *[holder.uop for holder in unrealized_holders()]], graphs, only)
    if changed:
        redirect_holders(changed)
    return changed


def redirect_readers(changed: dict[UOp, UOp], spares_gradients: bool = False) -> None:
    """Let living tensors be made of other nodes of the same values.

    With `spares_gradients`, what gradients are gradients of that are not written yet stays as it
    is: through the other nodes none would flow.
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
            note(made, held)
    redirect_holders(changed)


def pending_nodes(values: Iterable[UOp]) -> list[UOp]:
    """What is to be computed under these, and what gradients are gradients of, sources first."""
    return _pending_and_graphs(values, [])[0]


def redirect_holders(changed: dict[UOp, UOp]) -> None:
    """Let living tensors hold what their nodes became."""
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
                continue  # only its value counts, which is there
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
            note(made, held)
    return changed


def _expand_node(node: UOp, src: tuple[UOp, ...]) -> Sequence[UOp]:
    """What the function of a DEFERRED makes; all of it was made on the line of the DEFERRED."""
    first = next_number()
    with expanding():
        results: Sequence[UOp] = node.arg.function(*src)
    for made in toposort(results, lambda found: found.number < first):
        if made.number > first and not node.arg.sees_graph:
            made.origin = node.origin
    return results


def with_sources(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The same operation on other nodes of the same values."""
    made = UOp(node.op, node.dtype, src, node.arg)
    made.origin = made.origin or node.origin
    if node.op is ASSIGN:
        replace_write(node, made)
    return made


def _pending_and_graphs(values: Iterable[UOp], graphs: list[UOp]) -> tuple[list[UOp], set[UOp]]:
    """What is to be computed under these, with everything under the graphs and under what gradients
    are gradients of; the latter once more.
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
