"""a tensor -> HTML for notebooks: numbers in a table if they are known, else the graph as a tree.

Looking must not compute anything: a lazy tensor is shown as what it will be made of.
"""

from __future__ import annotations

from html import escape
from math import prod
from typing import Any

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.lazy.buffer_versions import current_buffer
from glassgrad.tensor.lazy.deferred import expand_deferred

MOST_CELLS = 10  # rows and columns; from the middle on, the rest is left out
MOST_TABLES = 4
MOST_NODES = 24
MOST_BYTES = 1 << 24  # what is larger is not worth fetching for a glance
CELL = "padding:1px 8px;text-align:right;font-family:monospace"
GAP = "…"  # stands for what is left out
CONST, BUFFER = Ops.CONST, Ops.BUFFER


def html(tensor: Any) -> str:
    """What a notebook shows for a tensor."""
    place = f"on {tensor.device}"
    if current_buffer(tensor.uop) is None or tensor.nbytes() > MOST_BYTES:
        expand_deferred((tensor.uop,))  # one node may stand for many
        body = f"<pre>{escape(chr(10).join(tree(tensor.uop)))}</pre>"
        state = "not computed yet" if current_buffer(tensor.uop) is None else "in memory"
    else:
        body, state = _tables(tensor), "in memory"
    name = f"Tensor {tensor.dtype.name} {tensor.shape}"
    return f"<div><b>{escape(name)}</b> {escape(place)}, {state}{body}</div>"


# ---------------------------------------------------------------------- numbers


def _tables(tensor: Any) -> str:
    """The last two axes as tables; of the axes before, the first few places."""
    if 0 in tensor.shape:
        return ""
    readable = tensor.detach() if tensor.dtype.format is not None else tensor.detach().float()
    matrices = readable.numpy().reshape((-1, *((1, 1) + tensor.shape)[-2:]))
    lead = tensor.shape[:-2]
    found = []
    for number in range(min(prod(lead), MOST_TABLES)):
        title = f"<div>[{', '.join(map(str, _place(number, lead)))}, …]</div>" if lead else ""
        found.append(title + _table(matrices[number]))
    if prod(lead) > MOST_TABLES:
        found.append(f"<div>… {prod(lead) - MOST_TABLES} more</div>")
    return "".join(found)


def _place(number: int, shape: tuple[int, ...]) -> list[int]:
    """The number of a place in row-major order, as one index per axis."""
    found = []
    for size in reversed(shape):
        number, index = divmod(number, size)
        found.append(index)
    return found[::-1]


def _table(matrix: Any) -> str:
    rows, columns = (_shown(size) for size in matrix.shape)
    lines = []
    for row in rows:
        cells = [
            GAP if GAP in (row, column) else _number(matrix[row, column]) for column in columns
        ]
        lines.append("".join(f'<td style="{CELL}">{cell}</td>' for cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _shown(size: int) -> list[Any]:
    """The first and last places of an axis, with a gap between them if it is long."""
    if size <= MOST_CELLS:
        return list(range(size))
    half = MOST_CELLS // 2
    return [*range(half), GAP, *range(size - half, size)]


def _number(value: Any) -> str:
    return f"{value:.5g}" if value.dtype.kind == "f" else str(value)


# ---------------------------------------------------------------------- graphs


def tree(root: UOp) -> list[str]:
    """One line per node, sources below what they are used for; a node is drawn only once.

    REDUCE int32 () ADD over (0,)
    └ MUL int32 (2,)
      ├ memory int32 (2,)
      └ 3
    """
    lines: list[str] = []
    names: dict[UOp, int] = {}
    stack: list[tuple[UOp, str, str]] = [(root, "", "")]
    while stack:
        node, mark, indent = stack.pop()
        if len(lines) == MOST_NODES:
            lines.append(f"{mark}…")
            break
        if node in names and node.src:
            lines.append(f"{mark}the {node.op.name} of line {names[node]}")
            continue
        lines.append(mark + _described(node))
        names[node] = len(lines)
        if node.op is BUFFER or current_buffer(node) is not None:
            continue
        for place, source in reversed(list(enumerate(node.src))):
            is_last = place == len(node.src) - 1
            branch, below = ("└ ", "  ") if is_last else ("├ ", "│ ")
            stack.append((source, indent + branch, indent + below))
    return lines


def _described(node: UOp) -> str:
    if node.op is CONST:
        return repr(node.arg)
    if current_buffer(node) is not None:
        return f"memory {node.dtype.name} {node.shape}"
    words = f"{node.op.name} {node.dtype.name} {node.shape}"
    if node.op is Ops.REDUCE:
        words += f" {node.arg[0].name} over {node.arg[1]}"
    return words
