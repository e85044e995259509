"""Random numbers from a counter and a key (Threefry), both fixed when the tensor is made.

Element i is Threefry(counter + i, key), so values do not depend on when, where or in which order
tensors are realized. Counter and key are buffers, not constants, so every step of a training run is
the same program.
"""

from __future__ import annotations

import math
import time
from math import prod
from threading import Lock
from typing import Any, Self

from glassgrad.base.config import TRAINING, Context
from glassgrad.base.dtype import DTypeLike, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.data import buffer_of
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.ops.creation import checked_shape
from glassgrad.tensor.record import SCALARS, cast_to, dtype_of, record
from glassgrad.tensor.symbolic_sizes import refuse_in_captures, with_concrete_arguments

WORD, HALF = 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF  # masks of 64 and 32 bits


class _Generator:
    """The seed, and the count of numbers drawn so far."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.restart(time.time_ns() & 0xFFFFFFFF)

    def restart(self, seed: int) -> None:
        self.seed = seed
        self.keys: dict[str, UOp] = {}
        self.used = 0

    def take(self, count: int, device: str) -> UOp:
        """The counter of the next `count` numbers."""
        with self.lock:
            start = self.used
            self.used += count
        counter = _number(start, device)
        if (recorder := active_recorder()) is not None:
            recorder.counters.append((counter, start))
        return counter

    def key(self, device: str) -> UOp:
        if device not in self.keys:
            self.keys[device] = _number(self.seed, device)
        return self.keys[device]


def _number(value: int, device: str) -> UOp:
    """A uint64 in a buffer."""
    raw = (value & WORD).to_bytes(8, "little")
    return buffer_of(bytearray(raw), device, dtypes.uint64, ())


GENERATOR = _Generator()


class Random(TensorCore):
    """rand, randn, randint, initializers of layers and dropout."""

    __slots__ = ()

    @staticmethod
    def train(mode: bool = True) -> Context:
        """`with Tensor.train():` enables training mode.

        >>> with Tensor.train():
        ...     0.0 in Tensor.ones(100).dropout(0.5).tolist()
        True
        """
        return Context(TRAINING=int(mode))

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Restart the generator: the same calls then draw the same numbers.

        >>> Tensor.manual_seed(7)
        >>> first = Tensor.rand(2).tolist()
        >>> Tensor.manual_seed(7)
        >>> Tensor.rand(2).tolist() == first
        True
        """
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise DTypeError(f"a seed is a whole number, not {seed!r}")
        GENERATOR.restart(seed.__index__())

    @classmethod
    def _random_bits(cls, count: int, device: str) -> Self:
        """64 random bits per element."""
        refuse_in_captures("random numbers", (count,))
        line = cast_to(record(Ops.IOTA, dtypes.int64, (), max(count, 1)), dtypes.uint64)
        counters = record(Ops.ADD, dtypes.uint64, (line, GENERATOR.take(count, device)))
        return cls._from_uop(record(Ops.THREEFRY, dtypes.uint64, (counters, GENERATOR.key(device))))

    @classmethod
    @with_concrete_arguments
    def rand(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
        contiguous: bool = True,  # noqa: ARG003  scripts pass it; the scheduler decides here
    ) -> Self:
        """Uniform random numbers in [0, 1).

        >>> Tensor.rand(2, 3).shape
        (2, 3)
        """
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if wanted.kind != "float":
            raise DTypeError(f"rand makes floats, not {wanted.name}", hint="randint makes ints")
        sizes = checked_shape(shape)
        if 0 in sizes:
            return cls.empty(sizes, dtype=wanted, device=device, requires_grad=requires_grad)
        bits = cls._random_bits(prod(sizes), canonical_device(device))
        uop = _uniform(bits, wanted).reshape(sizes).uop
        return cls._leaf(uop, requires_grad)

    @classmethod
    @with_concrete_arguments
    def randn(
        cls,
        *shape: Any,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Normal random numbers of mean 0 and standard deviation 1.

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if wanted.kind != "float":
            raise DTypeError(f"randn makes floats, not {wanted.name}", hint="randint makes ints")
        sizes = checked_shape(shape)
        if 0 in sizes:
            return cls.empty(sizes, dtype=wanted, device=device, requires_grad=requires_grad)
        bits = cls._random_bits(prod(sizes), canonical_device(device))
        # The Box-Muller transform of two 32-bit uniform numbers.
        high, low = (_half_uniform(half, wanted) for half in (bits >> 32, bits & HALF))
        radius = ((1.0 - high).log() * -2.0).sqrt()
        value = radius * (low * (2 * math.pi)).cos()
        return cls._leaf(value.cast(wanted).reshape(sizes).uop, requires_grad)

    @classmethod
    @with_concrete_arguments
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        dtype: DTypeLike = dtypes.int32,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Random integers from low to high - 1.

        >>> all(-1 <= value < 3 for value in Tensor.randint(9, low=-1, high=3).tolist())
        True
        """
        wanted = dtype_of(dtype)
        if wanted.kind not in ("int", "uint"):
            raise DTypeError(f"randint makes ints, not {wanted.name}", hint="uniform makes floats")
        if not all(isinstance(end, int) for end in (low, high)):
            raise DTypeError(f"randint takes whole numbers, not {low!r} and {high!r}")
        if low >= high:
            raise ShapeError(f"randint needs low < high, not {low} and {high}")
        if low < dtypes.min(wanted) or high - 1 > dtypes.max(wanted):
            raise DTypeError(
                f"{wanted.name} does not hold all numbers from {low} to {high - 1}",
                hint="pass a wider dtype=",
            )
        sizes = checked_shape(shape)
        if 0 in sizes:
            return cls.empty(sizes, dtype=wanted, device=device, requires_grad=requires_grad)
        bits = cls._random_bits(prod(sizes), canonical_device(device))
        value = _scaled(bits, high - low) + (low & WORD)  # wraps around, as two's complement does
        return cls._leaf(value.cast(wanted).reshape(sizes).uop, requires_grad)

    @classmethod
    @with_concrete_arguments
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Uniform random numbers between low and high.

        >>> all(2 <= value < 3 for value in Tensor.uniform(9, low=2, high=3).tolist())
        True
        """
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if wanted.kind != "float":
            first, end = math.floor(low), math.ceil(high)
            return cls.randint(*shape, low=first, high=end, dtype=wanted, **kwargs)
        value = cls.rand(*shape, dtype=wanted, **kwargs)
        return cls._leaf((value * (high - low) + low).uop, value._requires_grad)

    @classmethod
    @with_concrete_arguments
    def normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, **kwargs: Any) -> Self:
        """Normal random numbers of a mean and a standard deviation.

        >>> Tensor.normal(2, 3, mean=5, std=0.1).shape
        (2, 3)
        """
        value = cls.randn(*shape, **kwargs)
        return cls._leaf((value * std + mean).uop, value._requires_grad)

    @classmethod
    @with_concrete_arguments
    def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Uniform between -1 and 1, over the square root of the number of elements.

        >>> Tensor.scaled_uniform(2, 3).shape
        (2, 3)
        """
        scale = max(prod(checked_shape(shape)), 1) ** -0.5
        return cls.uniform(*shape, low=-scale, high=scale, **kwargs)

    @classmethod
    @with_concrete_arguments
    def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Uniform, scaled by the number of inputs and outputs.

        >>> Tensor.glorot_uniform(2, 3).shape
        (2, 3)
        """
        sizes = checked_shape(shape)
        bound = math.sqrt(6 / max(sizes[0] + prod(sizes[1:]), 1)) if sizes else 1.0
        return cls.uniform(sizes, low=-bound, high=bound, **kwargs)

    @classmethod
    @with_concrete_arguments
    def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Uniform, scaled for layers that are followed by a (leaky) relu.

        >>> Tensor.kaiming_uniform(2, 3).shape
        (2, 3)
        """
        sizes = checked_shape(shape)
        bound = math.sqrt(3.0) * _kaiming(sizes, a)
        return cls.uniform(sizes, low=-bound, high=bound, **kwargs)

    @classmethod
    @with_concrete_arguments
    def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Normal, scaled for layers that are followed by a (leaky) relu.

        >>> Tensor.kaiming_normal(2, 3).shape
        (2, 3)
        """
        sizes = checked_shape(shape)
        return cls.normal(sizes, mean=0.0, std=_kaiming(sizes, a), **kwargs)

    def rand_like(self, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Uniform numbers in this tensor's shape and dtype.

        >>> Tensor.zeros(2, 3).rand_like().shape
        (2, 3)
        """
        return type(self).rand(*self.shape, dtype=dtype or self.uop.dtype, **kwargs)

    def randn_like(self, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Normal numbers in this tensor's shape and dtype.

        >>> Tensor.zeros(2, 3).randn_like().shape
        (2, 3)
        """
        return type(self).randn(*self.shape, dtype=dtype or self.uop.dtype, **kwargs)

    def dropout(self, p: float = 0.5) -> Self:
        """In training, each element is 0 with probability p and scaled by 1/(1-p) otherwise.

        >>> Tensor.ones(3).dropout(0.5).tolist()  # nothing is dropped outside of training
        [1.0, 1.0, 1.0]
        """
        given: object = p
        if not isinstance(given, SCALARS) or not 0 <= given <= 1:
            raise ValueError(f"p is a probability, not {p!r}")
        if not TRAINING.value or p == 0:
            return self._wrap(self.uop)
        if p == 1:
            return self._wrap(self.zeros_like().uop)
        kept = type(self).rand(*self.shape, dtype=dtypes.float32, device=self.device) >= p
        return kept.where(self, self.const_like(0)) * (1 / (1 - p))


def _uniform(bits: Any, dtype: Any) -> Any:
    """The top bits as a float in [0, 1): as many as the mantissa holds, so that the conversion is
    exact.
    """
    if dtype is dtypes.float64:
        return (bits >> 11).cast(dtypes.int64).cast(dtype) * 2.0**-53
    count = min(dtypes.finfo(dtype)[1] + 1, 24)
    whole = (bits >> (64 - count)).cast(dtypes.uint32).cast(dtypes.int32)
    return (whole.cast(dtypes.float32) * 2.0**-count).cast(dtype)


def _half_uniform(word: Any, dtype: Any) -> Any:
    """32 bits as a number in [0, 1): all of them in float64, the top 24 in other dtypes."""
    if dtype is dtypes.float64:
        return word.cast(dtypes.int64).cast(dtype) * 2.0**-32
    return (word >> 8).cast(dtypes.int32).cast(dtypes.float32) * 2.0**-24


def _scaled(bits: Any, width: int) -> Any:
    """floor(bits * width / 2^64) in 32-bit words: a negligible bias, and no division."""
    if width > WORD:
        return bits
    top, bottom = bits >> 32, bits & HALF
    wide, narrow = width >> 32, width & HALF
    upper, lower = top * narrow, bottom * wide
    carried = ((bottom * narrow) >> 32) + (upper & HALF) + (lower & HALF)
    return top * wide + (upper >> 32) + (lower >> 32) + (carried >> 32)


def _kaiming(shape: Shape, a: float) -> float:
    return math.sqrt(2.0 / (1 + a**2)) / math.sqrt(max(prod(shape[1:]), 1))
