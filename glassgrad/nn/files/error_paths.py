"""Error paths: a decorator that adds the path of a file to the errors of its reader."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike, fspath
from typing import Any, TypeVar, cast

from glassgrad.base.errors import FormatError
from glassgrad.tensor.tensor import Tensor

Reader = TypeVar("Reader", bound=Callable[..., Any])


def path_in_errors(read: Reader) -> Reader:
    """Add the path to every FormatError of a reader, unless it reads a Tensor."""

    @wraps(read)
    def wrapper(fn: Tensor | str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        try:
            return read(fn, *args, **kwargs)
        except FormatError as error:
            if isinstance(fn, Tensor) or fspath(fn) in error.message:
                raise
            message = f"{fspath(fn)}: {error.message}"
            raise FormatError(message, hint=error.hint, origin=error.origin) from None

    return cast(Reader, wrapper)
