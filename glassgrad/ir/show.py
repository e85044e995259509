"""UOp -> text -> UOp: how nodes print, and how to read them back.

A node that is used more than once is named where it first appears:

    UOp(Ops.ADD, dtypes.float, arg=None, src=(
      x0:=UOp(Ops.CONST, dtypes.float, arg=1.0, src=()),
       x0,))

A graph too deep to nest is a list, sources first:

    x0 = UOp(Ops.CONST, dtypes.float, arg=1.0, src=())
    x1 = UOp(Ops.ADD, dtypes.float, arg=None, src=(x0, x0))
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp

MAX_NESTING = 40  # Python parses at most 200 open brackets, and a node needs two
DeepNames = dict[UOp, str]


def show(root: UOp) -> str:
    """The graph under a node as text that `read` understands."""
    nodes = root.toposort()
    depth: dict[UOp, int] = {}
    for node in nodes:
        depth[node] = 1 + max([depth[source] for source in node.src], default=0)
    if depth[root] > MAX_NESTING:
        return listing(nodes)
    uses = Counter(source for node in nodes for source in node.src)
    return _nested(root, "", {node for node in nodes if uses[node] > 1}, {})


def _nested(node: UOp, indent: str, shared: set[UOp], names: DeepNames) -> str:
    if node in names:
        return f"{indent} {names[node]}"
    name = ""
    if node in shared:
        names[node] = f"x{len(names)}"
        name = f"{names[node]}:="
    sources = [f"\n{_nested(source, indent + '  ', shared, names)}," for source in node.src]
    return f"{indent}{name}{_call(node, ''.join(sources))}"


def listing(nodes: Iterable[UOp]) -> str:
    """One line per node, in order. Sources that are not listed before are `...`."""
    names: DeepNames = {}
    lines = []
    for node in nodes:
        sources = [names.get(source, "...") for source in node.src]
        inside = ", ".join(sources) + ("," if len(sources) == 1 else "")
        names[node] = f"x{len(names)}"
        lines.append(f"{names[node]} = {_call(node, inside)}")
    return "\n".join(lines)


def _call(node: UOp, sources: str) -> str:
    return f"UOp({node.op!s}, {node.dtype!r}, arg={show_arg(node.arg)}, src=({sources}))"


def show_arg(arg: Any) -> str:
    """An argument as `read` understands it."""
    if isinstance(arg, Ops):
        return str(arg)
    if isinstance(arg, tuple) and type(arg) is tuple:
        inside = ", ".join([show_arg(item) for item in arg])
        return f"({inside},)" if len(arg) == 1 else f"({inside})"
    return repr(arg)


# ---------------------------------------------------------------------- reading

SPACES: dict[str, Any] = {"Ops": Ops, "AxisKind": AxisKind, "dtypes": dtypes}
NUMBERS = {"inf": math.inf, "nan": math.nan}


def read(text: str) -> UOp:
    """The node that `show` printed. Nothing in the text is executed.

    >>> node = read("UOp(Ops.CONST, dtypes.float, arg=1.0, src=())")
    >>> node is UOp(Ops.CONST, dtypes.float, (), 1.0)
    True
    """
    if f"UOp({Ops.BUFFER!s}," in text:
        raise FormatError(
            "a BUFFER stands for device memory, which text does not hold",
            "replace BUFFERs by PARAMs to write a graph down",
        )
    try:
        statements = ast.parse(text.strip()).body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise FormatError(f"this is not a printed UOp: {error}") from None
    names: dict[str, UOp] = {}
    found: Any = None
    for statement in statements:
        found = _read_statement(statement, names)
    if not isinstance(found, UOp):
        raise FormatError("this is not a printed UOp: there is no node in it")
    return found


def _read_statement(statement: ast.stmt, names: dict[str, UOp]) -> Any:
    if isinstance(statement, ast.Expr):
        return _value(statement.value, names)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        found = _value(statement.value, names)
        names[statement.targets[0].id] = found
        return found
    raise _unreadable(statement)


def _value(tree: ast.expr, names: dict[str, UOp]) -> Any:
    match tree:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return tree.value
        case ast.Tuple():
            return tuple([_value(item, names) for item in tree.elts])
        case ast.UnaryOp(op=ast.USub()):
            return _negative(_value(tree.operand, names), tree)
        case ast.NamedExpr(target=ast.Name(id=name)):
            names[name] = _value(tree.value, names)
            return names[name]
        case ast.Name(id=name) if name in names or name in NUMBERS:
            return names[name] if name in names else NUMBERS[name]
        case ast.Attribute(value=ast.Name(id=space)) if space in SPACES:
            return _member(SPACES[space], tree)
        case ast.Call():
            return _called(tree, names)
    raise _unreadable(tree)


def _negative(number: Any, tree: ast.AST) -> Any:
    if type(number) not in (int, float):
        raise _unreadable(tree)
    return -number


def _member(space: Any, tree: ast.Attribute) -> Any:
    found = getattr(space, tree.attr, None)
    if not isinstance(found, (Ops, AxisKind, DType)):
        raise _unreadable(tree)
    return found


def _called(tree: ast.Call, names: dict[str, UOp]) -> Any:
    args = [_value(arg, names) for arg in tree.args]
    # Sources are read after arg, as they stand in the text, so names are known in time.
    fields = {str(keyword.arg): _value(keyword.value, names) for keyword in tree.keywords}
    match tree.func:
        case ast.Name(id="UOp"):
            return _node(tree, *args, **fields)
        case ast.Name(id="Param"):
            return _construct(Param, tree, args, fields)
        case ast.Attribute(attr="vec", value=ast.Attribute() as scalar):
            dtype = _value(scalar, names)
            if isinstance(dtype, DType) and len(args) == 1 and type(args[0]) is int:
                return dtype.vec(args[0])
    raise _unreadable(tree)


def _node(tree: ast.Call, *args: Any, **fields: Any) -> UOp:
    values = dict(zip(("op", "dtype", "src", "arg"), args, strict=False)) | fields
    op, src = values.get("op"), values.get("src", ())
    fits = isinstance(op, Ops) and isinstance(values.get("dtype", dtypes.void), DType)
    if not fits or not isinstance(src, tuple) or not all(isinstance(one, UOp) for one in src):
        raise _unreadable(tree)
    node = _construct(UOp, tree, [], values)
    assert isinstance(node, UOp)
    return node


def _construct(kind: type, tree: ast.Call, args: list[Any], fields: dict[str, Any]) -> Any:
    try:
        return kind(*args, **fields)
    except (TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"this does not make a {kind.__name__}: {error}") from None


def _unreadable(tree: ast.AST) -> FormatError:
    text = ast.unparse(tree)
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return FormatError(f"this is not part of a printed UOp: {short}")
