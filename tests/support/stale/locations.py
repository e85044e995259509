"""Mutations by the location of the value, combined with kinds of values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

from glassgrad import Tensor
from support.stale.kinds import (
    FEW_KINDS,
    KINDS,
    MUTATIONS,
    Data,
    Function,
    Mutation,
    Object,
    use,
)

# ---------------------------------------------------------------------- locations


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass(slots=True)
class SlottedData:
    value: Any = None


@dataclass(frozen=True)
class Frozen:
    value: Any = None


class Named(NamedTuple):
    value: Any = None


class WithProperty:
    def __init__(self, value: Any) -> None:
        self._hidden = value

    @property
    def value(self) -> Any:
        return self._hidden


class WithGetattr:
    def __init__(self, value: Any) -> None:
        self.store = {"value": value}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["store"][name]
        except KeyError:
            raise AttributeError(name) from None


Location = Callable[[Any, Any], tuple[Function, Callable[[], None]]]
LOCATIONS: dict[str, Location] = {}


def location(build: Location) -> Location:
    LOCATIONS[build.__name__] = build
    return build


@location
def in_a_closure(old: Any, new: Any) -> Any:
    value = old

    def change() -> None:
        nonlocal value
        value = new

    return lambda x: use(x, value), change


GLOBAL: Any = None
STATE: dict[str, Any] = {}


@location
def in_a_global(old: Any, new: Any) -> Any:
    globals()["GLOBAL"] = old
    return lambda x: use(x, GLOBAL), lambda: globals().update(GLOBAL=new)


@location
def in_a_global_dict(old: Any, new: Any) -> Any:
    STATE["value"] = old
    return lambda x: use(x, STATE["value"]), lambda: STATE.update(value=new)


@location
def in_an_attribute(old: Any, new: Any) -> Any:
    holder = Object(old)
    return lambda x: use(x, holder.value), lambda: setattr(holder, "value", new)


@location
def in_a_namespace(old: Any, new: Any) -> Any:
    holder = SimpleNamespace(inner=SimpleNamespace(value=old))
    return lambda x: use(x, holder.inner.value), lambda: setattr(holder.inner, "value", new)


@location
def in_a_slot(old: Any, new: Any) -> Any:
    holder = Slotted(old)
    return lambda x: use(x, holder.value), lambda: setattr(holder, "value", new)


@location
def in_a_dataclass(old: Any, new: Any) -> Any:
    holder = Data(old)
    return lambda x: use(x, holder.value), lambda: setattr(holder, "value", new)


@location
def in_a_slotted_dataclass(old: Any, new: Any) -> Any:
    holder = SlottedData(old)
    return lambda x: use(x, holder.value), lambda: setattr(holder, "value", new)


@location
def in_a_frozen_dataclass_that_is_replaced(old: Any, new: Any) -> Any:
    holder = Object(Frozen(old))
    return lambda x: use(x, holder.value.value), lambda: setattr(
        holder, "value", replace(holder.value, value=new)
    )


@location
def in_a_named_tuple_that_is_replaced(old: Any, new: Any) -> Any:
    holder = [Named(old)]
    return lambda x: use(x, holder[0].value), lambda: holder.__setitem__(0, Named(new))


@location
def in_a_list(old: Any, new: Any) -> Any:
    holder = [1, old]
    return lambda x: use(x, holder[1]), lambda: holder.__setitem__(1, new)


@location
def in_a_dict_of_lists_of_objects(old: Any, new: Any) -> Any:
    holder = {"all": [Object(old)]}
    return lambda x: use(x, holder["all"][0].value), lambda: setattr(holder["all"][0], "value", new)


@location
def in_a_class(old: Any, new: Any) -> Any:
    kind = type("Kind", (), {"value": old})
    if callable(old) and not isinstance(old, type):
        kind = type("Kind", (), {"value": staticmethod(old)})
        new = staticmethod(new)
    return lambda x: use(x, kind.value), lambda: setattr(kind, "value", new)  # type: ignore[attr-defined]


@location
def behind_a_property(old: Any, new: Any) -> Any:
    holder = WithProperty(old)
    return lambda x: use(x, holder.value), lambda: setattr(holder, "_hidden", new)


@location
def behind_getattr(old: Any, new: Any) -> Any:
    holder = WithGetattr(old)
    return lambda x: use(x, holder.value), lambda: holder.store.update(value=new)


@location
def in_a_default(old: Any, new: Any) -> Any:
    def f(x: Tensor, value: Any = old) -> Tensor:
        return use(x, value)

    return f, lambda: setattr(f, "__defaults__", (new,))


@location
def in_an_attribute_of_a_method_s_object(old: Any, new: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.value = old

        def run(this, x: Tensor) -> Tensor:
            return use(x, this.value)

    model = Model()
    return model.run, lambda: setattr(model, "value", new)


@location
def in_an_attribute_of_a_callable_object(old: Any, new: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.value = old

        def __call__(self, x: Tensor) -> Tensor:
            return use(x, self.value)

    model = Model()
    return model, lambda: setattr(model, "value", new)


@location
def in_a_partial_s_object(old: Any, new: Any) -> Any:
    holder = Object(old)

    def f(holder: Object, x: Tensor) -> Tensor:
        return use(x, holder.value)

    return functools.partial(f, holder), lambda: setattr(holder, "value", new)


@location
def many_functions_deep(old: Any, new: Any) -> Any:
    holder = Object(old)
    f: Function = lambda x: use(x, holder.value)  # noqa: E731
    for _ in range(80):
        f = functools.partial(lambda inner, x: inner(x), f)
    return f, lambda: setattr(holder, "value", new)


def combination(build: Location, kind: str) -> Callable[[], Mutation]:
    return lambda: Mutation(*build(*KINDS[kind]()))


for _location in LOCATIONS.values():
    for _kind in KINDS if _location in (in_a_closure, in_an_attribute) else FEW_KINDS:
        MUTATIONS[f"{_location.__name__}: {_kind}"] = combination(_location, _kind)
