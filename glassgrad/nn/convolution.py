"""Conv1d, Conv2d, Conv3d and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.errors import ShapeError
from glassgrad.nn.initial import uniform
from glassgrad.tensor.tensor import Tensor

Sizes = int | Sequence[int]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Conv2d:
    """Convolution of (batch, channels, height, width).

    `padding="same"` keeps the size of the image. `padding_mode` is "zeros", "reflect", "replicate"
    or "circular".

    >>> Conv2d(3, 8, 3, padding="same")(Tensor.ones(1, 3, 16, 16)).shape
    (1, 8, 16, 16)
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        _check_groups(groups, in_channels, out_channels)
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode is one of {PADDING_MODES}, not {padding_mode!r}")
        self.padding_mode = padding_mode
        self.kernel_size = _each(kernel_size, self.axes)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding: Sizes = self._padding_of(padding) if isinstance(padding, str) else padding
        shape = self._shape(in_channels, out_channels)
        fan_in = prod(shape[1:])
        self.weight = uniform(*shape, fan_in=fan_in)
        self.bias = uniform(out_channels, fan_in=fan_in) if bias else None

    def _shape(self, in_channels: int, out_channels: int) -> tuple[int, ...]:
        return (out_channels, in_channels // self.groups, *self.kernel_size)

    def _padding_of(self, padding: str) -> Sizes:
        """The widths of "same" or "valid": (before, after) per axis, last axis first."""
        if padding == "valid":
            return 0
        if padding != "same":
            raise ValueError(f'padding must be a number, "same" or "valid", not {padding!r}')
        if any(step != 1 for step in _each(self.stride, self.axes)):
            raise ShapeError(f'padding="same" needs stride 1, not {self.stride}')
        dilation = _each(self.dilation, self.axes)
        totals = [d * (k - 1) for d, k in zip(dilation, self.kernel_size, strict=True)]
        return [width for t in reversed(totals) for width in (t // 2, t - t // 2)]

    def __call__(self, x: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = x.pad(self._widths(), mode=self.padding_mode), 0
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, padding)

    def _widths(self) -> tuple[int, ...]:
        """Padding as (before, after) per axis, last axis first."""
        widths = _each(self.padding, len(self.kernel_size))
        if len(widths) == 2 * len(self.kernel_size):
            return widths
        return tuple(width for size in reversed(widths) for width in (size, size))


class Conv1d(Conv2d):
    """Convolution of (batch, channels, length).

    >>> Conv1d(3, 8, 5)(Tensor.ones(2, 3, 20)).shape
    (2, 8, 16)
    """

    axes = 1


class Conv3d(Conv2d):
    """Convolution of (batch, channels, depth, height, width).

    >>> Conv3d(1, 2, 3)(Tensor.ones(1, 1, 4, 5, 6)).shape
    (1, 2, 2, 3, 4)
    """

    axes = 3


class ConvTranspose2d(Conv2d):
    """Transposed convolution of (batch, channels, height, width): the gradient of a convolution.

    >>> ConvTranspose2d(4, 2, 2, stride=2)(Tensor.ones(1, 4, 8, 8)).shape
    (1, 2, 16, 16)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )
        self.output_padding = output_padding

    def _shape(self, in_channels: int, out_channels: int) -> tuple[int, ...]:
        return (in_channels, out_channels // self.groups, *self.kernel_size)

    def _padding_of(self, padding: str) -> Sizes:
        raise ValueError(f"padding of a transposed convolution must be a number, not {padding!r}")

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(
            self.weight,
            self.bias,
            self.groups,
            self.stride,
            self.dilation,
            self.padding,
            self.output_padding,
        )


class ConvTranspose1d(ConvTranspose2d):
    """Transposed convolution of (batch, channels, length).

    >>> ConvTranspose1d(4, 2, 2, stride=2)(Tensor.ones(1, 4, 8)).shape
    (1, 2, 16)
    """

    axes = 1


class ConvTranspose3d(ConvTranspose2d):
    """Transposed convolution of (batch, channels, depth, height, width).

    >>> ConvTranspose3d(4, 2, 2, stride=2)(Tensor.ones(1, 4, 3, 3, 3)).shape
    (1, 2, 6, 6, 6)
    """

    axes = 3


def _each(sizes: Sizes, axes: int) -> tuple[int, ...]:
    """One size per axis; a number stands for the same size along every axis."""
    return (sizes,) * axes if isinstance(sizes, int) else tuple(sizes)


def _check_groups(groups: int, in_channels: int, out_channels: int) -> None:
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ShapeError(
            f"in_channels {in_channels} and out_channels {out_channels} must be divisible by "
            f"groups {groups}"
        )
