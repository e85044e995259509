"""A random.Random -> a legal graph: a pool of known values that grows by one random step at a time.

Every value is evaluated by `reference` the moment it is made. That keeps numbers tame (no step is
taken that overflows or sits near a pole) and tells which floats are exact: only those are compared
or truncated, so a last-bit difference between two machines never becomes a different answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from support.random.elementwise import (
    step_arithmetic,
    step_bitcast,
    step_bits,
    step_cast,
    step_comparison,
    step_division,
    step_ratio,
    step_shift,
    step_smooth,
    step_where,
)
from support.random.movement import (
    step_assign,
    step_assign_twice,
    step_contiguous,
    step_expand,
    step_flip,
    step_gather,
    step_pad,
    step_permute,
    step_reshape,
    step_shrink,
    step_window,
    step_window_adjoint,
)
from support.random.pool import Pool, Refused, Value, step_iota, step_leaf
from support.random.reductions import (
    step_layernorm,
    step_matmul,
    step_mean,
    step_one_hot,
    step_reduce,
    step_scan,
    step_softmax,
)
from support.references.graph import Array

Step = Callable[[Pool], Value]
STEPS: dict[Step, int] = {  # and how often each is tried
    step_leaf: 4,
    step_iota: 1,
    step_arithmetic: 12,
    step_comparison: 3,
    step_where: 4,
    step_bits: 1,
    step_shift: 1,
    step_division: 2,
    step_smooth: 5,
    step_ratio: 2,
    step_cast: 2,
    step_bitcast: 1,
    step_reshape: 4,
    step_permute: 4,
    step_expand: 3,
    step_pad: 3,
    step_shrink: 3,
    step_flip: 2,
    step_window: 2,
    step_window_adjoint: 2,
    step_gather: 2,
    step_reduce: 8,
    step_scan: 4,
    step_mean: 2,
    step_softmax: 2,
    step_layernorm: 2,
    step_matmul: 4,
    step_one_hot: 1,
    step_contiguous: 2,
    step_assign: 3,
}


WRITES: dict[Step, int] = {  # several writes to few buffers, and readers of every version
    step_leaf: 3,
    step_assign: 6,
    step_assign_twice: 6,
    step_arithmetic: 4,
    step_reduce: 6,
    step_scan: 1,
    step_flip: 2,
    step_permute: 1,
    step_reshape: 1,
    step_shrink: 1,
    step_contiguous: 1,
}


def random_graph(
    rng: Random, size: int, numel: int = 4096, steps: dict[Step, int] | None = None
) -> list[UOp]:
    """A legal graph of about `size` steps, as a list of roots.

    The newest version of every assigned buffer is a root; no other root is a bare buffer or an
    older version, because its memory is overwritten. `steps` narrows the kinds of step down.
    """
    return grow(Pool(rng, max(8, min(numel, 16 * size))), size, steps)


def smooth_graph(rng: Random, size: int) -> list[UOp]:
    """A graph of ordinary doubles, so that finite differences are accurate."""
    return grow(Pool(rng, 64, floats=(dtypes.float64,), is_smooth=True), size)


def grow(pool: Pool, size: int, steps: dict[Step, int] | None = None) -> list[UOp]:
    """Take random steps, and choose the roots."""
    table = STEPS if steps is None else steps
    kinds, weights = list(table), list(table.values())
    step_leaf(pool)
    taken, tries = 1, 0
    while taken < size and tries < 20 * size:
        tries += 1
        count, newest = len(pool.values), dict(pool.newest)
        try:
            pool.rng.choices(kinds, weights)[0](pool)
            taken += 1
        except Refused:
            del pool.values[count:]
            pool.newest = newest
    return choose_roots(pool)


def choose_roots(pool: Pool) -> list[UOp]:
    """The last value, a few others, and every assigned buffer."""
    written = [uop for buffer, uop in pool.newest.items() if uop is not buffer]
    plain = [
        value.uop
        for value in pool.values
        if value.uop.op not in (Ops.BUFFER, Ops.ASSIGN, Ops.CONST)
    ]
    loose = [uop for uop in plain if uop not in pool.used]
    rng = pool.rng
    some = rng.sample(plain, min(len(plain), rng.choice((0, 0, 1, 2))))
    ends = rng.sample(loose, min(len(loose), rng.choice((1, 2, 4, 8))))
    roots = [*plain[-1:], *ends, *some, *written]
    return list(dict.fromkeys(roots)) or [value.uop for value in pool.values[-1:]]


def in_order_of_use(roots: Sequence[UOp]) -> list[UOp]:
    """Sources first, in an order that follows from the graph alone, not from its making."""
    found: dict[UOp, None] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            found[node] = None
        elif node not in found:
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(node.src))
    return list(found)


def describe(roots: Sequence[UOp]) -> str:
    """The graph as a list of assignments: what to print when a case fails."""
    lines = []
    names: dict[UOp, str] = {}
    for node in in_order_of_use(roots):
        names[node] = f"x{len(names)}"
        arg = "" if node.arg is None or node.op is Ops.BUFFER else f" {node.arg}"
        sources = " ".join(names[source] for source in node.src)
        mark = "  # root" if node in roots else ""
        text = f"{names[node]} = {node.op.name} {sources}{arg}"
        lines.append(f"{text:<60} {node.dtype.name} {node.shape}{mark}")
    return "\n".join(lines)


def differences(roots: Sequence[UOp], got: Sequence[Array], want: Sequence[Array]) -> list[str]:
    """What is wrong with each root, in words; empty if all are right.

    Ints and bools must be equal. Floats may differ by what rounding can do to numbers of the size
    that the graph works with.
    """
    found = []
    for number, (root, one, other) in enumerate(zip(roots, got, want, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            found.append(f"root {number}: {one.dtype}{one.shape}, not {other.dtype}{other.shape}")
            continue
        wrong = one != other
        if root.dtype.kind == "float":
            slack = 1e-6 if root.dtype is dtypes.float64 else 2e-3
            wrong = ~np.isclose(one, other, slack, slack)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            message = f"{int(wrong.sum())} of {wrong.size} wrong, first at {at}"
            found.append(f"root {number}: {message}: {one[at]!r}, not {other[at]!r}")
    return found
