"""A tensor -> HTML for notebooks: a table of values if they are known, else the graph as a tree.

Displaying never computes anything: a lazy tensor is shown as its graph.
"""

from __future__ import annotations

from html import escape
from math import prod
from typing import Any

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.lazy.buffer_versions import current_buffer
from glassgrad.tensor.lazy.deferred import expand_deferred

MAX_CELLS = 10  # rows and columns of a table; the middle of longer axes is left out
MAX_TABLES = 4
MAX_NODES = 24
MAX_SHOWN_BYTES = 1 << 24  # tensors above this size are not copied from their device for display
CELL = "padding:1px 8px;text-align:right;font-family:monospace"
GAP = "…"  # marks omitted rows and columns
CONST, BUFFER = Ops.CONST, Ops.BUFFER


def html(tensor: Any) -> str:
    """The HTML of a tensor in a notebook."""
    location = f"on {tensor.device}"
    if current_buffer(tensor.uop) is None or tensor.nbytes() > MAX_SHOWN_BYTES:
        expand_deferred((tensor.uop,))  # show the operations inside of composites
        body = f"<pre>{escape(chr(10).join(tree(tensor.uop)))}</pre>"
        state = "not computed yet" if current_buffer(tensor.uop) is None else "in memory"
    else:
        body, state = _tables(tensor), "in memory"
    name = f"Tensor {tensor.dtype.name} {tensor.shape}"
    return f"<div><b>{escape(name)}</b> {escape(location)}, {state}{body}</div>"


# ---------------------------------------------------------------------- numbers


def _tables(tensor: Any) -> str:
    """The last two axes as tables, for the first few indices of the axes before them."""
    if 0 in tensor.shape:
        return ""
    readable = tensor.detach() if tensor.dtype.format is not None else tensor.detach().float()
    matrices = readable.numpy().reshape((-1, *((1, 1) + tensor.shape)[-2:]))
    lead = tensor.shape[:-2]
    found = []
    for number in range(min(prod(lead), MAX_TABLES)):
        title = (
            f"<div>[{', '.join(map(str, _unflatten_index(number, lead)))}, …]</div>" if lead else ""
        )
        found.append(title + _table(matrices[number]))
    if prod(lead) > MAX_TABLES:
        found.append(f"<div>… {prod(lead) - MAX_TABLES} more</div>")
    return "".join(found)


def _unflatten_index(number: int, shape: tuple[int, ...]) -> list[int]:
    """A flat row-major index as one index per axis."""
    found = []
    for size in reversed(shape):
        number, index = divmod(number, size)
        found.append(index)
    return found[::-1]


def _table(matrix: Any) -> str:
    rows, columns = (_shown_indices(size) for size in matrix.shape)
    lines = []
    for row in rows:
        cells = [
            GAP if GAP in (row, column) else _number(matrix[row, column]) for column in columns
        ]
        lines.append("".join(f'<td style="{CELL}">{cell}</td>' for cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _shown_indices(size: int) -> list[Any]:
    """The indices of an axis to show, with a gap in the middle if it is long."""
    if size <= MAX_CELLS:
        return list(range(size))
    half = MAX_CELLS // 2
    return [*range(half), GAP, *range(size - half, size)]


def _number(value: Any) -> str:
    return f"{value:.5g}" if value.dtype.kind == "f" else str(value)


# ---------------------------------------------------------------------- graphs


def tree(root: UOp) -> list[str]:
    """One line per node, sources below their users; a node is drawn only once.

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
        if len(lines) == MAX_NODES:
            lines.append(f"{mark}…")
            break
        if node in names and node.src:
            lines.append(f"{mark}the {node.op.name} of line {names[node]}")
            continue
        lines.append(mark + _described(node))
        names[node] = len(lines)
        if node.op is BUFFER or current_buffer(node) is not None:
            continue
        for number, source in reversed(list(enumerate(node.src))):
            is_last = number == len(node.src) - 1
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
