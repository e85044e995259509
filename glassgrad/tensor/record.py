"""One primitive of the user's program -> a UOp with checked shapes and the user's source line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, cast

from glassgrad.base.dtype import (
    ConstType,
    DType,
    DTypeLike,
    dtypes,
    promote,
    promote_float,
    to_dtype,
)
from glassgrad.base.errors import AxisError, DTypeError, ShapeError
from glassgrad.base.origin import Origin, here
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.ir.size import Bound, Size, bindings
from glassgrad.ir.symbolic import SymbolicInt, internal, shown_size
from glassgrad.ir.uop import UOp

# Enum member lookups cost 100 ns on Python 3.11, globals 5 ns.
CONST, CAST, RESHAPE, EXPAND = Ops.CONST, Ops.CAST, Ops.RESHAPE, Ops.EXPAND
BIND = Ops.BIND
SHAPED_OPS = frozenset((Ops.RESHAPE, Ops.EXPAND, Ops.SHRINK, Ops.PAD, Ops.IOTA))
BOOL = dtypes.bool
SIZES = (Size, SymbolicInt)
SCALARS = (int, float, SymbolicInt)  # operands that stand for a single number

OP_VERBS = {  # the verb of each op in error messages
    Ops.ADD: "add", Ops.SUB: "subtract", Ops.MUL: "multiply", Ops.FDIV: "divide",
    Ops.FLOORDIV: "floor-divide", Ops.FLOORMOD: "take the remainder of", Ops.POW: "raise",
    Ops.MAX: "take the maximum of", Ops.MIN: "take the minimum of", Ops.CMPLT: "compare",
    Ops.CMPEQ: "compare", Ops.CMPNE: "compare", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
    Ops.SHL: "shift", Ops.SHR: "shift", Ops.WHERE: "select between", Ops.THREEFRY: "scramble",
}  # fmt: skip


def record(
    op: Ops, dtype: DType, src: tuple[UOp, ...], arg: Any = None, origin: Origin | None = None
) -> UOp:
    """The node of one operation; shapes of elementwise ops are checked here.

    Sizes that are known only at launch add the values of their variables as sources. Without an
    `origin`, the user's line is looked up.
    """
    if Sizes.exist and op in SHAPED_OPS:
        arg = internal(arg)
        src += bind_nodes(bindings(arg))
    try:
        uop = UOp(op, dtype, src, arg)
    except ValueError:
        raise shape_mismatch(OP_VERBS[op], *[source.shape for source in src]) from None
    if uop.origin is None:
        uop.origin = origin or here(2)
    return uop


def bind_nodes(values: Bound) -> tuple[UOp, ...]:
    """BIND nodes: variables with their values."""
    return tuple([UOp(BIND, found.dtype, (found,), value) for found, value in values.items()])


def mark_origin(root: UOp, origin: Origin | None = None) -> UOp:
    """Give an origin to all nodes under a root that have none: this one, or the user's line."""
    origin, stack = origin or here(), [root]
    while stack:
        node = stack.pop()
        if node.origin is None and node.src:
            node.origin = origin
            stack.extend(node.src)
    return root


def shape_mismatch(word: str, *shapes: Shape) -> ShapeError:
    """The error for shapes that do not broadcast."""
    wide = [shape for shape in shapes if shape]
    pairs = [(one, other) for i, one in enumerate(wide) for other in wide[i + 1 :]]
    for one, other in pairs:
        ndim = max(len(one), len(other))
        for back in range(1, min(len(one), len(other)) + 1):
            sizes = {one[-back], other[-back]}
            if len(sizes) == 2 and 1 not in sizes:
                found = f"axis {ndim - back} is {one[-back]} on one side and {other[-back]} on"
                hint = "axes must be equal, or one of them 1"
                if any(isinstance(size, Size) for size in sizes):
                    hint = "a size that is known only at launch equals only itself, or realize() it"
                return ShapeError(f"cannot {word} {one} and {other}: {found} the other", hint)
    raise AssertionError(f"{shapes} do broadcast")


# ---------------------------------------------------------------------- numbers and dtypes


def scalar(value: ConstType | SymbolicInt, dtype: DType) -> UOp:
    """A Python number as a constant of a dtype."""
    if isinstance(value, SIZES):
        return variable_value(cast(Size, internal(value)), dtype)
    # 0.0 and -0.0 are equal, so a cache cannot tell them apart.
    return _cached_scalar(value, dtype) if value else _scalar(value, dtype)


def variable_value(size: Size, dtype: DType) -> UOp:
    """The value that a size has at launch."""
    for end in (size.vmin, size.vmax):
        _check_range(end, dtype, f"{size}, which may be {end},")
    values = dict(zip(size.bound, bind_nodes(size.bound), strict=True))
    return record(CAST, dtype, (size.uop.substitute(values),))


def _scalar(value: ConstType, dtype: DType) -> UOp:
    _check_range(value, dtype, str(value))
    return UOp(CONST, dtype, (), value)


def _check_range(value: ConstType, dtype: DType, name: str) -> None:
    if dtype.kind in ("int", "uint") and not dtypes.min(dtype) <= value <= dtypes.max(dtype):
        raise DTypeError(
            f"{name} does not fit {dtype.name}", hint="cast the tensor to a wider dtype first"
        )


_cached_scalar = lru_cache(maxsize=1024, typed=True)(_scalar)


def number_dtype(value: Any) -> DType:
    """The default dtype of a Python number."""
    return dtypes.default_int if isinstance(value, SymbolicInt) else dtypes.from_py(value)


