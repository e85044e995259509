"""Fuzzing of captures: random functions read state outside of them that changes between calls.

A program is Python text: a class with state, a function that reads it in many ways, and an event
before each call. It runs captured and not; results and state must be bitwise equal. All arithmetic
is exact (few bits, rounded often), so that fusion does not change results.

    python -m fuzz.captures --programs 10000 --seed 1
"""

from __future__ import annotations

import argparse
import linecache
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, NamedTuple

import numpy as np

WIDTH = 4

NUMBERS = (
    "self.k", "self.config.rate", "self.options['k']", "self.table[1]", "FACTOR", "cell",
    "getattr(self, 'k')", "len(self.table)", "self.doubled", "self.KIND", "NUMBERS['n']",
    "self.data.rate", "sum(self.table)", "(self.config or None).rate",
)  # fmt: skip
TENSORS = ("self.w", "self.tensors[0]", "self.named['w']", "OUTSIDE", "self.data.weight", "held")
FUNCTIONS = ("self.activation", "self.functions[0]", "FUNCTION", "self.method", "self.scale")
FLAGS = ("self.is_on", "self.mode == 'a'", "'fast' in self.options", "self.maybe is None", "SWITCH")

STATEMENTS: tuple[tuple[int, str], ...] = (
    (6, "y = y * {number}"),
    (3, "y = y - {number} * 0.5"),
    (6, "y = y * {tensor}"),
    (4, "y = {tensor} + y"),
    (4, "y = {function}(y)"),
    (3, "y = y * 1.5 if {flag} else y + 0.25"),
    (2, "for layer in self.layers: y = layer(y)"),
    (2, "for t in self.tensors: y = y + t"),
    (2, "y = y.realize()"),
    (2, "y = y - y.mean(0)"),
    (2, "y = y.relu()"),
    (1, "c = self.config; y = y + c.rate"),
    (1, "y = y + sum(t for t in self.tensors)"),
    (1, "y = (y * FACTOR).realize() + (y * 3).realize()"),
    (2, "self.state.assign(exact(self.state * 0.5 + y.mean(0)))"),
    (1, "self.state += {number}"),
    (1, "self.state[0:2] = {tensor}[0:2] * 0.125"),
    (2, "y = y + self.state"),
    (1, "y = y + (Tensor.rand(4) * 8).floor()"),
    (1, "self.train(y)"),
)

EVENTS: tuple[tuple[int, str], ...] = (
    (4, "pass"),
    (2, "world.k = {value}"),
    (1, "world.config.rate = {value}"),
    (1, "world.config = Config({value})"),
    (1, "world.options['k'] = {value}"),
    (1, "world.options.pop('fast', None) or world.options.update(fast=1)"),
    (1, "world.table[1] = {value}"),
    (1, "world.table.append({value})"),
    (1, "space['FACTOR'] = {value}"),
    (1, "space['NUMBERS']['n'] = {value}"),
    (1, "set_cell({value})"),
    (1, "world.base = {value}"),
    (1, "type(world).KIND = {value}"),
    (1, "world.data = Data({value}, world.data.weight)"),
    (1, "world.data.weight = row({value})"),
    (1, "world.w = row({value})"),
    (1, "world.w = world.w * 0.5"),
    (1, "world.w.assign(world.w * 0.5 + {value})"),
    (1, "world.tensors[0] = row({value})"),
    (1, "world.tensors.append(row({value}))"),
    (1, "world.tensors.reverse()"),
    (1, "world.named['w'] = row({value})"),
    (1, "space['OUTSIDE'] = row({value})"),
    (1, "world.activation = Tensor.relu"),
    (1, "world.functions[0] = triple"),
    (1, "space['FUNCTION'] = triple"),
    (1, "world.scale = Scale({value})"),
    (1, "world.scale.factor = {value}"),
    (1, "world.is_on = not world.is_on"),
    (1, "world.mode = 'b'"),
    (1, "world.maybe = 1 if world.maybe is None else None"),
    (1, "space['SWITCH'] = not space['SWITCH']"),
    (1, "world.layers[0].weight = square({value})"),
    (1, "world.layers[0].weight.assign(square({value}))"),
    (1, "world.layers.append(Scale({value}))"),
    (1, "world.layers.pop()"),
    (1, "world.state = row({value})"),
    (1, "world.state.assign(row({value}))"),
    (1, "world.w.grad = None"),
    (2, "rows = 6 - rows"),
)

WORLD = """
class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class Linear:
    def __init__(self, factor):
        self.weight = square(factor)

    def __call__(self, x):
        return x @ self.weight


class Config:
    def __init__(self, rate):
        self.rate = rate


@dataclass
class Data:
    rate: float
    weight: Tensor


def double(x):
    return x * 2


def triple(x):
    return x * 3


FACTOR, SWITCH, NUMBERS, FUNCTION, OUTSIDE = 1.25, True, {"n": 2}, double, row(0.5)


class World:
    KIND = 1.5

    def __init__(self):
        self.k, self.base, self.is_on, self.mode, self.maybe = 2.0, 0.5, True, "a", None
        self.config, self.options, self.table = Config(0.5), {"k": 2}, [1.0, 0.5]
        self.w, self.tensors, self.named = row(1.0), [row(2.0)], {"w": row(0.25)}
        self.data, self.state = Data(0.75, row(1.5)), row(0.0)
        self.activation, self.functions, self.scale = double, [double], Scale(0.5)
        self.layers = [Linear(0.5), Scale(2.0)]

    @property
    def doubled(self):
        return self.base * 2

    def method(self, x):
        return x * self.k

    def train(self, y):
        self.w.requires_grad_()
        (self.w * y.detach() * 0.125).sum().backward()
        self.w.assign(exact(self.w.detach() - 0.0625 * self.w.grad))


def made():
    cell, held, world = 2.0, row(0.75), World()

    def set_cell(value):
        nonlocal cell
        cell = value

    def run(x):
        self, y = world, x
        {body}
        return y

    return world, run, set_cell
"""


