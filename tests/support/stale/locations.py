"""Where a value is kept, times what kind of value it is."""

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
    WAYS,
    Data,
    Function,
    Object,
    Way,
    use,
)

# ---------------------------------------------------------------------- where values are kept


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


Kept = Callable[[Any, Any], tuple[Function, Callable[[], None]]]
KEPT: dict[str, Kept] = {}


def kept(made: Kept) -> Kept:
    KEPT[made.__name__] = made
    return made


@kept
def in_a_closure(old: Any, new: Any) -> Any:
    value = old

    def change() -> None:
        nonlocal value
        value = new

    return lambda x: use(x, value), change


GLOBAL: Any = None
STATE: dict[str, Any] = {}


@kept
def in_a_global(old: Any, new: Any) -> Any:
    globals()["GLOBAL"] = old
    return lambda x: use(x, GLOBAL), lambda: globals().update(GLOBAL=new)


@kept
def in_a_global_dict(old: Any, new: Any) -> Any:
    STATE["value"] = old
    return lambda x: use(x, STATE["value"]), lambda: STATE.update(value=new)


@kept
def in_an_attribute(old: Any, new: Any) -> Any:
    held = Object(old)
    return lambda x: use(x, held.value), lambda: setattr(held, "value", new)


@kept
def in_a_namespace(old: Any, new: Any) -> Any:
    held = SimpleNamespace(inner=SimpleNamespace(value=old))
    return lambda x: use(x, held.inner.value), lambda: setattr(held.inner, "value", new)


@kept
def in_a_slot(old: Any, new: Any) -> Any:
    held = Slotted(old)
    return lambda x: use(x, held.value), lambda: setattr(held, "value", new)


@kept
def in_a_dataclass(old: Any, new: Any) -> Any:
    held = Data(old)
    return lambda x: use(x, held.value), lambda: setattr(held, "value", new)


@kept
def in_a_slotted_dataclass(old: Any, new: Any) -> Any:
    held = SlottedData(old)
    return lambda x: use(x, held.value), lambda: setattr(held, "value", new)


@kept
def in_a_frozen_dataclass_that_is_replaced(old: Any, new: Any) -> Any:
    held = Object(Frozen(old))
    return lambda x: use(x, held.value.value), lambda: setattr(
        held, "value", replace(held.value, value=new)
    )


@kept
def in_a_named_tuple_that_is_replaced(old: Any, new: Any) -> Any:
    held = [Named(old)]
    return lambda x: use(x, held[0].value), lambda: held.__setitem__(0, Named(new))


@kept
def in_a_list(old: Any, new: Any) -> Any:
    held = [1, old]
    return lambda x: use(x, held[1]), lambda: held.__setitem__(1, new)


@kept
def in_a_dict_of_lists_of_objects(old: Any, new: Any) -> Any:
    held = {"all": [Object(old)]}
    return lambda x: use(x, held["all"][0].value), lambda: setattr(held["all"][0], "value", new)


@kept
def in_a_class(old: Any, new: Any) -> Any:
    kind = type("Kind", (), {"value": old})
    if callable(old) and not isinstance(old, type):
        kind = type("Kind", (), {"value": staticmethod(old)})
        new = staticmethod(new)
    return lambda x: use(x, kind.value), lambda: setattr(kind, "value", new)  # type: ignore[attr-defined]


@kept
def behind_a_property(old: Any, new: Any) -> Any:
    held = WithProperty(old)
    return lambda x: use(x, held.value), lambda: setattr(held, "_hidden", new)


@kept
def behind_getattr(old: Any, new: Any) -> Any:
    held = WithGetattr(old)
    return lambda x: use(x, held.value), lambda: held.store.update(value=new)


@kept
def in_a_default(old: Any, new: Any) -> Any:
    def f(x: Tensor, value: Any = old) -> Tensor:
        return use(x, value)

    return f, lambda: setattr(f, "__defaults__", (new,))


@kept
def in_an_attribute_of_a_method_s_object(old: Any, new: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.value = old

        def run(this, x: Tensor) -> Tensor:
            return use(x, this.value)

    model = Model()
    return model.run, lambda: setattr(model, "value", new)


@kept
def in_an_attribute_of_a_callable_object(old: Any, new: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.value = old

        def __call__(self, x: Tensor) -> Tensor:
            return use(x, self.value)

    model = Model()
    return model, lambda: setattr(model, "value", new)


@kept
def in_a_partial_s_object(old: Any, new: Any) -> Any:
    held = Object(old)

    def f(held: Object, x: Tensor) -> Tensor:
        return use(x, held.value)

    return functools.partial(f, held), lambda: setattr(held, "value", new)


@kept
def many_functions_deep(old: Any, new: Any) -> Any:
    held = Object(old)
    f: Function = lambda x: use(x, held.value)  # noqa: E731
    for _ in range(80):
        f = functools.partial(lambda inner, x: inner(x), f)
    return f, lambda: setattr(held, "value", new)


def product(keep: Kept, kind: str) -> Callable[[], Way]:
    return lambda: Way(*keep(*KINDS[kind]()))


for _keep in KEPT.values():
    for _kind in KINDS if _keep in (in_a_closure, in_an_attribute) else FEW_KINDS:
        WAYS[f"{_keep.__name__}: {_kind}"] = product(_keep, _kind)
