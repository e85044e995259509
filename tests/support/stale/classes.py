"""Values in classes, and code that is replaced."""

from __future__ import annotations

import functools
from typing import Any

from glassgrad import Tensor
from support.stale.kinds import (
    Function,
    Scale,
    double,
    mutation,
    triple,
)

# ---------------------------------------------------------------------- classes and functions


@mutation
def a_class_default_that_an_instance_overrides() -> Any:
    class Config:
        rate = 2.0

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(config, "rate", 5.0)


@mutation
def a_class_attribute_through_an_instance() -> Any:
    class Config:
        rate = 2.0

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(Config, "rate", 5.0)


@mutation
def an_attribute_of_a_base_class() -> Any:
    class Base:
        rate = 2.0

    class Config(Base):
        pass

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(Base, "rate", 5.0)


@mutation
def an_attribute_that_hides_a_base_class() -> Any:
    class Base:
        rate = 2.0

    class Config(Base):
        pass

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(Config, "rate", 5.0)


@mutation
def a_deleted_attribute() -> Any:
    class Config:
        rate = 2.0

    config = Config()
    config.rate = 3.0
    return lambda x: x * config.rate, lambda: delattr(config, "rate")


@mutation
def another_class() -> Any:
    class One:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 2

    class Other:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 5

    holder = One()
    return lambda x: holder(x), lambda: setattr(holder, "__class__", Other)


@mutation
def a_class_method() -> Any:
    class Config:
        rate = 2.0

        @classmethod
        def scaled(cls, x: Tensor) -> Tensor:
            return x * cls.rate

    return lambda x: Config.scaled(x), lambda: setattr(Config, "rate", 5.0)


@mutation
def a_bound_class_method() -> Any:
    class Config:
        rate = 2.0

        @classmethod
        def scaled(cls, x: Tensor) -> Tensor:
            return x * cls.rate

    return Config.scaled, lambda: setattr(Config, "rate", 5.0)


STATE: dict[str, float] = {}


@mutation
def a_static_method_s_global() -> Any:
    STATE["static"] = 2.0

    class Config:
        @staticmethod
        def scaled(x: Tensor) -> Tensor:
            return x * STATE["static"]

    return Config.scaled, lambda: STATE.update(static=5.0)


@mutation
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


@mutation
def a_property_of_the_class() -> Any:
    class Config:
        def __init__(self) -> None:
            self.base = 2.0

        @property
        def rate(self) -> float:
            return self.base * 2

    config = Config()
    return lambda x: x * config.rate, lambda: setattr(config, "base", 5.0)


@mutation
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


@mutation
def a_cached_function_that_is_cleared() -> Any:
    base = [2.0]

    @functools.lru_cache
    def rate() -> float:
        return base[0]

    def change() -> None:
        base[0] = 5.0
        rate.cache_clear()

    return lambda x: x * rate(), change


@mutation
def an_operator_of_a_class() -> Any:
    class Config:
        rate = 2.0

        def __add__(self, other: float) -> float:
            return self.rate + other

    config = Config()
    return lambda x: x * (config + 1), lambda: setattr(config, "rate", 5.0)


@mutation
def an_item_of_a_class() -> Any:
    class Table:
        def __init__(self) -> None:
            self.rows = {"k": 2.0}

        def __getitem__(self, name: str) -> float:
            return self.rows[name]

    table = Table()
    return lambda x: x * table["k"], lambda: table.rows.update(k=5.0)


@mutation
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


@mutation
def the_truth_of_a_class() -> Any:
    class Flag:
        def __init__(self) -> None:
            self.is_on = True

        def __bool__(self) -> bool:
            return self.is_on

    flag = Flag()
    return lambda x: x * (2 if flag else 5), lambda: setattr(flag, "is_on", False)


@mutation
def a_descriptor() -> Any:
    class Stored:
        def __init__(self) -> None:
            self.rate = 2.0

        def __get__(self, owner: Any, kind: Any = None) -> float:
            return self.rate

    stored = Stored()
    config = type("Config", (), {"rate": stored})()
    return lambda x: x * config.rate, lambda: setattr(stored, "rate", 5.0)


@mutation
def a_metaclass() -> Any:
    class Meta(type):
        rate = 2.0

    class Config(metaclass=Meta):
        pass

    return lambda x: x * Config.rate, lambda: setattr(Meta, "rate", 5.0)


@mutation
def an_attribute_of_a_function() -> Any:
    def f(x: Tensor) -> Tensor:
        return x * f.rate  # type: ignore[attr-defined]

    f.rate = 2.0  # type: ignore[attr-defined]
    return f, lambda: setattr(f, "rate", 5.0)


@mutation
def the_code_of_a_function() -> Any:
    def inner(x: Tensor) -> Tensor:
        return x * 2

    return lambda x: inner(x), lambda: setattr(inner, "__code__", triple.__code__)


@mutation
def a_keyword_default() -> Any:
    def f(x: Tensor, *, k: float = 2.0) -> Tensor:
        return x * k

    return f, lambda: setattr(f, "__kwdefaults__", {"k": 5.0})


@mutation
def a_mutable_default() -> Any:
    def f(x: Tensor, options: dict[str, float] = {"k": 2.0}) -> Tensor:  # noqa: B006
        return x * options["k"]

    assert f.__defaults__ is not None
    return f, lambda: f.__defaults__[0].update(k=5.0)  # type: ignore[index]


@mutation
def a_method_put_on_an_instance() -> Any:
    holder = Scale(2.0)
    holder.run = double  # type: ignore[attr-defined]
    return lambda x: holder.run(x), lambda: setattr(holder, "run", triple)  # type: ignore[attr-defined]


@mutation
def a_method_replaced_in_its_class() -> Any:
    class Model:
        def run(self, x: Tensor) -> Tensor:
            return x * 2

    model = Model()
    return lambda x: model.run(x), lambda: setattr(Model, "run", lambda self, x: x * 5)


@mutation
def a_wrapped_function() -> Any:
    factor = [2.0]

    def decorated(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(x: Tensor) -> Tensor:
            return function(x) * factor[0]

        return wrapper

    return decorated(double), lambda: factor.__setitem__(0, 5.0)


@mutation
def a_dispatched_function() -> Any:
    @functools.singledispatch
    def run(x: Any) -> Any:
        return x * 2

    return lambda x: run(x), lambda: run.register(Tensor, triple) and None


@mutation
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


@mutation
def a_generator_inside() -> Any:
    factors = [2.0]

    def all_of(x: Tensor) -> Any:
        for factor in factors:
            yield x * factor

    return lambda x: sum(all_of(x), start=x), lambda: factors.append(3.0)
