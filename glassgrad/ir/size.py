"""Size: a dimension of a shape that is only known at launch, as the compiler sees it.

As an int it is its largest value, so memory, strides and costs are valid for all values; `uop` is
its index expression. Sums and products of sizes are sizes; where everything cancels, the result is
a plain int. Users never see one: they hold a SymbolicInt (ir/symbolic.py), which is no int.

The values of variables are kept beside the expression (`bound`): the graph has the same structure
for all values, so one plan and one kernel serve all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from glassgrad.base.errors import ShapeError
from glassgrad.ir.divmod import floordiv, mod
from glassgrad.ir.linear import add, mul, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.uop import UOp, const, variable


class Value(int):
    """The value of a bound variable; later bindings have larger numbers."""

    number: int

    def __new__(cls, value: int) -> Value:
        made = int.__new__(cls, value)
        made.number = next(_numbers)
        return made


_numbers = count()
Bound = Mapping[UOp, int]  # VARIABLE -> its value
UNBOUND: Bound = {}
VALUE_READERS: list[Callable[[Any], None]] = []  # called when a value is read


class Size(int):
    """A whole number that depends on variables; the int is its largest value."""

    uop: UOp
    bound: Bound

    def __new__(cls, uop: UOp, bound: Bound) -> Size:
        made = int.__new__(cls, uop.vmax)
        made.uop, made.bound = uop, bound
        Sizes.exist = True
        return made

    # ------------------------------------------------------------------ properties

    @property
    def vmin(self) -> int:
        return int(self.uop.vmin)

    @property
    def vmax(self) -> int:
        return int(self.uop.vmax)

    @property
    def val(self) -> int:
        """Its value now; every variable in it must be bound."""
        for reader in VALUE_READERS:
            reader(self)
        return evaluate(self.uop, self.bound)

    def __repr__(self) -> str:
        return expression_text(self.uop)

    def __float__(self) -> float:
        raise ShapeError(
            f"{self} is known only at launch", hint=f"Tensor({self}) is a tensor to compute with"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.uop is other.uop

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.uop)

    # Comparisons that depend on the values compare the largest ones.
    def __lt__(self, other: Any) -> bool:
        return self._is_below(other, 0)

    def __le__(self, other: Any) -> bool:
        return self._is_below(other, 1)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def _is_below(self, other: Any, more: int) -> bool:
        if not isinstance(other, int):
            return bool(int(self) < other + more)
        distance: int = self - other
        if isinstance(distance, Size):
            if distance.vmin >= more or distance.vmax < more:
                return distance.vmax < more
            return int(self) < int(other) + more
        return distance < more

    # ------------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> Any:
        return self._combined(other, lambda o: add(self.uop, o))

    def __sub__(self, other: Any) -> Any:
        return self._combined(other, lambda o: add(self.uop, scale(o, -1)))

    def __rsub__(self, other: Any) -> Any:
        return self._combined(other, lambda o: add(scale(self.uop, -1), o))

    def __neg__(self) -> Any:
        return size_of(scale(self.uop, -1), self.bound)

    def __mul__(self, other: Any) -> Any:
        return self._combined(other, lambda o: mul(self.uop, o))

    def __floordiv__(self, other: Any) -> Any:
        return self._divide(other, floordiv)

    def __mod__(self, other: Any) -> Any:
        return self._divide(other, mod)

    __radd__, __rmul__ = __add__, __mul__

    def _combined(self, other: Any, combine: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        return size_of(combine(expression(other)), self._bound_with(other))

    def _divide(self, other: Any, divide: Any) -> Any:
        if isinstance(other, Size):
            if other == self:
                return 1 if divide is floordiv else 0
            raise ShapeError(f"cannot divide {self} by {other}, which is known only at launch")
        if not isinstance(other, int):
            return NotImplemented
        return size_of(divide(self.uop, other), self.bound)

    def _bound_with(self, other: int) -> Bound:
        if not isinstance(other, Size) or other.bound is self.bound:
            return self.bound
        return merge_bindings(self.bound, other.bound)

    # ------------------------------------------------------------------ binding

    def bind(self, value: int) -> Size:
        """The variable with a value.

        >>> variable_size("n", 1, 9).bind(3).val
        3
        """
        name, low, high = self._variable().arg
        if type(value) not in (int, Value) or not low <= value <= high:
            raise ShapeError(f"{name} is a whole number from {low} to {high}, not {value!r}")
        return Size(self.uop, {self.uop: Value(value)})

    def unbind(self) -> tuple[Size, int]:
        """The variable without its value, and the value."""
        return Size(self._variable(), UNBOUND), self.val

    def _variable(self) -> UOp:
        if self.uop.op is not Ops.VARIABLE:
            raise ShapeError(f"{self} is an expression, not a variable")
        return self.uop


def variable_size(name: str, min_val: int, max_val: int) -> Size:
    """A size that is bound at launch: one kernel serves all its values.

    >>> variable_size("n", 1, 1024)
    n
    """
    if not str(name).isidentifier():
        raise ShapeError(f"a variable needs a name, not {name!r}")
    if min_val < 0 or min_val >= max_val:
        raise ShapeError(f"{name} goes from {min_val} to {max_val}", hint="0 <= smallest < largest")
    return Size(variable(name, min_val, max_val), UNBOUND)


def size_of(uop: UOp, bound: Bound) -> int:
    """A Size, or a plain int if the expression is constant."""
    if uop.is_const:
        return int(uop.arg)
    return Size(uop, bound)


def expression(size: int) -> UOp:
    """The index expression of a size."""
    return size.uop if isinstance(size, Size) else const(int(size))


def merge_bindings(one: Bound, two: Bound) -> Bound:
    """The bindings of both. If a shape still holds an earlier value of a variable, the later one
    counts; that a graph has only one is checked when it is computed.
    """
    found = {**one, **two}
    for both in one.keys() & two.keys():
        found[both] = max(one[both], two[both], key=_number_of)
    return found


def _number_of(value: int) -> int:
    return value.number if isinstance(value, Value) else -1


def evaluate(uop: UOp, bound: Bound) -> int:
    """The value of an index expression of variables."""
    if uop.op is Ops.VARIABLE:
        if uop not in bound:
            raise ShapeError(
                f"{uop.arg[0]} has no value", hint=f'Variable("{uop.arg[0]}", …).bind(value)'
            )
        return bound[uop]
    if uop.op is Ops.CONST:
        return int(uop.arg)
    values = [evaluate(source, bound) for source in uop.src]
    return int(EVALUATED[uop.op](*values))


EVALUATED: dict[Ops, Any] = {
    Ops.ADD: int.__add__,
    Ops.SUB: int.__sub__,
    Ops.MUL: int.__mul__,
    Ops.NEG: int.__neg__,
    Ops.FLOORDIV: int.__floordiv__,
    Ops.FLOORMOD: int.__mod__,
    Ops.MIN: min,
    Ops.MAX: max,
}
SIGNS = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FLOORDIV: "//", Ops.FLOORMOD: "%"}


def expression_text(uop: UOp) -> str:
    """An index expression as text."""
    if uop.op is Ops.VARIABLE:
        return str(uop.arg[0])
    if uop.op is Ops.ADD and uop.src[1].is_const and uop.src[1].arg < 0:
        return f"({expression_text(uop.src[0])}-{-uop.src[1].arg})"
    if uop.op in SIGNS:
        return f"({expression_text(uop.src[0])}{SIGNS[uop.op]}{expression_text(uop.src[1])})"
    return (
        str(uop.arg)
        if uop.is_const
        else f"{uop.op.name}({', '.join(map(expression_text, uop.src))})"
    )


def sizes_in(arg: Any) -> list[Size]:
    """The sizes inside of an op's argument."""
    if isinstance(arg, Size):
        return [arg]
    if not isinstance(arg, tuple):
        return []
    return [size for part in arg for size in sizes_in(part)]


def bindings(arg: Any) -> Bound:
    """The values of all variables in an op's argument."""
    found: Bound = UNBOUND
    for size in sizes_in(arg):
        found = merge_bindings(found, size.bound)
    return found


def concrete(shape: tuple[int, ...], values: Bound) -> tuple[int, ...]:
    """A shape with the values of its variables substituted."""
    if not Sizes.exist:
        return shape
    return tuple([evaluate(n.uop, values) if isinstance(n, Size) else n for n in shape])
