"""Padding, concatenation and stacking."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Self, TypeVar

from glassgrad.base.dtype import ConstType, dtypes, promote
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Size
from glassgrad.ir.symbolic import SymbolicInt, internal, shown_size
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.movement import is_pair
from glassgrad.tensor.record import (
    axis_of,
    cast_to,
    expanded,
    mark_origin,
    record,
    scalar,
    whole_number,
)
from glassgrad.tensor.symbolic_sizes import is_symbolic, with_concrete_arguments

MAX_CONCAT_OPERANDS = 32  # operands of one kernel; each is a parameter and a branch of its code
CONCAT_GROUP = 16  # operands per group, where there are more
CONTIGUOUS = Ops.CONTIGUOUS
PAD_MODES = ("constant", "reflect", "replicate", "circular")
T = TypeVar("T", bound=TensorCore)


class Concatenation(TensorCore):
    """pad, pad_to, cat and stack."""

    __slots__ = ()

    def pad(self, padding: Any, mode: str = "constant", value: ConstType = 0.0) -> Self:
        """Padded: ((before, after), …) per axis, or a flat list from the last axis on.

        `mode` is "constant", "reflect" (mirrored at the edge), "replicate" (the edge repeated) or
        "circular" (from the other end).

        >>> Tensor.ones(2, 3).pad((1, 1)).shape, Tensor.ones(2, 3).pad(((1, 0), None)).shape
        ((2, 5), (3, 3))
        """
        pairs = _pairs(padding, self.ndim)
        if mode != "constant":
            return self._wrap(_padded_by_mode(self, pairs, mode).uop)
        moved = self._pad_zeros(pairs)
        if not is_symbolic(value) and value == 0:
            return moved
        inside = self._wrap(expanded(scalar(True, dtypes.bool), self.uop.shape))._pad_zeros(pairs)
        return inside.where(moved, value)

    def pad_to(self, *shape: Any, value: ConstType = 0) -> Self:
        """Padded at the end of each axis to this shape; None keeps an axis.

        >>> Tensor([[1, 2]]).pad_to(2, 3).tolist()
        [[1, 2, 0], [0, 0, 0]]
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if len(sizes) != self.ndim:
            raise ShapeError(f"pad_to of {self.shape} needs {self.ndim} sizes, not {len(sizes)}")
        grown = [
            (0, 0 if to is None else whole_number(to, "a size to pad to", least=n) - n)
            for n, to in zip(self.shape, sizes, strict=True)
        ]
        return self.pad(tuple(grown), value=value)

    def cat(self, *args: Self, dim: int = 0) -> Self:
        """Tensors concatenated along an axis.

        >>> Tensor([1, 2]).cat(Tensor([3])).tolist()
        [1, 2, 3]
        """
        tensors: list[Self] = _tensor_list(self, args)
        first, *others = tensors
        axis = axis_of(dim, first.ndim)
        if first.ndim == 0:
            raise ShapeError("cannot join tensors that have no axes", hint="stack() makes one")
        for tensor in others:
            rest = [
                (a, b)
                for i, (a, b) in enumerate(zip(tensor.uop.shape, first.uop.shape))
                if i != axis
            ]
            if tensor.ndim != first.ndim or any(a != b for a, b in rest):
                raise ShapeError(
                    f"cannot join {first.shape} and {tensor.shape} along axis {axis}",
                    hint="all other axes must be equal",
                )
        return _concatenated(tensors, axis)

    def stack(self, *args: Self, dim: int = 0) -> Self:
        """Tensors of one shape stacked along a new axis.

        >>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        tensors: list[Self] = _tensor_list(self, args)
        first, *others = tensors
        for tensor in others:
            if tensor.uop.shape != first.uop.shape:
                raise ShapeError(
                    f"cannot stack {first.shape} and {tensor.shape}", hint="shapes must be equal"
                )
        axis = axis_of(dim, first.ndim + 1)
        return first.unsqueeze(axis).cat(*[tensor.unsqueeze(axis) for tensor in others], dim=axis)


def _tensor_list(first: Any, others: tuple[Any, ...]) -> list[Any]:
    """The operands. `Tensor.cat([x, y])` means `x.cat(y)`, as in PyTorch."""
    is_list = isinstance(first, (list, tuple)) and first and not others
    tensors = list(first) if is_list else [first, *others]
    for tensor in tensors:
        if not isinstance(tensor, TensorCore):
            raise DTypeError(f"only tensors are joined, not {tensor!r}")
    return tensors


def _concatenated(tensors: list[T], axis: int) -> T:
    """Many tensors are concatenated in groups first: the groups share one kernel that runs many
    times.
    """
    dtype = promote(*{tensor.dtype for tensor in tensors})
    parts = [cast_to(tensor.uop, dtype) for tensor in tensors]
    while len(parts) > MAX_CONCAT_OPERANDS:
        groups = [parts[i : i + CONCAT_GROUP] for i in range(0, len(parts), CONCAT_GROUP)]
        parts = [UOp(CONTIGUOUS, dtype, (_select_parts(group, axis),)) for group in groups]
    return tensors[0]._wrap(mark_origin(_select_parts(parts, axis)))


def _select_parts(parts: list[UOp], axis: int) -> UOp:
    """Pad each part with zeros to the full size, and select the right one at each index.

    Adding them up would turn -0.0 into 0.0.
    """
    shape = parts[0].shape
    before, after = ((0, 0),) * axis, ((0, 0),) * (len(shape) - 1 - axis)
    ends = list(accumulate(part.shape[axis] for part in parts))
    total = ends[-1]
    line = record(Ops.IOTA, dtypes.int32, (), total)
    index = record(Ops.RESHAPE, dtypes.int32, (line,), (total, *(1,) * len(after)))
    found = [
        record(
            Ops.PAD, part.dtype, (part,), (*before, (end - part.shape[axis], total - end), *after)
        )
        for part, end in zip(parts, ends, strict=True)
        if part.shape[axis]
    ]
    ends = list(dict.fromkeys(ends))[-len(found) :]
    while len(found) > 1:  # merge neighbours pairwise: a tree of depth log2(n)
        pairs = zip(found[::2], found[1::2], ends[::2], strict=False)
        joined = [(index < scalar(end, dtypes.int32)).where(one, two) for one, two, end in pairs]
        found, ends = joined + found[len(joined) * 2 :], ends[1::2] + ends[len(joined) * 2 :]
    return found[0] if found else parts[0]


def _pairs(padding: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """One (before, after) per axis."""
    if isinstance(padding, (int, SymbolicInt)):
        padding = (padding, padding)
    kinds = (int, SymbolicInt)
    if isinstance(padding, (tuple, list)) and all(isinstance(width, kinds) for width in padding):
        flat = list(padding)
        if len(flat) % 2 or len(flat) > 2 * ndim:
            raise ShapeError(
                f"padding {tuple(padding)} does not fit {ndim} axes",
                hint="give (before, after) for each axis, the last axis first",
            )
        flat = [_width(width) for width in flat]
        found = [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)][::-1]
        return tuple([(0, 0)] * (ndim - len(found)) + found)
    is_row = isinstance(padding, (tuple, list)) and len(padding) == ndim
    if not is_row or not all(pair is None or is_pair(pair) for pair in padding):
        raise ShapeError(
            f"padding {padding!r} does not fit {ndim} axes", hint="give (before, after) for each"
        )
    return tuple((0, 0) if pair is None else (_width(pair[0]), _width(pair[1])) for pair in padding)


def _width(value: Any) -> int:
    """An int, or a size that is known only at launch."""
    value = internal(value)
    return value if isinstance(value, Size) else int(value)


@with_concrete_arguments
def _padded_by_mode(x: TensorCore, pairs: tuple[tuple[int, int], ...], mode: str) -> TensorCore:
    """Padding with values of the tensor, axis by axis, so that corners come from both axes."""
    if mode not in PAD_MODES:
        raise ValueError(f"mode is one of {', '.join(PAD_MODES)}, not {mode!r}")
    pairs = tuple([(shown_size(before), shown_size(after)) for before, after in pairs])
    x = x._pad_zeros(tuple((min(before, 0), min(after, 0)) for before, after in pairs))
    for axis, pair in enumerate(pairs):
        before, after = max(pair[0], 0), max(pair[1], 0)
        size = int(x.shape[axis])
        most = {"reflect": size - 1, "circular": size}.get(mode, max(before, after) * bool(size))
        if max(before, after) > most:
            raise ShapeError(
                f"cannot pad axis {axis} of size {size} by {(before, after)} in mode {mode!r}",
                hint=f"at most {most} on each side",
            )
        parts = [_padding_part(x, axis, mode, -before), x, _padding_part(x, axis, mode, after)]
        x = _concatenated([part for part in parts if part.shape[axis]], axis) if size else x
    return x


def _padding_part(x: TensorCore, axis: int, mode: str, width: int) -> TensorCore:
    """The padding before (width < 0) or after an axis."""
    size, count = int(x.shape[axis]), abs(width)
    pairs: list[tuple[int, int] | None] = [None] * x.ndim
    if mode == "replicate" and size:
        pairs[axis] = (0, 1) if width < 0 else (size - 1, size)
        shape = list(x.shape)
        shape[axis] = count
        return x.shrink(pairs).expand(shape)
    skip = int(mode == "reflect")
    is_first = (width < 0) == (mode == "reflect")
    pairs[axis] = (skip, skip + count) if is_first else (size - skip - count, size - skip)
    part = x.shrink(pairs)
    return part.flip(axis) if mode == "reflect" else part
