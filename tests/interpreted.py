"""`with interpreted():` realises tensors by the reference instead of by compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from reference import evaluate_all

import glassgrad.tensor.realize
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View


def realize(values: Sequence[UOp]) -> tuple[View, ...]:
    """What engine.pipeline.realize does, slowly: writes go to the memory of their buffers."""
    arrays = evaluate_all(values)
    return tuple(_stored(value, array) for value, array in zip(values, arrays, strict=True))


def _stored(value: UOp, array: np.ndarray) -> View:
    if value.op is not Ops.ASSIGN:
        return View.from_host(np.array(array, order="C"))
    while value.op is Ops.ASSIGN:
        value = value.src[0]
    view: View = value.arg
    if view.numel:
        view.numpy()[...] = array
    return view.renewed()


@contextmanager
def interpreted() -> Iterator[None]:
    before = glassgrad.tensor.realize.run
    glassgrad.tensor.realize.run = realize
    try:
        yield
    finally:
        glassgrad.tensor.realize.run = before
