"""A kernel in hand-written LLVM IR, with a gradient: an exponential moving average.

    y[i] = x[i] + DECAY * y[i - 1]

Tensor operations cannot express this loop-carried dependency. The kernel has the signature of all
kernels of the CPU device, which compiles it and runs it on the memory of tensors.

python examples/custom_kernel.py [--quick]
"""

from __future__ import annotations

import sys
import time

from glassgrad import Device, Tensor, custom_gradient
from glassgrad.devices.protocol import Call
from glassgrad.ir.stages import Program, Source
from glassgrad.memory import get

DECAY = 0.875  # 0x3FEC000000000000 in LLVM IR
TEXT = """
define void @"average"(ptr %args, ptr %scratch, i64 %begin, i64 %end) {
entry:
  %out = load ptr, ptr %args
  %slot1 = getelementptr ptr, ptr %args, i64 1
  %in = load ptr, ptr %slot1
  %slot2 = getelementptr ptr, ptr %args, i64 2
  %size = load ptr, ptr %slot2
  %count = load i64, ptr %size
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %last = phi float [ 0.0, %entry ], [ %now, %loop ]
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from
  %decayed = fmul contract float %last, 0x3FEC000000000000
  %now = fadd contract float %x, %decayed
  %to = getelementptr float, ptr %out, i64 %i
  store float %now, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
DEVICE = Device["CPU"]
AVERAGE = DEVICE.compile(Source("average", TEXT, "llvm", Program("average", ())))


def average(x: Tensor) -> Tensor:
    """Run the kernel on a float32 vector, eagerly."""
    out = Tensor.empty(*x.shape)
    size = Tensor([x.numel()], dtype="int64")
    Tensor.realize(x, out, size)
    with get(out) as target, get(x) as source, get(size) as count:
        DEVICE.run([Call(AVERAGE, (target.data, source.data, count.data))])
    return out


def average_gradient(g: Tensor, result: Tensor, x: Tensor) -> Tensor:
    """The same average from the end: y[j] depends on x[i] by DECAY^(j - i), for j >= i."""
    return average(g.flip(0).contiguous()).flip(0)


running_average = custom_gradient(average_gradient)(average)


def main() -> None:
    count = 10_000 if "--quick" in sys.argv else 1_000_000
    Tensor.manual_seed(0)
    x = Tensor.randn(count).realize()
    begin = time.perf_counter()
    y = average(x)
    rate = count / (time.perf_counter() - begin)
    expected, last = [], 0.0
    for value in x[:5].tolist():
        last = value + DECAY * last
        expected.append(last)
    print("kernel: ", [round(value, 4) for value in y[:5].tolist()])
    print("Python: ", [round(value, 4) for value in expected])
    print(f"{rate / 1e6:.0f} million values per second, in sequence")

    # The gradient works in training: find the x whose average is a step function.
    target = (Tensor.arange(64) >= 32).float()
    guess = Tensor.zeros(64).is_param_().realize()
    for step in range(200):
        guess.grad = None
        loss = (running_average(guess) * (1 - DECAY) - target).square().mean().backward()
        guess.assign(guess - guess.grad * 20).realize()
        if step % 50 == 0:
            print(f"step {step:3}  loss {loss.item():.5f}")
    print(f"step 200  loss {loss.item():.5f}: values at the step are", end=" ")
    print([round(value, 2) for value in guess[31:35].tolist()])


if __name__ == "__main__":
    main()
