"""Progress bars."""

from io import BytesIO, TextIOWrapper

import pytest

from glassgrad.base.progress import tqdm, trange
from glassgrad.base.terminal import ansilen, ansistrip, colored


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")


def last_line(capsys):
    text = capsys.readouterr().err
    assert text.endswith("\n")
    return text.rstrip("\n").split("\r")[-1]


def test_items_pass_through_and_are_counted(capsys):
    assert list(tqdm([1, 2, 3], desc="items")) == [1, 2, 3]
    line = last_line(capsys)
    assert line.startswith("items: 100%|")
    assert "| 3/3 [00:00<00:00," in line


def test_trange_counts(capsys):
    assert list(trange(4)) == [0, 1, 2, 3]
    assert "4/4" in last_line(capsys)


def test_a_line_fits_the_terminal():
    bar = tqdm(total=8, desc="half")
    bar.n = 4
    line = bar.line(2.0)
    assert len(line) == 59
    assert line.startswith("half:  50%|█")
    assert line.endswith("| 4/8 [00:02<00:02,  2.00it/s]")


@pytest.mark.parametrize("columns", [5, 20, 40, 41, 45])
def test_a_line_fits_a_narrow_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for total in (8, None):
        bar = tqdm(total=total, desc=colored("half", "red"))
        bar.n = 4
        assert ansilen(bar.line(2.0)) < columns
    assert "half: 4it"[: columns - 1] in ansistrip(bar.line(2.0))


def test_a_terminal_without_block_characters_shows_others(monkeypatch):
    monkeypatch.setattr("sys.stderr", TextIOWrapper(BytesIO(), encoding="ascii"))
    bar = tqdm(total=8)
    bar.n = 4
    line = bar.line(2.0)
    assert line.isascii()
    assert " 50%|####" in line


def test_without_a_total_there_is_a_count(capsys):
    bar = tqdm(iter("ab"), unit="letters")
    assert list(bar) == ["a", "b"]
    assert last_line(capsys).startswith("2letters [")


def test_large_counts_are_scaled():
    bar = tqdm(total=5_000_000, unit="B", unit_scale=True)
    bar.n = 2_500_000
    assert "| 2.50M/5.00M [00:01<00:01, 2.50MB/s]" in bar.line(1.0)


def test_a_bar_closes_once(capsys):
    with tqdm(range(2)) as bar:
        for _ in bar:
            pass
    assert capsys.readouterr().err.count("\n") == 1


def test_updates_that_close_each_draw_a_line(capsys):
    bar = tqdm(
        iterable=list(range(3)), desc="list iterations", unit="  iterations", unit_scale=True
    )
    for _ in range(3):
        bar.update(n=1, close=True)
    assert capsys.readouterr().err.count("\n") == 3


def test_a_bar_closes_when_the_loop_breaks(capsys):
    for item in tqdm(range(100)):
        if item == 2:
            break
    assert "2/100" in last_line(capsys)


def test_a_disabled_bar_is_silent(capsys):
    assert list(tqdm(range(3), disable=True)) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_the_description_changes_and_lines_are_written_above(capsys):
    bar = tqdm(total=1)
    bar.set_description("new")
    assert bar.line(1.0).startswith("new: ")
    tqdm.write("above")
    assert capsys.readouterr().err.endswith("above\n")


def test_a_bar_without_an_iterable_is_an_error():
    with pytest.raises(TypeError, match="update"):
        next(iter(tqdm(total=3)))


def test_sizes_and_times_as_the_bar_prints_them():
    assert tqdm.SI(1_500) == "1.50K"
    assert tqdm.HMS(3_700) == "1:01:40"
