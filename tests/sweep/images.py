"""Programs of image and audio models."""

from __future__ import annotations

from random import Random

from glassgrad import Tensor
from sweep.programs import (
    family,
    memory,
    with_gradients,
)


@family
def convolution(rng: Random) -> None:
    side = rng.choice((7, 8, 13, 14, 28, 32, 56, 112))
    inner, outer = rng.choice((1, 3, 16, 64, 128, 256)), rng.choice((1, 8, 16, 64, 128, 256))
    size, stride = rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 1, 1, 2))
    dilation = rng.choice((1, 1, 2)) if size > 1 and side > 8 else 1
    groups = inner if rng.random() < 0.2 else 1
    outer = inner * rng.choice((1, 2)) if groups > 1 else outer
    dtype = rng.choice(("float32", "float32", "float16", "bfloat16"))
    x = memory(rng.choice((1, 2, 8)), inner, side, side, dtype=dtype)
    w, b = memory(outer, inner // groups, size, size, dtype=dtype), memory(outer, dtype=dtype)
    padding = rng.choice((0, size // 2, size // 2 * dilation))
    if dilation * (size - 1) + 1 > side + 2 * padding:
        padding = size * dilation
    y = x.conv2d(w, b, groups, stride, dilation, padding).relu()
    if rng.random() < 0.4:
        y.realize()
    else:
        with_gradients(y, x, w, b)


@family
def transposed_convolution(rng: Random) -> None:
    side, inner, outer = rng.choice((4, 7, 16, 64)), rng.choice((3, 16, 64)), rng.choice((1, 3, 64))
    size, stride = rng.choice((2, 3, 4, 5)), rng.choice((1, 2, 3))
    x, w = memory(rng.choice((1, 4)), inner, side, side), memory(inner, outer, size, size)
    padding = rng.choice((0, 1))
    y = x.conv_transpose2d(
        w, stride=stride, padding=padding, output_padding=rng.choice((0, stride - 1))
    )
    if rng.random() < 0.5:
        y.leaky_relu().realize()
    else:
        with_gradients(y, x, w)


@family
def pooling(rng: Random) -> None:
    side, channels = rng.choice((8, 13, 28, 56, 112, 224)), rng.choice((1, 3, 64))
    x = memory(rng.choice((1, 8)), channels, side, side)
    size, stride = rng.choice((2, 3, 5)), rng.choice((1, 2, 3))
    pool = rng.choice((Tensor.max_pool2d, Tensor.avg_pool2d))
    if rng.random() < 0.5:
        with_gradients(pool(x, size, stride), x)
    else:
        scale = rng.choice((2, 3))
        mode = rng.choice(("nearest", "linear"))
        x.interpolate((side * scale, side * scale), mode=mode).realize()


@family
def sound(rng: Random) -> None:
    length = rng.choice((1000, 4000, 16_000, 48_000))
    channels, outer = rng.choice((1, 2, 16, 80)), rng.choice((1, 16, 64))
    size, stride = rng.choice((3, 10, 15, 25)), rng.choice((1, 2, 5, 8))
    x, w = memory(rng.choice((1, 4)), channels, length), memory(outer, channels, size)
    choice = rng.randrange(4)
    if choice == 0:
        with_gradients(x.conv2d(w, stride=stride, padding=size // 2).gelu(), x, w)
    elif choice == 1:
        frames = x[:, 0].unfold(-1, 400, 160) * memory(400)
        (frames @ memory(400, 201)).square().log().realize()
    elif choice == 2:
        x.conv_transpose2d(memory(channels, outer, size), stride=stride).tanh().realize()
    else:
        Tensor.realize(x.cumsum(-1), x.square().mean(-1).sqrt(), x.max(-1) - x.min(-1))
