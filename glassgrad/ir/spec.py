"""nodes, stage -> the same nodes, or an AssertionError that shows one that is not legal there.

Each stage is a table of claims about ops; ARCHITECTURE.md has the grammar they express. A claim is
a sentence about a node and a function that checks it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from glassgrad.base.config import SPEC
from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import NON_TEMPORAL, VARIADIC, AxisKind, Exclusive, OpGroup, Ops, Stage
from glassgrad.ir.spec_graph import GRAPH_CLAIMS
from glassgrad.ir.staged import carried_loops, scan_op
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, toposort

Checked = TypeVar("Checked", bound="UOp | Sequence[UOp]")


@frozen
class Claim:
    """A property of every node of some ops."""

    says: str
    ops: frozenset[Ops]
    holds: Callable[[UOp], bool]


def claim(says: str, ops: Iterable[Ops], holds: Callable[[UOp], bool]) -> Claim:
    return Claim(says, frozenset(ops), holds)


# ---------------------------------------------------------------------- at every stage

FLOATS_ONLY = (Ops.FDIV, Ops.POW, Ops.RECIPROCAL, Ops.SQRT, Ops.EXP2, Ops.LOG2, Ops.SIN)
INTS_ONLY = (Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR)
BITS_ONLY = (Ops.AND, Ops.OR, Ops.XOR)
CONVERSIONS = frozenset((Ops.CAST, Ops.BITCAST))
SAME_DTYPE = OpGroup.ELEMENTWISE - OpGroup.COMPARISON - CONVERSIONS - {Ops.WHERE}


def _is_number_of(node: UOp) -> bool:
    kind = node.dtype.kind
    wanted = {"float": float, "bool": bool}.get(kind, int)
    return kind != "void" and type(node.arg) is wanted


def _compares(node: UOp) -> bool:
    left, right = node.src
    return left.dtype is right.dtype and node.dtype is dtypes.bool.vec(left.dtype.count)


def _chooses(node: UOp) -> bool:
    condition, yes, no = node.src
    is_bool = condition.dtype is dtypes.bool.vec(node.dtype.count)
    return is_bool and yes.dtype is no.dtype is node.dtype


def _is_variable(node: UOp) -> bool:
    name, smallest, largest = node.arg
    return isinstance(name, str) and smallest <= largest


def _checks(node: UOp) -> bool:
    return node.dtype is node.src[0].dtype and node.dtype.kind == "int" and node.arg[0] > 0


EVERYWHERE_CLAIMS = (
    claim("its arg is a number of its dtype", [Ops.CONST], _is_number_of),
    claim("its arg is a name and two bounds in order", [Ops.VARIABLE], _is_variable),
    claim("it compares equal dtypes and gives bool", OpGroup.COMPARISON, _compares),
    claim("it chooses by a bool between two of its own dtype", [Ops.WHERE], _chooses),
    claim(
        "its sources have its dtype",
        SAME_DTYPE,
        lambda node: all(source.dtype is node.dtype for source in node.src),
    ),
    claim("it is a signed int below arg[0], which is positive", [Ops.CHECK], _checks),
    claim("it is an op of floats", FLOATS_ONLY, lambda node: node.dtype.kind == "float"),
    claim("it is an op of ints", INTS_ONLY, lambda node: dtypes.is_int(node.dtype)),
    claim("it is an op of ints and bools", BITS_ONLY, lambda node: node.dtype.kind != "float"),
    claim("it is an op of uint64", [Ops.THREEFRY], lambda node: node.dtype.scalar is dtypes.uint64),
    claim(
        "it keeps the number of elements",
        [Ops.CAST],
        lambda node: node.dtype.count == node.src[0].dtype.count and node.dtype.kind != "void",
    ),
    claim(
        "it keeps the size",
        [Ops.BITCAST],
        lambda node: node.dtype.itemsize == node.src[0].dtype.itemsize,
    ),
)


# ---------------------------------------------------------------------- kernels and nests


def _are_ranges(nodes: Iterable[UOp]) -> bool:
    return all(node.op is Ops.RANGE for node in nodes)


def _are_indices(nodes: Iterable[UOp]) -> bool:
    return all(node.dtype is dtypes.index for node in nodes)


def _is_index_of(node: UOp) -> bool:
    """One index per axis of what is indexed."""
    base = node.src[0]
    if base.op is Ops.PARAM:
        axes = len(base.arg.shape)
    elif base.op is Ops.STAGE:
        axes = len(base.arg)
    elif base.op is Ops.STORE:  # a stored value, read again in the same kernel
        axes = len(node.indices)
    else:
        return False
    return len(node.indices) == axes and _are_indices(node.indices)


def _as_first(node: UOp) -> bool:
    return node.dtype is node.src[0].dtype


def _is_range(node: UOp) -> bool:
    number, kind = node.arg
    return isinstance(number, int) and isinstance(kind, AxisKind)


def _is_stage(node: UOp) -> bool:
    """Sources are a value, then indices, then loops."""
    count = len(node.arg) + 1
    indices, loops = node.src[1:count], node.src[count:]
    return len(indices) == len(node.arg) and _are_indices(indices) and _are_ranges(loops)


def _stores(node: UOp) -> bool:
    return node.src[0].op is Ops.INDEX and node.src[1].dtype is node.src[0].dtype


KERNEL_CLAIMS = (
    claim("its arg is a number and an AxisKind", [Ops.RANGE], _is_range),
    claim(
        "it counts with the index dtype",
        [Ops.RANGE],
        lambda node: node.dtype is node.src[0].dtype is dtypes.index,
    ),
    claim("its arg is a Param", [Ops.PARAM], lambda node: isinstance(node.arg, Param)),
    claim("it has one index per axis of a PARAM, STAGE or STORE", [Ops.INDEX], _is_index_of),
    claim("it loads from an INDEX", [Ops.LOAD], lambda node: node.src[0].op is Ops.INDEX),
    claim("it has its source's dtype", [Ops.LOAD, Ops.REDUCE, Ops.SCAN, Ops.STAGE], _as_first),
    claim("it has one index per axis of its shape", [Ops.STAGE], _is_stage),
    claim(
        "it combines by ADD, MUL, MAX or MIN",
        [Ops.REDUCE],
        lambda node: node.arg in OpGroup.REDUCING,
    ),
    claim("it works over RANGEs", [Ops.REDUCE, Ops.SCAN], lambda node: _are_ranges(node.bound)),
    claim(
        "it combines by ADD, MUL, MAX, MIN or MULACC",
        [Ops.SCAN],
        lambda node: scan_op(node) in OpGroup.SCANNING and bool(node.bound),
    ),
    claim(
        "what came before a step is carried in scratch",
        [Ops.STAGE],
        lambda node: not isinstance(node.src[0].arg, Exclusive) or bool(carried_loops(node)),
    ),
    claim("it stores a value of the INDEX's dtype", [Ops.STORE], _stores),
    claim("it runs under RANGEs", [Ops.STORE], lambda node: _are_ranges(node.src[2:])),
    claim(
        "it holds STOREs and STAGEs",
        [Ops.SINK],
        lambda node: all(source.op in (Ops.STORE, Ops.STAGE) for source in node.src),
    ),
)


# ---------------------------------------------------------------------- programs

POINTERS = frozenset((Ops.PARAM, Ops.SCRATCH, Ops.INDEX, Ops.AFTER))


def _is_pointer_step(node: UOp) -> bool:
    indices = node.indices
    return node.src[0].op in POINTERS and len(indices) == 1 and dtypes.is_int(indices[0].dtype)


def _moves_elements(pointer: UOp, dtype: DType) -> bool:
    return pointer.op is Ops.INDEX and pointer.dtype.scalar is dtype.scalar


def _is_element(node: UOp) -> bool:
    vector = node.src[0].dtype
    return (
        isinstance(node.arg, int) and 0 <= node.arg < vector.count and vector.scalar is node.dtype
    )


def _takes_elements(node: UOp) -> bool:
    one, two = node.src
    is_like = one.dtype is two.dtype is node.dtype and len(node.arg) == node.dtype.count
    return is_like and all(0 <= i < 2 * node.dtype.count for i in node.arg)


def _is_dot(node: UOp) -> bool:
    left, right, start = node.src
    are_bytes = left.dtype.itemsize == right.dtype.itemsize == start.dtype.itemsize
    is_named = (left.dtype.scalar, right.dtype.scalar) == (node.arg.left, node.arg.right)
    return are_bytes and is_named and start.dtype is node.dtype and node.dtype.bits == 32


PROGRAM_CLAIMS = (
    claim("its index dtype has become an int", tuple(Ops), lambda n: n.dtype.kind != "index"),
    claim("its arg is a number and an AxisKind", [Ops.RANGE], _is_range),
    claim("its arg is a Param", [Ops.PARAM], lambda node: isinstance(node.arg, Param)),
    claim("it moves a pointer by ints", [Ops.INDEX], _is_pointer_step),
    claim(
        "it loads elements of the INDEX's dtype",
        [Ops.LOAD],
        lambda node: _moves_elements(node.src[0], node.dtype),
    ),
    claim(
        "it stores one value of the INDEX's dtype",
        [Ops.STORE],
        lambda node: len(node.src) == 2 and _moves_elements(node.src[0], node.src[1].dtype),
    ),
    claim(
        "it is plain or NON_TEMPORAL", [Ops.STORE], lambda node: node.arg in (None, NON_TEMPORAL)
    ),
    claim("it starts from its own dtype", [Ops.ACC], _as_first),
    claim(
        "it writes an ACC of its dtype",
        [Ops.ASSIGN],
        lambda node: node.src[0].op is Ops.ACC and node.src[0].dtype is node.src[1].dtype,
    ),
    claim("it has its source's dtype", [Ops.AFTER], _as_first),
    claim(
        "it is a vector with one scalar source per lane",
        [Ops.STACK],
        lambda node: (
            len(node.src) == node.dtype.count
            and all(source.dtype is node.dtype.scalar for source in node.src)
        ),
    ),
    claim("it is an element of a vector", [Ops.GEP], _is_element),
    claim("it takes elements of two vectors of its own dtype", [Ops.SHUFFLE], _takes_elements),
    claim("it sums products of its Dot's dtypes, as wide as its own", [Ops.DOT], _is_dot),
    claim("it addresses memory", [Ops.PREFETCH], lambda node: node.src[0].op in POINTERS),
    claim("it closes a RANGE", [Ops.END], lambda node: node.src[0].op is Ops.RANGE),
    claim("it closes an IF", [Ops.ENDIF], lambda node: node.src[0].op is Ops.IF),
    claim("its condition is a bool", [Ops.IF], lambda node: node.src[0].dtype is dtypes.bool),
)


# ---------------------------------------------------------------------- checking


def _by_op(*tables: Iterable[Claim]) -> dict[Ops, list[Claim]]:
    found: dict[Ops, list[Claim]] = defaultdict(list)
    for table in tables:
        for one in table:
            for op in one.ops:
                found[op].append(one)
    return dict(found)


CLAIMS: dict[Stage, dict[Ops, list[Claim]]] = {
    Stage.GRAPH: _by_op(
        EVERYWHERE_CLAIMS, [claim(says, ops, holds) for says, ops, holds in GRAPH_CLAIMS]
    ),
    Stage.KERNEL: _by_op(EVERYWHERE_CLAIMS, KERNEL_CLAIMS),
    Stage.PROGRAM: _by_op(EVERYWHERE_CLAIMS, PROGRAM_CLAIMS),
}
ORDERING = frozenset((Ops.BARRIER,))  # its sources only order it


def check(nodes: Checked, stage: Stage | str) -> Checked:
    """The same nodes, if each is legal at the stage. Does nothing where the setting SPEC is off.

    Given a node, checks everything under it. Given a program's list, checks its order, too.
    """
    if not SPEC:
        return nodes
    stage = Stage[stage.upper()] if isinstance(stage, str) else stage
    listed = (nodes,) if isinstance(nodes, UOp) else tuple(nodes)
    for node in listed if stage is Stage.PROGRAM else toposort(listed):
        problem = find_problem(node, stage)
        assert problem is None, f"not legal in a {stage.name}: {problem}\n{node}"
    if stage is Stage.PROGRAM and not isinstance(nodes, UOp):
        _check_order(listed)
    return nodes


def find_problem(node: UOp, stage: Stage) -> str | None:
    """The first claim that does not hold for the node."""
    if stage not in node.op.stages:
        return f"there is no {node.op.name} at this stage"
    if node.op.arity not in (VARIADIC, len(node.src)) and node.op not in ORDERING:
        return f"{node.op.name} has {node.op.arity} sources, not {len(node.src)}"
    if stage is Stage.KERNEL and node.dtype.count != 1:
        return "vectors are made later"
    for one in CLAIMS[stage].get(node.op, ()):
        if not one.holds(node):
            return f"this does not hold: {one.says}"
    return None


def _check_order(program: tuple[UOp, ...]) -> None:
    """Sources stand before their users; loops and conditions close in reverse order."""
    seen: set[UOp] = set()
    opened: list[UOp] = []
    for node in program:
        for source in node.src:
            assert source in seen, f"this source comes later than its user\n{source}"
        seen.add(node)
        if node.op in (Ops.RANGE, Ops.IF):
            opened.append(node)
        elif node.op in (Ops.END, Ops.ENDIF):
            expected = opened.pop() if opened else None
            assert node.src[0] is expected, f"this closes what is not open\n{node}"
    assert not opened, f"this is never closed\n{opened[-1]}"
