"""An index error in a pending write -> the writes that depend on it are undone.

A pending write that fails would fail again for every later reader, so the error is raised once and
the tensors keep their old contents.
"""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Check
from glassgrad.ir.uop import UOp
from glassgrad.tensor.lazy.buffer_versions import WRITERS
from glassgrad.tensor.lazy.deferred import pending_nodes, redirect_readers
from glassgrad.tensor.lazy.unrealized import unrealized_holders

ASSIGN, CHECK = Ops.ASSIGN, Ops.CHECK


def undo_failed_writes(check: Check) -> None:
    """Make live tensors hold what they held before the writes of values that depend on this
    CHECK.
    """
    failed: dict[UOp, UOp] = {}
    depends: set[UOp] = set()
    for node in pending_nodes([holder.uop for holder in unrealized_holders()]):
        if node.op is ASSIGN:
            target, value = node.src
            if value in depends:
                failed[node] = failed.get(target, target)
                WRITERS.pop(target, None)
        elif node.op is CHECK and (node.arg, node.origin) == (check.arg, check.origin):
            depends.add(node)
        elif not depends.isdisjoint(node.src):
            depends.add(node)
    redirect_readers(failed)
