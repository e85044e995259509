"""Tensor <-> other libraries without a copy: buffers, DLPack, Arrow, NumPy, raw pointers."""

from __future__ import annotations

from typing import Any, Self

from glassgrad.base.dtype import DTypeLike, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory import MemoryView, register
from glassgrad.memory import from_dlpack as memory_of_dlpack
from glassgrad.memory.allocator import is_host
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore, copy_to_device
from glassgrad.tensor.data import buffer_of
from glassgrad.tensor.device_names import canonical_device, host_device
from glassgrad.tensor.lazy.in_place_writes import finish_writes_to
from glassgrad.tensor.lazy.lending import claim_memory, lend_memory
from glassgrad.tensor.lazy.realize import realized_view
from glassgrad.tensor.record import dtype_of, sizes_of

BUFFER = Ops.BUFFER


class Interop(TensorCore):
    """from_memory, from_blob, from_dlpack, and the export protocols of other libraries."""

    __slots__ = ()

    @classmethod
    def from_memory(
        cls, obj: Any, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Self:
        """A tensor over the memory of any object that exports it. A dtype reinterprets the bytes.

        >>> raw = bytearray(8)
        >>> x = Tensor.from_memory(raw, dtype="int32")
        >>> raw[4] = 7
        >>> x.tolist()
        [0, 7]
        """
        wanted = None if dtype is None else dtype_of(dtype)
        uop = buffer_of(obj, canonical_device(device), wanted)
        return claim_memory(cls._from_uop(uop, is_param=True))

    @classmethod
    def from_blob(
        cls,
        ptr: Any,
        shape: Any,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        owner: object = None,
    ) -> Self:
        """A tensor over elements at an address, which must stay valid; `owner` is kept alive for
        that.

        >>> import ctypes
        >>> raw = (ctypes.c_float * 2)(1.5, 2.5)
        >>> Tensor.from_blob(ctypes.addressof(raw), (2,), owner=raw).tolist()
        [1.5, 2.5]
        """
        if isinstance(ptr, bool) or not isinstance(ptr, int) or ptr <= 0:
            raise DTypeError(f"an address is a positive number, not {ptr!r}")
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        device_name = canonical_device(device)
        view = View.from_pointer(ptr, sizes_of((shape,)), wanted, owner, host_device(device_name))
        finish_writes_to(view.storage)
        return claim_memory(
            cls._from_uop(copy_to_device(UOp(BUFFER, wanted, (), view), device_name), is_param=True)
        )

    @classmethod
    def from_dlpack(cls, x: Any, device: str | None = None) -> Self:
        """A tensor over the memory of a tensor of PyTorch, JAX, NumPy or another DLPack library.

        >>> import numpy
        >>> Tensor.from_dlpack(numpy.arange(3)).tolist()
        [0, 1, 2]
        """
        return cls.from_memory(memory_of_dlpack(x), device=device)

    # ------------------------------------------------------------------ exports

    def _shared(self) -> MemoryView:
        """The memory of this tensor's value, which is realized first if necessary."""
        return lend_memory(self).shared()

    def __dlpack__(self, **options: Any) -> Any:
        return self._shared().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._shared().__dlpack_device__()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self._shared().__arrow_c_array__(requested_schema)

    def __buffer__(self, flags: int) -> memoryview:
        return self._shared().__buffer__(flags)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The value as a NumPy array that shares memory, unless another dtype or a copy is asked
        for.
        """
        import numpy

        view = lend_memory(self)
        if not is_host(view.device):
            view = realized_view(self._wrap(copy_to_device(self.uop, "CPU")))
        found = view.numpy()
        if copy is False and dtype is not None and numpy.dtype(dtype) != found.dtype:
            raise DTypeError(f"{found.dtype} cannot be seen as {dtype} without a copy")
        return numpy.array(found, dtype, copy=True) if copy else numpy.asarray(found, dtype)


def _export(tensor: Interop, flags: int) -> MemoryView:
    return tensor._shared()


register(Interop, get=_export)
