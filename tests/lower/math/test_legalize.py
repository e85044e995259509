"""Ops that the target lacks are replaced by others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.nests import nest_of, numbers
from support.compiler.schedules import TARGET, leaf

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.pass_runner import run_passes
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.lower import PASSES
from glassgrad.lower.pass_functions import Lowering, Request


def legalize(body: UOp, target: Target = TARGET) -> UOp:
    """The body after all passes before instructions are emitted."""
    count = [step.name for step in PASSES].index("emit instructions")
    request = Request(Nest(body), target)
    return run_passes(PASSES[:count], Lowering(body), request).body


def ops_after(node: UOp, target: Target = TARGET) -> set[Ops]:
    return {found.op for found in legalize(nest_of(node).body, target).toposort()}


@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN])
def test_a_function_becomes_its_polynomial(op: Ops) -> None:
    assert op not in ops_after(numbers(8).alu(op))


@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN])
def test_a_function_that_the_machine_has_stays(op: Ops) -> None:
    assert op in ops_after(numbers(8).alu(op), replace(TARGET, native=frozenset((op,))))


@pytest.mark.parametrize("op", [Ops.FLOORDIV, Ops.FLOORMOD])
def test_floored_division_of_values_becomes_hardware_division(op: Ops) -> None:
    x, y = leaf(np.ones(8), "int32"), leaf(np.ones(8), "int32")
    found = ops_after(x.alu(op, y))
    assert op not in found
    assert found & {Ops.CDIV, Ops.CMOD}


def test_low_precision_is_computed_in_float32() -> None:
    x = leaf(np.ones(8), "float16")
    body = legalize(nest_of(x * x).body)
    (product,) = [node for node in body.toposort() if node.op is Ops.MUL]
    assert product.dtype is dtypes.float32


def test_legalizing_twice_changes_nothing() -> None:
    once = legalize(nest_of((numbers(8) + 1.0).alu(Ops.EXP2)).body)
    assert legalize(once) is once
