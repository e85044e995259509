"""A value and its inputs -> gradients: reverse-mode accumulation over the graph."""

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
# Ops with gradients for all sources.
FLOWING = frozenset(op for op, rules in RULES.items() if all(rules)) - {ASSIGN}

# The arg of CUSTOM(value, …): (node, its gradient, nodes that need gradients) -> gradients of any
# nodes under it. See tensor/autograd/custom.py.
CustomRule = Callable[[UOp, UOp, set[UOp]], dict[UOp, UOp]]


class Derivative(NamedTuple):
    """The gradient rule of CUSTOM(y, x): `rule(node, g, *options)` is the gradient of x.

    Equal derivatives behave equally, so graph keys need not look at the nodes that they make.
    """

    rule: Callable[..., UOp]
    options: tuple[int, ...] = ()

    def __call__(self, y: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
        return {y.src[1]: self.rule(y, g, *self.options)}


def has_structural_gradient(node: UOp) -> bool:
    """True if gradients through a node depend on the graph alone: not on rules of the user, other
    devices or symbolic sizes.
    """
    return node.op not in OPAQUE_GRADIENT or isinstance(node.arg, Derivative)


def gradients(
    target: UOp, inputs: Iterable[UOp], seed: UOp, are_ends: bool = False
) -> dict[UOp, UOp]:
    """The gradient of target for each input that it depends on; `seed` is the gradient of target
    itself.

    With `are_ends`, inputs are treated as independent, even where one is computed from another.
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
    """What the gradient of a node contributes to the gradients of its sources."""
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
    """The wanted nodes that have a gradient; `nodes` are all nodes under the target, in order.

    These are the keys of what `gradients` returns, found without recording anything.
    """
    depends = _dependents(nodes, wanted)
    found = {target}
    for node in reversed(nodes):
        if node in found:
            found |= depends.intersection(flow_sources(node))
    return found & wanted


def flow_sources(node: UOp) -> Sequence[UOp]:
    """The sources that get a gradient if the node has one. For a DEFERRED node these are its known
    `flows`, or else all sources.
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
    """One rule per source. Old contents that are overwritten completely get no gradient."""
    rules = RULES.get(node.op, ())
    is_gone = node.op is ASSIGN and all(op in ALL_ELEMENTS for op, _ in node.arg or ())
    return (None, *rules[1:]) if is_gone else rules


def _dependents(nodes: list[UOp], wanted: frozenset[UOp]) -> set[UOp]:
    """The float nodes through which gradients flow on their way to the wanted nodes."""
    depends: set[UOp] = set()
    for node in nodes:
        is_on_the_way = node.dtype.kind == "float" and not depends.isdisjoint(node.src)
        if node in wanted or (is_on_the_way and not depends.isdisjoint(flow_sources(node))):
            depends.add(node)
    return depends
