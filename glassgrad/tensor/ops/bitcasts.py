"""Bitcasts: the same bytes as another dtype; the last axis changes with the item size."""

from __future__ import annotations

from typing import Self

from glassgrad.base.dtype import DType, DTypeLike, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.window import file_window
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.record import dtype_of, record

UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


class Bitcasts(TensorCore):
    """bitcast."""

    __slots__ = ()

    @exclusive
    def bitcast(self, dtype: DTypeLike) -> Self:
        """The same bytes as another dtype, least significant bytes first.

        >>> Tensor([1.0]).bitcast(dtypes.int32).tolist(), Tensor([258]).bitcast("uint8").tolist()
        ([1065353216], [2, 1, 0, 0])
        """
        wanted = dtype_of(dtype)
        mine, theirs = self.uop.dtype.itemsize, wanted.itemsize
        if mine == theirs:
            return self._bitcast_same_size(wanted)
        ratio = max(mine, theirs) // min(mine, theirs)
        if not self.shape or (mine < theirs and self.shape[-1] % ratio):
            raise DTypeError(
                f"cannot bitcast {self.uop.dtype.name} of shape {self.shape} to {wanted.name}: "
                f"they have {mine} and {theirs} bytes",
                hint="the last axis must hold whole items; cast() converts values",
            )
        part = file_window(self.uop)
        if part is not None and part.is_contiguous:
            return self._wrap(UOp(Ops.BUFFER, wanted, (), part.bitcast(wanted)))
        parts = self._split(ratio, theirs) if mine > theirs else self._merge_items(ratio, theirs)
        return self._as_view(parts._bitcast_same_size(wanted).uop, (Ops.BITCAST, wanted))

    @exclusive
    def _bitcast_same_size(self, dtype: DType) -> Self:
        if dtype is self.uop.dtype:
            return self._as_view(self.uop)
        return self._as_view(record(Ops.BITCAST, dtype, (self.uop,)), (Ops.BITCAST, dtype))

    def _split(self, ratio: int, size: int) -> Self:
        """Each item as several adjacent smaller ones."""
        whole = self._bitcast_same_size(UNSIGNED[8 * self.uop.dtype.itemsize])
        shifts = self._iota(ratio).cast(whole.dtype) * (8 * size)
        return (whole.unsqueeze(-1) >> shifts).cast(UNSIGNED[8 * size]).flatten(-2)

    def _merge_items(self, ratio: int, size: int) -> Self:
        """Several adjacent items as one larger one."""
        bits = 8 * self.uop.dtype.itemsize
        wide = self._bitcast_same_size(UNSIGNED[bits]).cast(UNSIGNED[8 * size])
        apart = wide.reshape((*self.shape[:-1], self.shape[-1] // ratio, ratio))
        shifted = apart << (self._iota(ratio).cast(wide.dtype) * bits)
        return shifted._reduce(Ops.ADD, (shifted.ndim - 1,), keepdim=False)
