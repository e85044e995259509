"""running frames -> Origin: the user's line that made a value, kept as two references, read late.

`here()` is called for every recorded node, so it only walks out of the package and keeps the code
object and the position in it. File, line and text are looked up when somebody asks.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
GENERATED = "<glassgrad"  # how file names of code that we generate begin
FOREIGN: dict[str, bool] = {}  # file name -> lies outside of the package

KNOWN: dict[tuple[int, int], Origin] = {}  # id of the code, position -> its origin
MOST_KNOWN = 10_000


def _is_foreign(filename: str, frame: FrameType) -> bool:
    # "<string>" is the code of dataclasses, ours too, but also of `python -c`.
    if filename == "<string>":
        return not frame.f_globals.get("__name__", "").startswith("glassgrad.")
    foreign = not filename.startswith((PACKAGE, GENERATED))
    if len(FOREIGN) > 10_000:  # every cell of a notebook has a new name
        FOREIGN.clear()
    FOREIGN[filename] = foreign
    return foreign


class Origin:
    """One line of the user's program.

    >>> print(Origin("train.py", 17, "loss = (pred + bias).sum()"))
    train.py:17   loss = (pred + bias).sum()
    """

    __slots__ = ("_code", "_file", "_line", "_position", "_text")

    def __init__(self, file: str, line: int, text: str = "") -> None:
        self._code: CodeType | None = None
        self._position = 0
        self._file = file
        self._line = line
        self._text: str | None = text

    @property
    def file(self) -> str:
        """The path of the file as the interpreter knows it, or "<stdin>" and the like."""
        return self._file if self._code is None else self._code.co_filename

    @property
    def line(self) -> int:
        if self._code is not None and self._line == 0:
            self._line = _line_at(self._code, self._position)
        return self._line

    @property
    def text(self) -> str:
        """What is written on the line; empty where no source is to be had."""
        if self._text is None:
            from linecache import getline  # takes long to import, and few texts are asked for

            self._text = getline(self.file, self.line).strip()
        return self._text

    def __str__(self) -> str:
        place = f"{_short(self.file)}:{self.line}"
        return f"{place}   {self.text}" if self.text else place

    def __repr__(self) -> str:
        return f"Origin({self.file!r}, {self.line}, {self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and (self.file, self.line) == (other.file, other.line)

    def __hash__(self) -> int:
        return hash((self.file, self.line))

    def __reduce__(self) -> tuple[type[Origin], tuple[str, int, str]]:
        return Origin, (self.file, self.line, self.text)


def _line_at(code: CodeType, position: int) -> int:
    """The line of the instruction at this byte of a code object."""
    for start, stop, line in code.co_lines():
        if start <= position < stop and line is not None:
            return line
    return code.co_firstlineno


def _short(file: str) -> str:
    """A path as a person would write it: relative where it lies below the working directory."""
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):  # another drive, or the directory is gone
        return file
    return file if relative.startswith("..") or file.startswith("<") else relative


def is_in_package(frame: FrameType) -> bool:
    """Whether this is code of ours."""
    filename = frame.f_code.co_filename
    foreign = FOREIGN.get(filename)
    return not (_is_foreign(filename, frame) if foreign is None else foreign)


def here(inner: int = 1) -> Origin | None:
    """The innermost line outside of the package that is running now; None if there is none.

    So many callers are known to be of the package.
    """
    frame: FrameType | None = sys._getframe(inner)
    while frame is not None:
        code = frame.f_code
        foreign = FOREIGN.get(code.co_filename)
        if _is_foreign(code.co_filename, frame) if foreign is None else foreign:
            place = (id(code), frame.f_lasti)
            return KNOWN.get(place) or _remembered(place, code)
        frame = frame.f_back
    return None


def _remembered(place: tuple[int, int], code: CodeType) -> Origin:
    """The origin of an instruction; it keeps the code, so that no other one has its id."""
    origin = Origin.__new__(Origin)
    origin._code = code
    origin._position = place[1]
    origin._line = 0
    origin._text = None
    if len(KNOWN) > MOST_KNOWN:
        KNOWN.clear()
    return KNOWN.setdefault(place, origin)
