"""Time of typical expressions in a new process without cached kernels.

python -m bench expressions [word ...]: all expressions, or those that contain one of the words.
Times are CPU times of all threads, so that other processes matter little. Each expression runs in a
forked process with all modules imported and no kernel compiled.
"""

from __future__ import annotations

import json
import os
import re
import sys
from array import array
from collections.abc import Callable
from functools import cache
from math import prod
from threading import Lock
from time import process_time, thread_time
from typing import Any, NamedTuple

from glassgrad import Tensor, nn

TARGET_KERNEL = 0.150  # seconds, at most
TARGET_EXPRESSION = 0.300
SHOWN = 30  # slowest expressions and kernels
EXPRESSIONS = """
A(64,10) @ A(10,1)
A(200,3) @ A(3,5)
A(1000,777) @ A(777,513)
A(512,512) @ A(512,512)
A(7,13) @ A(13,17)
A(8,33,65) @ A(8,65,31)
A(1000,1000) @ A(1000)
A(3,3) @ A(3,3)
(A(100,100) + A(100,100)).relu()
A(100,100).sum()
A(1000003).mean()
A(100,100).softmax(-1)
A(100,100).log_softmax(-1)
A(100,37).logsumexp(-1)
A(100,100).var()
A(100,100).std(0)
A(100,100).norm()
A(100,37).norm(dim=1)
A(100,37).max(0)
A(100,37).argmax(1)
A(100,37).prod(1)
A(100,37).cumsum(0)
A(1000,37).cumsum(1)
A(100000).cumsum(0)
A(100,37).cummax(1)
A(100,37).logcumsumexp(1)
A(100).sort()
A(64,1000).sort()
A(1000).topk(5)
A(64,100).topk(5)
A(100).argsort()
A(100)[A(100) > 0]
A(100,10)[I(50)]
A(100,10).gather(1, I(100,3))
Tensor.zeros(100,10).scatter(1, I(100,3), A(100,3))
Tensor.zeros(100,10).scatter_add(0, I(50,10), A(50,10))
A(8,3,32).conv2d(A(16,3,5))
A(8,3,32,32).conv2d(A(16,3,3,3), padding=1)
A(1,1,28,28).conv2d(A(6,1,5,5))
A(4,8,14,14).conv_transpose2d(A(8,4,3,3), stride=2)
A(8,16,28,28).max_pool2d(2)
A(8,16,28,28).max_pool2d(3, 2, padding=1)
A(8,16,28,28).avg_pool2d(2)
A(2,3,16,16).interpolate((32,32), mode="linear")
A(2,3,16,16).interpolate((31,29), mode="nearest")
A(2,3,16,16).interpolate((32,32), mode="cubic")
A(8,8).svd()
A(4,4).svd()
A(8,8).qr()
A(4,4).qr()
Tensor.einsum("bij,bjk->bik", A(4,5,6), A(4,6,7))
Tensor.einsum("ij,ij->i", A(40,50), A(40,50))
nn.LSTMCell(10, 20)(A(5,10))
nn.GRUCell(10, 20)(A(5,10))
nn.LayerNorm(64)(A(32,64)).gelu()
nn.BatchNorm(8)(A(4,8,14,14))
nn.GroupNorm(2, 8)(A(4,8,14,14))
nn.Linear(10, 1)(A(64,10))
nn.MultiHeadAttention(32, 4)(A(2,16,32), A(2,16,32), A(2,16,32))
A(2,4,16,8).scaled_dot_product_attention(A(2,4,16,8), A(2,4,16,8))
A(2,4,16,8).scaled_dot_product_attention(A(2,4,16,8), A(2,4,16,8), is_causal=True)
G(lambda q, k, v: q.scaled_dot_product_attention(k, v).sum(), A(2,4,16,8), A(2,4,16,8), A(2,4,16,8))
G(lambda x: x.cross_entropy(I(32)), A(32,10))
G(lambda x: nn.Linear(10, 3)(x).square().mean(), A(64,10))
G(lambda w: ((A(64,10) @ w).tanh() - A(64,1)).square().mean(), A(10,1))
G(lambda w: A(8,3,32,32).conv2d(w, padding=1).relu().mean(), A(16,3,3,3))
G(lambda x: x.softmax(-1).log().mean(), A(32,10))
G(lambda x: nn.LayerNorm(64)(x).gelu().sum(), A(32,64))
G(lambda x: x.max_pool2d(2).sum(), A(4,3,14,14))
I(100).one_hot(10)
Tensor.randn(100, 100)
Tensor.rand(1000)
Tensor.randperm(100)
Tensor.multinomial(A(10).softmax(), 3)
A(100,100).dropout(0.5)
A(100,100).silu()
A(100,100).sin() + A(100,100).exp() * A(100,100).log()
A(100,100) ** 2.5
A(100,100).pow(A(100,100))
A(100,100).erf()
A(100,100) % 3
A(100,100) // 0.7
A(100,100).fmod(0.7)
A(100,100).T.contiguous()
A(4,5,6).permute(2,0,1).reshape(30,4)
Tensor.cat(A(10,5), A(20,5), A(3,5))
Tensor.stack(A(10,5), A(10,5), dim=1)
A(10,5).pad(((1,2),(3,4)))
A(100).roll(3)
A(10,10).tril()
Tensor.eye(10)
Tensor.linspace(0, 1, 100)
Tensor.arange(1000).sum()
A(100,100).half() @ A(100,100).half()
A(100,100).bfloat16().softmax(-1)
A(100,100).half().layernorm()
A(100,100).bfloat16().exp()
(I(100,100).cast("int8") + 1).sum()
I(100,100).cast("int8") @ I(100,100).cast("int8")
I(100,100).cast("int64") @ I(100,100).cast("int64")
I(100,100) // 7
I(100,100).cast("int64") % I(100,100).cast("int64").maximum(1)
A(100,100).double().sin()
A(100,100).double() @ A(100,100).double()
A(100,100).double().var(1)
(A(100,100) > 0).any(1)
(A(100,100) > 0).where(A(100,100), 1)
A(100,100).clip(-1, 1).round()
A(30,20).masked_select(A(30,20) > 0)
""".strip().split("\n")


