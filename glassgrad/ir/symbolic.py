"""SymbolicInt: a dimension that is only known at launch, as the user sees it.

`Variable("n", 1, 64).bind(7)` is one, and so is `x.shape[0]` of `x = t[:n]`. It is not an int:
integer arithmetic gives SymbolicInts again, a comparison gives an answer only if the bounds decide
it, and reading the value (`int(n)`, `range(n)`, `math.sqrt(n)`) is refused in a captured function.
The compiler uses `Size` (ir/size.py); `internal` and `shown` convert.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, isfinite, isinf, isnan
from numbers import Integral, Real
from typing import Any, NoReturn

from glassgrad.base.errors import ShapeError
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.ir.size import Bound, Size, variable_size

Decide = Callable[[int, int], bool | None]  # (smallest, largest difference) -> the answer
EQUALITY = ("==", "!=")
READ_HINT = "int({n}) is its value now, but a captured function cannot read that"


class SymbolicInt:
    """A whole number that depends on variables bound at launch.

    >>> n = Variable("n", 1, 9).bind(3)
    >>> n * 2 + 1, (n * 2 + 1).val, n < 20
    (((n*2)+1), 7, True)
    """

    __slots__ = ("size",)
    __array_ufunc__ = None  # NumPy leaves operators to us

    size: Size

    def __init__(self, size: Size) -> None:
        self.size = size

    # ------------------------------------------------------------------ bounds, value, binding

    @property
    def vmin(self) -> int:
        """The smallest value it can have."""
        return self.size.vmin

    @property
    def vmax(self) -> int:
        """The largest value it can have."""
        return self.size.vmax

    @property
    def val(self) -> int:
        """Its value now; every variable in it must be bound."""
        return self.size.val

    def bind(self, value: int) -> SymbolicInt:
        """The variable with a value.

        >>> Variable("n", 1, 9).bind(3).val
        3
        """
        return SymbolicInt(self.size.bind(value))

    def unbind(self) -> tuple[SymbolicInt, int]:
        """The variable without its value, and the value."""
        variable, value = self.size.unbind()
        return SymbolicInt(variable), value

    def __int__(self) -> int:
        return int(self.val)

    def __index__(self) -> int:
        return int(self.val)

    def __float__(self) -> float:
        return float(self.val)

    def __hash__(self) -> int:
        return hash(self.val)  # sets compare only elements with equal hashes

    def __repr__(self) -> str:
        return repr(self.size)

    def __format__(self, spec: str) -> str:
        return format(self.val, spec) if spec else repr(self)

    def __copy__(self) -> SymbolicInt:
        return self

    def __deepcopy__(self, memo: Any) -> SymbolicInt:
        return self

    def __reduce__(self) -> NoReturn:
        raise ShapeError(f"cannot pickle {self}, which is known only at launch")

    # ------------------------------------------------------------------ comparisons

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==", _is_equal)

    def __ne__(self, other: object) -> Any:
        found = self._compared(other, "!=", _is_equal)
        return found if found is NotImplemented else not found

    def __lt__(self, other: Any) -> Any:
        return self._compared(_ceiling(other), "<", _is_below)

    def __ge__(self, other: Any) -> Any:
        found = self._compared(_ceiling(other), ">=", _is_below)
        return found if found is NotImplemented else not found and not _is_nan(other)

    def __le__(self, other: Any) -> Any:
        return self._compared(_floor(other), "<=", _is_at_most)

    def __gt__(self, other: Any) -> Any:
        found = self._compared(_floor(other), ">", _is_at_most)
        return found if found is NotImplemented else not found and not _is_nan(other)

    def __bool__(self) -> bool:
        return not self._compared(0, "==", _is_equal)

    def _compared(self, other: Any, sign: str, decide: Decide) -> Any:
        """The answer, if it is the same for every value."""
        if isinstance(other, Real) and not isinstance(other, Integral):
            number = float(other)
            if isnan(number) or (sign in EQUALITY and not number.is_integer()):
                return False
            if isinf(number):
                return decide(-1, -1) if number > 0 else decide(1, 1)
            other = int(number)
        if not _is_whole(other):
            return NotImplemented
        distance = self - other
        low, high = (distance, distance) if isinstance(distance, int) else distance._bounds()
        found = decide(low, high)
        if found is None:
            raise ShapeError(
                f"{self} {sign} {other} depends on the value of {self}, which is known only at "
                f"launch ({self.vmin} to {self.vmax})",
                hint=READ_HINT.format(n=self)
                + "; a comparison that the bounds decide has an answer",
            )
        return found

    def _bounds(self) -> tuple[int, int]:
        return self.vmin, self.vmax

    # ------------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> Any:
        return self._combined(other, "+", lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._combined(other, "+", lambda a, b: b + a)

    def __sub__(self, other: Any) -> Any:
        return self._combined(other, "-", lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(other, "-", lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._combined(other, "*", lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._combined(other, "//", _quotient)

    def __mod__(self, other: Any) -> Any:
        return self._combined(other, "%", _remainder)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combined(other, "//", lambda a, b: _quotient(b, a))

    def __rmod__(self, other: Any) -> Any:
        return self._combined(other, "%", lambda a, b: _remainder(b, a))

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self._refuse(other, "/")

    def __rtruediv__(self, other: Any) -> Any:
        return self._refuse(other, "/")

    def __pow__(self, other: Any) -> Any:
        if not isinstance(other, Integral) or other < 0:
            return self._refuse(other, "**")
        result: Any = 1
        for _ in range(int(other)):
            result = self * result
        return result

    def __rpow__(self, other: Any) -> Any:
        return self._refuse(other, "**")

    def __neg__(self) -> Any:
        return shown_size(-self.size)

    def __pos__(self) -> SymbolicInt:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: int | None = None) -> SymbolicInt:
        return self

    __floor__ = __ceil__ = __trunc__ = __pos__

    def _combined(self, other: Any, sign: str, combine: Callable[[int, int], int]) -> Any:
        if not _is_whole(other):
            return self._refuse(other, sign)
        _refuse_two_values(self.size, other)
        return shown_size(combine(self.size, internal(other) if _is_size(other) else int(other)))

    def _refuse(self, other: Any, sign: str) -> Any:
        """Raise an error for numbers; tensors and sequences implement the operator themselves."""
        if not isinstance(other, (Real, SymbolicInt)):
            return NotImplemented
        raise ShapeError(
            f"{sign} of {self} and {other} has no whole number as result for every value of "
            f"{self}, which is known only at launch",
            hint=f"Tensor({self}) is a tensor to compute with; " + READ_HINT.format(n=self),
        )


def Variable(name: str, min_val: int, max_val: int) -> SymbolicInt:  # noqa: N802  as scripts write it
    """A size that is bound at launch: one kernel serves all its values.

    >>> Variable("n", 1, 1024)
    n
    """
    made = SymbolicInt(variable_size(name, min_val, max_val))
    Sizes.are_shown = True
    return made


# ---------------------------------------------------------------------- conversion


def internal(arg: Any) -> Any:
    """The compiler's view of an argument: Sizes for SymbolicInts, also inside of tuples."""
    if not Sizes.are_shown:
        return arg
    if isinstance(arg, SymbolicInt):
        return arg.size
    return tuple([internal(part) for part in arg]) if type(arg) is tuple else arg


