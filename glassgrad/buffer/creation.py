"""Shapes, numbers, memory of other objects -> Buffer: the ways to make one."""

from __future__ import annotations

import time
from math import prod
from typing import Any, Self

from glassgrad.base.dtype import ConstType, DType, DTypeLike, dtypes, to_dtype
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.buffer import compute, literal
from glassgrad.buffer.arguments import shape_of
from glassgrad.buffer.arithmetic import Arithmetic
from glassgrad.devices.registry import Device
from glassgrad.memory.view import View

GENERATOR = compute.Generator(time.time_ns())


def dtype_from(like: DTypeLike | None) -> DType | None:
    if like is None or isinstance(like, DType):
        return like
    if not isinstance(like, str):
        raise DTypeError(f"{like!r} is not a dtype", hint='such as DType.float32 or "float32"')
    return to_dtype(like)


class Creation(Arithmetic):
    """from_memory, empty, zeros, full, ones, arange, uniform and normal."""

    __slots__ = ()

    @classmethod
    def from_memory(
        cls, obj: Any, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Self:
        """A Buffer over an object's memory, optionally as items of another dtype.

        >>> from glassgrad.buffer import Buffer
        >>> raw = bytearray(4)
        >>> Buffer.from_memory(raw)[1] = 7
        >>> raw
        bytearray(b'\\x00\\x07\\x00\\x00')
        """
        return cls._from_view(
            View.from_host(obj, dtype_from(dtype), None, Device.canonicalize(device))
        )

    @classmethod
    def empty(cls, shape: Any, dtype: DTypeLike | None = None, device: str | None = None) -> Self:
        """Uninitialized memory; at present it reads as zeros."""
        wanted = dtype_from(dtype) or dtypes.default_float
        return cls._from_view(View.empty(Device.canonicalize(device), shape_of(shape), wanted))

    @classmethod
    def zeros(cls, shape: Any, dtype: DTypeLike | None = None, device: str | None = None) -> Self:
        return cls.empty(shape, dtype, device)

    @classmethod
    def full(
        cls, shape: Any, value: ConstType, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Self:
        """A buffer filled with one number.

        >>> from glassgrad.buffer import Buffer
        >>> Buffer.full((2, 2), 7).to_python()
        [[7, 7], [7, 7]]
        """
        made = cls.empty(shape, literal.dtype_for([value], dtype_from(dtype)), device)
        compute.write(made.view, compute.number_buffer(value, made.dtype, made.view.device))
        return made

    @classmethod
    def ones(cls, shape: Any, dtype: DTypeLike | None = None, device: str | None = None) -> Self:
        return cls.full(shape, 1, dtype_from(dtype) or dtypes.default_float, device)

    @classmethod
    def arange(
        cls,
        start: ConstType,
        stop: ConstType | None = None,
        step: ConstType = 1,
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> Self:
        """Numbers from start up to but not including stop.

        >>> from glassgrad.buffer import Buffer
        >>> Buffer.arange(1, 7, 2).to_python()
        [1, 3, 5]
        """
        first, last = (0, start) if stop is None else (start, stop)
        if step == 0:
            raise ShapeError("arange cannot step by 0")
        size = max(0, -int(-(last - first) // step))
        wanted = literal.dtype_for([first, last, step], dtype_from(dtype))
        name = Device.canonicalize(device)
        if wanted.kind == "float":
            made = cls.empty(size, wanted, name)
            numbers = [first + number * step for number in range(size)]
            made.view.storage.copyin(memoryview(literal.pack_numbers(numbers, wanted)))
            return made
        value = compute.iota(size, wanted) * compute.number_buffer(step, wanted, name)
        return cls._from_view(
            compute.compute_value(value + compute.number_buffer(first, wanted, name), name)
        )

    @classmethod
    def uniform(
        cls, shape: Any, low: float = 0.0, high: float = 1.0, dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> Self:  # fmt: skip
        """Uniform random numbers in [low, high)."""
        drawn = cls._random(compute.uniform, shape, dtype, device)
        return drawn if (low, high) == (0.0, 1.0) else drawn * (high - low) + low

    @classmethod
    def normal(
        cls, shape: Any, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> Self:  # fmt: skip
        """Normal random numbers of a mean and a standard deviation."""
        drawn = cls._random(compute.normal, shape, dtype, device)
        return drawn if (mean, std) == (0.0, 1.0) else drawn * std + mean

    @classmethod
    def _random(cls, make: Any, shape: Any, dtype: DTypeLike | None, device: str | None) -> Self:
        sizes, wanted = shape_of(shape), dtype_from(dtype) or dtypes.default_float
        if wanted.kind != "float":
            raise DTypeError(f"random numbers are floats, not {wanted.name}")
        name = Device.canonicalize(device)
        if 0 in sizes:
            return cls.empty(sizes, wanted, name)
        value = compute.cast(make(GENERATOR.bits(prod(sizes), name)), wanted)
        return cls._from_view(compute.compute_value(value, name).reshaped(sizes))

    @staticmethod
    def manual_seed(seed: int) -> None:
        """Restart the generator: the same calls then draw the same numbers."""
        GENERATOR.restart(seed)
