"""BatchNorm, LayerNorm, GroupNorm, InstanceNorm and RMSNorm."""

from __future__ import annotations

from math import prod

from glassgrad.base.config import TRAINING
from glassgrad.base.errors import ShapeError
from glassgrad.nn.initial import state
from glassgrad.tensor.tensor import Tensor


class BatchNorm:
    """Normalises each channel of (batch, channels, …), then scales and shifts it.

    Training mode uses the statistics of the batch and updates running averages, which evaluation
    uses; with `momentum=None` they are the averages over all batches so far. The optimiser's step
    writes them together with the parameters.

    >>> BatchNorm(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def __init__(
        self,
        sz: int,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float | None = 0.1,
    ) -> None:
        self.eps, self.momentum = eps, momentum
        self.track_running_stats = track_running_stats
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        if track_running_stats:
            self.running_mean, self.running_var = state(0.0, sz), state(1.0, sz)
            self.num_batches_tracked = state(0)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance per channel: of the batch when training, else running averages."""
        if self.track_running_stats and not TRAINING.value:
            return self.running_mean, self.running_var
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean = x.mean(axes)
        centred = x - mean.reshape((1, -1, *(1,) * (x.ndim - 2)))
        return mean, (centred * centred).mean(axes)

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype.bits < 32:
            return self(x.float()).cast(x.dtype)
        mean, variance = self.calc_stats(x)
        if self.track_running_stats and TRAINING.value:
            self._track(mean.detach(), variance.detach(), x.numel() // x.shape[1])
        return x.batchnorm(self.weight, self.bias, mean, (variance + self.eps).rsqrt())

    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        unbiased = variance * (count / max(count - 1, 1))
        seen = self.num_batches_tracked + 1
        share = 1 / seen.float() if self.momentum is None else self.momentum
        for running, new in ((self.running_mean, mean), (self.running_var, unbiased)):
            mixed = running * (1 - share) + new * share
            running.assign(mixed.cast(running.dtype))
        self.num_batches_tracked.assign(seen)


class LayerNorm:
    """Normalises the last axes, then scales and shifts them.

    >>> LayerNorm(4)(Tensor.ones(2, 4)).shape
    (2, 4)
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(shape)
        self.axes, self.eps = tuple(range(-len(shape), 0)), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Tensor.ones(*shape) if elementwise_affine else None
        self.bias = Tensor.zeros(*shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        _check_last_axes(x, self.normalized_shape)
        return _scaled(x.layernorm(self.axes, self.eps), self.weight, self.bias)


class LayerNorm2d(LayerNorm):
    """LayerNorm over the channels of (batch, channels, height, width).

    >>> LayerNorm2d(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class GroupNorm:
    """Normalises each group of channels, then scales and shifts each channel.

    >>> GroupNorm(2, 4)(Tensor.ones(1, 4, 3, 3)).shape
    (1, 4, 3, 3)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(
                f"num_channels {num_channels} is not divisible by num_groups {num_groups}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        groups = (x.shape[0], self.num_groups, prod(x.shape[1:]) // self.num_groups)
        normal = x.reshape(groups).layernorm(-1, self.eps).reshape(x.shape)
        return _scaled(normal, _along_channels(self.weight, x), _along_channels(self.bias, x))


class InstanceNorm(GroupNorm):
    """Normalises each channel of each sample.

    >>> InstanceNorm(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class RMSNorm:
    """Divides by the root mean square along the last axis or axes, then scales.

    >>> RMSNorm(2, eps=0)(Tensor([[3.0, -3.0]])).tolist()
    [[1.0, -1.0]]
    """

    def __init__(
        self, dim: int | tuple[int, ...], eps: float = 1e-6, elementwise_affine: bool = True
    ) -> None:
        self.normalized_shape = (dim,) if isinstance(dim, int) else tuple(dim)
        self.axes, self.eps = tuple(range(-len(self.normalized_shape), 0)), eps
        self.weight = Tensor.ones(*self.normalized_shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        _check_last_axes(x, self.normalized_shape)
        wide = x.float() if x.dtype.bits < 32 else x
        normal = wide * ((wide * wide).mean(self.axes, keepdim=True) + self.eps).rsqrt()
        return _scaled(normal.cast(x.dtype), self.weight, None)


def _check_last_axes(x: Tensor, shape: tuple[int, ...]) -> None:
    if x.shape[-len(shape) :] != shape:
        raise ShapeError(f"normalized_shape {shape} does not match the last axes of {x.shape}")


def _along_channels(values: Tensor | None, x: Tensor) -> Tensor | None:
    return None if values is None else values.reshape((1, -1, *(1,) * (x.ndim - 2)))


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
