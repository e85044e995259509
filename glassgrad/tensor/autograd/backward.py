"""Tensor.gradient() and Tensor.backward()."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self
from weakref import ref

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import GradientError, ShapeError
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.tensor.autograd.gradient import (
    gradients,
    has_structural_gradient,
    inputs_with_gradient,
)
from glassgrad.tensor.autograd.history import with_history
from glassgrad.tensor.core import TensorCore, live_tensors
from glassgrad.tensor.lazy.buffer_versions import PRESERVED, current_buffer
from glassgrad.tensor.lazy.collect import overwritten_buffer, uncomputed_nodes
from glassgrad.tensor.lazy.composite import Composite
from glassgrad.tensor.lazy.deferred import DeferredFunction, choose_result, expand_deferred
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.record import cast_to, expanded, record, scalar

DETACH, DEFERRED = Ops.DETACH, Ops.DEFERRED


class Autograd(TensorCore):
    """gradient, backward, and which tensors are parameters."""

    __slots__ = ()

    @exclusive
    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """The derivative of this value by each of the targets. Gradients have gradients.

        >>> x = Tensor([1.0, 2.0])
        >>> (x * x).sum().gradient(x)[0].shape
        (2,)
        """
        for number, tensor in enumerate(targets):
            if not isinstance(tensor, TensorCore):
                raise GradientError(f"target {number} is a {type(tensor).__name__}, not a Tensor")
            _need_float(tensor, f"target {number}")
        value, _ = _differentiable(self)
        nodes = _expanded_nodes(value)
        same = _nodes_by_value(nodes)
        inputs = [node for tensor in targets for node in same.get(tensor.uop, ())]
        found = gradients(value.uop, inputs, self._seed(gradient))
        for number, tensor in enumerate(targets):
            if not any(node in found for node in same.get(tensor.uop, ())):
                raise GradientError(
                    f"target {number} of shape {tensor.shape} is no part of this value",
                    hint="was it made before the value, and not detached?",
                )
        _check_contents(found)
        return [self._wrap(_sum_gradients(same[tensor.uop], found)) for tensor in targets]

    @exclusive
    def backward(self, gradient: Self | None = None) -> Self:
        """Add to `.grad` of every parameter that this value depends on.

        Parameters are the tensors of an optimiser and those made with requires_grad=True; if there
        are none, all tensors made from data and all that a model trains
        (`nn.state.get_parameters`). The gradients left in `.grad` are constants; `gradient()` gives
        gradients that have gradients.

        >>> x = Tensor([1.0, 2.0])
        >>> _ = (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        seed = self._seed(gradient)
        value, nodes = _differentiable(self)
        waits = can_defer_gradients(nodes)
        if not waits:
            nodes = _expanded_nodes(value)
            waits = can_defer_gradients(nodes)
        same = _nodes_by_value(nodes)
        params = [t for t in live_tensors() if t._is_param and t.uop in same and _is_float(t)]
        params = [tensor for tensor in params if tensor._requires_grad] or params
        inputs = dict.fromkeys([node for tensor in params for node in same[tensor.uop]])
        if waits:
            found = _deferred_gradients(value.uop, nodes, inputs, seed)
        else:
            found = gradients(value.uop, inputs, seed)
            _check_contents(found)
        if not found:
            raise GradientError(
                "this value depends on no parameter",
                hint="use tensors of floats, and call is_param_() on results of operations",
            )
        if (recorder := active_recorder()) is not None:
            recorder.grad_changes += map(ref, params)
        for tensor in params:
            if not found.keys().isdisjoint(same[tensor.uop]):
                total = _sum_gradients(same[tensor.uop], found)
                _add_gradient(tensor, self._wrap(record(DETACH, total.dtype, (total,))))
        return self

    def _seed(self, gradient: TensorCore | None) -> UOp:
        """The gradient of this value by itself: 1, or the given one."""
        _need_float(self, "the value")
        if gradient is None:
            if self.shape != ():
                raise GradientError(
                    f"the gradient of a value of shape {self.shape} is not one number per input",
                    hint="take the sum() or mean() first, or pass gradient=",
                )
            return scalar(1.0, self.uop.dtype)
        if gradient.shape != self.shape:
            raise ShapeError(
                f"the gradient has shape {gradient.shape}, the value has shape {self.shape}"
            )
        return expanded(cast_to(gradient.uop, self.uop.dtype), self.shape)

    # ------------------------------------------------------------------ parameters

    def is_param_(self, is_param: bool = True) -> Self:
        """Set whether backward() leaves a gradient here.

        >>> Tensor([1.0]).is_param_(is_param=False).is_param
        False
        """
        self.is_param = self._requires_grad = is_param
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """The same as `is_param_`.

        >>> Tensor([1.0]).requires_grad_(requires_grad=False).is_param
        False
        """
        return self.is_param_(requires_grad)

    @property
    def requires_grad(self) -> bool:
        """The same as `is_param`.

        >>> Tensor([1.0], requires_grad=False).requires_grad
        False
        """
        return self.is_param

    @requires_grad.setter
    def requires_grad(self, value: bool | None) -> None:
        self.is_param, self._requires_grad = value is not False, value


def _differentiable(tensor: TensorCore) -> tuple[TensorCore, list[UOp]]:
    """The tensor with the histories of its realized values in its graph, and all nodes of that
    graph.
    """
    nodes = toposort((tensor.uop,))
    if all(node.history is None and node not in PRESERVED for node in nodes):
        return tensor, nodes
    tensor = TensorCore._wrap_raw(with_history(tensor.uop))
    return tensor, toposort((tensor.uop,))


def _nodes_by_value(nodes: Iterable[UOp]) -> dict[UOp, list[UOp]]:
    """Node that a tensor may hold -> the nodes of the graph with that value: itself, and nodes that
    were computed into that buffer after they were recorded.
    """
    same: dict[UOp, list[UOp]] = {}
    for node in nodes:
        same.setdefault(node, []).append(node)
        if node.realized is not None and current_buffer(node) is not None:
            same.setdefault(node.realized, []).append(node)
    return same


def _sum_gradients(nodes: Iterable[UOp], found: dict[UOp, UOp]) -> UOp:
    """The sum of the gradients of several nodes that represent one value."""
    first, *others = [found[node] for node in nodes if node in found]
    for part in others:
        first = first + part
    return first


def _expanded_nodes(value: TensorCore) -> list[UOp]:
    """All nodes of a value, with deferred nodes expanded."""
    nodes = toposort((value.uop,))
    if any(node.op is DEFERRED for node in nodes):
        expand_deferred(graphs=(value.uop,))
        nodes = toposort((value.uop,))
    return nodes


def can_defer_gradients(nodes: Iterable[UOp]) -> bool:
    """True if gradients through these nodes may be DEFERRED.

    They must be recorded at once where rules of the user make them, where they cross devices or
    have symbolic sizes, and where they may need overwritten contents. It must also be known from
    the nodes which inputs have gradients, which deferred gradients do not tell.
    """
    if active_recorder() is not None or not all(map(has_structural_gradient, nodes)):
        return False
    deferred = [node for node in nodes if node.op is DEFERRED]
    if not all(isinstance(node.arg, Composite) for node in deferred):
        return False
    return overwritten_buffer(nodes) is None


def _deferred_gradients(
    value: UOp, nodes: list[UOp], inputs: Iterable[UOp], seed: UOp
) -> dict[UOp, UOp]:
    """A DEFERRED node for the gradient of each input that has one."""
    known = inputs_with_gradient(value, nodes, frozenset(inputs))
    wanted = [node for node in inputs if node in known]
    if not wanted:
        return {}
    results = record(DEFERRED, dtypes.void, (value, seed, *wanted), DEFERRED_GRADIENTS)
    return {node: choose_result(results, number, node) for number, node in enumerate(wanted)}


def _gradients(value: UOp, seed: UOp, *inputs: UOp) -> list[UOp]:
    found = gradients(value, inputs, seed)
    return [found[node] for node in inputs]


def _add_gradient(tensor: TensorCore, made: Any) -> None:
    """Add to `.grad` in place: other holders of the gradient see the sum, and a capture that adds
    to it continues where the last call ended.
    """
    if tensor.grad is None:
        tensor.grad = made
    else:
        tensor.grad.assign(tensor.grad + made)


DEFERRED_GRADIENTS = DeferredFunction(_gradients, sees_graph=True)


def _check_contents(found: dict[UOp, UOp]) -> None:
    """Raise an error if gradients need contents that were overwritten since."""
    lost = overwritten_buffer(uncomputed_nodes(found.values()))
    if lost is not None:
        raise GradientError(
            f"the gradient needs a value of shape {lost.shape} that was overwritten since",
            hint="call backward() before assign(), or compute the value again",
        )


def _is_float(tensor: Any) -> bool:
    kind: str = tensor.uop.dtype.kind
    return kind == "float"


def _need_float(tensor: Any, what: str) -> None:
    if not _is_float(tensor):
        raise GradientError(
            f"{what} has dtype {tensor.dtype.name}, which has no gradient", hint="cast it to float"
        )