def A(*shape: int) -> Tensor:  # noqa: N802
    """A float tensor."""
    return Tensor(float_values(prod(shape))).reshape(shape)


def I(*shape: int) -> Tensor:  # noqa: N802, E743
    """A tensor of ints from 0 to 2."""
    return Tensor(int_values(prod(shape))).reshape(shape)


@cache
def float_values(count: int) -> memoryview:
    return memoryview(array("f", [(i * 7919 % 1009) / 500 - 1 for i in range(count)]))


@cache
def int_values(count: int) -> memoryview:
    return memoryview(array("i", [i * 7919 % 1009 % 3 for i in range(count)]))


def G(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:  # noqa: N802
    """The value of a function, and its gradients."""
    value = function(*inputs)
    return [value, *value.gradient(*inputs)]


NAMES = {"Tensor": Tensor, "nn": nn, "A": A, "I": I, "G": G}


class StageTimes:
    """Thread time of each stage, and of each kernel."""

    def __init__(self) -> None:
        self.kernels: dict[str, dict[str, float]] = {}
        self.stages: dict[str, float] = {}
        self.lock = Lock()

    def wrap(self, module: Any, name: str, stage: str) -> None:
        function = getattr(module, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = thread_time() - start
                with self.lock:
                    self.stages[stage] = self.stages.get(stage, 0) + spent

        setattr(module, name, timed)

    def wrap_kernels(self) -> None:
        import glassgrad.devices.cpu.native as native
        import glassgrad.engine.pipeline as pipeline

        write_source, compile_text = pipeline.write_source, native.compile_text

        def timed_write(*args: Any) -> Any:
            start = thread_time()
            source = write_source(*args)
            times = self.kernels.setdefault(source.name, {})
            times["write"] = times.get("write", 0) + thread_time() - start
            times["lines"] = source.text.count("\n")
            return source

        def timed_compile(text: str, *args: Any) -> bytes:
            start = thread_time()
            code = compile_text(text, *args)
            name = text.split("define void @")[-1].split("(")[0].strip('"')
            times = self.kernels.setdefault(name, {})
            times["llvm"] = times.get("llvm", 0) + thread_time() - start
            return code

        pipeline.write_source, native.compile_text = timed_write, timed_compile


def flat(value: Any) -> list[Tensor]:
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in flat(part)]
    return [value]


def measure(text: str) -> dict[str, Any]:
    """Seconds of an expression and of its kernels, in this process."""
    import glassgrad.loops
    import glassgrad.lower
    import glassgrad.render
    import glassgrad.schedule

    times = StageTimes()
    times.wrap(glassgrad.schedule, "schedule", "schedule")
    times.wrap(glassgrad.loops, "optimize", "loops")
    times.wrap(glassgrad.lower, "lower", "lower")
    times.wrap(glassgrad.render, "render", "render")
    times.wrap_kernels()
    function = eval("lambda: " + text, NAMES)
    for leaf in re.findall(r"[AI]\([0-9, ]*\)", text):  # create the inputs before the clock starts
        eval(leaf, NAMES)
    start = process_time()
    tensors = flat(function())
    Tensor.realize(*tensors)
    total = process_time() - start
    return {"total": total, "stages": times.stages, "kernels": times.kernels}


def in_child(text: str) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            (Tensor([1.0, 2.0]) + 1).tolist()
            found = measure(text)
        except Exception as error:  # noqa: BLE001
            found = {"error": f"{type(error).__name__}: {error}"}
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"error": "crashed"}


