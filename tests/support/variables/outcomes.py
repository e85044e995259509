"""A call with a variable -> what came of it: its results as arrays, or the error that it raised."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import Tensor, TinyJit, Variable
from glassgrad.base.errors import GlassgradError
from glassgrad.ir.symbolic import SymbolicInt
from support.variables.cases import DATA, LARGEST, names

BINDINGS = (5, 1, LARGEST)
Outcome = list[Any] | Exception


def fresh() -> list[Tensor]:
    return [Tensor(np.array(data)) for data in DATA.values()]


def bound(value: int) -> Any:
    return Variable("n", 1, LARGEST).bind(value)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [one for part in result for one in _flat(part)]
    return [Tensor(result) if isinstance(result, SymbolicInt) else result]


def _array(result: Any) -> Any:
    if isinstance(result, Tensor):
        return result.numpy()
    return np.asarray(result, np.int32 if isinstance(result, int) else None)


def called(text: str, tensors: list[Tensor], n: Any) -> list[Any]:
    Tensor.manual_seed(3)
    return _flat(eval(text, names(tensors, n)))


def plainly(text: str, n: Any) -> Outcome:
    """The results of a call, or what it raised."""
    try:
        return [_array(one) for one in called(text, fresh(), n)]
    except Exception as error:  # noqa: BLE001  the test looks at it
        return error


def in_place(text: str, n: Any) -> Outcome:
    """What a tensor in memory is after a call."""
    tensors, target = fresh(), Tensor(np.arange(72, dtype=np.float32).reshape(LARGEST, 6)).realize()
    try:
        eval(text, names(tensors, n) | {"t": target})
        return [target.numpy()]
    except Exception as error:  # noqa: BLE001  the test looks at it
        return error


def captured(text: str) -> list[tuple[int, Outcome]]:
    """The results of a captured function for several values."""
    found: list[tuple[int, Outcome]] = []

    used = ", ".join(names(fresh(), 1))
    call = eval(f"lambda {used}: ({text})")  # outside: a captured function must not call eval()

    def function(n: Any, *tensors: Tensor) -> Any:
        results = _flat(call(**names(list(tensors), n)))
        return [one if isinstance(one, Tensor) else Tensor(_array(one)) for one in results]

    compute, tensors = TinyJit(function), [tensor.realize() for tensor in fresh()]
    for value in (*BINDINGS, BINDINGS[0]):
        Tensor.manual_seed(3)
        try:
            found.append((value, [_array(one) for one in compute(bound(value), *tensors)]))
        except Exception as error:  # noqa: BLE001
            found.append((value, error))
    return found


def difference(found: Outcome, wanted: Outcome) -> str:
    """What is wrong with an outcome; "" if it is right, "refused" for an error of ours."""
    if isinstance(found, Exception):
        if isinstance(found, GlassgradError):
            return "" if isinstance(wanted, Exception) else "refused"
        same = type(found) is type(wanted)
        return "" if same else f"internal error {type(found).__name__}: {found}"
    if isinstance(wanted, Exception):
        return f"a result where numbers are refused: {wanted}"
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
        return f"shapes {[(a.shape, a.dtype) for a in found]} for {[a.shape for a in wanted]}"
    for one, other in zip(found, wanted, strict=True):
        if not np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"values {one.tolist()} for {other.tolist()}"
    return ""
