"""a value and its inputs -> gradients: a walk from the value down, with the rules of each op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.tensor.autograd.derivatives import (
    BROADCASTING,
    RULES,
    Rule,
    broadcast_to,
    sum_to_shape,
)
from glassgrad.tensor.record import mark_origin

ASSIGN, COPY, CUSTOM, DEFERRED = Ops.ASSIGN, Ops.COPY, Ops.CUSTOM, Ops.DEFERRED
OPAQUE_GRADIENT = frozenset((COPY, CUSTOM, Ops.BIND))
ALL_ELEMENTS = frozenset((Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP))
FLOWING = frozenset(op for op, rules in RULES.items() if all(rules)) - {ASSIGN}  # to all sources

# CUSTOM(value, …): the node, its gradient, the nodes that gradients matter for -> gradients of any
# nodes under it. See tensor/autograd/custom.py.
CustomRule = Callable[[UOp, UOp, set[UOp]], dict[UOp, UOp]]


class Derivative(NamedTuple):
    """The gradient of CUSTOM(y, x): what `rule` makes of the node, the gradient and options.

    Equal ones do the same, so what they make need not be looked at to know it again.
    """

    rule: Callable[..., UOp]
    options: tuple[int, ...] = ()

    def __call__(self, y: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
        return {y.src[1]: self.rule(y, g, *self.options)}


def has_structural_gradient(node: UOp) -> bool:
    """True if gradients through a node depend on nothing but nodes: on no function of the user, no
    other device, no size that a variable decides.
    """
    return node.op not in OPAQUE_GRADIENT or isinstance(node.arg, Derivative)


def gradients(
    target: UOp, inputs: Iterable[UOp], seed: UOp, are_ends: bool = False
) -> dict[UOp, UOp]:
    """The gradient of target for each input that it depends on; seed is target's own.

    With `are_ends`, inputs are taken to be independent, even where one is made of another.
    """
    wanted = frozenset(inputs)
    nodes = toposort((target,), wanted.__contains__ if are_ends else None)
    depends = _dependents(nodes, wanted)
    found: dict[UOp, UOp] = {target: seed}
    result: dict[UOp, UOp] = {}
    for node in reversed(nodes):
        g = found.pop(node, None)
        if g is None:
            continue
        if node in wanted:
            result[node] = mark_origin(broadcast_to(g, node.shape), node.origin)
            if are_ends:
                continue
        for source, part in _source_gradients(node, g, depends):
            known = found.get(source)
            found[source] = mark_origin(part if known is None else known + part, node.origin)
    return result


def _source_gradients(node: UOp, g: UOp, depends: set[UOp]) -> Iterator[tuple[UOp, UOp]]:
    """What the gradient of a node adds to those of its sources."""
    if node.op is CUSTOM:
        custom: CustomRule = node.arg
        made = custom(node, broadcast_to(g, node.shape), depends)
        yield from [(source, part) for source, part in made.items() if source in depends]
        return
    sums = node.op in BROADCASTING
    for source, rule in zip(node.src, _rules(node), strict=False):
        if rule is None or source not in depends:
            continue
        part = rule(node, g)
        yield source, sum_to_shape(part, node.shape, source.shape) if sums else part


def inputs_with_gradient(target: UOp, nodes: list[UOp], wanted: frozenset[UOp]) -> set[UOp]:
    """Those of the wanted nodes that have a gradient; `nodes` are all under the target, in order.

    This is what `gradients` gives, without the graphs.
    """
    depends = _dependents(nodes, wanted)
    found = {target}
    for node in reversed(nodes):
        if node in found:
            found |= depends.intersection(flow_sources(node))
    return found & wanted


def flow_sources(node: UOp) -> Sequence[UOp]:
    """The sources that have a gradient if the node has one; of a deferred function that is not
    known to be differentiable in some only, all.
    """
    if node.op in FLOWING:
        return node.src
    if node.op is CUSTOM:
        return node.src[1:2] if isinstance(node.arg, Derivative) else node.src
    if node.op is DEFERRED:
        flows = getattr(node.arg, "flows", None)
        return node.src if flows is None else [node.src[number] for number in flows]
    pairs = zip(node.src, _rules(node), strict=False)
    return [source for source, rule in pairs if rule is not None]


def _rules(node: UOp) -> tuple[Rule | None, ...]:
    """A rule for each source; nothing flows to what was there before all of it was written over."""
    rules = RULES.get(node.op, ())
    is_gone = node.op is ASSIGN and all(op in ALL_ELEMENTS for op, _ in node.arg or ())
    return (None, *rules[1:]) if is_gone else rules


def _dependents(nodes: list[UOp], wanted: frozenset[UOp]) -> set[UOp]:
    """The float nodes through which a gradient flows on its way to the wanted ones."""
    depends: set[UOp] = set()
    for node in nodes:
        is_on_the_way = node.dtype.kind == "float" and not depends.isdisjoint(node.src)
        if node in wanted or (is_on_the_way and not depends.isdisjoint(flow_sources(node))):
            depends.add(node)
    return depends
