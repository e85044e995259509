"""Arguments with two names, one of them PyTorch's; and names that mean something else there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def also_named(**others: str) -> Callable[[F], F]:
    """`@also_named(dim="axis")`: who gives dim, gives axis."""

    def spelled(method: F) -> F:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            for other in named.keys() & others.keys():
                own = others[other]
                if own in named:
                    raise TypeError(
                        f"{method.__name__}() got {own} and {other}, which are one argument"
                    )
                named[own] = named.pop(other)
            return method(*arguments, **named)

        return cast(F, call)

    return spelled


def never_named(**reasons: str) -> Callable[[F], F]:
    """`@never_named(dim="…")`: why there is no dim, for who gives it."""

    def spelled(method: F) -> F:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            for other in named.keys() & reasons.keys():
                raise TypeError(f"{method.__name__}() has no {other}: {reasons[other]}")
            return method(*arguments, **named)

        return cast(F, call)

    return spelled
