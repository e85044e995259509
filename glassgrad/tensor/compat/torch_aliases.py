"""PyTorch's names of methods that have another name here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.indexing import check_index, checked_index
from glassgrad.tensor.record import axis_of, sizes_of
from glassgrad.tensor.symbolic_sizes import is_symbolic


class TorchAliases(TensorCore):
    """mm, bmm, gt, amax, norm, narrow, select, movedim, view and others."""

    __slots__ = ()

    # ------------------------------------------------------------------ products

    def mm(self, mat2: Self) -> Self:
        """The product of two matrices.

        >>> Tensor([[1, 2]]).mm(Tensor([[3], [4]])).tolist()
        [[11]]
        """
        return self._product(mat2, "mm", 2, 2)

    def bmm(self, mat2: Self) -> Self:
        """The products of two batches of matrices.

        >>> Tensor.ones(2, 3, 4).bmm(Tensor.ones(2, 4, 5)).shape
        (2, 3, 5)
        """
        return self._product(mat2, "bmm", 3, 3)

    def mv(self, vec: Self) -> Self:
        """A matrix times a vector.

        >>> Tensor([[1, 2], [3, 4]]).mv(Tensor([1, 1])).tolist()
        [3, 7]
        """
        return self._product(vec, "mv", 2, 1)

    def _product(self, other: Any, name: str, left: int, right: int) -> Self:
        other = self._as_tensor(other, f"the second operand of {name}")
        if (self.ndim, other.ndim) != (left, right) or (
            left == 3 and self.uop.shape[0] != other.uop.shape[0]
        ):
            raise ShapeError(f"{name} of shapes {self.shape} and {other.shape}; x @ y takes others")
        return self.matmul(other)

    def outer(self, vec2: Self) -> Self:
        """The outer product of two vectors.

        >>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()
        [[3, 4], [6, 8]]
        """
        vec2 = self._as_tensor(vec2, "the second operand of outer")
        if self.ndim != 1 or vec2.ndim != 1:
            raise ShapeError(f"outer of shapes {self.shape} and {vec2.shape}; it takes two vectors")
        return self.unsqueeze(1) * vec2

    def addmm(self, mat1: Self, mat2: Self, *, beta: float = 1, alpha: float = 1) -> Self:
        """beta · x + alpha · (mat1 @ mat2)

        >>> Tensor([1]).addmm(Tensor([[2]]), Tensor([[3]]), alpha=2).tolist()
        [[13]]
        """
        product = self._as_tensor(mat1, "the first matrix of addmm").mm(mat2)
        scaled = product if alpha == 1 else product * alpha
        if beta == 0:
            return scaled
        return (self if beta == 1 else self * beta).expand(product.shape) + scaled

    # ------------------------------------------------------------------ arithmetic, comparisons

    def lt(self, other: Any) -> Self:
        """x < other

        >>> Tensor([1, 2, 3]).lt(2).tolist()
        [True, False, False]
        """
        return self.__lt__(other)

    def le(self, other: Any) -> Self:
        """x <= other

        >>> Tensor([1, 2, 3]).le(2).tolist()
        [True, True, False]
        """
        return self.__le__(other)

    def gt(self, other: Any) -> Self:
        """x > other

        >>> Tensor([1, 2, 3]).gt(2).tolist()
        [False, False, True]
        """
        return self.__gt__(other)

    def ge(self, other: Any) -> Self:
        """x >= other

        >>> Tensor([1, 2, 3]).ge(2).tolist()
        [False, True, True]
        """
        return self.__ge__(other)

    def remainder(self, other: Any) -> Self:
        """x % other, with the sign of the divisor.

        >>> Tensor([-7, 7]).remainder(4).tolist()
        [1, 3]
        """
        return self.__mod__(other)

    def floor_divide(self, other: Any) -> Self:
        """x // other

        >>> Tensor([-7, 7]).floor_divide(4).tolist()
        [-2, 1]
        """
        return self.__floordiv__(other)

    # ------------------------------------------------------------------ reductions

    def amax(self, dim: Any = (), keepdim: bool = False) -> Self:
        """The maximum over axes, over all of them by default.

        >>> Tensor([[1, 4], [3, 2]]).amax(1).tolist()
        [4, 3]
        """
        return self.max(_axes(dim), keepdim)

    def amin(self, dim: Any = (), keepdim: bool = False) -> Self:
        """The minimum over axes, over all of them by default.

        >>> Tensor([[1, 4], [3, 2]]).amin(0).tolist()
        [1, 2]
        """
        return self.min(_axes(dim), keepdim)

    def norm(self, p: float | str = 2, dim: Any = None, keepdim: bool = False) -> Self:
        """The p-norm; "fro" is 2, infinity the maximum of absolute values.

        >>> Tensor([3.0, -4.0]).norm().item()
        5.0
        """
        power = 2.0 if p == "fro" else p
        if isinstance(power, bool) or not isinstance(power, (int, float)):
            raise DTypeError(f'norm takes a number or "fro" for p, not {p!r}')
        return self._apply_in_float(lambda x: x._p_norm(power, _axes(dim), keepdim))

    # ------------------------------------------------------------------ axes and parts

    def t(self) -> Self:
        """A matrix transposed; a vector as it is.

        >>> Tensor([[1, 2, 3]]).t().shape
        (3, 1)
        """
        if self.ndim > 2:
            raise ShapeError(f"t of shape {self.shape}; transpose(a, b) exchanges any two axes")
        return self.transpose(0, 1) if self.ndim == 2 else self

    @property
    def mT(self) -> Self:  # noqa: N802  the name that others use
        """The last two axes swapped.

        >>> Tensor.ones(2, 3, 4).mT.shape
        (2, 4, 3)
        """
        return self.transpose(-2, -1)

    def swapaxes(self, axis0: int, axis1: int) -> Self:
        """The same as `transpose`.

        >>> Tensor.ones(2, 3, 4).swapaxes(0, 2).shape
        (4, 3, 2)
        """
        return self.transpose(axis0, axis1)

    swapdims = swapaxes

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Self:
        """Axes moved to other positions; the others keep their order.

        >>> Tensor.ones(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
        """
        pair = [[at] if hasattr(at, "__index__") else list(at) for at in (source, destination)]
        old, new = [[axis_of(axis, self.ndim) for axis in axes] for axes in pair]
        if len(old) != len(new) or len(set(old)) < len(old) or len(set(new)) < len(new):
            raise ShapeError(
                f"movedim from {source} to {destination}; each axis goes to one position"
            )
        order = [axis for axis in range(self.ndim) if axis not in old]
        for position, axis in sorted(zip(new, old, strict=True)):
            order.insert(position, axis)
        return self.permute(order)

    moveaxis = movedim

    def ravel(self) -> Self:
        """All elements as a vector.

        >>> Tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        return self.flatten()

    def tile(self, *dims: Any) -> Self:
        """Repeated along the last axes; further numbers add axes in front.

        >>> Tensor([1, 2]).tile(2, 2).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
        """
        times = sizes_of(dims, "number of repeats")
        return self.repeat([1] * (self.ndim - len(times)) + [*times])

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """`length` elements of an axis from `start` on.

        >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist()
        [2, 3]
        """
        axis, _ = self._axis_to_cut(dim)
        size = self.shape[axis]
        first = start if is_symbolic(start) or start >= 0 else start + size
        if not is_symbolic(first, length, size) and not 0 <= first <= first + length <= size:
            raise ShapeError(f"narrow from {start} on by {length}; the axis has {size} elements")
        return self._along(axis, slice(first, first + length))

    def select(self, dim: int, index: int) -> Self:
        """One element of an axis, which is removed.

        >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise DTypeError(f"select takes a whole number, not {index!r}")
        return self._along(axis_of(dim, self.ndim), index)

    def index_select(self, dim: int, index: Self) -> Self:
        """The elements of an axis at these indices.

        >>> Tensor([[1, 2, 3]]).index_select(1, Tensor([2, 0])).tolist()
        [[3, 1]]
        """
        index = self._as_tensor(index, "the index of index_select")
        check_index(index)
        if index.ndim > 1:
            raise ShapeError(f"index_select by an index of shape {index.shape}; it takes a vector")
        axis, size = self._axis_to_cut(dim)
        return self._along(axis, checked_index(index.reshape(-1), size, axis, can_wrap=False))

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The elements of an axis as separate tensors.

        >>> [x.tolist() for x in Tensor([[1, 2], [3, 4]]).unbind(1)]
        [[1, 3], [2, 4]]
        """
        axis, _ = self._axis_to_cut(dim)
        return tuple([self._along(axis, i) for i in range(self.shape[axis])])

    def _along(self, axis: int, part: Any) -> Self:
        found: Self = self[(*[slice(None)] * axis, part)]
        return found

    def scatter_add(self, dim: int, index: Self, src: Self) -> Self:
        """Values added at indices of an axis.

        >>> Tensor([1, 1]).scatter_add(0, Tensor([0, 0]), Tensor([2, 3])).tolist()
        [6, 1]
        """
        return self.scatter_reduce(dim, index, src, "sum")

    # ------------------------------------------------------------------ shapes, dtypes and devices

    def view(self, *shape: Any) -> Self:
        """The same as `reshape`.

        >>> Tensor.arange(4).view(2, 2).tolist()
        [[0, 1], [2, 3]]
        """
        return self.reshape(*shape)

    def broadcast_to(self, *shape: Any) -> Self:
        """The same as `expand`.

        >>> Tensor([1, 2]).broadcast_to(2, 2).tolist()
        [[1, 2], [1, 2]]
        """
        return self.expand(*shape)

    def expand_as(self, other: Self) -> Self:
        """Broadcast to the shape of another tensor.

        >>> Tensor([1]).expand_as(Tensor([1, 2])).tolist()
        [1, 1]
        """
        return self.expand(other.shape)

    def view_as(self, other: Self) -> Self:
        """In the shape of another tensor.

        >>> Tensor([1, 2]).view_as(Tensor([[3], [4]])).tolist()
        [[1], [2]]
        """
        return self.reshape(other.shape)

    reshape_as = view_as

    def type_as(self, other: Self) -> Self:
        """In the dtype of another tensor.

        >>> Tensor([1, 2]).type_as(Tensor([1.5])).tolist()
        [1.0, 2.0]
        """
        return self.cast(other.dtype)

    def cpu(self) -> Self:
        """This tensor on the CPU.

        >>> Tensor([1]).cpu().device
        'CPU'
        """
        return self.to("CPU")

    def nelement(self) -> int:
        """The same as `numel`.

        >>> Tensor([[1, 2]]).nelement()
        2
        """
        return self.numel()


def _axes(dim: Any) -> Any:
    """An empty tuple of axes means all of them."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim
