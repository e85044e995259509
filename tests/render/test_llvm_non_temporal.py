"""Non-temporal stores to aligned buffers; the same results elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.compiler.hand_programs import address
from support.compiler.on_cpu import cpu
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.devices.cpu.native import assembly
from glassgrad.engine.pipeline import write_source
from glassgrad.ir.stages import Kernel, Source

COUNT = 128 * 128


def kernel_of(tensor: Tensor) -> Kernel:
    (kernel,) = planned(tensor).kernels
    return kernel


def streamed(kernel: Kernel) -> Source:
    """The source for this machine, if its last cache were tiny."""
    return write_source(kernel, replace(cpu().target, l3_bytes=64))


def starting(bytes_off: int) -> np.ndarray:
    """Floats in memory that starts a number of bytes after a cache line."""
    raw = np.zeros(COUNT * 4 + 128, np.uint8)
    first = -address(raw) % 64 + bytes_off
    return raw[first : first + COUNT * 4].view(np.float32)


@pytest.mark.parametrize("bytes_off", [0, 4, 16, 32])
def test_results_do_not_depend_on_alignment(bytes_off: int) -> None:
    code = cpu().compile(streamed(kernel_of(memory(128, 128) * 3 + 1)))
    x, found = np.arange(COUNT, dtype=np.float32), starting(bytes_off)
    code((address(found), address(x)))
    np.testing.assert_array_equal(found, x * 3 + 1)


def test_two_results_are_tested_for_alignment_separately() -> None:
    x = memory(128, 128)
    (kernel,) = planned(x + 1, x * 2).kernels
    code = cpu().compile(streamed(kernel))
    numbers = np.arange(COUNT, dtype=np.float32)
    one, two = starting(0), starting(8)
    code((address(one), address(numbers), address(two)))
    results = sorted((one.tolist(), two.tolist()))
    assert results == sorted(((numbers + 1).tolist(), (numbers * 2).tolist()))


def test_neighbouring_stores_share_a_branch_and_a_fence_ends_the_kernel() -> None:
    text = streamed(kernel_of(memory(128, 128) + 1)).text
    vectors = len(re.findall("!nontemporal !0", text))
    assert vectors > 1
    assert len(re.findall(r"br i1 %whole0", text)) == 1
    assert text.index("fence seq_cst") < text.index("ret void")


def test_non_temporal_stores_become_machine_instructions() -> None:
    text = assembly(streamed(kernel_of(memory(128, 128) + 1)).text)
    if "vmov" not in text:
        pytest.skip("this is no x86 processor with AVX")
    assert "vmovntps" in text
    assert re.search(r"mfence|lock", text.split("vmovntps")[-1]), (
        "nobody is told before they are there"
    )


def test_small_results_have_neither_branch_nor_fence() -> None:
    text = write_source(kernel_of(memory(128, 128) + 1), cpu().target).text
    assert "nontemporal" not in text and "fence" not in text
