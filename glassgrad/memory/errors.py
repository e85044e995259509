"""The hub's errors: no exporter, export refused, view released, malformed format."""

from __future__ import annotations

from typing import Any

from glassgrad.base import errors
from glassgrad.base.errors import GlassgradError


class ExportError(GlassgradError, TypeError):
    """This object has no known way to share its memory."""


class RefusedError(GlassgradError, BufferError):
    """The memory cannot be shared as requested."""


class ReleasedError(GlassgradError, ValueError):
    """The view was released and cannot be used any more."""


class FormatError(errors.FormatError):
    """A malformed format: `format` is the whole text and `pos` the position of the error."""

    def __init__(self, message: str, format: str, pos: int, origin: Any = None) -> None:
        self.format = format
        self.pos = pos
        self.reason = message
        hint = f"{format!r} is valid up to position {pos}: {format[:pos]!r}"
        super().__init__(f"format {format!r}, position {pos}: {message}", hint, origin)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.format, self.pos, self.origin)
