"""Names of older scripts, and short forms, of present methods."""

from __future__ import annotations

from math import prod
from typing import Any, Self

from glassgrad.base.config import Context
from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.collect import uncomputed_nodes
from glassgrad.tensor.record import cast_to, number_dtype, record, scalar
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments


class LegacyAliases(TensorCore):
    """const, from_url, usum, threefry, random_bits, lazydata, kernelize, test and others."""

    __slots__ = ()

    @classmethod
    def const(cls, b: ConstType, dtype: DType | None = None) -> Self:
        """One number without memory.

        >>> Tensor.const(3).item()
        3
        """
        return cls._from_uop(scalar(b, number_dtype(b) if dtype is None else dtype))

    @classmethod
    def from_url(
        cls, url: str, gunzip: bool = False, sha256: str | None = None, **kwargs: Any
    ) -> Self:
        """The bytes of a file on the web, cached on disk; `sha256` is their expected hash.

        >>> Tensor.from_url(__file__).dtype  # a path is read as it is
        dtypes.uchar
        """
        from glassgrad.base.files import fetch

        return cls(fetch(url, gunzip=gunzip, sha256=sha256).read_bytes(), **kwargs)

    # ------------------------------------------------------------------ short forms

    @property
    def max_shape(self) -> tuple[int, ...]:
        """The shape with the largest value of each size.

        >>> Tensor([[1, 2]]).max_shape
        (1, 2)
        """
        return tuple([int(size) for size in self.uop.shape])

    def max_numel(self) -> int:
        """The number of elements of `max_shape`.

        >>> Tensor([[1, 2]]).max_numel()
        2
        """
        return prod(self.max_shape)

    def ufix(self, x: Any) -> Self:
        """Another operand as a tensor; a number in this tensor's dtype.

        >>> Tensor([1.5]).ufix(2).dtype
        dtypes.float
        """
        return self._wrap(self._promoted_operands(x, "combine")[1])

    def usum(self, *uops: Any) -> Self:
        """The sum of this and others.

        >>> Tensor([1, 2]).usum(Tensor([3, 4]), 5).tolist()
        [9, 11]
        """
        total = self._wrap(self.uop)  # a new value even without other operands
        for other in uops:
            total = total + other
        return total

    def uprod(self, *uops: Any) -> Self:
        """The product of this and others.

        >>> Tensor([1, 2]).uprod(Tensor([3, 4]), 5).tolist()
        [15, 40]
        """
        total = self._wrap(self.uop)
        for other in uops:
            total = total * other
        return total

    def threefry(self, seed: Self) -> Self:
        """64 random bits for each counter, from a key.

        >>> Tensor([1], dtype="uint64").threefry(Tensor([2], dtype="uint64")).dtype
        dtypes.ulong
        """
        seed = self._as_tensor(seed, "the key of threefry")
        if not self.uop.dtype.kind == seed.uop.dtype.kind == "uint":
            raise DTypeError(
                f"threefry takes unsigned counters and keys, not {self.uop.dtype.name} and "
                f"{seed.uop.dtype.name}"
            )
        pair = (cast_to(self.uop, dtypes.uint64), cast_to(seed.uop, dtypes.uint64))
        return self._wrap(record(Ops.THREEFRY, dtypes.uint64, pair))

    @classmethod
    @with_concrete_arguments
    def random_bits(cls, key: Self, counter: Self, num: int) -> Self:
        """`num` random 32-bit words, from a key and a counter of two such words each.

        >>> key, counter = Tensor([1, 2], dtype="uint32"), Tensor([0, 0], dtype="uint32")
        >>> Tensor.random_bits(key, counter, 5).shape
        (5,)
        """
        for words in (key, counter):
            if words.shape != (2,) or words.uop.dtype is not dtypes.uint32:
                raise ShapeError(
                    f"a key or counter of random bits is two uint32s, not {words.uop.dtype.name} "
                    f"of shape {words.shape}"
                )
        if num < 0:
            raise ShapeError(f"cannot make {num} random words")
        first = counter.bitcast(dtypes.uint64)
        counters = first + first._iota(-(-num // 2) or 1, dtypes.int64).cast(dtypes.uint64)
        words = counters.threefry(key.bitcast(dtypes.uint64)).bitcast(dtypes.uint32)
        return words._shrink(((0, num),))

    # ------------------------------------------------------------------ older names

    @staticmethod
    def test(mode: bool = True) -> Context:
        """`with Tensor.test():` disables training mode.

        >>> with Tensor.test():
        ...     Tensor.training
        False
        """
        return Context(TRAINING=int(not mode))

    @property
    def lazydata(self) -> UOp:
        """The same as `uop`.

        >>> x = Tensor([1])
        >>> x.lazydata is x.uop
        True
        """
        return self.uop

    def kernelize(self, *lst: Self) -> Self:
        """This tensor itself. Kernels are made when values are read; `schedule` shows them.

        >>> Tensor([1]).kernelize().tolist()
        [1]
        """
        return self

    def schedule_with_vars(self, *lst: Any) -> tuple[Any, dict[str, int]]:
        """`schedule`, and the values of its variables.

        >>> schedule, variables = (Tensor([1, 2]) + 1).schedule_with_vars()
        >>> len(schedule.kernels), variables
        (1, {})
        """
        nodes = uncomputed_nodes([self.uop, *(tensor.uop for tensor in lst)])
        bound = [(node.src[0].arg[0], node.arg) for node in nodes if node.op is Ops.BIND]
        return self.schedule(*lst), dict(bound)

    def schedule_linear(self, *lst: Any) -> Any:
        """The same as `schedule`.

        >>> len((Tensor([1, 2]) + 1).schedule_linear().kernels)
        1
        """
        return self.schedule(*lst)

    def linear_with_vars(self, *lst: Any) -> tuple[Any, dict[str, int]]:
        """The same as `schedule_with_vars`.

        >>> (Tensor([1, 2]) + 1).linear_with_vars()[1]
        {}
        """
        return self.schedule_with_vars(*lst)
