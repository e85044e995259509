"""what the hub refuses -> exceptions: nobody exports this, refused, released, a wrong format."""

from __future__ import annotations

from typing import Any

from glassgrad.base import errors
from glassgrad.base.errors import GlassgradError


class ExportError(GlassgradError, TypeError):
    """Nobody knows how to share this object's memory."""


class RefusedError(GlassgradError, BufferError):
    """The memory cannot be shared in the way that was asked for."""


class ReleasedError(GlassgradError, ValueError):
    """The view was given back and must not be used any more."""


class FormatError(errors.FormatError):
    """A format is wrong at a place: `format` is the whole text and `pos` where it goes wrong."""

    def __init__(self, message: str, format: str, pos: int, origin: Any = None) -> None:
        self.format = format
        self.pos = pos
        self.reason = message
        hint = f"{format!r} is understood up to position {pos}: {format[:pos]!r}"
        super().__init__(f"format {format!r}, position {pos}: {message}", hint, origin)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.format, self.pos, self.origin)
