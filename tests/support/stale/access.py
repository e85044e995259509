"""Mutations by the way that the function accesses the value: containers, aliases, lookups."""

from __future__ import annotations

import functools
import itertools
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from contextvars import ContextVar
from operator import attrgetter, itemgetter, methodcaller
from types import MappingProxyType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, proxy, ref

import numpy as np

from glassgrad import Tensor
from support.stale.kinds import (
    Data,
    Object,
    double,
    identity_layer,
    mutation,
    row,
    scaled,
    triple,
)

# ---------------------------------------------------------------------- access to a value


@mutation
def an_alias() -> Any:
    config = Object(2.0)

    def f(x: Tensor) -> Tensor:
        c = config
        p = c
        return x * p.value

    return f, lambda: setattr(config, "value", 5.0)


@mutation
def an_alternative() -> Any:
    none, config = None, Object(2.0)
    return lambda x: x * (none or config).value, lambda: setattr(config, "value", 5.0)


@mutation
def a_walrus() -> Any:
    config = Object(2.0)

    def f(x: Tensor) -> Tensor:
        if (c := config) is not None:
            return x * c.value
        return x

    return f, lambda: setattr(config, "value", 5.0)


@mutation
def a_match() -> Any:
    config = Data(2.0)

    def f(x: Tensor) -> Tensor:
        match config:
            case Data(value=2.0):
                return x * 2
            case Data(value=found):
                return x * found * 3
        return x

    return f, lambda: setattr(config, "value", 5.0)


@mutation
def a_context_manager() -> Any:
    class Managed:
        factor = 2.0

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: Any) -> None:
            pass

    managed = Managed()

    def f(x: Tensor) -> Tensor:
        with managed as m:
            return x * m.factor

    return f, lambda: setattr(managed, "factor", 5.0)


@mutation
def a_loop_over_objects() -> Any:
    objects = [Object(2.0), Object(3.0)]

    def f(x: Tensor) -> Tensor:
        for one in objects:
            x = x * one.value
        return x

    return f, lambda: setattr(objects[1], "value", 5.0)


@mutation
def a_longer_list() -> Any:
    objects = [Object(2.0)]

    def f(x: Tensor) -> Tensor:
        for one in objects:
            x = x * one.value
        return x

    return f, lambda: objects.append(Object(3.0))


@mutation
def a_longer_list_of_layers() -> Any:
    layers = [identity_layer(2.0)]

    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.append(identity_layer(3.0))


@mutation
def a_comprehension() -> Any:
    objects = {"a": Object(2.0), "b": Object(3.0)}
    f = lambda x: sum((x * o.value for o in objects.values()), start=x)  # noqa: E731
    return f, lambda: setattr(objects["b"], "value", 5.0)


@mutation
def a_new_key() -> Any:
    objects = {"a": 2.0}
    return lambda x: x * sum(objects.values()), lambda: objects.update(b=3.0)


@mutation
def a_key_that_is_looked_for() -> Any:
    options: dict[str, int] = {}
    return lambda x: x * (3 if "fast" in options else 2), lambda: options.update(fast=1)


@mutation
def another_order() -> Any:
    factors = {"a": 2.0, "b": 3.0}

    def change() -> None:
        factors["a"] = factors.pop("a")

    return lambda x: x * next(iter(factors.values())), change


@mutation
def len_of_a_list_of_tensors() -> Any:
    tensors = [row(1, 1)]
    return lambda x: x * len(tensors), lambda: tensors.append(row(1, 1))


@mutation
def a_deque() -> Any:
    history: deque[float] = deque([1.0, 2.0], maxlen=2)
    return lambda x: x * sum(history), lambda: history.append(5.0)


@mutation
def a_long_list() -> Any:
    table = [1.0] * 5000
    return lambda x: x * sum(table), lambda: table.__setitem__(4321, 2.0)


@mutation
def a_bytearray() -> Any:
    table = bytearray(b"\x02\x03")
    return lambda x: x * table[0], lambda: table.__setitem__(0, 7)


@mutation
def a_numpy_array_written_in_place() -> Any:
    table = np.array([2.0, 3.0], np.float32)
    return lambda x: x * Tensor(table), lambda: table.__setitem__(0, 7.0)


@mutation
def a_numpy_array_in_a_list() -> Any:
    tables = [np.array([2.0, 3.0], np.float32)]
    return lambda x: x * float(tables[0].sum()), lambda: tables[0].__setitem__(0, 7.0)