class CaptureProgram(NamedTuple):
    """A program: its function, and an event before each call."""

    world: str
    events: tuple[str, ...]


def generate(seed: int) -> CaptureProgram:
    rng = Random(seed)
    body = []
    for _ in range(rng.randint(2, 9)):
        body += [_fill_template(rng, _random_row(rng, STATEMENTS)), "y = exact(y)"]
    events = [_fill_template(rng, _random_row(rng, EVENTS)) for _ in range(rng.randint(6, 14))]
    return CaptureProgram(
        WORLD.replace("{body}", "\n        ".join(body)), ("pass", "pass", *events)
    )


def _random_row(rng: Random, rows: tuple[tuple[int, str], ...]) -> str:
    return rng.choices([text for _, text in rows], [weight for weight, _ in rows])[0]


def _fill_template(rng: Random, text: str) -> str:
    choices = {"number": NUMBERS, "tensor": TENSORS, "function": FUNCTIONS, "flag": FLAGS}
    for name, values in choices.items():
        text = text.replace(f"{{{name}}}", rng.choice(values))
    return text.replace("{value}", str(rng.randint(-8, 8) / 4))


# ---------------------------------------------------------------------- running


class Outcome(NamedTuple):
    """The bits of results and state after each call, and the error that ended the run."""

    bits: list[tuple[bytes, ...]]
    error: str | None


def run(program: CaptureProgram, is_captured: bool, name: str) -> Outcome:
    from glassgrad import Tensor, TinyJit
    from glassgrad.base.errors import CaptureError

    space = _namespace(program, name)
    Tensor.manual_seed(7)
    world, function, set_cell = space["made"]()
    callee: Callable[[Any], Any] = TinyJit(function) if is_captured else function
    variables = {"world": world, "space": space, "set_cell": set_cell, "rows": 2}
    found: list[tuple[bytes, ...]] = []
    for number, event in enumerate(program.events):
        exec(compile(event, "<event>", "exec"), space, variables)
        numbers = np.random.default_rng(number).integers(-8, 9, (variables["rows"], WIDTH)) / 4
        try:
            result = callee(Tensor(numbers.astype(np.float32)).realize())
        except CaptureError as error:
            return Outcome(found, str(error))
        tensors = (result, world.state, world.w)
        found.append(tuple([one.numpy().tobytes() for one in tensors]))
    return Outcome(found, None)


def _namespace(program: CaptureProgram, name: str) -> dict[str, Any]:
    """The globals of a program; tracebacks show its lines."""
    from dataclasses import dataclass

    from glassgrad import Tensor

    def row(value: float) -> Any:
        return Tensor((np.arange(WIDTH, dtype=np.float32) + value) / 8).realize()

    def square(value: float) -> Any:
        return Tensor(np.eye(WIDTH, dtype=np.float32) * value + 0.125).realize()

    def exact(x: Any) -> Any:
        return (x * 16).round().clip(-128, 128) / 16

    file = f"<{name}>"
    linecache.cache[file] = (len(program.world), None, program.world.splitlines(True), file)
    space: dict[str, Any] = {
        "__name__": "__main__", "Tensor": Tensor, "row": row, "square": square,
        "exact": exact,
        "dataclass": dataclass,
    }  # fmt: skip
    exec(compile(program.world, file, "exec"), space)
    return space


def check(seed: int) -> tuple[str, str | None]:
    """The outcome ("equal", "refused", "WRONG" or "not a program"), and a message."""
    program = generate(seed)
    try:
        expected = run(program, is_captured=False, name=f"plain {seed}")
    except Exception as error:  # noqa: BLE001  a program that is not right by itself
        return f"not a program: {type(error).__name__}", None
    found = run(program, is_captured=True, name=f"captured {seed}")
    equal_calls = sum(a == b for a, b in zip(expected.bits, found.bits, strict=False))
    if equal_calls == len(found.bits):
        return ("equal" if found.error is None else "refused"), found.error
    call = next(
        n for n, (a, b) in enumerate(zip(expected.bits, found.bits, strict=False)) if a != b
    )
    return "WRONG", f"seed {seed}, call {call}: {show(program, call)}"


def show(program: CaptureProgram, call: int) -> str:
    body = program.world.partition("self, y = world, x\n")[2].partition("return y")[0]
    return f"\n{body}events: {program.events[: call + 1]}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz.captures", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--verbose", action="store_true", help="print the reasons of refusals")
    options = parser.parse_args(arguments)
    first = SystemRandom().randrange(1 << 40) if options.seed is None else options.seed
    counts: dict[str, int] = {}
    reasons: dict[str, int] = {}
    start = time.monotonic()
    for seed in range(first, first + options.programs):
        outcome, message = check(seed)
        counts[outcome] = counts.get(outcome, 0) + 1
        if outcome == "WRONG":
            print(message, flush=True)
        elif message:
            reason = message.partition("\n")[0]
            reasons[reason] = reasons.get(reason, 0) + 1
    print(f"{options.programs} programs from seed {first} in {time.monotonic() - start:.0f} s:",
          ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))  # fmt: skip
    if options.verbose:
        for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1])[:40]:
            print(f"{count:6} {reason}")
    return 1 if "WRONG" in counts else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
