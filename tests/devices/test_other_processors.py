"""Kernels for other processors: their Targets decide, and LLVM compiles them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import pytest
from support.compiler.narrow_products import HOSTS, narrow_product
from support.compiler.schedules import memory, planned

from glassgrad import Tensor, dtypes
from glassgrad.devices.cpu.llvm import LLVM_GATE, Host
from glassgrad.devices.cpu.machine import cpu_target
from glassgrad.engine.pipeline import write_source


class Processor(NamedTuple):
    """What LLVM is told, and how wide vectors look in its assembly; `wider` must not be there."""

    triple: str
    cpu: str
    features: str
    vectors: str
    wider: str
    fused: str


X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
PROCESSORS = {
    "SSE4.2": Processor(X86, "nehalem", "+sse4.2,-avx", r"%xmm", r"%ymm|%zmm|fmaf?@PLT", r"mulps"),
    "AVX2": Processor(X86, "haswell", "+avx,+avx2,+fma,+f16c", r"%ymm", r"%zmm", r"vfmadd"),
    "AVX-512": Processor(
        X86,
        "skylake-avx512",
        "+avx,+avx2,+fma,+f16c,+avx512f,+avx512vl",
        r"%zmm",
        r"fmaf?@PLT",
        r"vfmadd",
    ),
    "NEON": Processor(ARM, "neoverse-n1", "+neon", r"v\d+\.4s|\bq\d+\b", r"z\d+\.s|fmaf", r"fmla"),
}


@cache
def llvm() -> Any:
    binding = pytest.importorskip("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def assembly(tensor: Tensor, processor: Processor | Host) -> str:
    """All kernels of a tensor, as this processor's assembly."""
    triple, cpu, features = processor[:3]
    target = cpu_target(Host(triple, cpu, features, "0"))
    with LLVM_GATE:
        machine = (
            llvm()
            .Target.from_triple(triple)
            .create_target_machine(cpu=cpu, features=features, opt=2)
        )
        texts = [write_source(kernel, target).text for kernel in planned(tensor).kernels]
        return "".join(machine.emit_assembly(llvm().parse_assembly(text)) for text in texts)


KERNELS = {
    "elementwise": lambda: memory(64, 256) * 2 + memory(64, 256),
    "exp": lambda: memory(64, 256).exp(),
    "sum": lambda: memory(64, 256).sum(1),
    "matmul": lambda: memory(64, 64) @ memory(64, 64),
    "softmax": lambda: memory(64, 256).softmax(),
    "convolution": lambda: memory(2, 8, 16, 16).conv2d(memory(8, 8, 3, 3), padding=1),
    "pooling": lambda: memory(2, 8, 32, 32).max_pool2d(3, 2, padding=1),
    "cumsum": lambda: memory(64, 256).cumsum(1),
    "sort": lambda: memory(16, 64).sort()[0],
    "half": lambda: memory(64, 256, dtype=dtypes.float16) * 2,
    "lookup": lambda: memory(64, 256)[memory(32, dtype=dtypes.int32)],
}


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kind_of_kernel_compiles_for_other_processors(kernel: str, name: str) -> None:
    processor = PROCESSORS[name]
    text = assembly(KERNELS[kernel](), processor)
    assert re.search(processor.vectors, text)
    assert not re.search(processor.wider, text)


@pytest.mark.parametrize("name", PROCESSORS)
def test_products_use_the_fused_multiply_add_of_the_processor(name: str) -> None:
    text = assembly(KERNELS["matmul"](), PROCESSORS[name])
    assert re.search(PROCESSORS[name].fused, text)


@pytest.mark.parametrize(
    ("name", "lanes"), [("SSE4.2", 4), ("AVX2", 8), ("AVX-512", 16), ("NEON", 4)]
)
def test_text_has_vectors_of_the_processor_s_width(name: str, lanes: int) -> None:
    processor = PROCESSORS[name]
    target = cpu_target(Host(processor.triple, processor.cpu, processor.features, "0"))
    (kernel,) = planned(KERNELS["elementwise"]()).kernels
    widths = {int(n) for n in re.findall(r"<(\d+) x float>", write_source(kernel, target).text)}
    assert widths == {lanes}


@pytest.mark.parametrize(
    ("name", "pair", "instruction"),
    [
        ("SSE4.2", ("int8", "int8"), r"pmaddwd\s.*%xmm"),
        ("AVX2", ("int8", "int8"), r"vpmaddwd\s.*%ymm"),
        ("AVX-VNNI", ("int8", "int8"), r"vpdpbusd\s.*%ymm"),
        ("AVX-VNNI", ("uint8", "uint8"), r"vpdpbusd\s.*%ymm"),
        ("AVX-VNNI-INT8", ("int8", "int8"), r"vpdpbssd\s.*%ymm"),
        ("AVX-VNNI-INT8", ("uint8", "uint8"), r"vpdpbuud\s.*%ymm"),
        ("AVX512-VNNI", ("uint8", "int8"), r"vpdpbusd\s.*%zmm"),
        ("NEON dotprod", ("int8", "int8"), r"\bsdot\s+v\d+\.4s"),
        ("NEON dotprod", ("uint8", "uint8"), r"\budot\s+v\d+\.4s"),
        ("NEON i8mm", ("uint8", "int8"), r"\busdot\s+v\d+\.4s"),
    ],
)
def test_products_of_bytes_use_the_processor_s_dot_products(
    name: str, pair: tuple[str, str], instruction: str
) -> None:
    text = assembly(narrow_product(64, 64, 64, pair)[0], HOSTS[name])
    assert len(re.findall(instruction, text)) >= 8
