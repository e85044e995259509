"""What DEBUG prints at each level."""

from __future__ import annotations

import re

import pytest

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.engine.cache import graph_keys as cache


def printed(capsys: pytest.CaptureFixture[str], level: int, **settings: int) -> str:
    """What realizing a 4x4 addition prints, compiled without caches."""
    x, y = Tensor.ones(4, 4).contiguous(), Tensor.ones(4, 4).contiguous()
    Tensor.realize(x, y)
    cache.clear()
    capsys.readouterr()
    with Context(DEBUG=level, **settings):
        (x + y).realize()
    return capsys.readouterr().out


def test_nothing_is_printed_without_debug(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, 0) == ""
    assert printed(capsys, 1) == ""


def test_one_line_per_kernel_shows_name_arguments_memory_time_and_speed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (line,) = printed(capsys, 2).splitlines()
    pattern = r"\*\*\* CPU +\d+ E_[\d_]+ +arg +3 mem +[\d.]+ GB tm +[\d.]+us/ *[\d.]+ms "
    assert re.match(pattern + r"\( *[\d.]+ GFLOPS +[\d.]+ GB/s\)$", line)


def test_a_line_is_printed_for_every_launch_even_of_cached_plans(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = Tensor.ones(8).contiguous().realize()
    (x * 7).realize()
    capsys.readouterr()
    with Context(DEBUG=2):
        for _ in range(3):
            (x * 7).realize()
    assert capsys.readouterr().out.count("*** CPU") == 3


def test_the_recipe_and_the_buffers_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 3)
    assert "Opt(OptOps.UPCAST, 0, 16)" in text
    assert "data0 float32 (4, 4)" in text


def test_the_source_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 4)
    assert "define" in text
    assert re.search(r"fadd \w* ?<\d+ x float>", text)


def test_the_source_without_moves_is_a_plain_loop(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 4, NOOPT=1)
    assert "E_16" in text
    assert "fadd float" in text
    assert " x float>" not in text


def test_passes_are_printed_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 5)
    assert "UOp(Ops.SINK" in text


def test_instructions_are_printed_after_each_pass_over_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, 5)
    _, emitted = text.split("after 'emit instructions'")
    assert re.search(r"^ +\d+ +STORE\(\d+, \d+\) ", emitted, re.MULTILINE)


def test_the_program_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 6)
    assert re.search(r"^ +\d+ +LOAD\(\d+\) ", text, re.MULTILINE)
    assert re.search(r"^ +\d+ +STORE\(\d+, \d+\) ", text, re.MULTILINE)


def test_machine_code_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "ret" in printed(capsys, 7)


def test_every_level_prints_more(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = [len(printed(capsys, level).splitlines()) for level in range(2, 8)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
