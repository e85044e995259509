"""Keyword arguments that have a second name, mostly that of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def keyword_aliases(**aliases: str) -> Callable[[F], F]:
    """`@keyword_aliases(dim="axis")`: `dim=1` is passed to the method as `axis=1`.

    The method declares the alias as a keyword-only parameter, which type checkers and `help` show;
    it never receives it.
    """

    def decorate(method: F) -> F:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            for alias in named.keys() & aliases.keys():
                name = aliases[alias]
                if name in named:
                    raise TypeError(
                        f"{method.__name__}() got {name} and {alias}, which are one argument"
                    )
                named[name] = named.pop(alias)
            return method(*arguments, **named)

        return cast(F, call)

    return decorate


def refused_keywords(**reasons: str) -> Callable[[F], F]:
    """`@refused_keywords(dim="…")`: a TypeError that says why the method has no `dim`."""

    def decorate(method: F) -> F:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            for name in named.keys() & reasons.keys():
                raise TypeError(f"{method.__name__}() has no {name}: {reasons[name]}")
            return method(*arguments, **named)

        return cast(F, call)

    return decorate
