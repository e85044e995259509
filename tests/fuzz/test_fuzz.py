"""A sample of random programs with fixed seeds, and tests of the fuzzer itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fuzz.cases import Exclusions, run_case
from fuzz.generate import GeneratorOptions, generate
from fuzz.modes import check
from fuzz.ops import OPS
from fuzz.programs import Leaf, Program, Statement
from fuzz.reference import evaluate
from fuzz.shrink import prune, shrink
from fuzz.stochastic import Arithmetic, Discard
from glassgrad import Tensor


@pytest.mark.parametrize("batch", range(8))
def test_random_programs_equal_the_reference(batch: int) -> None:
    reports = [run_case(10 * batch + i, Exclusions(), seconds=10) for i in range(10)]
    wrong = [report.text for report in reports if report.failure]
    assert not wrong, "\n".join(wrong)
    assert sum(report.programs for report in reports) >= 6, "most programs were discarded"


def test_a_seed_determines_the_program() -> None:
    for seed in range(20):
        options = GeneratorOptions(has_gradients=bool(seed % 2))
        assert generate(seed, options).script() == generate(seed, options).script()


def test_programs_have_all_operations_and_are_long() -> None:
    programs = [
        generate(seed, GeneratorOptions(has_gradients=seed % 4 == 0)) for seed in range(400)
    ]
    found = Counter(one.op for program in programs for one in program.statements)
    assert not OPS.keys() - found.keys()
    assert np.mean([len(program.statements) for program in programs]) > 20
    dtypes = Counter(leaf.dtype for program in programs for leaf in program.leaves)
    assert {"float16", "bfloat16", "fp8e4m3", "fp8e5m2", "float64", "uint8", "bool"} <= set(dtypes)
    sizes = Counter(n for program in programs for leaf in program.leaves for n in leaf.shape)
    assert {0, 1, 13, 64, 1000} <= set(sizes)


@pytest.mark.parametrize("name,wrong", [("relu", Tensor.abs), ("cumsum", lambda x, axis: x * 1)])
def test_a_planted_bug_is_found_and_shrunk(
    name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tensor, name, wrong)
    modes = {"captured", "noopt", "recipes", "threads", "two cores"}
    exclusions = Exclusions(frozenset({*modes, "masked_select"}))  # which uses cumsum
    for seed in range(400):
        report = run_case(seed, exclusions)
        if report.failure and any(one.op == name for one in report.failure.program.statements):
            break
    else:
        pytest.fail("the bug was not found")
    script = report.text.split("```python")[1].split("```")[0]
    assert f".{name}(" in script
    assert len(script.strip().splitlines()) <= 17


def test_a_planted_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = Leaf("x", (3,), low=-30000, high=30001, divisor=2**14, is_parameter=True)
    program = Program((x,), (Statement("tanh", ("y",), ("x",)),), ("y",), ("y",))
    assert check(program, "plain", 0) is None
    original = Tensor.tanh
    monkeypatch.setattr(Tensor, "tanh", lambda x: original(x).detach() + x - x.detach())
    failure = check(program, "plain", 0)
    assert failure is not None
    assert (failure.kind, "x.grad" in failure.message) == ("wrong", True)


def test_shrinking_keeps_the_failing_statement() -> None:
    program = generate(3)
    target = next(one for one in program.statements if one.outs)

    def fails(candidate: Program) -> bool:
        evaluate(candidate, Arithmetic())
        return any(one.op == target.op for one in candidate.statements)

    reduced = replace(program, outputs=target.outs[:1])
    small = shrink(reduced, fails, 10)
    assert [one.op for one in small.statements] == [target.op]


def test_pruning_keeps_a_write_through_a_view_of_an_output() -> None:
    statements = (
        Statement("flatten", ("v",), ("x",)),
        Statement("write scalar", (), ("v",), {"sign": "+=", "c": 1}),
        Statement("neg", ("unused",), ("x",)),
    )
    program = Program((Leaf("x", (2, 2)),), statements, ("x",))
    assert [one.op for one in prune(program).statements] == ["flatten", "write scalar"]
    state = evaluate(program, Arithmetic())
    assert (state["x"].read()[0] == program.leaves[0].numbers() + 1).all()


def test_ill_conditioned_programs_are_discarded() -> None:
    leaf = Leaf("x", (4,), low=-30000, high=30001, divisor=2**14)
    statements = (
        Statement("sin", ("y",), ("x",)),
        Statement("sub", ("z",), ("y", "y")),
        Statement("gt", ("w",), ("z", "z")),
    )
    with pytest.raises(Discard):
        evaluate(Program((leaf,), statements, ("w",)), Arithmetic())
