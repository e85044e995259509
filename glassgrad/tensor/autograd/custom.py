"""Gradients that users define: custom rules, and recomputation instead of stored values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from glassgrad.base.errors import GradientError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.tensor.autograd.gradient import gradients
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.record import cast_to, record

CUSTOM, RESHAPE, SHRINK = Ops.CUSTOM, Ops.RESHAPE, Ops.SHRINK
Function = Callable[..., Any]


def custom_gradient(rule: Function) -> Callable[[Function], Function]:
    """Give a function of tensors a gradient rule of its own.

    `rule(g, result, *arguments)` maps the gradient of the result to one gradient per argument: a
    tensor for one argument, a tuple for several, None for arguments without a gradient. It is
    written in tensor operations, so it has gradients in turn.

    >>> @custom_gradient(lambda g, y, x: g)
    ... def rounded(x):
    ...     return x.round()
    >>> x = Tensor([1.4, 2.6])
    >>> (rounded(x) * 3).sum().gradient(x)[0].tolist()
    [3.0, 3.0]
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*arguments: Any) -> Any:
            result = _one_tensor(function(*arguments), function)
            inputs = tuple([x.uop for x in arguments if isinstance(x, TensorCore)])
            return _custom(result, inputs, _BoundRule(rule, function, arguments, type(result)))

        return call

    return decorate


def recompute(function: Function) -> Function:
    """Recompute a function's intermediate values for its gradient instead of storing them.

    This trades time for memory: only arguments and result live from the call to its gradient.

    >>> @recompute
    ... def block(x):
    ...     return (x * 2).exp().sin()
    >>> x = Tensor([0.0, 1.0])
    >>> block(x).sum().gradient(x)[0].shape
    (2,)
    """

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        result = _one_tensor(function(*arguments, **options), function)
        inputs = tuple(
            [x.uop for x in (*arguments, *options.values()) if isinstance(x, TensorCore)]
        )
        return _custom(result, inputs, _recomputed_gradient)

    return call


def _custom(result: TensorCore, inputs: tuple[UOp, ...], rule: Any) -> TensorCore:
    return result._wrap(record(CUSTOM, result.dtype, (result.uop, *inputs), rule))


def _one_tensor(result: Any, function: Function) -> TensorCore:
    if not isinstance(result, TensorCore):
        name = getattr(function, "__name__", "a function")
        raise GradientError(
            f"{name} gave a {type(result).__name__}, not a Tensor",
            hint="a function with a gradient of its own returns one tensor",
        )
    return result


class _BoundRule:
    """A user's rule with the arguments of one call."""

    def __init__(
        self, rule: Function, function: Function, arguments: tuple[Any, ...], kind: type[TensorCore]
    ) -> None:
        self.rule = rule
        self.name = getattr(function, "__name__", "a function")
        self.kind = kind
        # Not the tensors, which may be assigned to: their nodes are sources of the CUSTOM node.
        self.arguments = [None if isinstance(x, TensorCore) else x for x in arguments]
        self.tensor_positions = [i for i, x in enumerate(arguments) if isinstance(x, TensorCore)]

    def __call__(self, node: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
        value, *inputs = node.src
        arguments = list(self.arguments)
        for position, uop in zip(self.tensor_positions, inputs, strict=True):
            arguments[position] = self.kind._from_uop(uop)
        made = self.rule(self.kind._from_uop(g), self.kind._from_uop(value), *arguments)
        each = made if isinstance(made, (tuple, list)) else (made,)
        if len(each) != len(arguments):
            raise GradientError(
                f"the gradient rule of {self.name} gave {len(each)} gradients for "
                f"{len(arguments)} arguments",
                hint="give one for each argument, None where there is none",
            )
        found: dict[UOp, UOp] = {}
        for position, uop in zip(self.tensor_positions, inputs, strict=True):
            if (part := each[position]) is not None:
                found[uop] = self._fitted(part, uop, found.get(uop))
        return found

    def _fitted(self, part: Any, uop: UOp, known: UOp | None) -> UOp:
        if not isinstance(part, TensorCore) or part.shape != uop.shape:
            what = f"shape {part.shape}" if isinstance(part, TensorCore) else type(part).__name__
            raise ShapeError(
                f"the gradient rule of {self.name} gave {what} for an argument of shape {uop.shape}"
            )
        made = cast_to(part.uop, uop.dtype)
        return made if known is None else known + made


def _recomputed_gradient(node: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
    """Gradients through a second copy of the nodes between the inputs and the result.

    Nodes that do not depend on the inputs, such as weights, are shared by both copies and get their
    gradients too.
    """
    value, *inputs = node.src
    before = set(toposort((value, *inputs)))
    again = value.substitute({x: _depend_on(x, g) for x in inputs})
    copies = [found for found in toposort((again,), before.__contains__) if found not in before]
    shared = {source for copy in copies for source in copy.src if source in before}
    return gradients(again, shared & depends, g, are_ends=True)


def _depend_on(x: UOp, g: UOp) -> UOp:
    """x as a different node, which cannot be computed before g: where(g[0] == g[0], x, x)

    Equal nodes are one node, so a plain copy would be the node that it should replace. Kernels drop
    the condition again, after their order is fixed.
    """
    first = g.const_like(0) if 0 in g.shape else g
    if first.shape:
        corner = UOp(SHRINK, g.dtype, (g,), ((0, 1),) * len(g.shape))
        first = UOp(RESHAPE, g.dtype, (corner,), ())
    return first.eq(first).where(x, x)