def weak_dtype(value: ConstType, dtype: DType) -> DType:
    """The common dtype of a tensor and a Python number: the number can only change the kind."""
    kind = dtype.kind
    if kind == "float" or type(value) is bool:
        return dtype
    if isinstance(value, float):
        return dtypes.default_float
    return dtypes.default_int if kind == "bool" else dtype


def cast_to(uop: UOp, dtype: DType) -> UOp:
    return uop if uop.dtype is dtype else record(CAST, dtype, (uop,))


def promote_pair(left: UOp, right: UOp) -> tuple[UOp, UOp]:
    """Both nodes in their common dtype."""
    if left.dtype is right.dtype:
        return left, right
    dtype = promote(left.dtype, right.dtype)
    return cast_to(left, dtype), cast_to(right, dtype)


def as_float(uop: UOp) -> UOp:
    """Floats as they are; ints and bools in the default float dtype."""
    return uop if uop.dtype.kind == "float" else cast_to(uop, promote_float(uop.dtype))


def dtype_of(like: DTypeLike) -> DType:
    if not isinstance(like, (DType, str)):
        raise DTypeError(f"{like!r} is not a dtype", hint='such as dtypes.float32 or "float32"')
    try:
        return to_dtype(like)
    except ValueError:
        names = ", ".join(dtype.name for dtype in dtypes.all)
        raise DTypeError(f"there is no dtype {like!r}", hint=f"one of {names}") from None


def require_kinds(uop: UOp, kinds: tuple[str, ...], what: str, hint: str | None = None) -> None:
    """Raise an error for dtypes that an operation is not defined for."""
    if uop.dtype.kind not in kinds:
        raise DTypeError(f"cannot {what} {uop.dtype.name}", hint)


# ---------------------------------------------------------------------- axes and shapes


def axis_of(axis: Any, ndim: int, what: str = "axis") -> int:
    """An axis as a number from 0 to ndim-1; negative ones count from the end."""
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise AxisError(f"{what} must be a whole number, not {axis!r}")
    number = axis.__index__()
    least = max(ndim, 1)  # a 0-d tensor takes axis 0 and -1, as everywhere
    if not -least <= number < least:
        words = f"a tensor of {ndim} axes" if ndim != 1 else "a tensor of 1 axis"
        raise AxisError(
            f"{what} {number} is out of range for {words}",
            hint=f"use {-least} to {least - 1}" if ndim else "this tensor is a single number",
        )
    return number + least if number < 0 else int(number)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """None (all axes), one axis or several, as sorted axes."""
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0:
        for one in axis if isinstance(axis, (tuple, list)) else (axis,):
            axis_of(one, 0)
        return ()
    if not isinstance(axis, (tuple, list)):
        return (axis_of(axis, ndim),)
    found = sorted(axis_of(one, ndim) for one in axis)
    if len(set(found)) != len(found):
        raise AxisError(f"axes {tuple(axis)} name one axis twice")
    return tuple(found)


def sizes_of(shape: Sequence[Any], what: str = "shape") -> tuple[int, ...]:
    """The sizes of `f(2, 3)` or `f((2, 3))`, as ints or SymbolicInts."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    for size in shape:
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise ShapeError(f"the {what} is made of whole numbers, not {size!r}")
    if Sizes.are_shown:
        return tuple([shown_size(n) if isinstance(n, SIZES) else n.__index__() for n in shape])
    return tuple([size.__index__() for size in shape])


def whole_number(value: Any, what: str, least: int = 0) -> int:
    """An integer argument of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ShapeError(f"{what} must be a whole number, not {value!r}")
    if isinstance(value, SIZES):
        return cast(int, _symbolic_whole_number(shown_size(internal(value)), what, least))
    number: int = value.__index__()
    if number < least:
        raise ShapeError(f"{what} must be at least {least}, not {number}")
    return number


def _symbolic_whole_number(value: Any, what: str, least: int) -> Any:
    """A SymbolicInt that is at least `least` for every value of its variables."""
    if value.vmin < least:
        raise ShapeError(
            f"{what} must be at least {least}, and {value} may be {value.vmin}",
            hint=f"declare the variable with a minimum of {least}" if value.vmax >= least else None,
        )
    return value


def missing_size(source: Shape, shape: Shape) -> int:
    """The size that -1 stands for. Symbolic sizes on both sides cancel."""
    left, right = list(source), [size for size in shape if size != -1]
    for size in list(right):
        if isinstance(size, Size) and size in left:
            left.remove(size)
            right.remove(size)
    rest = prod(right)
    return prod(left) // rest if rest else 0


def reshaped(uop: UOp, shape: Shape) -> UOp:
    """RESHAPE, or the node itself if the shape is the same."""
    shape = internal(shape)
    if uop.shape == shape:
        return uop
    return record(RESHAPE, uop.dtype, (uop,), shape)


def expanded(uop: UOp, shape: Shape) -> UOp:
    """The value broadcast to a shape."""
    shape = internal(shape)
    if uop.shape == shape:
        return uop
    full = reshaped(uop, (1,) * (len(shape) - len(uop.shape)) + uop.shape)
    return full if full.shape == shape else record(EXPAND, uop.dtype, (full,), shape)


def can_expand(shape: Shape, wanted: Shape) -> bool:
    """True if a value of this shape broadcasts to exactly the wanted shape."""
    shape, wanted = internal(shape), internal(wanted)
    if len(shape) > len(wanted):
        return False
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return all(size in (1, wide) for size, wide in pairs)
