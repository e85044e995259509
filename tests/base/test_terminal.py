"""Text for terminals."""

import pytest

from glassgrad.base.config import Context
from glassgrad.base.terminal import (
    ansilen,
    ansipad,
    ansistrip,
    clock,
    colored,
    colorize_float,
    si,
    size_to_str,
    time_to_str,
)


@pytest.fixture
def colours():
    with Context(NO_COLOR=0):
        yield


@pytest.mark.usefixtures("colours")
def test_colours_are_escapes_that_can_be_stripped():
    assert colored("x", "red") == "\x1b[31mx\x1b[0m"
    assert colored("x", "RED") == "\x1b[91mx\x1b[0m"
    assert colored("x", "red", background=True) == "\x1b[41mx\x1b[0m"
    assert colored(3, None) == "3"
    assert ansistrip(f"a{colored('b', 'cyan')}c") == "abc"
    assert ansilen(colored("four", "blue")) == 4
    assert ansipad(colored("ab", "blue"), 4) == colored("ab", "blue") + "  "


def test_no_color_means_no_escapes():
    with Context(NO_COLOR=1):
        assert colored("x", "red") == "x"


@pytest.mark.usefixtures("colours")
def test_ratios_are_green_when_faster():
    assert colorize_float(0.5) == colored("   0.50x", "green")
    assert colorize_float(1.0) == colored("   1.00x", "yellow")
    assert colorize_float(2.0) == colored("   2.00x", "red")


@pytest.mark.parametrize(
    "seconds, text",
    [(12.0, "   12.00s "), (1.5, " 1500.00ms"), (0.0015, "    1.50ms"), (1e-7, "    0.10us")],
)
def test_times_have_a_fitting_unit(seconds, text):
    assert time_to_str(seconds) == text


@pytest.mark.parametrize(
    "count, text",
    [(0, "0 B"), (999, "999 B"), (1500, "1.50 KB"), (2e6, "2.00 MB"), (5e12, "5.00 TB")],
)
def test_sizes_have_a_fitting_unit(count, text):
    assert size_to_str(count) == text


@pytest.mark.parametrize(
    "number, text",
    [(0, "0"), (1, "1.00"), (12, "12.0"), (999, "999"), (1_000, "1.00K"), (1.5e7, "15.0M")],
)
def test_counts_have_three_figures(number, text):
    assert si(number) == text


@pytest.mark.parametrize("seconds, text", [(0, "00:00"), (65, "01:05"), (3_700, "1:01:40")])
def test_clocks(seconds, text):
    assert clock(seconds) == text
