"""Tensor: the class that people write; here it is made, assigned to, realised and looked at."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, cast

from glassgrad.base.dtype import ConstType, DTypeLike, dtypes
from glassgrad.base.errors import AxisError, DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.symbolic import SymbolicInt
from glassgrad.ir.uop import UOp
from glassgrad.memory.allocator import is_host
from glassgrad.memory.view import C_TYPES, View
from glassgrad.tensor.compat.in_place_methods import InPlace
from glassgrad.tensor.copies import copy_of, pickled
from glassgrad.tensor.core import Core, copied, device_of
from glassgrad.tensor.data import file_node, node_of
from glassgrad.tensor.device_names import canonical
from glassgrad.tensor.interop import Border
from glassgrad.tensor.lazy.buffer_versions import current
from glassgrad.tensor.lazy.collect import collect, prepared, walk
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.in_place_writes import make_writable, write
from glassgrad.tensor.lazy.lending import lend
from glassgrad.tensor.lazy.realize import look, realize
from glassgrad.tensor.lazy.unrealized import hold
from glassgrad.tensor.ops.indexing import looked_up, plan_of, replaced
from glassgrad.tensor.record import SCALARS, can_expand, cast_to, dtype_of, expanded

if TYPE_CHECKING:
    import numpy

BUFFER, CONST, DETACH = Ops.BUFFER, Ops.CONST, Ops.DETACH


class Tensor(InPlace, Border):
    """A lazy array of numbers with gradients.

    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x).shape
    (2, 2)
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        wanted = None if dtype is None else dtype_of(dtype)
        if isinstance(data, Tensor):
            uop = data.uop if wanted is None else cast_to(data.uop, wanted)
            uop = uop if device is None else copied(uop, canonical(device))
        elif isinstance(data, (list, tuple)) and any(
            isinstance(item, (Tensor, SymbolicInt)) for item in data
        ):
            uop = Tensor.stack(*[Tensor._of(_item(item)) for item in data]).uop
            uop = uop if wanted is None else cast_to(uop, wanted)
        elif isinstance(data, PathLike):
            uop = file_node(data, wanted)
            uop = uop if device is None else copied(uop, canonical(device))
        else:
            uop = node_of(data, wanted, canonical(device))
        self._hold(uop, is_param=requires_grad is not False)
        self._is_asked = requires_grad

    # ------------------------------------------------------------------ writing

    def assign(self, x: Any) -> Self:
        """Write new contents. Tensors made before see the old ones, tensors made later the new.

        A slice or another part of a tensor in memory is written in that tensor.

        >>> x = Tensor([1, 2])
        >>> x.assign(x + 1).shape
        (2,)
        """
        value = self._value_to_write(x, self.uop.shape)
        if value is self.uop:
            return self
        write(self, value)
        return self

    def _value_to_write(self, x: Any, shape: tuple[int, ...]) -> UOp:
        """What is written, in the shape and dtype of the place."""
        if isinstance(x, Tensor) and x.uop.dtype is self.uop.dtype and x.uop.shape == shape:
            return x.uop
        if isinstance(x, (list, tuple)):
            x = Tensor(x, dtype=self.dtype)
        value = self._operand(x, "write")
        if isinstance(x, SCALARS):
            value = cast_to(self._pair(x, "write")[1], self.dtype)
        if value.dtype is not self.dtype:
            raise DTypeError(
                f"cannot write {value.dtype.name} into a tensor of {self.dtype.name}",
                hint=f"cast it first: .cast({self.dtype})",
            )
        if not can_expand(value.shape, shape):
            raise ShapeError(
                f"cannot write {value.shape} into a place of shape {shape}",
                hint="axes must be equal, or 1 in what is written",
            )
        return expanded(value, shape)

    @exclusive
    def __setitem__(self, indices: Any, value: Any) -> None:
        if isinstance(indices, Tensor) and indices.dtype is dtypes.bool and _is_number(value):
            self._fill(indices, value)
            return
        plan = plan_of(self._tensors(indices), self.uop.shape)
        make_writable(self)
        place = Tensor._handed(self.uop)._stepped(plan.steps)
        if plan.lookups:
            wanted = looked_up(place, plan).uop.shape
            if 0 in wanted or 0 in place.uop.shape:
                return
            new = Tensor._of(self._value_to_write(value, wanted))
            result = replaced(place, plan, new).uop
        else:
            result = self._value_to_write(value, place.uop.shape)
        del place  # it holds what is about to be overwritten
        write(self, result, plan.steps)

    def _fill(self, mask: Tensor, value: Any) -> None:
        """One number where a mask is true; how many places that are need not be known."""
        covered = self.uop.shape[: mask.ndim]
        if mask.uop.shape != covered or not mask.ndim:
            raise AxisError(f"a mask of shape {mask.shape} does not fit axes of shape {self.shape}")
        chosen = mask.reshape((*covered, *(1,) * (self.ndim - mask.ndim)))
        number = Tensor._of(self._value_to_write(value, ()))
        self[...] = chosen.where(number, self)

    @exclusive
    def replace(self, x: Tensor) -> Self:
        """Hold another tensor's value.

        >>> Tensor([1, 2]).replace(Tensor([3, 4])).tolist()
        [3, 4]
        """
        x = self._given(x, "what replaces a tensor")
        if x.uop.shape != self.uop.shape:
            raise ShapeError(f"cannot replace {self.shape} by {x.shape}")
        if self._whole is not None:
            self._whole.leave(self)
        hold(self, x.uop)
        return self

    def clone(self, device: str | None = None) -> Self:
        """A copy in memory of its own.

        >>> Tensor([1, 2]).clone().tolist()
        [1, 2]
        """
        made = self.contiguous() if device is None else self.to(device).contiguous()
        made.is_param = self.is_param
        made._is_asked = None if self._is_asked else self._is_asked
        return made

    def to(self, device: str | None) -> Self:
        """The same values on a device.

        >>> Tensor([1, 2]).to("CPU").device
        'CPU'
        """
        return self._made(copied(self.uop, canonical(device)))

    def to_(self, device: str | None) -> Self:
        """Move this tensor to a device.

        >>> Tensor([1, 2]).to_("CPU").device
        'CPU'
        """
        return self.replace(cast(Any, self.to(device)))

    # ------------------------------------------------------------------ looking

    def realize(self, *lst: Tensor, do_update_stats: bool = True) -> Self:
        """Compute this tensor, and others with it, now.

        Gradients flow through computed values as through others; detach() ends them.

        >>> (Tensor([1, 2]) + 1).realize().tolist()
        [2, 3]
        """
        realize(self._with(lst))
        return self

    def _with(self, others: tuple[Any, ...]) -> list[Tensor]:
        return [self, *(self._given(other, "what is computed") for other in others)]

    def schedule(self, *lst: Tensor) -> Any:
        """The kernels that realize() would run, in order; nothing runs.

        >>> len((Tensor.ones(4, 4) @ Tensor.ones(4, 4) + 1).schedule().kernels)
        1
        """
        from glassgrad.engine.device_choice import device_of as machine_of
        from glassgrad.schedule import schedule

        roots, *_ = collect(
            [tensor.uop for tensor in self._with(lst) if current(tensor.uop) is None]
        )
        values = prepared(roots)
        leaves = [node for node in walk(values) if node.op is BUFFER]
        return schedule(values, machine_of(leaves, None).target)

    def _row_major(self, find: Callable[[Core], View] = look) -> View:
        """The memory that holds the values, row by row."""
        view = find(self)
        if view.is_contiguous and is_host(view.device):
            return view
        return self.to("CPU").contiguous()._row_major()

    def data(self) -> memoryview:
        """The values as a memoryview that shares this tensor's memory.

        >>> Tensor([1.5, 2.5]).data().tolist()
        [1.5, 2.5]
        """
        return self._row_major(lend).memoryview()

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The values as a NumPy array that shares this tensor's memory; of a view, a copy.

        >>> Tensor([1.5, 2.5]).numpy()
        array([1.5, 2.5], dtype=float32)
        """
        if self._whole is not None and self._steps:
            return self._row_major().numpy().copy()
        return self._row_major(lend).numpy()

    def tolist(self) -> Any:
        """The values as a Python number or nested lists.

        >>> Tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        known = self._known()
        if known is not None:
            return known
        x = self.cast(dtypes.float32) if self.dtype.format is None else self
        return x._row_major().tolist()

    def item(self) -> Any:
        """The value of a tensor that holds exactly one.

        >>> Tensor(2.5).item()
        2.5
        """
        if prod(self.uop.shape) != 1:
            raise ShapeError(
                f"item() needs exactly one element, but the shape is {self.shape}",
                hint="index it first, or use tolist()",
            )
        known = self._known()
        if known is not None:
            return known
        if self.uop.dtype.format in C_TYPES and is_host((view := look(self)).device):
            return view.first()
        return self.reshape(()).tolist()

    def _known(self) -> ConstType | None:
        """The number, if this is a constant whose value no rounding could change."""
        uop = self.uop
        while uop.op is DETACH:
            uop = uop.src[0]
        if uop.op is not CONST or (uop.dtype.kind == "float" and uop.dtype.bits < 64):
            return None
        return cast(ConstType, uop.arg)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> Any:
            """Called for names that are not there."""
            from glassgrad.tensor.compat.attribute_hints import instead  # few programs ask

            found = instead(type(self), name)
            words = f"'{type(self).__name__}' object has no attribute {name!r}"
            hint = f"; use {found}" if found else ""
            raise AttributeError(f"{words}{hint}", name=name, obj=self)

    def __index__(self) -> int:
        # Not of one element along an axis: bytes(x) would be so many zeros instead of that byte.
        if self.shape or self.dtype.kind not in ("int", "uint"):
            raise DTypeError(
                f"only a whole number without axes is an index, not {self.dtype.name} {self.shape}"
            )
        found: int = self.item()
        return found

    def __bool__(self) -> bool:
        raise DTypeError(
            "a tensor is neither true nor false",
            hint="use item() of a single value, or all() or any() first",
        )

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form else str(self)

    def __copy__(self) -> Self:
        return copy_of(self)

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        return copy_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickled(self)

    def __repr__(self) -> str:
        grad = None if self.grad is None else _short(self.grad.uop)
        return f"<Tensor {_short(self.uop)} on {self.device} with grad {grad}>"

    def _repr_html_(self) -> str:
        from glassgrad.tensor.display import html  # only notebooks need it

        return html(self)

    # ------------------------------------------------------------------ in-place operators
    # Exclusive as a whole: no other thread writes between the read and the write.

    @exclusive
    def __iadd__(self, x: Any) -> Self:
        return self.assign(self + x)

    @exclusive
    def __isub__(self, x: Any) -> Self:
        return self.assign(self - x)

    @exclusive
    def __imul__(self, x: Any) -> Self:
        return self.assign(self * x)

    @exclusive
    def __itruediv__(self, x: Any) -> Self:
        return self.assign(self / x)

    @exclusive
    def __ifloordiv__(self, x: Any) -> Self:
        return self.assign(self // x)

    @exclusive
    def __ipow__(self, x: Any) -> Self:
        return self.assign(self**x)

    @exclusive
    def __iand__(self, x: Any) -> Self:
        return self.assign(self & x)

    @exclusive
    def __ior__(self, x: Any) -> Self:
        return self.assign(self | x)

    @exclusive
    def __ixor__(self, x: Any) -> Self:
        return self.assign(self ^ x)

    @exclusive
    def __ilshift__(self, x: Any) -> Self:
        return self.assign(self << x)

    @exclusive
    def __irshift__(self, x: Any) -> Self:
        return self.assign(self >> x)

    @exclusive
    def __imatmul__(self, x: Any) -> Self:
        return self.assign(self @ x)


def _is_number(value: Any) -> bool:
    return isinstance(value, SCALARS) or (isinstance(value, Tensor) and not value.shape)


def _item(item: Any) -> UOp:
    return item.uop if isinstance(item, Tensor) else Tensor(item).uop


def _short(uop: UOp) -> str:
    """One node on one line: device, shape, dtype, op, and its memory if it has some."""
    held = current(uop)
    memory = None
    if held is not None:
        view = held.arg
        memory = (
            f"<buf real:{view.storage.is_allocated()} device:{view.device} size:{view.numel} "
            f"dtype:{view.dtype} offset:{view.offset}>"
        )
    return f"<UOp {device_of(uop)} {uop.shape} {uop.dtype.alias} ({uop.op!r}, {memory})>"
