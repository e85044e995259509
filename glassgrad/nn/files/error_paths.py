"""a reader of files -> one whose errors say which file is not what it should be."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike, fspath
from typing import Any, TypeVar, cast

from glassgrad.base.errors import FormatError
from glassgrad.tensor.tensor import Tensor

Reader = TypeVar("Reader", bound=Callable[..., Any])


def naming(read: Reader) -> Reader:
    """The same reader; of what is damaged in memory there is no name to tell."""

    @wraps(read)
    def reads(fn: Tensor | str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        try:
            return read(fn, *args, **kwargs)
        except FormatError as error:
            if isinstance(fn, Tensor) or fspath(fn) in error.message:
                raise
            message = f"{fspath(fn)}: {error.message}"
            raise FormatError(message, hint=error.hint, origin=error.origin) from None

    return cast(Reader, reads)
