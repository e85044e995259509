"""Pooling over windows, unpooling, and transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, Self, TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.composite import composite
from glassgrad.tensor.ops.contraction import padding_pairs, per_axis
from glassgrad.tensor.record import sizes_of
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments

MAX = Ops.MAX
Pairs = tuple[tuple[int, int], ...]
T = TypeVar("T", bound=TensorCore)


class _PoolPlan(NamedTuple):
    """The windows of a pooling: kernel, stride, dilation and padding of the last axes."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    given_padding: Pairs
    padding: Pairs  # including what ceil_mode adds

    @property
    def axes(self) -> int:
        return len(self.kernel)

    def on_all_axes(self, x: TensorCore, padding: Pairs) -> Pairs:
        """The padding of the last axes as padding of all axes."""
        return ((0, 0),) * (x.ndim - self.axes) + padding

    def windows_of(self, padded: T) -> T:
        return padded._pool(self.kernel, self.strides, self.dilations)


def _plan(
    x: TensorCore,
    kernel_size: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    ceil_mode: bool = False,
) -> _PoolPlan:
    kernel = per_axis(kernel_size, 2, "kernel_size")
    count = len(kernel)
    if x.ndim < count:
        raise ShapeError(f"a kernel of {count} axes does not fit a tensor of shape {x.shape}")
    strides = kernel if stride is None else per_axis(stride, count, "stride")
    dilations = per_axis(dilation, count, "dilation")
    given = padding_pairs(padding, count)
    if not ceil_mode:
        return _PoolPlan(kernel, strides, dilations, given, given)
    found = []
    rows = zip(x.shape[-count:], kernel, strides, dilations, given, strict=True)
    for size, k, s, d, (before, after) in rows:
        room = size + before + after - d * (k - 1) - 1
        last = -(-room // s) * s  # start of a window that reaches beyond the end
        extra = max(last - room, 0) if last < size + before else 0
        found.append((before, after + extra))
    return _PoolPlan(kernel, strides, dilations, given, tuple(found))


class Pooling(TensorCore):
    """max_pool2d, avg_pool2d, max_unpool2d and conv_transpose2d."""

    __slots__ = ()

    def max_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The maximum of each window; with `return_indices` also its flat index.

        >>> Tensor.arange(16).reshape(1, 1, 4, 4).max_pool2d().tolist()
        [[[[5, 7], [13, 15]]]]
        """
        plan = _plan(self, kernel_size, stride, dilation, padding, ceil_mode)
        lowest = dtypes.min(self.uop.dtype)
        windows = plan.windows_of(self.pad(plan.on_all_axes(self, plan.padding), value=lowest))
        axes = tuple(range(windows.ndim - plan.axes, windows.ndim))
        best = windows.max(axes)
        if not return_indices:
            return best
        sizes = self.shape[-plan.axes :]
        count = prod(sizes)
        # Counting down makes the first index the largest value; padding is below all indices.
        numbers = plan.windows_of(
            (count - self._iota(count).reshape(sizes))._pad_zeros(plan.padding)
        )
        is_best = windows.eq(best.reshape((*best.shape, *(1,) * plan.axes)))
        is_best = is_best | windows.isnan() if self.is_floating_point() else is_best
        return best, count - is_best.where(numbers, 0)._reduce(MAX, axes, keepdim=False)

    @composite
    def avg_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window.

        >>> Tensor.arange(16).reshape(1, 1, 4, 4).avg_pool2d().tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
        """
        plan = _plan(self, kernel_size, stride, dilation, padding, ceil_mode)
        axes = tuple(range(-plan.axes, 0))
        total = plan.windows_of(self._pad_zeros(plan.on_all_axes(self, plan.padding))).sum(axes)
        is_plain = plan.given_padding == plan.padding
        if is_plain and (count_include_pad or not any(map(any, plan.given_padding))):
            return total / prod(plan.kernel)
        ones = self._wrap(self.ones_like().uop)
        given = plan.on_all_axes(self, plan.given_padding)
        counted = ones.pad(given, value=1) if count_include_pad else ones._pad_zeros(given)
        extra = tuple(
            (0, b[1] - a[1]) for a, b in zip(plan.given_padding, plan.padding, strict=True)
        )
        return total / plan.windows_of(counted._pad_zeros(plan.on_all_axes(self, extra))).sum(axes)

    @with_concrete_arguments
    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """Values put back at the indices from `max_pool2d`, and zeros elsewhere.

        >>> x = Tensor([[[[1.0, 5.0], [3.0, 2.0]]]])
        >>> x.max_pool2d().max_unpool2d(x.max_pool2d(return_indices=True)[1]).tolist()
        [[[[0.0, 5.0], [0.0, 0.0]]]]
        """
        plan = _plan(self, kernel_size, stride, dilation, padding)
        indices = self._as_tensor(indices, "the indices of max_unpool2d")
        if indices.shape != self.shape:
            raise ShapeError(f"values {self.shape} and indices {indices.shape} differ in shape")
        if output_size is None:
            sizes = self.shape[-plan.axes :]
            rows = zip(sizes, plan.strides, plan.dilations, plan.kernel, plan.padding, strict=True)
            wanted = tuple((n - 1) * s + d * (k - 1) + 1 - b - a for n, s, d, k, (b, a) in rows)
        else:
            wanted = sizes_of((output_size,), "size")[-plan.axes :]
            if len(wanted) != plan.axes:
                raise ShapeError(f"output_size {output_size} needs {plan.axes} numbers")
        lead = self.shape[: -plan.axes]
        zeros = self._wrap(type(self).zeros(*lead, prod(wanted), dtype=self.dtype).uop)
        first = len(lead)
        spread = zeros.scatter(first, indices.flatten(first), self.flatten(first))
        return spread.reshape((*lead, *wanted))

    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
    ) -> Self:
        """Transposed convolution: every input element adds a scaled copy of the kernel.

        The weight is (channels, out channels / groups, …).

        >>> Tensor.ones(1, 1, 2, 2).conv_transpose2d(Tensor.ones(1, 1, 2, 2)).tolist()
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
        """
        weight = self._as_tensor(weight, "the weight of a convolution")
        if self.ndim != weight.ndim or self.ndim < 3 or self.shape[1] != weight.shape[0]:
            raise ShapeError(
                f"cannot convolve {self.shape} backwards with {weight.shape}",
                hint="the weight is (channels, out channels / groups, …)",
            )
        if groups < 1 or self.shape[1] % groups:
            raise ShapeError(f"{groups} groups do not divide {self.shape[1]} channels")
        kernel = weight.shape[2:]
        count = len(kernel)
        channels, per = weight.shape[:2]
        # (groups, in, out, …)  ->  (groups · out, in, …), flipped
        flipped = weight.reshape((groups, channels // groups, per, *kernel)).transpose(1, 2)
        flipped = flipped.flip(tuple(range(3, 3 + count)))
        flipped = flipped.reshape((groups * per, channels // groups, *kernel))
        dilations = per_axis(dilation, count, "dilation")
        more = per_axis(output_padding, count, "output_padding", least=0)
        rows = zip(kernel, dilations, padding_pairs(padding, count), more, strict=True)
        pads = tuple((d * (k - 1) - b, d * (k - 1) - a + o) for k, d, (b, a), o in rows)
        x = self._dilate(per_axis(stride, count, "stride"))._pad_zeros(((0, 0), (0, 0), *pads))
        return x.conv2d(flipped, bias, groups, dilation=dilation)

    def _dilate(self, steps: tuple[int, ...]) -> Self:
        """Zeros inserted between the elements of the last axes."""
        x = self
        for axis, step in enumerate(steps, start=self.ndim - len(steps)):
            if step == 1:
                continue
            size = x.shape[axis]
            shape = x.shape
            apart = x.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
            grown = apart._pad_zeros(
                ((0, 0),) * (axis + 1) + ((0, step - 1),) + ((0, 0),) * (x.ndim - axis - 1)
            )
            whole = grown.flatten(axis, axis + 1)
            pairs = tuple((0, n) for n in whole.shape)
            x = whole._shrink((*pairs[:axis], (0, (size - 1) * step + 1), *pairs[axis + 1 :]))
        return x
