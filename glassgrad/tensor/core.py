"""TensorCore: the node, the gradient and the flags that every tensor has."""

from __future__ import annotations

from math import prod
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, cast

from glassgrad.base.config import NO_GRAD
from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.ir.symbolic import SymbolicInt, shown
from glassgrad.ir.uop import UOp
from glassgrad.ir.window import file_window
from glassgrad.memory.allocator import is_file
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.lazy.unrealized import UNREALIZED, IdentityRef, mark_parameter
from glassgrad.tensor.lazy.views import DETACHED, Step, Steps, ViewGroup
from glassgrad.tensor.modes import Modes
from glassgrad.tensor.record import (
    SCALARS,
    axis_of,
    cast_to,
    promote_pair,
    record,
    scalar,
    weak_dtype,
)

if TYPE_CHECKING:
    from glassgrad.tensor.interface import TensorInterface
else:
    TensorInterface = object

BUFFER, COPY, CONST, DETACH = Ops.BUFFER, Ops.COPY, Ops.CONST, Ops.DETACH
LEAF_CONSTANTS = frozenset((CONST, Ops.IOTA, Ops.VARIABLE))
GRADIENT_STOPS = frozenset((BUFFER, CONST, DETACH))  # gradients stop here


class TensorRef(IdentityRef):
    """A weak reference to a tensor that knows which thread made it."""

    __slots__ = ("thread",)
    thread: int


# Every live tensor, oldest first. An in-place write must find the lazy tensors that still read the
# old contents. The order makes every run compute the same list of tensors together.
LIVE_TENSORS: dict[TensorRef, None] = {}
_new = object.__new__


def forget_tensor(held: TensorRef) -> None:
    """Callback of a tensor reference: the tensor was freed."""
    LIVE_TENSORS.pop(held, None)
    UNREALIZED.pop(held, None)


def live_tensors() -> list[TensorCore]:
    """Every tensor that is still referenced, oldest first."""
    return [tensor for held in list(LIVE_TENSORS) if (tensor := held()) is not None]


def live_holders() -> list[TensorCore | ViewGroup]:
    """Everything whose node must not lose its value: live tensors and their view groups."""
    tensors = live_tensors()
    wholes = dict.fromkeys([t._view_group for t in tensors if t._view_group is not None])
    return [*tensors, *wholes]


