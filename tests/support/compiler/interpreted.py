"""`with interpreted():` realises tensors by the reference instead of by compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

import glassgrad.tensor.lazy.realize
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from support.references.graph import evaluate_all


def run(values: Sequence[UOp]) -> tuple[tuple[View, ...], None]:
    """What tensor.lazy.run.plan_and_run does, slowly: writes go to the memory of their buffers."""
    arrays = evaluate_all(values)
    views = [_stored(value, array) for value, array in zip(values, arrays, strict=True)]
    return tuple(views), None


def _stored(value: UOp, array: np.ndarray) -> View:
    if value.op is not Ops.ASSIGN:
        return View.from_host(np.array(array, order="C"))
    while value.op is Ops.ASSIGN:
        value = value.src[0]
    view: View = value.arg
    if view.numel:
        view.numpy()[...] = array
    return view.new_version()


@contextmanager
def interpreted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glassgrad.tensor.lazy.realize, "plan_and_run", run)
        patch.setattr(glassgrad.tensor.lazy.realize, "look_up", lambda *_: None)
        yield