@mutation
def a_counter() -> Any:
    counts = Counter("aab")
    return lambda x: x * counts["a"], lambda: counts.update("a")


@mutation
def a_default_dict() -> Any:
    table: defaultdict[str, float] = defaultdict(lambda: 2.0)
    return lambda x: x * table["k"], lambda: table.update(k=5.0)


@mutation
def an_ordered_dict() -> Any:
    table = OrderedDict(a=2.0, b=3.0)
    return lambda x: x * next(iter(table.values())), lambda: table.move_to_end("a")


@mutation
def a_chain_of_dicts() -> Any:
    table = ChainMap({}, {"k": 2.0})
    return lambda x: x * table["k"], lambda: table.maps[1].update(k=5.0)


@mutation
def a_user_dict() -> Any:
    table = UserDict(k=2.0)
    return lambda x: x * table["k"], lambda: table.update(k=5.0)


@mutation
def a_user_list() -> Any:
    table = UserList([2.0])
    return lambda x: x * table[0], lambda: table.__setitem__(0, 5.0)


@mutation
def a_mapping_proxy() -> Any:
    inner = {"k": 2.0}
    table = MappingProxyType(inner)
    return lambda x: x * table["k"], lambda: inner.update(k=5.0)


@mutation
def a_weak_value() -> Any:
    holder = Object(2.0)
    table = WeakValueDictionary(k=holder)
    return lambda x: x * table["k"].value, lambda: setattr(holder, "value", 5.0)


@mutation
def a_weak_key() -> Any:
    holder = Object(2.0)
    table: Any = WeakKeyDictionary({holder: 2.0})
    return lambda x: x * table[holder], lambda: table.__setitem__(holder, 5.0)


@mutation
def a_weak_reference() -> Any:
    holder = Object(2.0)
    weak = ref(holder)
    return lambda x: x * weak().value, lambda: setattr(holder, "value", 5.0)  # type: ignore[union-attr]


@mutation
def a_weak_proxy() -> Any:
    holder = Object(2.0)
    weak = proxy(holder)
    return lambda x: x * weak.value, lambda: setattr(holder, "value", 5.0)


@mutation
def a_context_variable() -> Any:
    variable: ContextVar[float] = ContextVar("variable", default=2.0)
    return lambda x: x * variable.get(), lambda: variable.set(5.0) and None


@mutation
def getattr_with_a_constant() -> Any:
    config = Object(2.0)
    return lambda x: x * getattr(config, "value"), lambda: setattr(config, "value", 5.0)  # noqa: B009


@mutation
def getattr_with_a_computed_name() -> Any:
    config = SimpleNamespace(rate_0=2.0)
    return lambda x: x * getattr(config, f"rate_{0}"), lambda: setattr(config, "rate_0", 5.0)


@mutation
def vars_of_an_object() -> Any:
    config = SimpleNamespace(a=1.0, b=2.0)
    return lambda x: x * sum(vars(config).values()), lambda: setattr(config, "b", 5.0)


@mutation
def an_attrgetter() -> Any:
    config = SimpleNamespace(inner=SimpleNamespace(rate=2.0))
    get = attrgetter("inner.rate")
    return lambda x: x * get(config), lambda: setattr(config.inner, "rate", 5.0)


@mutation
def an_itemgetter() -> Any:
    table, get = {"k": 2.0}, itemgetter("k")
    return lambda x: x * get(table), lambda: table.update(k=5.0)


@mutation
def a_methodcaller() -> Any:
    class Config:
        rate = 2.0

        def read(self) -> float:
            return self.rate

    config, call = Config(), methodcaller("read")
    return lambda x: x * call(config), lambda: setattr(config, "rate", 5.0)


@mutation
def map_of_a_function() -> Any:
    factor = 2.0

    def inner(x: Tensor) -> Tensor:
        return x * factor

    def change() -> None:
        nonlocal factor
        factor = 5.0

    return lambda x: next(map(inner, [x])), change


@mutation
def reduce_over_functions() -> Any:
    steps: list[Any] = [double, double]
    f = lambda x: functools.reduce(lambda a, g: g(a), steps, x)  # noqa: E731
    return f, lambda: steps.__setitem__(1, triple)


@mutation
def starred_arguments() -> Any:
    options = {"k": 2.0}
    return lambda x: scaled(x, **options), lambda: options.update(k=5.0)


@mutation
def itertools_chain() -> Any:
    one, two = [1.0], [2.0]
    return lambda x: x * sum(itertools.chain(one, two)), lambda: two.append(3.0)