class TensorCore(TensorInterface, metaclass=Modes):
    """A node of the graph with its gradient, its flags and the facts that users ask for.

    `is_param` says whether `backward()` leaves a gradient here. It is true for tensors made from
    data or by a creation function; `is_param_()` sets it for results of operations.
    `_requires_grad` is what the user said: True where a gradient was asked for (if any tensor has
    it, only such tensors get gradients), False after requires_grad=False, detach() or NO_GRAD, and
    None otherwise.
    """

    __slots__ = (
        "__weakref__",
        "_is_param",
        "_requires_grad",
        "_share_token",
        "_view_group",
        "_view_steps",
        "grad",
        "uop",
    )

    uop: UOp
    grad: Self | None
    _is_param: bool
    _requires_grad: bool | None
    _view_group: ViewGroup | None  # the tensors that alias this one; lazy/views.py
    _view_steps: Steps  # from the base value of the group to this view
    _share_token: object | None  # equals `storage.holder` if this tensor may write to shared memory

    def _init_fields(self, uop: UOp, is_param: bool) -> None:
        self.uop = uop
        self.grad = None
        self._is_param = is_param
        self._requires_grad = self._view_group = self._share_token = None
        held = TensorRef(self, forget_tensor)
        held.thread = get_ident()
        LIVE_TENSORS[held] = None
        if uop.op is not BUFFER:
            UNREALIZED[held] = None
        if is_param:
            mark_parameter(self)

    def _wrap(self, uop: UOp) -> Self:
        """A tensor for a node that an operation on this tensor made."""
        kind = type(self)
        made = kind._from_uop(uop) if NO_GRAD.was_changed else kind._wrap_raw(uop)
        if self._requires_grad is False and _depends_only_on(uop, self.uop):
            made._requires_grad = False
        return made

    def _as_view(self, uop: UOp, *steps: Step) -> Self:
        """A view of this tensor: `uop` is what the movement `steps` give for this tensor's node.

        The caller holds the graph lock (`exclusive`) from before it reads this tensor's node.
        Otherwise a write by another thread in between would leave a view of the old contents.
        """
        made = self._wrap(uop)
        whole = self._view_group
        if whole is None:
            whole = ViewGroup(self)
        if made.uop is not uop:
            steps += (DETACHED,)
        whole.join(made, self._view_steps + steps)
        made._share_token = self._share_token
        return made

    @classmethod
    def _from_uop(cls, uop: UOp, is_param: bool = False) -> Self:
        if NO_GRAD.value and not is_param and uop.op not in GRADIENT_STOPS:
            uop = record(DETACH, uop.dtype, (uop,))
        made = object.__new__(cls)
        made._init_fields(uop, is_param)
        if NO_GRAD.value and not is_param:
            made._requires_grad = False
        return made

    @classmethod
    def _wrap_raw(cls, uop: UOp) -> Self:
        """A tensor for a node, without the NO_GRAD check of `_from_uop`."""
        made = _new(cls)
        made.uop = uop
        made.grad = None
        made._is_param = False
        made._requires_grad = made._view_group = made._share_token = None
        held = TensorRef(made, forget_tensor)
        held.thread = get_ident()
        LIVE_TENSORS[held] = None
        if uop.op is not BUFFER:
            UNREALIZED[held] = None
        return made

    @classmethod
    def _leaf(cls, uop: UOp, requires_grad: bool | None) -> Self:
        """A tensor that is no result of an operation on other tensors."""
        made = cls._from_uop(uop, requires_grad is not False)
        made._requires_grad = requires_grad
        return made

    @property
    def is_param(self) -> bool:
        """True if backward() leaves a gradient here."""
        return self._is_param

    @is_param.setter
    def is_param(self, is_param: bool) -> None:
        self._is_param = is_param
        if is_param:
            mark_parameter(self)

    # ------------------------------------------------------------------ facts

    @property
    def shape(self) -> Shape:
        shape = self.uop.shape
        return shown(shape) if Sizes.are_shown else shape

    @property
    def dtype(self) -> DType:
        return self.uop.dtype

    @property
    def ndim(self) -> int:
        return len(self.uop.shape)

    @property
    def device(self) -> str:
        """Where the value is or will be.

        >>> Tensor([1], device="cpu").device
        'CPU'
        """
        return device_of(self.uop)

    def numel(self) -> int:
        """The number of elements.

        >>> Tensor([[1, 2, 3]]).numel()
        3
        """
        return prod(self.shape)

    def nbytes(self) -> int:
        """The size of all elements in bytes.

        >>> Tensor([[1, 2, 3]]).nbytes()
        12
        """
        return prod(self.shape) * self.uop.dtype.itemsize

    def element_size(self) -> int:
        """The size of one element in bytes.

        >>> Tensor([1.5]).element_size()
        4
        """
        return self.uop.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis.

        >>> Tensor([[1, 2, 3]]).size(1)
        3
        """
        return self.shape if dim is None else self.shape[axis_of(dim, self.ndim)]

    def dim(self) -> int:
        """The number of axes.

        >>> Tensor([[1, 2, 3]]).dim()
        2
        """
        return len(self.uop.shape)

    # ------------------------------------------------------------------ operands

    def _promoted_operands(self, other: Any, what: str) -> tuple[UOp, UOp]:
        """This node and another operand in one dtype; a Python number takes this tensor's dtype if
        it can.
        """
        mine = self.uop
        if isinstance(other, TensorCore):
            return promote_pair(mine, other.uop)
        if not isinstance(other, (int, float)):
            other = self._convert_foreign(other, what)
            if isinstance(other, TensorCore):
                return promote_pair(mine, other.uop)
        dtype = weak_dtype(other, mine.dtype)
        return cast_to(mine, dtype), scalar(other, dtype)

    def _convert_foreign(self, other: Any, what: str) -> Any:
        """NumPy scalars become Python numbers, NumPy arrays become tensors."""
        if isinstance(other, SymbolicInt):
            return other
        if getattr(other, "shape", None) == () and hasattr(other, "item"):
            return other.item()
        if hasattr(other, "__array_interface__"):
            return type(self)(other)
        raise DTypeError(
            f"cannot {what} a tensor and {_type_name(other)}",
            hint="use a Tensor, a NumPy array or a Python number",
        )

    def _operand(self, other: Any, what: str) -> UOp:
        """The node of another operand as it is; a Python number becomes a constant of its own
        dtype.
        """
        if isinstance(other, TensorCore):
            return other.uop
        if not isinstance(other, (int, float)):
            other = self._convert_foreign(other, what)
            if isinstance(other, TensorCore):
                return other.uop
        if isinstance(other, SymbolicInt):
            return scalar(other, dtypes.default_int)
        return UOp(CONST, dtypes.from_py(other), (), other)

    def _as_tensor(self, value: Any, what: str) -> Self:
        """An argument that must be a tensor; arrays, lists and numbers are converted."""
        if isinstance(value, TensorCore):
            return cast(Self, value)
        if isinstance(value, (list, tuple, *SCALARS)) or hasattr(value, "__array_interface__"):
            return type(self)(value)
        raise DTypeError(f"{what} must be a tensor, not {_type_name(value)}")

    def const_like(self, b: ConstType, dtype: DType | None = None) -> Self:
        """A single number in this tensor's dtype, or in `dtype`.

        >>> Tensor([1.5]).const_like(2).item()
        2.0
        """
        return self._wrap(scalar(b, self.uop.dtype if dtype is None else dtype))


def _depends_only_on(uop: UOp, source: UOp) -> bool:
    """True if a value is computed from the source and constants alone."""
    stack, seen = [uop], {source}
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if not node.src and node.op not in LEAF_CONSTANTS:
                return False
            stack.extend(node.src)
    return True


def _type_name(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def device_of(root: UOp) -> str:
    """The device of the first buffer or copy under a node; the default device for constants.

    A window of a file is on the file's device; what is computed from it is not.
    """
    part = file_window(root)
    if part is not None:
        return part.device
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        found = _own_device(node)
        if found is None:
            stack.extend(reversed(node.src))
        elif node is root or not is_file(found):
            return found
    return canonical_device(None)


def _own_device(node: UOp) -> str | None:
    if node.op is COPY:
        return cast(str, node.arg)
    held = node if node.op is BUFFER else node.realized
    return None if held is None else cast(str, held.arg.device)


def copy_to_device(uop: UOp, device: str) -> UOp:
    return uop if device_of(uop) == device else record(COPY, uop.dtype, (uop,), device)
