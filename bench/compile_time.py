"""Compile time of kernels per stage: loops, lower, render and LLVM.

python -m bench compile_time: a GPT training step, ResNet-18 and the rows of the side-by-side table.
Times are CPU times, so that other processes matter little; no cache on disk is used.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from time import process_time
from typing import NamedTuple

from bench.gpt_step import GPT, AdamW
from glassgrad import Tensor, nn
from glassgrad.devices.cpu.native import compile_text
from glassgrad.devices.registry import Device
from glassgrad.ir.stages import Kernel, Target
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.render import render

SHOWN = 5  # slowest kernels
TARGET_MEDIAN, TARGET_MAX = 0.030, 0.150  # seconds per kernel


class Times(NamedTuple):
    """Seconds per stage of one kernel."""

    name: str
    loops: float
    lower: float
    render: float
    llvm: float

    @property
    def total(self) -> float:
        return self.loops + self.lower + self.render + self.llvm


def times_of(kernel: Kernel, target: Target) -> Times:
    marks = [process_time()]
    nest = optimize(kernel, target)
    marks.append(process_time())
    program = lower(nest, target)
    marks.append(process_time())
    source = render(program, target)
    marks.append(process_time())
    compile_text(source.text)
    marks.append(process_time())
    seconds = [after - before for before, after in pairwise(marks)]
    return Times(nest.name, *seconds)


def gpt_step() -> list[Tensor]:
    model = GPT(2, 384, 6, 512, 256)
    optimizer = AdamW(model.parameters())
    batch = Tensor.randint(8, 257, low=0, high=512)
    Tensor.realize(*model.parameters(), *optimizer.states(), batch)
    loss = model.loss(batch[:, :-1], batch[:, 1:])
    return [loss, *optimizer.step(loss.gradient(*model.parameters()))]


def resnet18() -> list[Tensor]:
    """The convolutions of ResNet-18 with their normalization, and the pooling."""
    x = empty(1, 3, 224, 224)
    x = stem = block(x, 64, 7, 2).max_pool2d(3, 2, padding=1)
    outputs = [stem]
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        skip = x if stride == 1 else block(x, width, 1, stride)
        y = block(block(x, width, 3, stride).relu(), width, 3, 1)
        x = (y + skip).relu()
        outputs.append(x)
    return [*outputs, x.mean((2, 3)) @ empty(512, 1000)]


def block(x: Tensor, width: int, size: int, stride: int) -> Tensor:
    weight = empty(width, int(x.shape[1]), size, size)
    norm = nn.BatchNorm(width)
    return norm(x.conv2d(weight, stride=stride, padding=size // 2))


def empty(*shape: int) -> Tensor:
    return Tensor.empty(*shape).realize()


def rows() -> list[list[Tensor]]:
    """One entry for each row of bench/side that is a few kernels."""
    square, image = empty(1024, 1024), empty(8, 64, 56, 56)
    q, k, v = (empty(4, 12, 512, 64) for _ in range(3))
    return [
        [square @ empty(1024, 1024)],
        [empty(8, 768) @ empty(768, 3072)],
        [empty(4096, 4096) @ empty(4096)],
        [square.gelu()],
        [square.sum(0)],
        [square.softmax()],
        [square.layernorm()],
        [square.T.contiguous()],
        [square.cumsum(1)],
        [square.argmax(1)],
        [empty(256, 1024).sort()[0]],
        [image.conv2d(empty(64, 64, 3, 3), padding=1)],
        [empty(8, 144, 56, 56).conv2d(empty(144, 1, 3, 3), padding=1, groups=144)],
        [empty(8, 64, 112, 112).max_pool2d(3, 2, padding=1)],
        [q.scaled_dot_product_attention(k, v, is_causal=True)],
    ]


def report(title: str, values: list[list[Tensor]], target: Target) -> None:
    kernels: dict[Kernel, None] = {}
    for tensors in values:
        kernels |= dict.fromkeys(Tensor.schedule(*tensors).kernels)
    times = sorted((times_of(kernel, target) for kernel in kernels), key=lambda t: t.total)
    totals = [kernel.total for kernel in times]
    slow = sum(total > TARGET_MAX for total in totals)
    print(
        f"{title}: {len(times)} kernels, {sum(totals):.2f} s; median {median(totals) * 1e3:.0f} ms "
        f"(target {TARGET_MEDIAN * 1e3:.0f}), {slow} above {TARGET_MAX * 1e3:.0f} ms"
    )
    for kernel in reversed(times[-SHOWN:]):
        parts = " ".join(f"{name} {part * 1e3:5.0f}" for name, part in zip(
            ("loops", "lower", "render", "llvm"), kernel[1:], strict=True
        ))  # fmt: skip
        print(f"  {kernel.total * 1e3:5.0f} ms  {parts}  {kernel.name[:60]}")


def main() -> None:
    target = Device[Device.DEFAULT].target
    compile_text("define void @nothing() { ret void }")  # initialise LLVM
    report("GPT step", [gpt_step()], target)
    report("ResNet-18", [resnet18()], target)
    report("rows", rows(), target)


if __name__ == "__main__":
    main()
