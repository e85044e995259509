"""what went wrong -> an exception that says what was asked, what was found, where, and what to try.

GlassgradError
├── ShapeError        ValueError     sizes do not fit
├── AxisError         IndexError     there is no such axis, or an index lies outside of it
├── DTypeError        TypeError      the element type does not allow this
├── GradientError     RuntimeError   there is no gradient to compute
├── CaptureError      RuntimeError   a captured call cannot be replayed
├── DeviceError       RuntimeError   there is no such device, or it does not work here
├── CompileError      RuntimeError   a compiler refused our code
├── VerifyError       RuntimeError   VERIFY=1 found a kernel that computes something else
├── OutOfMemoryError  MemoryError    the device has no room
├── DownloadError     OSError        a file cannot be fetched
├── FormatError       ValueError     a file or buffer is not what it should be
└── SettingError      ValueError     a setting has a wrong name or value
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.origin import Origin, here


class GlassgradError(Exception):
    """The root of all errors that a user can cause.

    The message ends with the user's line, found here unless `origin` names another one, and with
    the hint if there is one.
    """

    def __init__(self, message: str, hint: str | None = None, origin: Origin | None = None) -> None:
        self.message = message
        self.hint = hint
        self.origin = here() if origin is None else origin
        # What `args` holds is what a copy of the error in another process is made from.
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
    """Sizes do not fit together."""


class AxisError(GlassgradError, IndexError):
    """There is no such axis, or an index lies outside of it."""


class DTypeError(GlassgradError, TypeError):
    """The element type does not allow this."""


class GradientError(GlassgradError, RuntimeError):
    """There is no gradient to compute."""


class CaptureError(GlassgradError, RuntimeError):
    """A captured call cannot be replayed."""


class DeviceError(GlassgradError, RuntimeError):
    """There is no such device, or it does not work here."""


class CompileError(GlassgradError, RuntimeError):
    """A compiler refused our code."""


class VerifyError(GlassgradError, RuntimeError):
    """A kernel and its plain loops computed different results."""


class CompilerWarning(RuntimeWarning):
    """A kernel could not be optimized; a slower version runs."""


class CacheWarning(RuntimeWarning):
    """The cache folder is not used, as others could have written to it."""


class GraphWarning(RuntimeWarning):
    """A graph grows from step to step, and time and memory grow with it."""


class OutOfMemoryError(GlassgradError, MemoryError):
    """The device has no room."""


class DownloadError(GlassgradError, OSError):
    """A file cannot be fetched."""


class FormatError(GlassgradError, ValueError):
    """A file or a buffer is not what it should be."""


class SettingError(GlassgradError, ValueError):
    """A setting has a wrong name or value."""
