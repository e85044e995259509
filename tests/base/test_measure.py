"""Timing and Profiling."""

import pstats
import time

from glassgrad.base.measure import Profiling, Timing


def test_timing_prints_milliseconds_and_a_note(capsys):
    with Timing("sleep ", on_exit=lambda ns: f", {ns > 2_000_000}") as timing:
        time.sleep(0.003)
    assert timing.et > 2_000_000
    out = capsys.readouterr().out
    assert out.startswith("sleep ")
    assert out.endswith(" ms, True\n")


def test_timing_can_be_silent_and_can_decorate(capsys):
    @Timing(enabled=False)
    def work():
        return 3

    assert work() == 3
    assert capsys.readouterr().out == ""


def busy():
    return sum(range(20_000))


def test_profiling_names_the_functions(capsys):
    with Profiling(frac=1.0, sort="tottime"):
        busy()
    out = capsys.readouterr().out
    assert "1 calls" in out
    assert "busy  test_measure.py:" in out


def test_profiling_keeps_the_profile_in_a_file(tmp_path, capsys):
    path = tmp_path / "profile"
    with Profiling(fn=str(path)):
        busy()
    assert any(name == "busy" for _, _, name in pstats.Stats(str(path)).stats)
    assert capsys.readouterr().out


def test_profiling_can_be_off(capsys):
    with Profiling(enabled=False):
        busy()
    assert capsys.readouterr().out == ""
