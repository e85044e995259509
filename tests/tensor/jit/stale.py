"""Ways to change a value behind a captured function: a function, what changes, and its name.

A `Way` is made anew for each test: the function takes one tensor, `change()` gives it other values.
Many ways are products: where a value is kept, times what kind of value it is.
"""

from __future__ import annotations

import functools
import itertools
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import attrgetter, itemgetter, methodcaller
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary, proxy, ref

import numpy as np

from glassgrad import Tensor, nn

Function = Callable[[Tensor], Any]
WAYS: dict[str, Callable[[], Way]] = {}


class Way(NamedTuple):
    """`change` makes the function compute something else."""

    function: Function
    change: Callable[[], None]


def way(made: Callable[[], tuple[Function, Callable[[], None]]]) -> Any:
    """Add a way that the function's name describes."""
    WAYS[made.__name__] = lambda: Way(*made())
    return made


# ---------------------------------------------------------------------- kinds of values


class Color(Enum):
    RED = 2
    BLUE = 5


class Scale:
    """An object that is called."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor


def double(x: Tensor) -> Tensor:
    return x * 2


def triple(x: Tensor) -> Tensor:
    return x * 3


def row(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def identity_layer(factor: float) -> nn.Linear:
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = row(factor, 0, 0, factor).reshape(2, 2).realize()
    return layer


KINDS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "int": lambda: (2, 5),
    "float": lambda: (2.0, 5.0),
    "bool": lambda: (True, False),
    "int and float": lambda: (2, 2.5),
    "text": lambda: ("a", "b"),
    "none": lambda: (None, 3.0),
    "tuple": lambda: ((1, 2), (1, 4)),
    "list": lambda: ([1, 2], [1, 4]),
    "set": lambda: ({1, 2}, {1, 4}),
    "dict": lambda: ({"k": 2}, {"k": 7}),
    "numpy number": lambda: (np.float32(2), np.float32(5)),
    "numpy array": lambda: (np.array([2.0, 3.0]), np.array([5.0, 6.0])),
    "fraction": lambda: (Fraction(1, 2), Fraction(1, 4)),
    "decimal": lambda: (Decimal(2), Decimal(5)),
    "enum": lambda: (Color.RED, Color.BLUE),
    "function": lambda: (double, triple),
    "lambda": lambda: (lambda x: x * 2, lambda x: x * 3),
    "callable object": lambda: (Scale(2.0), Scale(5.0)),
    "partial": lambda: (functools.partial(scaled, k=2), functools.partial(scaled, k=3)),
    "class": lambda: (type("A", (), {"k": 2}), type("B", (), {"k": 5})),
    "tensor": lambda: (row(2, 3), row(5, 6)),
    "lazy tensor": lambda: (row(2, 3) * 2, row(5, 6) * 2),
    "layer": lambda: (identity_layer(2.0), identity_layer(5.0)),
    "slice": lambda: (slice(0, 1), slice(1, 2)),
    "range": lambda: (range(2), range(5)),
}


def scaled(x: Tensor, k: float) -> Tensor:
    return x * k


def use(x: Tensor, value: Any) -> Tensor:
    """Compute something that depends on a value of any kind."""
    if value is None:
        return x * 1.25
    if isinstance(value, str):
        return x * (2.0 if value == "a" else 3.0)
    if isinstance(value, Enum):
        return x * value.value
    if isinstance(value, (tuple, list, set, range)):
        return x * float(sum(value))
    if isinstance(value, dict):
        return x * value["k"]
    if isinstance(value, slice):
        return x[value] * 2
    if isinstance(value, type):
        return x * value.k  # type: ignore[attr-defined]
    if isinstance(value, np.ndarray):
        return x * Tensor(value.astype(np.float32))
    if isinstance(value, (Fraction, Decimal)):
        return x * float(value)
    if isinstance(value, np.generic):
        return x * value.item()
    if callable(value):
        return value(x)
    return x * value


# ---------------------------------------------------------------------- where values are kept


class Object:
    value: Any = None

    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class Data:
    value: Any = None


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


FEW = ("int", "tensor", "function", "layer", "list")
for _keep in KEPT.values():
    for _kind in KINDS if _keep in (in_a_closure, in_an_attribute) else FEW:
        WAYS[f"{_keep.__name__}: {_kind}"] = product(_keep, _kind)


# ---------------------------------------------------------------------- ways to get at a value


@way
def an_alias() -> Any:
    config = Object(2.0)

    def f(x: Tensor) -> Tensor:
        c = config
        p = c
        return x * p.value

    return f, lambda: setattr(config, "value", 5.0)


@way
def an_alternative() -> Any:
    none, config = None, Object(2.0)
    return lambda x: x * (none or config).value, lambda: setattr(config, "value", 5.0)


@way
def a_walrus() -> Any:
    config = Object(2.0)

    def f(x: Tensor) -> Tensor:
        if (c := config) is not None:
            return x * c.value
        return x

    return f, lambda: setattr(config, "value", 5.0)


@way
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


@way
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


@way
def a_loop_over_objects() -> Any:
    objects = [Object(2.0), Object(3.0)]

    def f(x: Tensor) -> Tensor:
        for one in objects:
            x = x * one.value
        return x

    return f, lambda: setattr(objects[1], "value", 5.0)


@way
def a_longer_list() -> Any:
    objects = [Object(2.0)]

    def f(x: Tensor) -> Tensor:
        for one in objects:
            x = x * one.value
        return x

    return f, lambda: objects.append(Object(3.0))


@way
def a_longer_list_of_layers() -> Any:
    layers = [identity_layer(2.0)]

    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.append(identity_layer(3.0))


@way
def a_comprehension() -> Any:
    objects = {"a": Object(2.0), "b": Object(3.0)}
    f = lambda x: sum((x * o.value for o in objects.values()), start=x)  # noqa: E731
    return f, lambda: setattr(objects["b"], "value", 5.0)


@way
def a_new_key() -> Any:
    objects = {"a": 2.0}
    return lambda x: x * sum(objects.values()), lambda: objects.update(b=3.0)


@way
def a_key_that_is_looked_for() -> Any:
    options: dict[str, int] = {}
    return lambda x: x * (3 if "fast" in options else 2), lambda: options.update(fast=1)


@way
def another_order() -> Any:
    factors = {"a": 2.0, "b": 3.0}

    def change() -> None:
        factors["a"] = factors.pop("a")

    return lambda x: x * next(iter(factors.values())), change


@way
def len_of_a_list_of_tensors() -> Any:
    tensors = [row(1, 1)]
    return lambda x: x * len(tensors), lambda: tensors.append(row(1, 1))


@way
def a_deque() -> Any:
    history: deque[float] = deque([1.0, 2.0], maxlen=2)
    return lambda x: x * sum(history), lambda: history.append(5.0)


@way
def a_long_list() -> Any:
    table = [1.0] * 5000
    return lambda x: x * sum(table), lambda: table.__setitem__(4321, 2.0)


@way
def a_bytearray() -> Any:
    table = bytearray(b"\x02\x03")
    return lambda x: x * table[0], lambda: table.__setitem__(0, 7)


@way
def a_numpy_array_written_in_place() -> Any:
    table = np.array([2.0, 3.0], np.float32)
    return lambda x: x * Tensor(table), lambda: table.__setitem__(0, 7.0)


@way
def a_numpy_array_in_a_list() -> Any:
    tables = [np.array([2.0, 3.0], np.float32)]
    return lambda x: x * float(tables[0].sum()), lambda: tables[0].__setitem__(0, 7.0)


@way
def a_counter() -> Any:
    counts = Counter("aab")
    return lambda x: x * counts["a"], lambda: counts.update("a")


@way
def a_default_dict() -> Any:
    table: defaultdict[str, float] = defaultdict(lambda: 2.0)
    return lambda x: x * table["k"], lambda: table.update(k=5.0)


@way
def an_ordered_dict() -> Any:
    table = OrderedDict(a=2.0, b=3.0)
    return lambda x: x * next(iter(table.values())), lambda: table.move_to_end("a")


@way
def a_chain_of_dicts() -> Any:
    table = ChainMap({}, {"k": 2.0})
    return lambda x: x * table["k"], lambda: table.maps[1].update(k=5.0)


@way
def a_user_dict() -> Any:
    table = UserDict(k=2.0)
    return lambda x: x * table["k"], lambda: table.update(k=5.0)


@way
def a_user_list() -> Any:
    table = UserList([2.0])
    return lambda x: x * table[0], lambda: table.__setitem__(0, 5.0)


@way
def a_mapping_proxy() -> Any:
    inner = {"k": 2.0}
    table = MappingProxyType(inner)
    return lambda x: x * table["k"], lambda: inner.update(k=5.0)


@way
def a_weak_value() -> Any:
    held = Object(2.0)
    table = WeakValueDictionary(k=held)
    return lambda x: x * table["k"].value, lambda: setattr(held, "value", 5.0)


@way
def a_weak_key() -> Any:
    held = Object(2.0)
    table: Any = WeakKeyDictionary({held: 2.0})
    return lambda x: x * table[held], lambda: table.__setitem__(held, 5.0)


@way
def a_weak_reference() -> Any:
    held = Object(2.0)
    weak = ref(held)
    return lambda x: x * weak().value, lambda: setattr(held, "value", 5.0)  # type: ignore[union-attr]


@way
def a_weak_proxy() -> Any:
    held = Object(2.0)
    weak = proxy(held)
    return lambda x: x * weak.value, lambda: setattr(held, "value", 5.0)


@way
def a_context_variable() -> Any:
    variable: ContextVar[float] = ContextVar("variable", default=2.0)
    return lambda x: x * variable.get(), lambda: variable.set(5.0) and None


@way
def getattr_with_a_constant() -> Any:
    config = Object(2.0)
    return lambda x: x * getattr(config, "value"), lambda: setattr(config, "value", 5.0)  # noqa: B009


@way
def getattr_with_a_computed_name() -> Any:
    config = SimpleNamespace(rate_0=2.0)
    return lambda x: x * getattr(config, f"rate_{0}"), lambda: setattr(config, "rate_0", 5.0)


@way
def vars_of_an_object() -> Any:
    config = SimpleNamespace(a=1.0, b=2.0)
    return lambda x: x * sum(vars(config).values()), lambda: setattr(config, "b", 5.0)


@way
def an_attrgetter() -> Any:
    config = SimpleNamespace(inner=SimpleNamespace(rate=2.0))
    get = attrgetter("inner.rate")
    return lambda x: x * get(config), lambda: setattr(config.inner, "rate", 5.0)


@way
def an_itemgetter() -> Any:
    table, get = {"k": 2.0}, itemgetter("k")
    return lambda x: x * get(table), lambda: table.update(k=5.0)


@way
def a_methodcaller() -> Any:
    class Config:
        rate = 2.0

        def read(self) -> float:
            return self.rate

    config, call = Config(), methodcaller("read")
    return lambda x: x * call(config), lambda: setattr(config, "rate", 5.0)


@way
def map_of_a_function() -> Any:
    factor = 2.0

    def inner(x: Tensor) -> Tensor:
        return x * factor

    def change() -> None:
        nonlocal factor
        factor = 5.0

    return lambda x: next(map(inner, [x])), change


@way
def reduce_over_functions() -> Any:
    steps: list[Any] = [double, double]
    f = lambda x: functools.reduce(lambda a, g: g(a), steps, x)  # noqa: E731
    return f, lambda: steps.__setitem__(1, triple)


@way
def starred_arguments() -> Any:
    options = {"k": 2.0}
    return lambda x: scaled(x, **options), lambda: options.update(k=5.0)


@way
def itertools_chain() -> Any:
    one, two = [1.0], [2.0]
    return lambda x: x * sum(itertools.chain(one, two)), lambda: two.append(3.0)


# ---------------------------------------------------------------------- classes and functions


@way
def a_class_default_that_an_instance_overrides() -> Any:
    class Config:
        rate = 2.0

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(config, "rate", 5.0)


@way
def a_class_attribute_through_an_instance() -> Any:
    class Config:
        rate = 2.0

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(Config, "rate", 5.0)


@way
def an_attribute_of_a_base_class() -> Any:
    class Base:
        rate = 2.0

    class Config(Base):
        pass

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(Base, "rate", 5.0)


@way
def an_attribute_that_hides_a_base_class() -> Any:
    class Base:
        rate = 2.0

    class Config(Base):
        pass

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(Config, "rate", 5.0)


@way
def a_deleted_attribute() -> Any:
    class Config:
        rate = 2.0

    config = Config()
    config.rate = 3.0
    return lambda x: x * config.rate, lambda: delattr(config, "rate")


@way
def another_class() -> Any:
    class One:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 2

    class Other:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 5

    held = One()
    return lambda x: held(x), lambda: setattr(held, "__class__", Other)


@way
def a_class_method() -> Any:
    class Config:
        rate = 2.0

        @classmethod
        def scaled(cls, x: Tensor) -> Tensor:
            return x * cls.rate

    return lambda x: Config.scaled(x), lambda: setattr(Config, "rate", 5.0)


@way
def a_bound_class_method() -> Any:
    class Config:
        rate = 2.0

        @classmethod
        def scaled(cls, x: Tensor) -> Tensor:
            return x * cls.rate

    return Config.scaled, lambda: setattr(Config, "rate", 5.0)


@way
def a_static_method_s_global() -> Any:
    STATE["static"] = 2.0

    class Config:
        @staticmethod
        def scaled(x: Tensor) -> Tensor:
            return x * STATE["static"]

    return Config.scaled, lambda: STATE.update(static=5.0)


@way
def a_call_of_super() -> Any:
    class Base:
        def __init__(self) -> None:
            self.rate = 2.0

        def run(self, x: Tensor) -> Tensor:
            return x * self.rate

    class Model(Base):
        def run(self, x: Tensor) -> Tensor:
            return super().run(x) + 1

    model = Model()
    return model.run, lambda: setattr(model, "rate", 5.0)


@way
def a_property_of_the_class() -> Any:
    class Config:
        def __init__(self) -> None:
            self.base = 2.0

        @property
        def rate(self) -> float:
            return self.base * 2

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(config, "base", 5.0)


@way
def a_cached_property_that_is_dropped() -> Any:
    class Config:
        def __init__(self) -> None:
            self.base = 2.0

        @functools.cached_property
        def rate(self) -> float:
            return self.base * 2

    config = Config()

    def change() -> None:
        config.base = 5.0
        vars(config).pop("rate", None)

    return lambda x: x * config.rate, change


@way
def a_cached_function_that_is_cleared() -> Any:
    base = [2.0]

    @functools.lru_cache
    def rate() -> float:
        return base[0]

    def change() -> None:
        base[0] = 5.0
        rate.cache_clear()

    return lambda x: x * rate(), change


@way
def an_operator_of_a_class() -> Any:
    class Config:
        rate = 2.0

        def __add__(self, other: float) -> float:
            return self.rate + other

    config = Config()
    return lambda x: x * (config + 1), lambda: setattr(config, "rate", 5.0)


@way
def an_item_of_a_class() -> Any:
    class Table:
        def __init__(self) -> None:
            self.rows = {"k": 2.0}

        def __getitem__(self, name: str) -> float:
            return self.rows[name]

    table = Table()
    return lambda x: x * table["k"], lambda: table.rows.update(k=5.0)


@way
def an_iterator_of_a_class() -> Any:
    class Layers:
        def __init__(self) -> None:
            self.all = [double]

        def __iter__(self) -> Any:
            return iter(self.all)

    layers = Layers()

    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.all.append(triple)


@way
def the_truth_of_a_class() -> Any:
    class Flag:
        def __init__(self) -> None:
            self.is_on = True

        def __bool__(self) -> bool:
            return self.is_on

    flag = Flag()
    return lambda x: x * (2 if flag else 5), lambda: setattr(flag, "is_on", False)


@way
def a_descriptor() -> Any:
    class Stored:
        def __init__(self) -> None:
            self.rate = 2.0

        def __get__(self, owner: Any, kind: Any = None) -> float:
            return self.rate

    stored = Stored()
    config = type("Config", (), {"rate": stored})()
    return lambda x: x * config.rate, lambda: setattr(stored, "rate", 5.0)


@way
def a_metaclass() -> Any:
    class Meta(type):
        rate = 2.0

    class Config(metaclass=Meta):
        pass

    return lambda x: x * Config.rate, lambda: setattr(Meta, "rate", 5.0)


@way
def an_attribute_of_a_function() -> Any:
    def f(x: Tensor) -> Tensor:
        return x * f.rate  # type: ignore[attr-defined]

    f.rate = 2.0  # type: ignore[attr-defined]
    return f, lambda: setattr(f, "rate", 5.0)


@way
def the_code_of_a_function() -> Any:
    def inner(x: Tensor) -> Tensor:
        return x * 2

    return lambda x: inner(x), lambda: setattr(inner, "__code__", triple.__code__)


@way
def a_keyword_default() -> Any:
    def f(x: Tensor, *, k: float = 2.0) -> Tensor:
        return x * k

    return f, lambda: setattr(f, "__kwdefaults__", {"k": 5.0})


@way
def a_mutable_default() -> Any:
    def f(x: Tensor, options: dict[str, float] = {"k": 2.0}) -> Tensor:  # noqa: B006
        return x * options["k"]

    assert f.__defaults__ is not None
    return f, lambda: f.__defaults__[0].update(k=5.0)  # type: ignore[index]


@way
def a_method_put_on_an_instance() -> Any:
    held = Scale(2.0)
    held.run = double  # type: ignore[attr-defined]
    return lambda x: held.run(x), lambda: setattr(held, "run", triple)  # type: ignore[attr-defined]


@way
def a_method_replaced_in_its_class() -> Any:
    class Model:
        def run(self, x: Tensor) -> Tensor:
            return x * 2

    model = Model()
    return lambda x: model.run(x), lambda: setattr(Model, "run", lambda self, x: x * 5)


@way
def a_wrapped_function() -> Any:
    factor = [2.0]

    def decorated(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(x: Tensor) -> Tensor:
            return function(x) * factor[0]

        return wrapper

    return decorated(double), lambda: factor.__setitem__(0, 5.0)


@way
def a_dispatched_function() -> Any:
    @functools.singledispatch
    def run(x: Any) -> Any:
        return x * 2

    return lambda x: run(x), lambda: run.register(Tensor, triple) and None


@way
def a_nested_function() -> Any:
    factor = 2.0

    def f(x: Tensor) -> Tensor:
        def inner(y: Tensor) -> Tensor:
            return y * factor

        return inner(x)

    def change() -> None:
        nonlocal factor
        factor = 5.0

    return f, change


@way
def a_generator_inside() -> Any:
    factors = [2.0]

    def all_of(x: Tensor) -> Any:
        for factor in factors:
            yield x * factor

    return lambda x: sum(all_of(x), start=x), lambda: factors.append(3.0)


# ---------------------------------------------------------------------- models


class Net:
    def __init__(self) -> None:
        self.layers = [identity_layer(2.0), identity_layer(3.0)]
        self.is_training = False
        self.scale = 1.0
        self.extra = row(1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return (x * 0.5 if self.is_training else x) * self.scale * self.extra


MODEL_CHANGES: dict[str, Callable[[Any], Any]] = {
    "train flag": lambda net: setattr(net, "is_training", True),
    "number": lambda net: setattr(net, "scale", 3.0),
    "tensor": lambda net: setattr(net, "extra", row(5, 5)),
    "lazy tensor": lambda net: setattr(net, "extra", row(5, 5) + 1),
    "weight": lambda net: setattr(net.layers[0], "weight", row(7, 0, 0, 7).reshape(2, 2)),
    "weight in place": lambda net: net.layers[0].weight.assign(row(7, 0, 0, 7).reshape(2, 2)),
    "weight replaced": lambda net: net.layers[0].weight.replace(row(7, 0, 0, 7).reshape(2, 2)),
    "bias": lambda net: setattr(net.layers[0], "bias", row(7, 7)),
    "layer": lambda net: net.layers.__setitem__(0, identity_layer(7.0)),
    "fresh layer": lambda net: net.layers.__setitem__(0, nn.Linear(2, 2)),
    "fewer layers": lambda net: net.layers.pop(),
    "more layers": lambda net: net.layers.append(identity_layer(7.0)),
    "other layers": lambda net: setattr(net, "layers", [identity_layer(7.0)]),
    "other order": lambda net: net.layers.append(net.layers.pop(0)) or net.layers.append(triple),
}


def of_model(change: Callable[[Any], Any], is_called: bool) -> Callable[[], Way]:
    def made() -> Way:
        net = Net()
        return Way(net if is_called else (lambda x: net(x)), lambda: change(net))

    return made


for _name, _change in MODEL_CHANGES.items():
    WAYS[f"a model by name: {_name}"] = of_model(_change, is_called=False)
    WAYS[f"a model itself: {_name}"] = of_model(_change, is_called=True)


@way
def the_active_one_of_several_models() -> Any:
    nets = {"best": identity_layer(2.0), "last": identity_layer(5.0)}
    active = nets["last"]

    def change() -> None:
        nonlocal active
        active = nets["best"]

    return lambda x: active(x), change


@way
def tensors_that_swap() -> Any:
    a, b = row(2, 3), row(5, 6)

    def change() -> None:
        nonlocal a, b
        a, b = b, a

    return lambda x: x * a - b, change


@way
def a_tensor_made_of_the_old_one() -> Any:
    w = row(2, 3)

    def change() -> None:
        nonlocal w
        w = w * 2

    return lambda x: x * w, change


@way
def a_tensor_in_a_dict_of_two() -> Any:
    state = {"w": row(2, 3), "v": row(1, 1)}
    return lambda x: x * state["w"] + state["v"], lambda: state.update(w=row(5, 6))


@way
def a_buffer_of_a_norm() -> Any:
    norm = nn.BatchNorm(2)
    return (
        lambda x: norm(x.reshape(1, 2)),
        lambda: setattr(norm, "running_mean", row(1, 2)),
    )


@way
def an_optimizer_s_rate() -> Any:
    w = Tensor([1.0, 2.0]).realize()
    optimizer = nn.optim.SGD([w], lr=0.1)

    def f(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * x).sum().backward()
        optimizer.step()
        return loss + w.sum()

    return f, lambda: setattr(optimizer, "lr", 0.5)


@way
def a_learning_rate_tensor_that_is_replaced() -> Any:
    w = Tensor([1.0, 2.0]).realize()
    optimizer = nn.optim.SGD([w], lr=0.1)

    def f(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * x).sum().backward()
        optimizer.step()
        return loss + w.sum()

    return f, lambda: setattr(optimizer, "lr", row(0.5))


@way
def a_gradient_that_is_replaced() -> Any:
    w = Tensor([1.0, 2.0]).requires_grad_()
    w.grad = row(1, 1)

    def f(x: Tensor) -> Tensor:
        return x * w.grad  # type: ignore[operator]

    return f, lambda: setattr(w, "grad", row(5, 6))


@way
def a_gradient_that_is_added_to() -> Any:
    w = Tensor([1.0, 2.0]).requires_grad_()

    def f(x: Tensor) -> Tensor:
        (w * x).sum().backward()
        return w.grad.square().sum().sqrt()  # type: ignore[union-attr]

    return f, lambda: setattr(w, "grad", None)


@way
def an_attribute_of_a_scheduler() -> Any:
    @dataclass
    class Schedule:
        rates: list[float] = field(default_factory=lambda: [2.0, 5.0])
        step: int = 0

        def get(self) -> float:
            return self.rates[self.step]

    schedule = Schedule()
    return lambda x: x * schedule.get(), lambda: setattr(schedule, "step", 1)


@way
def the_training_mode() -> Any:
    def change() -> None:
        Tensor.training = True

    return lambda x: x * (2 if Tensor.training else 5), change


@way
def two_equal_graphs_with_other_numbers() -> Any:
    n = 2

    def f(x: Tensor) -> Tensor:
        return (x * n).realize() + (x * 3).realize()

    def change() -> None:
        nonlocal n
        n = 7

    return f, change


@way
def a_returned_number() -> Any:
    n = 2

    def f(x: Tensor) -> Any:
        return x * 3, n

    def change() -> None:
        nonlocal n
        n = 7

    return f, change
