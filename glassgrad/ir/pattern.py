"""Algebra as written on paper -> Rules: both sides of a rule are expressions of variables.

    ALGEBRA = Rules(
        "algebra",
        Rule(i + 0, i),
        Rule((i + c) + d, i + fold(c + d)),
        Rule((i // c) // d, i // fold(c * d), when=positive(c, d)),
    )

    @ALGEBRA.rule(Ops.CAST)
    def cast_to_same(node: UOp) -> UOp | None: ...

`x y z` match anything, `i j k` integers, `f g` floats, `p q` bools, `c d` constants; a repeated
variable matches the same node twice. A number matches a constant of that value (0 is not -0.0).
Commutative ops are tried in both orders. `ir/matcher.py` compiles rules to Python code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from glassgrad.base.dtype import ConstType, Kind
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

Matcher = Callable[[UOp, Any], UOp | None]
Structural = TypeVar("Structural", bound=Callable[..., UOp | None])


class Pattern:
    """An expression with variables; operators build larger ones, as they do for UOps."""

    def apply(self, op: Ops, *others: Pattern | ConstType) -> Apply:
        return Apply(op, (self, *[_pattern(other) for other in others]))

    def __add__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.ADD, other)

    def __sub__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.SUB, other)

    def __mul__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.MUL, other)

    def __truediv__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.FDIV, other)

    def __floordiv__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.FLOORDIV, other)

    def __mod__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.FLOORMOD, other)

    def __and__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.AND, other)

    def __or__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.OR, other)

    def __xor__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.XOR, other)

    def __lshift__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.SHL, other)

    def __rshift__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.SHR, other)

    def __neg__(self) -> Apply:
        return self.apply(Ops.NEG)

    def __lt__(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.CMPLT, other)

    def eq(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.CMPEQ, other)

    def ne(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.CMPNE, other)

    def maximum(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.MAX, other)

    def minimum(self, other: Pattern | ConstType) -> Apply:
        return self.apply(Ops.MIN, other)

    def where(self, yes: Pattern | ConstType, no: Pattern | ConstType) -> Apply:
        return self.apply(Ops.WHERE, yes, no)


@frozen
class Wild(Pattern):
    """Any node, or any node of some kinds of dtype."""

    name: str
    kinds: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        return self.name


@frozen
class Constant(Pattern):
    """Any CONST node."""

    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class Literal(Pattern):
    """A CONST node of this value."""

    value: ConstType

    def __str__(self) -> str:
        return repr(self.value)


SYMBOLS = {
    Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.FLOORDIV: "//", Ops.FLOORMOD: "%",
    Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.SHL: "<<", Ops.SHR: ">>", Ops.CMPLT: "<",
    Ops.CMPEQ: "==", Ops.CMPNE: "!=",
}  # fmt: skip


@frozen
class Apply(Pattern):
    """A node of this op whose sources match."""

    op: Ops
    src: tuple[Pattern, ...]

    def __str__(self) -> str:
        if self.op in SYMBOLS:
            return f"({self.src[0]} {SYMBOLS[self.op]} {self.src[1]})"
        return f"{self.op.name.lower()}({', '.join(map(str, self.src))})"


@frozen
class Fold(Pattern):
    """On the right side: an expression of constants, computed when the rule fires."""

    inner: Pattern

    def __str__(self) -> str:
        return f"fold{self.inner}"


def _pattern(value: Pattern | ConstType) -> Pattern:
    return value if isinstance(value, Pattern) else Literal(value)


def node(op: Ops, *src: Pattern | ConstType) -> Apply:
    """A node of any op: `node(Ops.RECIPROCAL, x)`."""
    return Apply(op, tuple([_pattern(source) for source in src]))


def fold(inner: Pattern) -> Fold:
    return Fold(inner)


x, y, z = Wild("x"), Wild("y"), Wild("z")
INTEGERS: tuple[Kind, ...] = ("int", "uint", "index")
i, j, k = Wild("i", INTEGERS), Wild("j", INTEGERS), Wild("k", INTEGERS)
f, g = Wild("f", ("float",)), Wild("g", ("float",))
p, q = Wild("p", ("bool",)), Wild("q", ("bool",))
c, d = Constant("c"), Constant("d")


@frozen
class Guard:
    """A condition on what variables matched; `&` joins two."""

    tests: tuple[tuple[tuple[str, ...], Callable[..., bool]], ...]

    def __and__(self, other: Guard) -> Guard:
        return Guard(self.tests + other.tests)


def guard(test: Callable[..., bool], *variables: Wild | Constant) -> Guard:
    """`test` of the nodes that these variables matched."""
    return Guard(((tuple([variable.name for variable in variables]), test),))


def _every(test: Callable[[UOp], bool], variables: tuple[Wild | Constant, ...]) -> Guard:
    return Guard(tuple([((variable.name,), test) for variable in variables]))


def positive(*constants: Wild | Constant) -> Guard:
    """All of these are greater than zero."""
    return _every(lambda found: bool(found.vmin > 0), constants)


def varying(*variables: Wild | Constant) -> Guard:
    """None of these is a constant."""
    return _every(lambda found: found.op is not Ops.CONST, variables)


@frozen
class Rule:
    """left -> right, where `when` holds. `ordered` rules are not tried with swapped sources.

    `when` is a Guard, or a function whose parameters are named as the variables are.
    """

    left: Apply
    right: Pattern | ConstType
    when: Guard | Callable[..., bool] | None = None
    ordered: bool = False

    @property
    def ops(self) -> tuple[Ops, ...]:
        return (self.left.op,)

    @property
    def guards(self) -> tuple[tuple[tuple[str, ...], Callable[..., bool]], ...]:
        if self.when is None:
            return ()
        if isinstance(self.when, Guard):
            return self.when.tests
        return ((_parameters(self.when), self.when),)

    def __str__(self) -> str:
        return f"{_bare(self.left)}  ->  {_bare(_pattern(self.right))}"


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameter names of a function, without the slow import of `inspect`."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _bare(pattern: Pattern) -> str:
    text = str(pattern)
    is_infix = isinstance(pattern, Apply) and pattern.op in SYMBOLS
    return text[1:-1] if is_infix else text


@frozen
class Function:
    """A structural rule: a function that is shown nodes of some ops and may return another node."""

    ops: tuple[Ops, ...]
    function: Callable[..., UOp | None]
    takes_context: bool

    def __str__(self) -> str:
        return self.function.__name__


class Rules:
    """Rules under a name, tried in order; `a + b` tries a's first."""

    def __init__(self, name: str, *rules: Rule | Function) -> None:
        self.name = name
        self.rules = list(rules)
        self.compiled: dict[bool, dict[Ops, Matcher | None]] = {}

    def __add__(self, other: Rules) -> Rules:
        return Rules(f"{self.name} + {other.name}", *self.rules, *other.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def rule(self, *ops: Ops | Iterable[Ops]) -> Callable[[Structural], Structural]:
        """Make a function `(node)` or `(node, context)` a rule for nodes of these ops."""
        wanted: list[Ops] = []
        for op in ops:
            wanted.extend((op,) if isinstance(op, Ops) else sorted(op))

        def add(function: Structural) -> Structural:
            takes_context = len(_parameters(function)) > 1
            self.rules.append(Function(tuple(wanted), function, takes_context))
            self.compiled.clear()
            return function

        return add

    def matchers(self, traced: bool = False) -> dict[Ops, Matcher | None]:
        """By op, a function or None (index it, do not `get`); `traced` ones announce rules."""
        found = self.compiled.get(traced)
        if found is None:
            from glassgrad.ir.matcher import Matchers

            found = self.compiled[traced] = Matchers(self, traced)
        return found


def orders(pattern: Pattern) -> list[Pattern]:
    """The pattern in all orders that its commutative ops allow, as written first."""
    if not isinstance(pattern, Apply):
        return [pattern]
    choices: list[tuple[Pattern, ...]] = [()]
    for source in pattern.src:
        choices = [(*head, tail) for head in choices for tail in orders(source)]
    found: list[Pattern] = [Apply(pattern.op, src) for src in choices]
    if pattern.op in OpGroup.COMMUTATIVE and pattern.src[0] != pattern.src[1]:
        found += [Apply(pattern.op, src[::-1]) for src in choices]
    return found
