"""What is measured: one entry per row. Inputs are made with numpy from fixed seeds, so every contender
gets the same numbers and its outputs can be compared."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Workload:
    name: str  # row name
    group: str  # section of the table
    fn: str  # adapter function that builds the step
    make: Callable[[], dict]  # keyword arguments of that function
    flops: float = 0  # work per step, for GFLOP/s
    bytes: float = 0  # least memory traffic per step, for GB/s
    items: float = 0  # tokens or images per step, for items/s
    tol: float = 1e-4  # allowed difference, relative to the largest reference value
    check_steps: int = 1  # calls whose results are compared (a training step returns its loss)


def rand(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def ints(high, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, high, shape, dtype=np.int32)


def init(name: str, shape: tuple) -> np.ndarray:
    """The starting value of one parameter, the same for every contender."""
    if name.endswith(("running_var", "gamma")) or (name.endswith("weight") and len(shape) == 1):
        return np.ones(shape, np.float32)
    if len(shape) == 1:
        return np.zeros(shape, np.float32)
    std = (
        0.02
        if ".h." in "." + name or name.startswith(("wte", "wpe"))
        else float(np.prod(shape[1:])) ** -0.5
    )
    return np.random.default_rng(zlib.crc32(name.encode())).standard_normal(
        shape, dtype=np.float32
    ) * np.float32(std)


# ---- shapes of the models' parameters (names as in a torch or tinygrad state dict) ----


def mlp_shapes():
    return {"l1.weight": (128, 784), "l1.bias": (128,), "l2.weight": (10, 128), "l2.bias": (10,)}


def mnist_shapes():
    convs = {"c1": (32, 1, 5), "c2": (32, 32, 5), "c3": (64, 32, 3), "c4": (64, 64, 3)}
    out = {}
    for name, (o, i, k) in convs.items():
        out |= {f"{name}.weight": (o, i, k, k), f"{name}.bias": (o,)}
    for name, c in {"bn1": 32, "bn2": 64}.items():
        out |= {f"{name}.weight": (c,), f"{name}.bias": (c,)}
    return out | {"fc.weight": (10, 576), "fc.bias": (10,)}


def gpt_shapes(cfg: dict):
    c = cfg["dim"]
    out = {"wte.weight": (cfg["vocab"], c), "wpe.weight": (cfg["block"], c)}
    for i in range(cfg["layers"]):
        h = f"h.{i}"
        out |= {
            f"{h}.ln_1.weight": (c,),
            f"{h}.ln_1.bias": (c,),
            f"{h}.c_attn.weight": (3 * c, c),
            f"{h}.c_attn.bias": (3 * c,),
            f"{h}.c_proj.weight": (c, c),
            f"{h}.c_proj.bias": (c,),
            f"{h}.ln_2.weight": (c,),
            f"{h}.ln_2.bias": (c,),
            f"{h}.fc.weight": (4 * c, c),
            f"{h}.fc.bias": (4 * c,),
            f"{h}.proj.weight": (c, 4 * c),
            f"{h}.proj.bias": (c,),
        }
    return out | {"ln_f.weight": (c,), "ln_f.bias": (c,)}


def resnet18_layers():
    """(name, in, out, kernel, stride) of every convolution; each is followed by a batch norm."""
    out, cin = [("stem", 3, 64, 7, 2)], 64
    for s, width in enumerate((64, 128, 256, 512)):
        for b in range(2):
            stride = 2 if s > 0 and b == 0 else 1
            out += [(f"s{s}b{b}.1", cin, width, 3, stride), (f"s{s}b{b}.2", width, width, 3, 1)]
            if stride == 2 or cin != width:
                out.append((f"s{s}b{b}.down", cin, width, 1, stride))
            cin = width
    return out


def resnet18_shapes():
    out = {}
    for name, i, o, k, _ in resnet18_layers():
        out |= {
            f"{name}.weight": (o, i, k, k),
            f"{name}.gamma": (o,),
            f"{name}.beta": (o,),
            f"{name}.mean": (o,),
            f"{name}.running_var": (o,),
        }
    return out | {"fc.weight": (1000, 512), "fc.bias": (1000,)}


GPT_CHAR = {"layers": 6, "heads": 6, "dim": 384, "block": 256, "vocab": 65}
GPT2 = {"layers": 12, "heads": 12, "dim": 768, "block": 1024, "vocab": 50257}


def gpt_tiny(layers):
    return {"layers": layers, "heads": 4, "dim": 64, "block": 32, "vocab": 128}


def gpt_batch(cfg, b, t):
    return {
        "cfg": cfg,
        "x": ints(cfg["vocab"], b, t, seed=1),
        "y": ints(cfg["vocab"], b, t, seed=2),
    }


def gpt_flops(cfg, b, t, train):
    n = sum(int(np.prod(s)) for k, s in gpt_shapes(cfg).items() if not k.startswith("wpe"))
    return (6 if train else 2) * b * t * (n + cfg["layers"] * t * cfg["dim"] * 2)


# ---- the rows ----


def _gemm(m, k, n):
    return Workload(
        f"gemm {m}x{k}x{n}",
        "gemm",
        "gemm",
        lambda: {"a": rand(m, k, seed=1), "b": rand(k, n, seed=2)},
        flops=2 * m * k * n,
        bytes=4 * (m * k + k * n + m * n),
    )


def _conv(c, hw, o=None, k=3, groups=1, b=8):
    o = o or c
    return Workload(
        f"conv{k}x{k} b{b} c{c} {hw}x{hw}" + (" depthwise" if groups > 1 else ""),
        "conv",
        "conv2d",
        lambda: {
            "x": rand(b, c, hw, hw, seed=1),
            "w": rand(o, c // groups, k, k, seed=2) * 0.05,
            "groups": groups,
            "padding": k // 2,
        },
        flops=2 * b * o * hw * hw * (c // groups) * k * k,
        tol=1e-3,
    )


def _train(name, fn, make, **kw):
    return Workload(name, "train", fn, make, check_steps=3, tol=1e-2, **kw)


N = 1 << 24
WORKLOADS = [
    # 1. matrix products
    _gemm(256, 256, 256),
    _gemm(512, 512, 512),
    _gemm(1024, 1024, 1024),
    _gemm(2048, 2048, 2048),
    _gemm(8, 768, 3072),
    _gemm(128, 768, 3072),
    Workload(
        "matvec 4096",
        "gemm",
        "gemm",
        lambda: {"a": rand(1, 4096, seed=1), "b": rand(4096, 4096, seed=2)},
        flops=2 * 4096**2,
        bytes=4 * 4096**2,
    ),
    Workload(
        "matvec 4096 (w.T)",
        "gemm",
        "linear",
        lambda: {"x": rand(1, 4096, seed=1), "w": rand(4096, 4096, seed=2)},
        flops=2 * 4096**2,
        bytes=4 * 4096**2,
    ),
    # 2. memory-bound and reduction kernels
    Workload("chain of 10 ops, 16M", "kernels", "chain", lambda: {"x": rand(N)}, bytes=8 * N),
    Workload("gelu (tanh), 16M", "kernels", "gelu", lambda: {"x": rand(N)}, bytes=8 * N),
    Workload("exp, 16M", "kernels", "exp", lambda: {"x": rand(N)}, bytes=8 * N),
    Workload("sum all, 16M", "kernels", "sum_all", lambda: {"x": rand(N) + 1}, bytes=4 * N),
    Workload(
        "sum rows 4096x4096",
        "kernels",
        "sum_axis",
        lambda: {"x": rand(4096, 4096), "axis": 1},
        bytes=4 * N,
    ),
    Workload(
        "sum columns 4096x4096",
        "kernels",
        "sum_axis",
        lambda: {"x": rand(4096, 4096), "axis": 0},
        bytes=4 * N,
    ),
    Workload(
        "softmax 4096x4096", "kernels", "softmax", lambda: {"x": rand(4096, 4096)}, bytes=8 * N
    ),
    Workload(
        "layernorm 8192x768",
        "kernels",
        "layernorm",
        lambda: {"x": rand(8192, 768), "w": rand(768, seed=1), "b": rand(768, seed=2)},
        bytes=8 * 8192 * 768,
    ),
    Workload(
        "cross-entropy 2048x16384",
        "kernels",
        "cross_entropy",
        lambda: {"x": rand(2048, 16384), "y": ints(16384, 2048)},
        bytes=4 * 2048 * 16384,
    ),
    Workload(
        "transpose copy 4096x4096",
        "kernels",
        "transpose",
        lambda: {"x": rand(4096, 4096)},
        bytes=8 * N,
    ),
    Workload(
        "cumsum 4096x4096, rows",
        "kernels",
        "cumsum",
        lambda: {"x": rand(4096, 4096)},
        bytes=8 * N,
        tol=1e-3,
    ),
    Workload(
        "embedding 8192 of 50257x768",
        "kernels",
        "embedding",
        lambda: {"w": rand(50257, 768), "idx": ints(50257, 8192)},
        bytes=8 * 8192 * 768,
    ),
    Workload(
        "argmax rows 4096x4096", "kernels", "argmax", lambda: {"x": rand(4096, 4096)}, bytes=4 * N
    ),
    Workload(
        "sort rows 256x1024",
        "kernels",
        "sort",
        lambda: {"x": rand(256, 1024)},
        bytes=8 * 256 * 1024,
    ),
    Workload(
        "dispatch: add 16 floats, no jit",
        "overhead",
        "add_nojit",
        lambda: {"a": rand(16), "b": rand(16, seed=1)},
    ),
    Workload(
        "dispatch: add 16 floats, jit",
        "overhead",
        "add_jit",
        lambda: {"a": rand(16), "b": rand(16, seed=1)},
    ),
    # 3. convolutions
    _conv(64, 56),
    _conv(128, 28),
    _conv(256, 14),
    _conv(512, 7),
    _conv(144, 56, groups=144),
    Workload(
        "maxpool3 s2 b8 c64 112x112",
        "conv",
        "maxpool",
        lambda: {"x": rand(8, 64, 112, 112)},
        bytes=4 * 8 * 64 * 112 * 112 * 1.25,
    ),
    # 4. attention
    Workload(
        "attention causal B4 H12 T512 D64",
        "attention",
        "attention",
        lambda: {
            "q": rand(4, 12, 512, 64, seed=1),
            "k": rand(4, 12, 512, 64, seed=2),
            "v": rand(4, 12, 512, 64, seed=3),
        },
        flops=4 * 4 * 12 * 512 * 512 * 64,
    ),
    Workload(
        "attention forward+backward",
        "attention",
        "attention_backward",
        lambda: {
            "q": rand(4, 12, 512, 64, seed=1),
            "k": rand(4, 12, 512, 64, seed=2),
            "v": rand(4, 12, 512, 64, seed=3),
            "g": rand(4, 12, 512, 64, seed=4),
        },
        flops=14 * 4 * 12 * 512 * 512 * 64,
        tol=1e-3,
    ),
    # 5-7. training steps
    _train(
        "train MLP 784-128-10 b64 Adam",
        "train_mlp",
        lambda: {"x": rand(64, 784), "y": ints(10, 64)},
        items=64,
        flops=6 * 64 * (784 * 128 + 1280),
    ),
    _train(
        "train MLP, not captured",
        "train_mlp_not_captured",
        lambda: {"x": rand(64, 784), "y": ints(10, 64)},
        items=64,
        flops=6 * 64 * (784 * 128 + 1280),
    ),
    _train(
        "train MNIST convnet b128 Adam",
        "train_mnist",
        lambda: {"x": rand(128, 1, 28, 28), "y": ints(10, 128)},
        items=128,
        flops=6
        * 128
        * (24 * 24 * 32 * 25 + 20 * 20 * 32 * 800 + 64 * 64 * 288 + 36 * 64 * 576 + 5760),
    ),
    _train(
        "train nanoGPT char b8 AdamW",
        "train_gpt",
        lambda: gpt_batch(GPT_CHAR, 8, 256),
        items=8 * 256,
        flops=gpt_flops(GPT_CHAR, 8, 256, True),
    ),
    _train(
        "train GPT-2 124M b1 t128 AdamW",
        "train_gpt",
        lambda: gpt_batch(GPT2, 1, 128),
        items=128,
        flops=gpt_flops(GPT2, 1, 128, True),
    ),
    Workload(
        "GPT-2 124M forward b1 t256",
        "infer",
        "gpt_forward",
        lambda: {"cfg": GPT2, "x": ints(50257, 1, 256)},
        items=256,
        flops=gpt_flops(GPT2, 1, 256, False),
        tol=1e-3,
    ),
    # 8. decoding, 9. vision inference
    Workload(
        "GPT-2 124M decode 32 tokens",
        "infer",
        "gpt_decode",
        lambda: {"cfg": GPT2, "tokens": ints(50257, 32)},
        items=32,
        bytes=32 * 4 * 124e6,
        tol=1e-3,
    ),
    Workload(
        "ResNet-18 b1",
        "infer",
        "resnet18",
        lambda: {"x": rand(1, 3, 224, 224)},
        items=1,
        flops=3.6e9,
        tol=1e-3,
    ),
    Workload(
        "ResNet-18 b8",
        "infer",
        "resnet18",
        lambda: {"x": rand(8, 3, 224, 224)},
        items=8,
        flops=8 * 3.6e9,
        tol=1e-3,
    ),
    # fresh-process rows only (10, 12)
    Workload(
        "first (a+b).tolist()",
        "fresh",
        "add_tolist",
        lambda: {"a": rand(16), "b": rand(16, seed=1)},
    ),
    *[
        _train(f"tiny GPT {n} layers", "train_gpt", lambda n=n: gpt_batch(gpt_tiny(n), 2, 32))
        for n in (2, 4, 8, 16, 32)
    ],
]
BY_NAME = {w.name: w for w in WORKLOADS}
