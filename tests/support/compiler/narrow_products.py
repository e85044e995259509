"""Products of bytes with 32-bit sums, and machines that have instructions for several at a time."""

from __future__ import annotations

import numpy as np

from glassgrad import Tensor, dtypes
from glassgrad.devices.cpu.machine import cpu_target
from glassgrad.devices.cpu.native import Host
from glassgrad.ir.stages import Target
from support.references.graph import Array

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
AVX2 = "+avx,+avx2,+fma,+f16c"
HOSTS = {
    "SSE4.2": Host(X86, "nehalem", "+sse4.2,-avx", "0"),
    "AVX2": Host(X86, "haswell", AVX2, "0"),
    "AVX-VNNI": Host(X86, "haswell", f"{AVX2},+avxvnni", "0"),
    "AVX-VNNI-INT8": Host(X86, "haswell", f"{AVX2},+avxvnni,+avxvnniint8", "0"),
    "AVX512-VNNI": Host(
        X86, "cascadelake", f"{AVX2},+avx512f,+avx512vl,+avx512bw,+avx512vnni", "0"
    ),
    "NEON dotprod": Host(ARM, "neoverse-n1", "+neon,+dotprod", "0"),
    "NEON i8mm": Host(ARM, "neoverse-v1", "+neon,+dotprod,+i8mm", "0"),
}
PAIRS = [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")]


def machine(name: str) -> Target:
    return cpu_target(HOSTS[name])


def extreme(shape: tuple[int, int], dtype: str) -> Array:
    """All bytes, the smallest and largest in long rows."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(sum(shape))
    found = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    found[0], found[-1] = info.min, info.max
    found[:, 0] = info.min
    return found


def narrow_product(m: int, k: int, n: int, pair: tuple[str, str]) -> tuple[Tensor, Array]:
    """A product, and what it should be."""
    x, y = extreme((m, k), pair[0]), extreme((k, n), pair[1])
    tensor = Tensor(x).realize().cast(dtypes.int32) @ Tensor(y).realize().cast(dtypes.int32)
    return tensor, x.astype(np.int32) @ y.astype(np.int32)