def warm_up() -> None:
    """Import all modules and initialise LLVM before the first fork."""
    from glassgrad.devices.cpu.native import compile_text
    from glassgrad.devices.registry import Device
    from glassgrad.engine.pipeline import preload_compiler, write_source

    preload_compiler()
    target = Device[Device.DEFAULT].target
    x = A(16, 16)
    for values in (
        [x @ x],
        [x.softmax()],
        G(lambda x: x.conv2d(x).sum(), A(4, 4, 4, 4)),
        [x.sort()[0]],
    ):
        for kernel in Tensor.schedule(*values).kernels:
            compile_text(write_source(kernel, target).text)


class KernelTimes(NamedTuple):
    """Seconds to write and to compile the source of a kernel."""

    name: str
    expression: str
    write: float
    llvm: float
    lines: float

    @property
    def total(self) -> float:
        return self.write + self.llvm

    def __str__(self) -> str:
        parts = f"write {self.write * 1e3:4.0f} llvm {self.llvm * 1e3:4.0f} lines {self.lines:4.0f}"
        return f"{self.total * 1e3:5.0f} ms  {parts}  {self.name[:40]}  {self.expression}"


def main(*words: str) -> None:
    warm_up()
    kernels: list[KernelTimes] = []
    expressions: list[tuple[float, str]] = []
    for text in EXPRESSIONS:
        if words and not any(word in text for word in words):
            continue
        found = in_child(text)
        if "error" in found:
            print(f"{text}: {found['error']}")
            continue
        stages = " ".join([f"{name} {s * 1e3:4.0f}" for name, s in found["stages"].items()])
        total = found["total"]
        line = f"{total * 1e3:5.0f} ms {len(found['kernels']):3} kernels  {stages}  {text}"
        expressions.append((total, line))
        for name, parts in found["kernels"].items():
            spent = [parts.get(part, 0.0) for part in ("write", "llvm", "lines")]
            kernels.append(KernelTimes(name, text, *spent))
    expressions.sort(reverse=True)
    kernels.sort(key=lambda kernel: kernel.total, reverse=True)
    for _, line in expressions[:SHOWN]:
        print(line)
    print()
    for kernel in kernels[:SHOWN]:
        print(kernel)
    large = sum(total > TARGET_EXPRESSION for total, _ in expressions)
    slow = sum(kernel.total > TARGET_KERNEL for kernel in kernels)
    seconds = sum(total for total, _ in expressions)
    print(
        f"{len(expressions)} expressions, {seconds:.2f} s, {large} above "
        f"{TARGET_EXPRESSION * 1e3:.0f} ms; {len(kernels)} kernels, {slow} above "
        f"{TARGET_KERNEL * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
