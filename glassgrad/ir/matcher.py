"""Rules -> Python source, one matcher function per op: tests, then the right side.

A rule becomes a chain of steps that ends in an action. A step is a test (`if n_1.op is CONST:`) or
an unpacking (`n_0_0, n_0_1 = n_0.src`). A node is named by the path to it, so consecutive rules
with a common prefix share their first steps.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

from glassgrad.base.dtype import ConstType, dtypes
from glassgrad.base.events import RuleFired, announce
from glassgrad.base.origin import GENERATED
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import VARIADIC, OpGroup, Ops
from glassgrad.ir.pattern import (
    Apply,
    Constant,
    Fold,
    Function,
    Literal,
    Matcher,
    Pattern,
    Rule,
    Rules,
    Wild,
    orders,
)
from glassgrad.ir.uop import UOp

ROOT = "n"
Chain = tuple[str, ...]  # steps; a step ending in ":" opens a block


class Names(dict[str, Any]):
    """The globals of generated code: objects it refers to, under generated names."""

    def hold(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self)}"
        self[name] = value
        return name


class Matchers(dict[Ops, Matcher | None]):
    """The matcher of each op, compiled on first use; None where no rule starts with the op."""

    def __init__(self, rules: Rules, traced: bool) -> None:
        super().__init__()
        self.rules = rules
        self.traced = traced

    def __missing__(self, op: Ops) -> Matcher | None:
        found = self[op] = compile_matcher(self.rules, op, self.traced)
        return found


def compile_matcher(rules: Rules, op: Ops, traced: bool = False) -> Matcher | None:
    """The function that tries all rules that start with an op."""
    if not any(op in rule.ops for rule in rules.rules):
        return None
    names = Names(MATCHER_GLOBALS)
    source = source_of(rules, op, names, traced)
    exec(compile(source, f"{GENERATED} {rules.name} {op.name}>", "exec"), names)
    matcher: Matcher = names["match"]
    return matcher


def source_of(rules: Rules, op: Ops, names: Names, traced: bool = False) -> str:
    """The source of a matcher; objects it refers to are added to `names`."""
    chains = [
        chain
        for rule in rules.rules
        if op in rule.ops
        for chain in _chains(rule, names, _trace(rules, rule, names) if traced else "")
    ]
    head = ["def match(n, ctx):"]
    if op.arity > 0:
        head.append(f"    {_unpack(ROOT, op.arity)}")
    return "\n".join([*head, *_block(chains, 0, 1), "    return None"])


def _block(chains: list[Chain], depth: int, indent: int) -> list[str]:
    """Chains as code; consecutive chains with the same next step share it."""
    lines: list[str] = []
    for step, group in groupby(chains, key=lambda chain: chain[depth]):
        lines.append("    " * indent + step)
        rest = [chain for chain in group if len(chain) > depth + 1]
        lines.extend(_block(rest, depth + 1, indent + step.endswith(":")))
    return lines


def _trace(rules: Rules, rule: Rule | Function, names: Names) -> str:
    """The name of a function that announces that this rule fired."""

    def fired(before: UOp, after: UOp) -> None:
        announce(RuleFired(rules.name, str(rule), before, after))

    return names.hold("fired", fired)


def _chains(rule: Rule | Function, names: Names, trace: str) -> list[Chain]:
    result = (f"{trace}(n, r)", "return r") if trace else ("return r",)
    if isinstance(rule, Function):
        called = names.hold("f", rule.function)
        arguments = "n, ctx" if rule.takes_context else "n"
        return [(f"r = {called}({arguments})", "if r is not None and r is not n:", *result)]
    return [_chain(pattern, rule, names, result) for pattern in _lefts(rule)]


def _lefts(rule: Rule) -> list[Pattern]:
    return [rule.left] if rule.ordered else orders(rule.left)


def _chain(left: Pattern, rule: Rule, names: Names, result: Chain) -> Chain:
    bound: dict[str, str] = {}
    steps = _tests(left, ROOT, bound, top=True)
    for variables, test in rule.guards:
        arguments = ", ".join([bound[variable] for variable in variables])
        steps.append(f"if {names.hold('guard', test)}({arguments}):")
    right = rule.right if isinstance(rule.right, Pattern) else Literal(rule.right)
    steps.append(f"r = {_build(right, ROOT, bound)}")
    return (*steps, "if r is not n:", *result)


# ---------------------------------------------------------------------- the left side


def _tests(pattern: Pattern, path: str, bound: dict[str, str], top: bool = False) -> list[str]:
    """The steps that test whether the node at `path` matches."""
    if isinstance(pattern, Literal):
        return [f"if {path}.op is CONST:", f"if {_equals(path, pattern.value)}:"]
    if isinstance(pattern, (Wild, Constant)):
        if pattern.name in bound:
            return [f"if {path} is {bound[pattern.name]}:"]
        bound[pattern.name] = path
        if isinstance(pattern, Constant):
            return [f"if {path}.op is CONST:"]
        return [f"if {_has_kind(path, pattern.kinds)}:"] if pattern.kinds else []
    if not isinstance(pattern, Apply):
        raise TypeError(f"{pattern} can only stand on the right side of a rule")
    return _apply_tests(pattern, path, bound, top)


def _apply_tests(pattern: Apply, path: str, bound: dict[str, str], top: bool) -> list[str]:
    steps = [] if top else [f"if {path}.op is {pattern.op.name}:"]
    if pattern.op.arity == VARIADIC:
        steps.append(f"if len({path}.src) == {len(pattern.src)}:")
    if pattern.src and not (top and pattern.op.arity > 0):
        steps.append(_unpack(path, len(pattern.src)))
    for number, source in sorted(enumerate(pattern.src), key=_cost):
        steps += _tests(source, f"{path}_{number}", bound)
    return steps


def _cost(numbered: tuple[int, Pattern]) -> int:
    """Test constants first and dtypes last: cheap tests that fail often come first."""
    return 0 if isinstance(numbered[1], (Literal, Constant)) else 1 + isinstance(numbered[1], Wild)


def _unpack(path: str, count: int) -> str:
    return f"{''.join(f'{path}_{number}, ' for number in range(count))}= {path}.src"


def _equals(path: str, value: ConstType) -> str:
    if value == 0 and not isinstance(value, bool):
        sign = math.copysign(1.0, value)
        return f"{path}.arg == 0 and sign(1.0, {path}.arg) == {sign}"
    return f"{path}.arg is {value}" if isinstance(value, bool) else f"{path}.arg == {value!r}"


def _has_kind(path: str, kinds: tuple[str, ...]) -> str:
    if len(kinds) == 1:
        return f"{path}.dtype.kind == {kinds[0]!r}"
    return f"{path}.dtype.kind in {kinds!r}"


# ---------------------------------------------------------------------- the right side


def _build(pattern: Pattern, like: str, bound: dict[str, str]) -> str:
    """The expression that makes the node; numbers get the dtype of the node at `like`."""
    if isinstance(pattern, Literal):
        return f"UOp(CONST, {like}.dtype, (), {pattern.value!r})"
    if isinstance(pattern, (Wild, Constant)):
        return bound[pattern.name]
    if isinstance(pattern, Fold):
        return _build_folded(pattern.inner, bound)
    assert isinstance(pattern, Apply)
    if pattern.op in OpGroup.COMPARISON:
        like = _some_variable(pattern, bound)
    sources = [_build(source, like, bound) for source in pattern.src]
    return f"{sources[0]}.alu({', '.join([pattern.op.name, *sources[1:]])})"


def _build_folded(pattern: Pattern, bound: dict[str, str]) -> str:
    if not isinstance(pattern, Apply):
        return _build(pattern, _some_variable(pattern, bound), bound)
    like = _some_variable(pattern, bound)
    sources = [
        _build(source, like, bound) if isinstance(source, Literal) else _build_folded(source, bound)
        for source in pattern.src
    ]
    return f"folded({', '.join([pattern.op.name, *sources])})"


def _some_variable(pattern: Pattern, bound: dict[str, str]) -> str:
    """The path of a variable of the pattern whose dtype its numbers have."""
    if isinstance(pattern, (Wild, Constant)):
        return bound[pattern.name]
    for source in pattern.src if isinstance(pattern, Apply) else ():
        if not isinstance(source, Literal):
            return _some_variable(source, bound)
    raise TypeError(f"nothing says which dtype the numbers in {pattern} have")


def folded(op: Ops, *constants: UOp) -> UOp:
    """An elementwise op of constants as a constant."""
    values = tuple([constant.arg for constant in constants])
    dtype = dtypes.bool.vec(constants[0].dtype.count) if op in COMPARISON else constants[-1].dtype
    return UOp(CONST, dtype, (), fold(op, dtype, values, constants[-1].dtype))


CONST, COMPARISON = Ops.CONST, OpGroup.COMPARISON
# Names that the code of every matcher may use.
MATCHER_GLOBALS = {one.name: one for one in Ops} | {
    "UOp": UOp,
    "folded": folded,
    "sign": math.copysign,
}
