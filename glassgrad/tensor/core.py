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
CONSTANTS = frozenset((CONST, Ops.IOTA, Ops.VARIABLE))
ENDS = frozenset((BUFFER, CONST, DETACH))  # where no gradient flows on


class TensorRef(IdentityRef):
    """A weak reference that knows which thread made its tensor."""

    __slots__ = ("thread",)
    thread: int


# Assigning to a buffer must find the lazy tensors that still read what it held. In order of age:
# what is computed together is then the same list in every run.
LIVE_TENSORS: dict[TensorRef, None] = {}
_new = object.__new__


def forget_tensor(held: TensorRef) -> None:
    """A tensor is gone."""
    LIVE_TENSORS.pop(held, None)
    UNREALIZED.pop(held, None)


def live_tensors() -> list[TensorCore]:
    """Every tensor that somebody still holds."""
    return [tensor for held in list(LIVE_TENSORS) if (tensor := held()) is not None]


def live_holders() -> list[TensorCore | ViewGroup]:
    """Everything that holds a node whose value must not get lost: tensors, and what they share."""
    tensors = live_tensors()
    wholes = dict.fromkeys([t._view_group for t in tensors if t._view_group is not None])
    return [*tensors, *wholes]


class TensorCore(TensorInterface, metaclass=Modes):
    """A node of the graph with the facts that people ask for.

    `is_param` says whether `backward()` leaves a gradient here. It is true for tensors that were
    made from data or by a creation function; for results of operations `is_param_()` turns it on.
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
    _view_group: ViewGroup | None  # what it shares elements with others of; views.py
    _view_steps: Steps  # from there to here
    _share_token: object | None  # the same in all tensors that may write to memory which others see

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
        """The tensor of a node that an operation on this one made."""
        kind = type(self)
        made = kind._from_uop(uop) if NO_GRAD.is_touched else kind._wrap_raw(uop)
        if self._requires_grad is False and _depends_only_on(uop, self.uop):
            made._requires_grad = False
        return made

    def _as_view(self, uop: UOp, *steps: Step) -> Self:
        """The tensor of a node that shows elements of this one: these steps lead to it.

        Whoever calls this is exclusive from reading this tensor's node on: a write by another
        thread between the two would leave a view that shows the old contents.
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
        if NO_GRAD.value and not is_param and uop.op not in ENDS:
            uop = record(DETACH, uop.dtype, (uop,))
        made = object.__new__(cls)
        made._init_fields(uop, is_param)
        if NO_GRAD.value and not is_param:
            made._requires_grad = False
        return made

    @classmethod
    def _wrap_raw(cls, uop: UOp) -> Self:
        """The tensor of a node, where nobody asked for NO_GRAD."""
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
        """A tensor that no operation on others made."""
        made = cls._from_uop(uop, requires_grad is not False)
        made._requires_grad = requires_grad
        return made

    @property
    def is_param(self) -> bool:
        """Whether backward() leaves a gradient here."""
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
        """How many elements there are.

        >>> Tensor([[1, 2, 3]]).numel()
        3
        """
        return prod(self.shape)

    def nbytes(self) -> int:
        """How many bytes the elements take.

        >>> Tensor([[1, 2, 3]]).nbytes()
        12
        """
        return prod(self.shape) * self.uop.dtype.itemsize

    def element_size(self) -> int:
        """How many bytes one element takes.

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
        """How many axes there are.

        >>> Tensor([[1, 2, 3]]).dim()
        2
        """
        return len(self.uop.shape)

    # ------------------------------------------------------------------ operands

    def _pair(self, other: Any, what: str) -> tuple[UOp, UOp]:
        """This value and another in one dtype; Python numbers take this one's if they can."""
        mine = self.uop
        if isinstance(other, TensorCore):
            return promote_pair(mine, other.uop)
        if not isinstance(other, (int, float)):
            other = self._number(other, what)
            if isinstance(other, TensorCore):
                return promote_pair(mine, other.uop)
        dtype = weak_dtype(other, mine.dtype)
        return cast_to(mine, dtype), scalar(other, dtype)

    def _number(self, other: Any, what: str) -> Any:
        """NumPy scalars are Python numbers; NumPy arrays become tensors."""
        if isinstance(other, SymbolicInt):
            return other
        if getattr(other, "shape", None) == () and hasattr(other, "item"):
            return other.item()
        if hasattr(other, "__array_interface__"):
            return type(self)(other)
        raise DTypeError(
            f"cannot {what} a tensor and {_named(other)}",
            hint="use a Tensor, a NumPy array or a Python number",
        )

    def _operand(self, other: Any, what: str) -> UOp:
        """Another value alone, as it is; a Python number as a constant of its own dtype."""
        if isinstance(other, TensorCore):
            return other.uop
        if not isinstance(other, (int, float)):
            other = self._number(other, what)
            if isinstance(other, TensorCore):
                return other.uop
        if isinstance(other, SymbolicInt):
            return scalar(other, dtypes.default_int)
        return UOp(CONST, dtypes.from_py(other), (), other)

    def _given(self, value: Any, what: str) -> Self:
        """An argument that must be a tensor; arrays, lists and numbers become one."""
        if isinstance(value, TensorCore):
            return cast(Self, value)
        if isinstance(value, (list, tuple, *SCALARS)) or hasattr(value, "__array_interface__"):
            return type(self)(value)
        raise DTypeError(f"{what} must be a tensor, not {_named(value)}")

    def const_like(self, b: ConstType, dtype: DType | None = None) -> Self:
        """A single number of this tensor's dtype, or of another.

        >>> Tensor([1.5]).const_like(2).item()
        2.0
        """
        return self._wrap(scalar(b, self.uop.dtype if dtype is None else dtype))


def _depends_only_on(uop: UOp, source: UOp) -> bool:
    """Whether a value is computed from the source and constants alone."""
    stack, seen = [uop], {source}
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if not node.src and node.op not in CONSTANTS:
                return False
            stack.extend(node.src)
    return True


def _named(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def device_of(root: UOp) -> str:
    """The device of the first buffer or copy that is met; the default one for pure constants.

    A part of a file is in the file. What is computed from it is not.
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
