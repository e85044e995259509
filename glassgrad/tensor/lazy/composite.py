"""composite: a method made of many operations -> one DEFERRED node, expanded on demand.

A loop calls the same methods with the same shapes in every step. The first call traces the method
for the shape and dtype of its result. That call and all later ones record one DEFERRED node, which
is expanded to its operations only where the graph is new. So the first step of a loop records the
same nodes as all others, and no later step records the operations again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, ParamSpec, TypeVar, cast

from glassgrad.base.dtype import DType
from glassgrad.engine.cache.graph_keys import Cache
from glassgrad.engine.capture.recorder import THREAD
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.ir.size import sizes_in
from glassgrad.ir.uop import UOp, toposort
from glassgrad.memory.view import View
from glassgrad.tensor.autograd.gradient import has_structural_gradient, inputs_with_gradient
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.deferred import DEFERRED, EXPANDING, expanding
from glassgrad.tensor.record import record

BUFFER, CONTIGUOUS = Ops.BUFFER, Ops.CONTIGUOUS
P = ParamSpec("P")
R = TypeVar("R")
TENSOR_ARGUMENT = object()  # placeholder for a tensor argument
PLAIN = frozenset((int, float, bool, str, type(None), DType))
RECORD_DIRECTLY = "direct"  # stored instead of a Composite: one node cannot represent the call


class Composite:
    """A method applied to arguments of given shapes and dtypes; equal applications share one
    object.

    `flows` are the numbers of the tensors that the gradient of the result flows to.
    """

    __slots__ = ("dtype", "flows", "given", "kind", "method", "names", "shape")
    sees_graph = False

    shape: Shape
    dtype: DType
    flows: tuple[int, ...]

    def __init__(
        self,
        method: Callable[..., TensorCore],
        kind: type[TensorCore],
        given: list[Any],
        names: list[str],
    ) -> None:
        self.method = method
        self.kind = kind
        self.given = given
        self.names = names

    def function(self, *nodes: UOp) -> tuple[UOp]:
        """The expansion: the operations of the method on these nodes."""
        tensors = map(self.kind._from_uop, nodes)
        given = [next(tensors) if one is TENSOR_ARGUMENT else one for one in self.given]
        split = len(given) - len(self.names)
        options = dict(zip(self.names, given[split:], strict=True))
        return (self.method(*given[:split], **options).uop,)

    def is_traced(self, src: list[UOp]) -> bool:
        """Find the shape, dtype and gradient flow of the result. False if one node cannot represent
        it.
        """
        inputs = [_like(node, number) for number, node in enumerate(src)]
        with expanding():
            (result,) = self.function(*inputs)
        nodes = toposort((result,))
        found = inputs_with_gradient(result, nodes, frozenset(inputs))
        self.shape, self.dtype = result.shape, result.dtype
        self.flows = tuple([number for number, node in enumerate(inputs) if node in found])
        others = {node for node in nodes if node.op is BUFFER}.difference(
            [node.src[0] for node in inputs]
        )
        return not others and result not in inputs and all(map(has_structural_gradient, nodes))


def _like(node: UOp, number: int) -> UOp:
    """A stand-in node of the same shape and dtype, different for every number."""
    memory = UOp(BUFFER, node.dtype, (), View.empty("CPU", node.shape, node.dtype))
    return UOp(CONTIGUOUS, node.dtype, (memory,), number)


def _signature(given: tuple[Any, ...]) -> tuple[list[Any], list[UOp]] | None:
    """A key for the arguments, and the nodes of the tensors among them; None if they have no
    key.
    """
    key: list[Any] = []
    src: list[UOp] = []
    for one in given:
        if isinstance(one, TensorCore):
            uop = one.uop
            if Sizes.exist and sizes_in(uop.shape):
                return None
            src.append(uop)
            key += (uop.shape, uop.dtype)
        elif type(one) in PLAIN or _are_ints(one):
            key += (type(one), one.hex() if type(one) is float else one)  # 0.0 is not -0.0
        else:
            return None
    return key, src


def _are_ints(value: object) -> bool:
    return type(value) is tuple and all(type(one) is int for one in value)


COMPOSITES: Cache[Composite | str] = Cache(4096)


def composite(method: Callable[P, R]) -> Callable[P, R]:
    """Decorator: record one DEFERRED node for all that a method records.

    The method must return one tensor and depend on its arguments alone: not on random numbers,
    settings or the contents of tensors.
    """
    recorded = cast(Callable[..., TensorCore], method)

    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        if (
            THREAD.recorder is not None
            or get_ident() in EXPANDING
            or args[0].uop.dtype.kind != "float"  # the float dtype that ints become is a setting
        ):
            return recorded(*args, **options)
        given = (*args, *options.values())
        signature = _signature(given)
        if signature is None:
            return recorded(*args, **options)
        key, src = signature
        known = COMPOSITES.get(found := (recorded, *options, *key))
        if known is None:
            parts = [TENSOR_ARGUMENT if isinstance(one, TensorCore) else one for one in given]
            made = Composite(recorded, type(args[0]), parts, list(options))
            COMPOSITES[found] = known = made if made.is_traced(src) else RECORD_DIRECTLY
        if type(known) is Composite:
            return args[0]._wrap(record(DEFERRED, known.dtype, tuple(src), known))
        return recorded(*args, **options)

    return cast(Callable[P, R], call)
