"""Small functions on numbers and sequences for tensor scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def prod(factors: Iterable[Any]) -> Any:
    """
    >>> prod((2, 3, 4)), prod(())
    (24, 1)
    """
    return math.prod(factors)


def argfix(*args: Any) -> tuple[Any, ...]:
    """Arguments given as one sequence or one by one.

    >>> argfix(2, 3), argfix((2, 3)), argfix([2])
    ((2, 3), (2, 3), (2,))
    """
    if args and isinstance(args[0], (tuple, list)):
        if len(args) != 1:
            raise ValueError(f"expected sizes one by one or as one sequence, not both: {args}")
        return tuple(args[0])
    return args


def argsort(values: Sequence[Any]) -> tuple[int, ...]:
    """The indices that sort the values.

    >>> argsort((30, 10, 20))
    (1, 2, 0)
    """
    return tuple(sorted(range(len(values)), key=values.__getitem__))


def all_same(items: Sequence[Any]) -> bool:
    return all(item == items[0] for item in items)


def all_int(items: Sequence[Any]) -> TypeGuard[tuple[int, ...]]:
    return all(isinstance(item, int) for item in items)


def dedup(items: Iterable[T]) -> list[T]:
    """Each item once, in order of first appearance."""
    return list(dict.fromkeys(items))


def flatten(nested: Iterable[Iterable[T]]) -> list[T]:
    """
    >>> flatten([[1, 2], [3]])
    [1, 2, 3]
    """
    return [item for inner in nested for item in inner]


def fully_flatten(nested: Any) -> list[Any]:
    """All items that are not lists or tuples, at any depth.

    >>> fully_flatten([1, [2, (3, [])]])
    [1, 2, 3]
    """
    if not isinstance(nested, (list, tuple)):
        return [nested]
    return [item for inner in nested for item in fully_flatten(inner)]


def partition(items: Iterable[T], test: Callable[[T], Any]) -> tuple[list[T], list[T]]:
    """The items that pass the test, and those that do not.

    >>> partition(range(5), lambda n: n % 2)
    ([1, 3], [0, 2, 4])
    """
    passed: list[T] = []
    failed: list[T] = []
    for item in items:
        (passed if test(item) else failed).append(item)
    return passed, failed


def make_tuple(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """
    >>> make_tuple(3, 2), make_tuple([1, 2], 2)
    ((3, 3), (1, 2))
    """
    return (value,) * count if isinstance(value, int) else tuple(value)


def merge_dicts(parts: Iterable[dict[K, V]]) -> dict[K, V]:
    """All entries; a key in several dicts must have equal values."""
    merged: dict[K, V] = {}
    for part in parts:
        for key, value in part.items():
            if key in merged and merged[key] != value:
                raise ValueError(f"conflicting values for {key!r}: {merged[key]!r} and {value!r}")
            merged[key] = value
    return merged


def unwrap(value: T | None) -> T:
    """The value, which is not None."""
    if value is None:
        raise ValueError("expected a value, not None")
    return value


def get_single_element(items: Sequence[T]) -> T:
    if len(items) != 1:
        raise ValueError(f"expected one item, not {len(items)}")
    return items[0]


def get_child(root: Any, path: str) -> Any:
    """The object at a path such as "layers.0.weight": attributes, keys and indices.

    >>> get_child({"layers": [1, 2]}, "layers.1")
    2
    """
    for step in path.split("."):
        if isinstance(root, dict):
            root = root[step]
        else:
            root = root[int(step)] if step.isdigit() else getattr(root, step)
    return root


def ceildiv(number: int, step: int) -> int:
    """
    >>> ceildiv(7, 2), ceildiv(-7, 2)
    (4, -3)
    """
    return -(-number // step)


def round_up(number: int, step: int) -> int:
    return ceildiv(number, step) * step


def round_down(number: int, step: int) -> int:
    return number // step * step


def next_power2(number: int) -> int:
    """
    >>> next_power2(5), next_power2(8), next_power2(0)
    (8, 8, 1)
    """
    return 1 if number <= 1 else 1 << (number - 1).bit_length()


def get_shape(nested: Any) -> tuple[int, ...]:
    """The shape of nested lists; ragged ones are an error.

    >>> get_shape([[1, 2], [3, 4], [5, 6]])
    (3, 2)
    """
    if not isinstance(nested, (list, tuple)):
        return ()
    shapes = [get_shape(inner) for inner in nested]
    if not all_same(shapes):
        raise ValueError(f"inner lists differ in shape: {dedup(shapes)}")
    return (len(nested), *(shapes[0] if shapes else ()))
