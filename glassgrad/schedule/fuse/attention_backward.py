"""Fuse the column sums of attention's backward pass with the kernel that computes the scores.

Gradients of attention use the scores along rows (for queries) and summed over rows (for keys and
values). Where every core gets whole heads, one kernel does both (the move ATTENTION_BACKWARD of
loops/).
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.stages import Target
from glassgrad.schedule.fuse.groups import FusionGroup, Loop, crossing_reads, loop_size
from glassgrad.schedule.fuse.row_block_legality import is_wide_product
from glassgrad.schedule.graph.attention_scores import WRITES
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.materialize.wide_products import can_fuse_backward


def summed_rows(producer: FusionGroup, consumer: FusionGroup) -> Loop | None:
    """The row loop of the producer's scores, if the consumer sums all that it reads of them over
    rows.
    """
    rows = _row_loop(producer)
    reads = crossing_reads(producer, consumer) if _sums_score_rows(producer, consumer) else []
    is_summed = all(
        writer in rows and indices[rows[writer]] in reader.reduced
        for writer, reader, indices in reads
    )
    return rows if reads and is_summed else None


def _sums_score_rows(producer: FusionGroup, consumer: FusionGroup) -> bool:
    """True if the consumer sums scores of the producer over their rows and nothing else."""
    rows, sizes = _row_loop(producer), {s.numel for s in producer.statements if is_wide_product(s)}
    return any(
        writer in rows and writer.numel in sizes and list(reader.reduced) == [indices[rows[writer]]]
        for writer, reader, indices in (crossing_reads(producer, consumer) if sizes else ())
    )


def _row_loop(group: FusionGroup) -> Loop:
    return group.summed_rows or (group.outer[-1] if group.outer else {})


def may_fuse_backward(
    producer: FusionGroup, consumer: FusionGroup, rows: Loop, shared: list[Loop], target: Target
) -> bool:
    """True if the fused kernel has loops over heads around the rows, and all of it can be there."""
    statements = producer.statements + consumer.statements
    heads = prod(loop_size(loop) for loop in shared)
    if not can_fuse_backward(heads, loop_size(rows), target):
        return False
    if any(s.node.op in WRITES or s.is_scatter or s.scanned is not None for s in statements):
        return False
    values = {s.node for s in statements}.union(*[s.reads for s in statements])
    sums = [s for s in consumer.statements if s.reduced]
    return len(values) <= target.max_params and all(_is_single_sum(s) for s in sums)


def _is_single_sum(statement: Statement) -> bool:
    return statement.is_contraction and len(statement.reduced) == 1
