"""Matrix products and convolutions: products summed over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from glassgrad.base.dtype import DTypeLike, promote
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.composite import composite
from glassgrad.tensor.ops.reductions import accumulator, reduce_axes
from glassgrad.tensor.record import cast_to, dtype_of, record, reshaped, whole_number
from glassgrad.tensor.symbolic_sizes import checked_slice, is_symbolic

ADD, PERMUTE = Ops.ADD, Ops.PERMUTE
T = TypeVar("T", bound=TensorCore)


class Contraction(TensorCore):
    """dot, matmul, linear and conv2d."""

    __slots__ = ()

    # ------------------------------------------------------------------ matrix products

    @composite
    def dot(
        self, w: Self, dtype: DTypeLike | None = None, acc_dtype: DTypeLike | None = None
    ) -> Self:
        """The matrix product over the last axis of this tensor and the second to last of w.

        >>> (Tensor.ones(2, 3) @ Tensor.ones(3, 4)).shape
        (2, 4)
        """
        if not isinstance(w, TensorCore):
            w = self._wrap(self._operand(w, "multiply"))
        if not self.shape or not w.shape:
            raise ShapeError(
                f"cannot multiply matrices {self.shape} and {w.shape}: one has no axes",
                hint="use * for numbers",
            )
        axis = max(w.ndim - 2, 0)
        if self.shape[-1] != w.shape[axis]:
            raise ShapeError(
                f"cannot multiply matrices {self.shape} and {w.shape}: "
                f"{self.shape[-1]} columns meet {w.shape[axis]} rows",
                hint="the last axis of the left one must equal the second to last of the right one",
            )
        return self._dot(w, acc_dtype if dtype is None else dtype)

    def _dot(self, w: Self, dtype: DTypeLike | None) -> Self:
        """(…, m, 1, k) * (…, 1, n, k), summed over k."""
        wanted = promote(self.uop.dtype, w.uop.dtype)
        out = wanted if dtype is None else dtype_of(dtype)
        wide = accumulator(out) if out.kind == "float" else out
        left, right = cast_to(self.uop, wide), cast_to(w.uop, wide)
        rows, columns = left.shape, right.shape
        if len(columns) > 1:
            last = len(columns) - 1
            order = (*range(last - 1), last, last - 1)
            right = record(PERMUTE, right.dtype, (right,), order)
            if len(rows) > 1:
                left = reshaped(left, (*rows[:-1], 1, rows[-1]))
                right = reshaped(right, (*columns[:-2], 1, columns[-1], columns[-2]))
        product = self._wrap(left) * self._wrap(right)
        total = reduce_axes(product.uop, ADD, (product.ndim - 1,), keepdim=False)
        return self._wrap(cast_to(total, out))

    def matmul(
        self,
        x: Self,
        reverse: bool = False,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
    ) -> Self:
        """The same as `dot`.

        >>> Tensor([[1, 2]]).matmul(Tensor([[3], [4]])).tolist()
        [[11]]
        """
        wanted = acc_dtype if dtype is None else dtype
        return x.dot(self, wanted) if reverse else self.dot(x, wanted)

    def __matmul__(self, x: Any) -> Self:
        return self.dot(x)

    def __rmatmul__(self, x: Any) -> Self:
        return self._wrap(self._operand(x, "multiply")).dot(self)

    @composite
    def linear(
        self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None
    ) -> Self:
        """self @ weight + bias, or self * weight if the weight is a vector.

        >>> Tensor([[1.0, 2.0]]).linear(Tensor([[3.0], [4.0]]), Tensor([0.5])).tolist()
        [[11.5]]
        """
        weight = self._as_tensor(weight, "the weight of linear")
        bias = None if bias is None else self._as_tensor(bias, "the bias of linear")
        if dtype is not None:
            wide = bias if bias is None else bias.cast(dtype)
            return self.cast(dtype).linear(weight.cast(dtype), wide)
        product = self * weight if weight.ndim == 1 else self.dot(weight)
        return product if bias is None else product + bias

    def sequential(self, ll: list[Any]) -> Self:
        """The result of calling layers one after the other.

        >>> Tensor([-1.0, 4.0]).sequential([Tensor.relu, Tensor.sqrt]).tolist()
        [0.0, 2.0]
        """
        given: object = ll
        if not isinstance(given, (list, tuple)) or not all(map(callable, given)):
            raise DTypeError(f"sequential takes a list of functions, not {given!r}")
        x = self
        for layer in ll:
            x = layer(x)
        return x

    # ------------------------------------------------------------------ convolution

    def _pool(self, kernel: tuple[int, ...], stride: Any, dilation: Any) -> Self:
        """Windows over the last axes: (…, positions…, kernel…)."""
        count = len(kernel)
        first = self.ndim - count
        x = self
        steps = zip(
            kernel, per_axis(stride, count, "stride"), per_axis(dilation, count, "dilation")
        )
        for number, (size, step, spread) in enumerate(steps):
            reach = spread * (size - 1) + 1
            if is_symbolic(length := self.shape[first + number]):
                checked_slice(0, reach, length, first + number)
            elif reach > length:
                raise ShapeError(
                    f"a window of {reach} does not fit axis {first + number} of {self.shape}",
                    hint="use a smaller kernel, or padding",
                )
            x = x._window(first + number, size, step, spread)
        return x

    @composite
    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
    ) -> Self:
        """Convolution of (batch, channels, …) with (out channels, channels / groups, …).

        >>> Tensor.ones(1, 3, 8, 8).conv2d(Tensor.ones(4, 3, 3, 3), padding=1).shape
        (1, 4, 8, 8)
        """
        weight = self._as_tensor(weight, "the weight of a convolution")
        bias = None if bias is None else self._as_tensor(bias, "the bias of a convolution")
        _check_convolution(self, weight, groups)
        dtype = acc_dtype if dtype is None else dtype
        kernel = weight.shape[2:]
        batch, channels = self.shape[:2]
        out = weight.shape[0]
        wanted = promote(self.uop.dtype, weight.uop.dtype) if dtype is None else dtype_of(dtype)
        wide = accumulator(wanted) if wanted.kind == "float" else wanted
        padded = self._pad_zeros(((0, 0), (0, 0), *padding_pairs(padding, len(kernel))))
        windows = padded._pool(kernel, stride, dilation)
        positions = windows.shape[2 : 2 + len(kernel)]
        # (batch, group, out, in, positions…, kernel…)
        per = channels // groups
        x = windows.reshape((batch, groups, 1, per, *positions, *kernel))
        shape = (1, groups, out // groups, per, *(1,) * len(positions), *kernel)
        product = x.cast(wide) * weight.reshape(shape).cast(wide)
        axes = (3, *range(4 + len(positions), product.ndim))
        total = product._reduce(ADD, axes, keepdim=False).cast(wanted)
        result = total.reshape((batch, out, *positions))
        return result if bias is None else result + bias.reshape((1, -1, *(1,) * len(positions)))


def _check_convolution(x: TensorCore, weight: TensorCore, groups: int) -> None:
    if x.ndim != weight.ndim or x.ndim < 3:
        raise ShapeError(
            f"cannot convolve {x.shape} with {weight.shape}",
            hint="both have a batch or output axis, a channel axis and the same positions",
        )
    channels, per, out = x.shape[1], weight.shape[1], weight.shape[0]
    if groups < 1 or channels != per * groups or out % groups:
        raise ShapeError(
            f"cannot convolve {x.shape} with {weight.shape} in {groups} groups: "
            f"{channels} channels meet {per * groups}",
            hint="channels = weight.shape[1] * groups, and groups divide the output channels",
        )


def per_axis(value: Any, count: int, what: str, least: int = 1) -> tuple[int, ...]:
    """One number for all axes, or one per axis."""
    row = value if isinstance(value, (tuple, list)) else (value,) * count
    found = tuple(whole_number(number, what, least) for number in row)
    if what != "kernel_size" and len(found) != count:
        raise ShapeError(f"{what} {found} needs {count} numbers")
    return found


def padding_pairs(padding: Any, count: int) -> tuple[tuple[int, int], ...]:
    """(before, after) per axis from one number, one per axis, or two per axis, last axis first."""
    if not isinstance(padding, (tuple, list)):
        padding = (whole_number(padding, "padding"),) * count
    widths = [whole_number(width, "padding") for width in padding]
    if len(widths) == count:
        return tuple((width, width) for width in widths)
    if len(widths) == 2 * count:
        return tuple((widths[2 * i], widths[2 * i + 1]) for i in reversed(range(count)))
    raise ShapeError(f"padding {tuple(padding)} does not fit {count} axes")
