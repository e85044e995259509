"""Text for terminals: colours, widths without colours, readable sizes and times."""

from __future__ import annotations

import math
import re
import sys

from glassgrad.base.config import NO_COLOR

COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;;.*?\x1b\\")


def colored(text: object, color: str | None, background: bool = False) -> str:
    """The text in a colour; capital letters ("RED") make it bright."""
    if color is None or NO_COLOR:
        return str(text)
    code = (
        COLOURS.index(color.lower()) + (10 if background else 0) + (90 if color.isupper() else 30)
    )
    return f"\x1b[{code}m{text}\x1b[0m"


def painted(text: object, color: str) -> str:
    """Coloured text if the output is a terminal; files and pipes get plain text."""
    is_seen = sys.stdout is not None and sys.stdout.isatty()
    return colored(text, color) if is_seen else str(text)


def ansistrip(text: str) -> str:
    """The text without colours.

    >>> ansistrip(colored("r_64", "red"))
    'r_64'
    """
    return ESCAPES.sub("", text)


def ansilen(text: str) -> int:
    """The number of columns of a text."""
    return len(ansistrip(text))


def ansipad(text: str, width: int) -> str:
    """The text padded with blanks to a width, not counting colour codes."""
    return text + " " * max(width - ansilen(text), 0)


def colorize_float(ratio: float) -> str:
    """A ratio of two times: green if faster, red if slower."""
    text = f"{ratio:7.2f}x"
    return colored(text, "green" if ratio < 0.75 else "red" if ratio > 1.15 else "yellow")


def time_to_str(seconds: float, width: int = 8) -> str:
    """A time in a readable unit.

    >>> time_to_str(0.0000123)
    '   12.30us'
    """
    for unit, scale in (("s ", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= (10 if scale == 1.0 else 1) or unit == "us":
            return f"{seconds * scale:{width}.2f}{unit}"
    raise AssertionError("the last unit takes every time")


def size_to_str(nbytes: float) -> str:
    """
    >>> size_to_str(1_500), size_to_str(3_000_000_000)
    ('1.50 KB', '3.00 GB')
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.2f} {unit}"
    return f"{nbytes:.0f} B"


def si(number: float) -> str:
    """A count with three or four digits and an SI prefix.

    >>> si(12), si(1_234_567)
    ('12.0', '1.23M')
    """
    if number == 0 or not math.isfinite(number):
        return f"{number:.0f}"
    thousands = min(max(int(math.log10(abs(number)) // 3), 0), 6)
    scaled = number / 1000**thousands
    figures = max(2 - int(math.log10(max(abs(scaled), 1))), 0)
    return f"{scaled:.{figures}f}{' KMGTPE'[thousands].strip()}"


def clock(seconds: float) -> str:
    """
    >>> clock(65), clock(3_700)
    ('01:05', '1:01:40')
    """
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes:02}:{whole % 60:02}"
