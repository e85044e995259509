"""Spellings: names of older scripts, and short forms, for what is there under another name."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, Self

from glassgrad.base.config import Context
from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.backward import Backward
from glassgrad.tensor.modes import NoGrad
from glassgrad.tensor.record import cast_to, record, scalar


class Spellings(Backward):
    """const, usum, threefry; lazydata, kernelize, test and no_grad."""

    __slots__ = ()
    no_grad: ClassVar[Any] = NoGrad()

    @classmethod
    def const(cls, b: ConstType, dtype: DType | None = None) -> Self:
        """One number without memory.

        >>> Tensor.const(3).item()
        3
        """
        return cls._of(scalar(b, dtypes.from_py(b) if dtype is None else dtype))

    @classmethod
    def from_url(cls, url: str, gunzip: bool = False, **kwargs: Any) -> Self:
        """The bytes of a file on the web, downloaded once.

        >>> Tensor.from_url(__file__).dtype  # a path is read as it is
        dtypes.uchar
        """
        from glassgrad.base.files import fetch

        return cls(fetch(url, gunzip=gunzip).read_bytes(), **kwargs)  # type: ignore[call-arg]

    # ------------------------------------------------------------------ short forms

    @property
    def max_shape(self) -> tuple[int, ...]:
        """The shape: sizes are numbers here.

        >>> Tensor([[1, 2]]).max_shape
        (1, 2)
        """
        return self.shape

    def max_numel(self) -> int:
        """The same as `numel`.

        >>> Tensor([[1, 2]]).max_numel()
        2
        """
        return prod(self.shape)

    def ufix(self, x: Any) -> Self:
        """Another operand as a tensor; a number in this tensor's dtype.

        >>> Tensor([1.5]).ufix(2).dtype
        dtypes.float
        """
        return self._made(self._pair(x, "combine")[1])

    def usum(self, *uops: Any) -> Self:
        """The sum of this and others.

        >>> Tensor([1, 2]).usum(Tensor([3, 4]), 5).tolist()
        [9, 11]
        """
        total = self
        for other in uops:
            total = total + other
        return total

    def uprod(self, *uops: Any) -> Self:
        """The product of this and others.

        >>> Tensor([1, 2]).uprod(Tensor([3, 4]), 5).tolist()
        [15, 40]
        """
        total = self
        for other in uops:
            total = total * other
        return total

    def threefry(self, seed: Self) -> Self:
        """64 random bits for each counter, by a key.

        >>> Tensor([1], dtype="uint64").threefry(Tensor([2], dtype="uint64")).dtype
        dtypes.ulong
        """
        if not self.uop.dtype.kind == seed.uop.dtype.kind == "uint":
            raise DTypeError(
                f"threefry takes unsigned counters and keys, not {self.uop.dtype.name} and "
                f"{seed.uop.dtype.name}"
            )
        pair = (cast_to(self.uop, dtypes.uint64), cast_to(seed.uop, dtypes.uint64))
        return self._made(record(Ops.THREEFRY, dtypes.uint64, pair))

    # ------------------------------------------------------------------ older names

    @staticmethod
    def test(mode: bool = True) -> Context:
        """`with Tensor.test():` turns off what only training does.

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
        """This tensor. Kernels are made when values are asked for; `schedule` shows them.

        >>> Tensor([1]).kernelize().tolist()
        [1]
        """
        return self

    def schedule_with_vars(self: Any, *lst: Any) -> tuple[Any, dict[str, int]]:
        """`schedule`, and the values of its variables.

        >>> schedule, variables = (Tensor([1, 2]) + 1).schedule_with_vars()
        >>> len(schedule.kernels), variables
        (1, {})
        """
        return self.schedule(*lst), {}
