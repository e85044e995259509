"""A kernel's name tells its shape: r_64_16 reduces, E_4_4 does not; colours tell axis kinds."""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.base.terminal import colored
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import axes, blocks_of

ORDER = (
    AxisKind.GLOBAL, AxisKind.CORE, AxisKind.LOOP, AxisKind.LOCAL, AxisKind.GROUP,
    AxisKind.REDUCE, AxisKind.UPCAST, AxisKind.LANE, AxisKind.UNROLL,
)  # fmt: skip


def axes_in_order(nest: Nest) -> list[UOp]:
    """The axes as a name lists them: from the machine's largest part to its smallest."""
    return sorted(axes(nest), key=lambda r: (ORDER.index(r.kind), r.axis))


def name_nest(nest: Nest) -> Nest:
    has_reduce = any(node.op is Ops.REDUCE for node in blocks_of(nest.body))
    found = axes_in_order(nest)
    stem = "r" if has_reduce else "E"
    name = "_".join([stem, *[str(r.size) for r in found]])
    label = "_".join([stem, *[colored(str(r.size), r.kind.value) for r in found]])
    return replace(nest, name=name, label=label)
