"""Tensor: the families of methods assembled, construction, copies, and access to values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, cast

from glassgrad.base.dtype import ConstType, DTypeLike, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.symbolic import SymbolicInt
from glassgrad.ir.uop import UOp
from glassgrad.memory.allocator import is_host
from glassgrad.memory.view import C_TYPES, View
from glassgrad.tensor.assignment import Assignment
from glassgrad.tensor.autograd.backward import Autograd
from glassgrad.tensor.compat.in_place_methods import InPlaceMethods
from glassgrad.tensor.compat.legacy_aliases import LegacyAliases
from glassgrad.tensor.compat.torch_aliases import TorchAliases
from glassgrad.tensor.copies import copy_of, pickled
from glassgrad.tensor.core import TensorCore, copy_to_device, device_of
from glassgrad.tensor.data import file_node, node_from_data
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.interop import Interop
from glassgrad.tensor.lazy.buffer_versions import current_buffer
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute, uncomputed_nodes
from glassgrad.tensor.lazy.lending import lend_memory
from glassgrad.tensor.lazy.realize import realize, realized_view
from glassgrad.tensor.ops.activations import Activations
from glassgrad.tensor.ops.arrangement import Arrangement
from glassgrad.tensor.ops.attention import Attention
from glassgrad.tensor.ops.bitcasts import Bitcasts
from glassgrad.tensor.ops.concat import Concatenation
from glassgrad.tensor.ops.contraction import Contraction
from glassgrad.tensor.ops.creation import Creation
from glassgrad.tensor.ops.einsum import Einsum
from glassgrad.tensor.ops.elementwise import Casts, Elementwise
from glassgrad.tensor.ops.functions import MathFunctions
from glassgrad.tensor.ops.indexing import Indexing
from glassgrad.tensor.ops.interpolation import Interpolation
from glassgrad.tensor.ops.inverse import InverseFunctions
from glassgrad.tensor.ops.linear_algebra import LinearAlgebra
from glassgrad.tensor.ops.losses import Losses
from glassgrad.tensor.ops.movement import Movement
from glassgrad.tensor.ops.normalization import Normalization
from glassgrad.tensor.ops.operators import Operators
from glassgrad.tensor.ops.pooling import Pooling
from glassgrad.tensor.ops.random import Random
from glassgrad.tensor.ops.reductions import Reductions
from glassgrad.tensor.ops.sampling import Sampling
from glassgrad.tensor.ops.scan import Scan
from glassgrad.tensor.ops.scatter import Scatter
from glassgrad.tensor.ops.sorting import Sorting
from glassgrad.tensor.record import cast_to, dtype_of

if TYPE_CHECKING:
    import numpy

BUFFER, CONST, DETACH = Ops.BUFFER, Ops.CONST, Ops.DETACH


class Tensor(
    Creation,
    Random,
    Assignment,
    Movement,
    Concatenation,
    Indexing,
    Arrangement,
    Casts,
    Bitcasts,
    Operators,
    Elementwise,
    MathFunctions,
    InverseFunctions,
    Activations,
    Reductions,
    Scan,
    Sorting,
    Scatter,
    Sampling,
    Contraction,
    Einsum,
    LinearAlgebra,
    Attention,
    Pooling,
    Interpolation,
    Normalization,
    Losses,
    Autograd,
    Interop,
    InPlaceMethods,
    TorchAliases,
    LegacyAliases,
    TensorCore,
):
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
            uop = uop if device is None else copy_to_device(uop, canonical_device(device))
        elif isinstance(data, (list, tuple)) and any(
            isinstance(item, (Tensor, SymbolicInt)) for item in data
        ):
            uop = Tensor.stack(*[Tensor._from_uop(_item(item)) for item in data]).uop
            uop = uop if wanted is None else cast_to(uop, wanted)
        elif isinstance(data, PathLike):
            uop = file_node(data, wanted)
            uop = uop if device is None else copy_to_device(uop, canonical_device(device))
        else:
            uop = node_from_data(data, wanted, canonical_device(device))
        self._init_fields(uop, is_param=requires_grad is not False)
        self._requires_grad = requires_grad

    # ------------------------------------------------------------------ copies

    def clone(self, device: str | None = None) -> Self:
        """A copy in memory of its own.

        >>> Tensor([1, 2]).clone().tolist()
        [1, 2]
        """
        made = self.contiguous() if device is None else self.to(device).contiguous()
        made.is_param = self.is_param
        made._requires_grad = None if self._requires_grad else self._requires_grad
        return made

    def to(self, device: str | None) -> Self:
        """This tensor on a device.

        >>> Tensor([1, 2]).to("CPU").device
        'CPU'
        """
        return self._wrap(copy_to_device(self.uop, canonical_device(device)))

    def to_(self, device: str | None) -> Self:
        """Move this tensor to a device.

        >>> Tensor([1, 2]).to_("CPU").device
        'CPU'
        """
        return self.replace(self.to(device))

    # ------------------------------------------------------------------ access to values

    def realize(self, *lst: Tensor, do_update_stats: bool = True) -> Self:
        """Compute this tensor, and others with it, now.

        Gradients flow through realized values as through lazy ones; detach() stops them.

        >>> (Tensor([1, 2]) + 1).realize().tolist()
        [2, 3]
        """
        realize(self._with_others(lst))
        return self

    def _with_others(self, others: tuple[Any, ...]) -> list[Tensor]:
        return [self, *(self._as_tensor(other, "what is computed") for other in others)]

    def schedule(self, *lst: Tensor) -> Any:
        """The kernels that realize() would run, in order. Nothing runs.

        >>> len((Tensor.ones(4, 4) @ Tensor.ones(4, 4) + 1).schedule().kernels)
        1
        """
        from glassgrad.engine.device_choice import plan_device as machine_of
        from glassgrad.schedule import schedule

        roots, *_ = collect_values(
            [tensor.uop for tensor in self._with_others(lst) if current_buffer(tensor.uop) is None]
        )
        values = graph_to_compute(roots)
        leaves = [node for node in uncomputed_nodes(values) if node.op is BUFFER]
        return schedule(values, machine_of(leaves, None).target)

    def _row_major(self, find: Callable[[TensorCore], View] = realized_view) -> View:
        """Host memory that holds the values in row-major order."""
        view = find(self)
        if view.is_contiguous and is_host(view.device):
            return view
        return self.to("CPU").contiguous()._row_major()

    def data(self) -> memoryview:
        """The values as a memoryview that shares this tensor's memory.

        >>> Tensor([1.5, 2.5]).data().tolist()
        [1.5, 2.5]
        """
        return self._row_major(lend_memory).memoryview()

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The values as a NumPy array that shares this tensor's memory; for a view, a copy.

        >>> Tensor([1.5, 2.5]).numpy()
        array([1.5, 2.5], dtype=float32)
        """
        if self._view_group is not None and self._view_steps:
            return self._row_major().numpy().copy()
        return self._row_major(lend_memory).numpy()

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
        """The value of a tensor with exactly one element.

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
        if self.uop.dtype.format in C_TYPES and is_host((view := realized_view(self)).device):
            return view.first()
        return self.reshape(()).tolist()

    def _known(self) -> ConstType | None:
        """The value of a constant, if no rounding could change it."""
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

    if not TYPE_CHECKING:  # else type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """The error for an attribute that does not exist, with a hint for names of other
            libraries.
            """
            # Imported only for the error
            from glassgrad.tensor.compat.attribute_hints import suggestion

            found = suggestion(type(self), name)
            words = f"'{type(self).__name__}' object has no attribute {name!r}"
            hint = f"; use {found}" if found else ""
            raise AttributeError(f"{words}{hint}", name=name, obj=self)

    def __index__(self) -> int:
        # Not for shape (1,): bytes(x) would be x[0] zero bytes instead of that one byte.
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
        grad = None if self.grad is None else _node_summary(self.grad.uop)
        return f"<Tensor {_node_summary(self.uop)} on {self.device} with grad {grad}>"

    def _repr_html_(self) -> str:
        from glassgrad.tensor.display import html  # imported only in notebooks

        return html(self)


def _item(item: Any) -> UOp:
    return item.uop if isinstance(item, Tensor) else Tensor(item).uop


def _node_summary(uop: UOp) -> str:
    """A node on one line: device, shape, dtype, op and its memory, if any."""
    held = current_buffer(uop)
    memory = None
    if held is not None:
        view = held.arg
        memory = (
            f"<buf real:{view.storage.is_allocated()} device:{view.device} size:{view.numel} "
            f"dtype:{view.dtype} offset:{view.offset}>"
        )
    return f"<UOp {device_of(uop)} {uop.shape} {uop.dtype.alias} ({uop.op!r}, {memory})>"