def shown_size(size: int | SymbolicInt) -> Any:
    """The user's view of a size."""
    return SymbolicInt(size) if isinstance(size, Size) else size


def shown(shape: Shape) -> Shape:
    """The user's view of a shape."""
    for size in shape:
        if type(size) is Size:
            return tuple([shown_size(n) for n in shape])
    return shape


# ---------------------------------------------------------------------- decisions


def _is_equal(low: int, high: int) -> bool | None:
    if low == high == 0:
        return True
    return False if low > 0 or high < 0 else None


def _is_below(low: int, high: int) -> bool | None:
    if high < 0:
        return True
    return False if low >= 0 else None


def _is_at_most(low: int, high: int) -> bool | None:
    if high <= 0:
        return True
    return False if low > 0 else None


def _ceiling(number: Any) -> Any:
    """n < 2.5 is n < 3."""
    return ceil(number) if isinstance(number, float) and isfinite(number) else number


def _floor(number: Any) -> Any:
    """n > 2.5 is n > 2."""
    return floor(number) if isinstance(number, float) and isfinite(number) else number


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, SymbolicInt, Integral))


def _is_size(value: Any) -> bool:
    return isinstance(value, (Size, SymbolicInt))


def _quotient(a: int, b: int) -> int:
    return _divided(a, b, 0)


def _remainder(a: int, b: int) -> int:
    return _divided(a, b, 1)


def _divided(a: int, b: int, which: int) -> int:
    """Division by a known number, or of equal sizes, which are not 0."""
    if isinstance(b, Size) and (a != b or b.vmin <= 0):
        raise ShapeError(
            f"cannot divide {a} by {b}, which is known only at launch",
            hint=READ_HINT.format(n=b),
        )
    if not isinstance(b, Size) and b < 0:
        a, b = -a, -b
        return a // b if which == 0 else -(a % b)
    if b == 0:
        raise ZeroDivisionError(f"{a} divided by 0")
    return a // b if which == 0 else a % b


def _refuse_two_values(one: Size, other: Any) -> None:
    """A variable has one value at a time."""
    theirs: Bound = other.size.bound if isinstance(other, SymbolicInt) else {}
    for variable in one.bound.keys() & theirs.keys():
        if one.bound[variable] != theirs[variable]:
            raise ShapeError(
                f"variable {variable.arg[0]} is bound to {one.bound[variable]} and to "
                f"{theirs[variable]} in one expression",
                hint="a variable has one value at a time",
            )


def greatest(one: int, other: int) -> int:
    """The larger of two internal sizes, where the bounds decide which one it is."""
    return other if at_most(one, other) else one


def at_most(one: int, other: int) -> bool:
    """one <= other, if the bounds decide it for every value of the variables."""
    distance: int = other - one
    if not isinstance(distance, Size):
        return distance >= 0
    if distance.vmin >= 0 or distance.vmax <= 0:
        return distance.vmin >= 0
    one, other = shown_size(one), shown_size(other)
    raise ShapeError(
        f"whether {one} or {other} is larger is known only at launch",
        hint="give the variables bounds that decide it",
    )
