"""VERIFY=1: every kernel is compared with its plain loops; a difference names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, Variable
from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import VerifyError
from glassgrad.base.fast_dataclasses import replace
from glassgrad.devices.cpu.device import CpuDevice
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.engine.verify import differences
from glassgrad.engine.verify.verify import Span, merge_spans


@pytest.fixture(autouse=True)
def verifying() -> Iterator[None]:
    cache.clear()
    with Context(VERIFY=1):
        yield
    cache.clear()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels whose outputs were compared."""
    names: list[str] = []
    inner = differences.require_close

    def count_comparison(launch: Any, *rest: Any) -> None:
        names.append(launch.executable.source.name)
        inner(launch, *rest)

    monkeypatch.setattr(differences, "require_close", count_comparison)
    return names


def some(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape, np.float32)).realize()


def compile_wrongly(patch: pytest.MonkeyPatch, old: str, wrong: str) -> None:
    """Miscompile optimized kernels; plain loops, which have no vectors, stay right."""
    inner = CpuDevice.compile

    def compile_other(device: CpuDevice, source: Any) -> Any:
        is_optimized = " x float>" in source.text or " x i32>" in source.text
        text = source.text.replace(old, wrong) if is_optimized else source.text
        return inner(device, replace(source, text=text))

    patch.setattr(CpuDevice, "compile", compile_other)


def test_a_wrong_kernel_is_named_with_its_recipe_and_first_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = some(16, 16), some(16, 16, seed=1)
    compile_wrongly(monkeypatch, "fadd <", "fsub <")
    with pytest.raises(VerifyError) as raised:
        (x + y).realize()
    message = str(raised.value)
    first = x.numpy().flat[0] - y.numpy().flat[0]
    assert message.startswith("kernel E_")
    assert f"computes {first}" in message
    assert "the first of 256 that differ among 256" in message
    assert "UPCAST" in message


def test_an_output_that_is_never_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = some(64, 64)
    compile_wrongly(monkeypatch, "store <", "; store <")
    with pytest.raises(VerifyError, match="computes nan where its plain loops"), Context(POISON=1):
        (x * 2).realize()


def test_integers_must_be_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(np.zeros(64, np.int32)).realize()
    compile_wrongly(monkeypatch, "i32 500000", "i32 500001")
    with pytest.raises(VerifyError, match="computes 500001 where its plain loops compute 500000"):
        (x + 500000).realize()


KINDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "elementwise": lambda x, y: (x * y).exp(),
    "sum": lambda x, y: (x * y).sum(0),
    "cancelling sum": lambda x, y: (x - x.mean()).sum(),
    "product": lambda x, y: x @ y,
    "softmax": lambda x, y: x.softmax(1),
    "flipped": lambda x, y: x.flip(0) + y.flip(1),
    "part": lambda x, y: x[3:50:2, ::-1] * 2,
    "lookup": lambda x, y: x[Tensor([3, 0, 63, 7]).realize()],
    "scan": lambda x, y: x.cumsum(1),
    "sort": lambda x, y: x.sort(1)[0],
    "argmax": lambda x, y: (x @ y).argmax(1),
    "comparison": lambda x, y: (x @ y) > 0,
    "bfloat16": lambda x, y: (x.cast("bfloat16") @ y.cast("bfloat16")).cast("float32"),
    "fp8": lambda x, y: x.cast(dtypes.fp8e4m3),
    "float16": lambda x, y: x.half() * 3,
    "float64": lambda x, y: (x.double() @ y.double()).sum(),
    "bool": lambda x, y: (x > 0) & (y > 0),
    "scalar": lambda x, y: x.max(),
    "two outputs": lambda x, y: x.qr()[0],
}


@pytest.mark.parametrize("name", KINDS)
def test_kernels_of_all_kinds_are_compared_and_right(name: str, compared: list[str]) -> None:
    KINDS[name](some(64, 64), some(64, 64, seed=1)).realize()
    assert compared


def test_writes_in_place_see_the_old_contents_twice(compared: list[str]) -> None:
    x = some(40)
    before = x.numpy().copy()
    x += 1
    x[3:20] *= 2
    x[:10] = x[10:20]
    x.realize()
    want = before + 1
    want[3:20] *= 2
    want[:10] = want[10:20].copy()
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-6)
    assert compared


def test_replays_are_compared(compared: list[str]) -> None:
    step = TinyJit(lambda x: (x @ x).relu().realize())
    x = some(32, 32)
    for _ in range(3):
        step(x)
    count = len(compared)
    assert count
    step(x)
    assert len(compared) > count


def test_sizes_that_are_known_at_launch(compared: list[str]) -> None:
    x = some(32, 8)
    for value in (3, 31):
        length = Variable("n", 1, 32).bind(value)
        np.testing.assert_allclose(x[:length].sum().item(), x.numpy()[:value].sum(), rtol=1e-4)
    assert compared


def test_without_the_setting_nothing_is_compared(compared: list[str]) -> None:
    with Context(VERIFY=0):
        (some(8) + 1).realize()
    assert not compared


def test_with_plain_loops_there_is_nothing_to_compare(compared: list[str]) -> None:
    with Context(NOOPT=1):
        (some(8) + 2).realize()
    assert not compared


def test_memory_that_parameters_share_is_copied_once() -> None:
    spans = [Span(0, 10), Span(20, 30), Span(5, 15), Span(30, 40)]
    assert merge_spans(spans) == [Span(0, 15), Span(20, 30), Span(30, 40)]
