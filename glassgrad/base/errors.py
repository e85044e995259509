"""Errors that say what was asked, what was found, where, and what to try.

GlassgradError
├── ShapeError        ValueError     sizes do not match
├── AxisError         IndexError     no such axis, or an index out of range
├── DTypeError        TypeError      the dtype does not support this
├── GradientError     RuntimeError   there is no gradient to compute
├── CaptureError      RuntimeError   a captured call cannot be replayed
├── DeviceError       RuntimeError   no such device, or it does not work on this machine
├── CompileError      RuntimeError   a compiler rejected generated code
├── VerifyError       RuntimeError   VERIFY=1 found a kernel with wrong results
├── OutOfMemoryError  MemoryError    the device is out of memory
├── DownloadError     OSError        a download failed
├── FormatError       ValueError     a file or buffer is malformed
└── SettingError      ValueError     a setting has a wrong name or value
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.origin import Origin, here


class GlassgradError(Exception):
    """The base class of all errors that a user can cause.

    The message ends with the user's line, found here unless `origin` names another one, and with
    the hint, if any.
    """

    def __init__(self, message: str, hint: str | None = None, origin: Origin | None = None) -> None:
        self.message = message
        self.hint = hint
        self.origin = here() if origin is None else origin
        # Unpickling in another process rebuilds the error from `args`.
        super().__init__(message, hint, self.origin)

    def __str__(self) -> str:
        lines = [self.message]
        if self.origin is not None:
            lines.append(f"  {self.origin}")
        if self.hint is not None:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint, self.origin)


class ShapeError(GlassgradError, ValueError):
    """Sizes do not match."""


class AxisError(GlassgradError, IndexError):
    """There is no such axis, or an index is out of range."""


class DTypeError(GlassgradError, TypeError):
    """The dtype does not support this."""


class GradientError(GlassgradError, RuntimeError):
    """There is no gradient to compute."""


class CaptureError(GlassgradError, RuntimeError):
    """A captured call cannot be replayed."""


class DeviceError(GlassgradError, RuntimeError):
    """There is no such device, or it does not work on this machine."""


class CompileError(GlassgradError, RuntimeError):
    """A compiler rejected generated code."""


class VerifyError(GlassgradError, RuntimeError):
    """A kernel and its plain loops computed different results."""


class CompilerWarning(RuntimeWarning):
    """A kernel could not be optimized; a slower version is used."""


class CacheWarning(RuntimeWarning):
    """The cache folder is not used, because other users can write to it."""


class GraphWarning(RuntimeWarning):
    """A graph grows with each step of a loop, and so do time and memory."""


class OutOfMemoryError(GlassgradError, MemoryError):
    """The device is out of memory."""


class DownloadError(GlassgradError, OSError):
    """A download failed."""


class FormatError(GlassgradError, ValueError):
    """A file or a buffer is malformed."""


class SettingError(GlassgradError, ValueError):
    """A setting has a wrong name or value."""
