"""SymbolicInt arguments of methods: which methods accept them, and checks of their slices."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from glassgrad.base.errors import AxisError, CaptureError, ShapeError
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.engine.plan.size_checks import check_slice
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import Size
from glassgrad.ir.symbolic import SymbolicInt, internal
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.record import expanded, record, whole_number

METHOD_NAMES = {
    "_padded_by_mode": "pad",
    "_with_rows": "writing rows",
}
P = ParamSpec("P")
R = TypeVar("R")


def is_symbolic(*values: Any) -> bool:
    """True if one of the values is known only at launch."""
    return Sizes.exist and any(isinstance(value, (Size, SymbolicInt)) for value in values)


def require_concrete(size: Any, what: str) -> Any:
    """A number that the structure of the graph depends on; a SymbolicInt raises an error."""
    if is_symbolic(size):
        raise ShapeError(
            f"{what} cannot depend on {size}, which is known only at launch",
            hint=f"int({size}) is its value now, but a captured function cannot read that",
        )
    return size


def checked_slice(start: Any, stop: Any, size: Any, axis: int) -> tuple[int, int]:
    """The bounds of a slice, at least one of which is known only at launch."""
    start, stop = (internal(whole_number(end, "a bound of a slice")) for end in (start, stop))
    check_slice(start, stop, internal(size), axis)
    return start, stop


def slice_at_launch(part: slice, size: Any, axis: int) -> tuple[int, int, int]:
    """The bounds of a slice that depend on variables: 0 <= start <= stop <= size, with step 1."""
    size = internal(size)
    start = 0 if part.start is None else internal(part.start)
    stop = size if part.stop is None else internal(part.stop)
    text = f"{part.start}:{part.stop}:{part.step}" if part.step else f"{part.start}:{part.stop}"
    if part.step == -1 and part.start is None and part.stop is None:
        return 0, size, -1
    if part.step not in (None, 1):
        raise AxisError(
            f"cannot slice axis {axis} by {text}",
            hint="a slice that is known only at launch has no step",
        )
    for end in (start, stop):
        if isinstance(end, bool) or not hasattr(end, "__index__"):
            raise AxisError(
                f"cannot slice axis {axis} by {text}", hint="bounds of a slice are whole numbers"
            )
    start, stop = (_from_start(end, size) for end in (start, stop))
    check_slice(start, stop, size, axis)
    return start, stop, 1


def index_at_launch(at: Any, size: Any, axis: int) -> int:
    """An index that depends on variables, or an index into an axis whose size does."""
    size = internal(size)
    start = _from_start(internal(at), size)
    check_slice(start, start + 1, size, axis, is_index=True)
    return start


def _from_start(end: int, size: int) -> int:
    """A bound counted from the start of the axis; negative ones count from its end."""
    is_negative = end.vmax < 0 if isinstance(end, Size) else end < 0
    return end + size if is_negative else end


def with_concrete_arguments(method: Callable[P, R]) -> Callable[P, R]:
    """Decorator for methods whose graph depends on the values of sizes.

    Outside of captures, SymbolicInts are replaced by their values and symbolic tensors are realized
    first. A captured function, whose replays have other values, may call the method only with
    concrete sizes.
    """

    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        if not Sizes.are_shown:
            return method(*args, **options)
        found = [value for value in (*args, *options.values()) if _is_symbolic(value)]
        if found and active_recorder() is not None:
            try:
                return method(*args, **options)
            except (ShapeError, CaptureError, TypeError, AttributeError) as error:
                raise _symbolic_size_error(method.__name__, found[0]) from error
        if found:
            args = tuple([_concrete(value) for value in args])
            options = {name: _concrete(value) for name, value in options.items()}
        return method(*args, **options)

    return cast(Callable[P, R], call)


def with_concrete_sizes(name: str, given: Any) -> Any:
    """Arguments with concrete sizes, for a method whose graph depends on their values."""
    if active_recorder() is not None:
        raise _symbolic_size_error(name, given[0] if isinstance(given, tuple) else given)
    return _concrete(given)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, TensorCore):
        return is_symbolic(*value.uop.shape)
    if isinstance(value, (tuple, list)):
        return any(map(_is_symbolic, value))
    return isinstance(value, (Size, SymbolicInt))


def _symbolic_size_error(name: str, value: Any) -> CaptureError:
    what = f"a tensor of shape {value.shape}" if isinstance(value, TensorCore) else value
    method = METHOD_NAMES.get(name, name)
    return CaptureError(
        f"a captured function cannot call {method} of {what}, which is known only at launch",
        hint="pad to the largest size, or call it outside of the captured function",
    )


def refuse_in_captures(name: str, shape: Any) -> None:
    """Raise an error in captures: a replay would draw the number of random numbers of the capture,
    not that of its own shape.
    """
    if active_recorder() is not None and is_symbolic(*shape):
        raise _symbolic_size_error(name, tuple(shape))


def _concrete(value: Any) -> Any:
    """The same value with its sizes as numbers."""
    if isinstance(value, TensorCore) and is_symbolic(*value.uop.shape):
        return _realized_concrete(value)
    if isinstance(value, (tuple, list)):
        return type(value)([_concrete(part) for part in value])
    if isinstance(value, Size):
        return value.val
    return int(value) if isinstance(value, SymbolicInt) else value


def _realized_concrete(tensor: TensorCore) -> TensorCore:
    """The tensor in memory in its concrete shape; gradients flow on to the symbolic tensor."""
    node = tensor.uop
    held = tensor._wrap(record(Ops.DETACH, node.dtype, (node,))).realize()
    if node.dtype.kind != "float":
        return held
    return tensor._wrap(
        record(Ops.CUSTOM, node.dtype, (held.uop, node), concrete_to_symbolic_gradient)
    )


def concrete_to_symbolic_gradient(node: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
    """The gradient for a symbolic shape: padded to the largest shape and cut to the symbolic
    one.
    """
    found, source = node.src
    room = [(0, int(size) - n) for size, n in zip(source.shape, found.shape, strict=True)]
    wide = UOp(Ops.PAD, g.dtype, (expanded(g, found.shape),), tuple(room))
    return {source: record(Ops.SHRINK, g.dtype, (wide,), tuple((0, n) for n in source.shape))}
