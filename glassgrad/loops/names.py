"""Nest -> name: r_64_16 reduces, E_4_4 does not; its loop sizes, coloured by axis kind."""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.base.terminal import colored
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import axes, binders_of

KIND_ORDER = (
    AxisKind.GLOBAL, AxisKind.CORE, AxisKind.LOOP, AxisKind.LOCAL, AxisKind.GROUP,
    AxisKind.REDUCE, AxisKind.UPCAST, AxisKind.LANE, AxisKind.UNROLL,
)  # fmt: skip


def axes_in_order(nest: Nest) -> list[UOp]:
    """The axes as a name lists them: from the outermost level of the machine to the innermost."""
    return sorted(axes(nest), key=lambda r: (KIND_ORDER.index(r.kind), r.axis))


def name_nest(nest: Nest) -> Nest:
    is_reduction = any(node.op is Ops.REDUCE for node in binders_of(nest.body))
    ordered = axes_in_order(nest)
    stem = "r" if is_reduction else "E"
    name = "_".join([stem, *[str(r.size) for r in ordered]])
    label = "_".join([stem, *[colored(str(r.size), r.kind.value) for r in ordered]])
    return replace(nest, name=name, label=label)
