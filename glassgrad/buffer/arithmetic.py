"""Operators of Buffer with another Buffer or a number. Shapes must be equal: nothing broadcasts."""

from __future__ import annotations

import math
from typing import Any, Self

from glassgrad.base.dtype import DType, dtypes, promote
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.buffer import compute
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.layout import Ints
from glassgrad.memory.view import View

ADD, SUB, MUL, FDIV, POW, MAX = Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.POW, Ops.MAX
CMPLT, CMPEQ, CMPNE, NEG, LOG2, EXP2 = (
    Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE, Ops.NEG, Ops.LOG2, Ops.EXP2,
)  # fmt: skip
BOOL, BUFFER = dtypes.bool, Ops.BUFFER
OP_VERBS = {
    ADD: "add", SUB: "subtract", MUL: "multiply", FDIV: "divide", POW: "raise",
    MAX: "take the maximum of", CMPLT: "compare", CMPEQ: "compare", CMPNE: "compare",
}  # fmt: skip


class Arithmetic:
    """Elementwise operators on the elements of a view."""

    __array_ufunc__ = None  # NumPy arrays on the left defer to our operators
    __slots__ = ("__weakref__", "_node", "view")

    view: View
    _node: UOp | None  # its BUFFER node, made when it is first an operand

    def _init_view(self, view: View) -> None:
        self.view = view
        self._node = None

    @property
    def _as_operand(self) -> UOp:
        node = self._node
        if node is None:
            node = self._node = compute.buffer_node(self.view)
        return node

    @classmethod
    def _from_view(cls, view: View) -> Self:
        made = object.__new__(cls)
        made._init_view(view)
        return made

    @property
    def shape(self) -> Ints:
        return self.view.shape

    @property
    def dtype(self) -> DType:
        return self.view.dtype

    # ------------------------------------------------------------------ two operands

    def _pair(self, op: Ops, other: Any) -> tuple[UOp, UOp, DType] | None:
        """Both operands in one dtype; None if the other is neither a number nor an array."""
        mine = self._as_operand
        if not isinstance(other, (Arithmetic, bool, int, float)):
            other = self._convert_numpy(other)
        if isinstance(other, Arithmetic):
            if other.view.shape != self.view.shape:
                raise _shape_mismatch(OP_VERBS[op], self.view.shape, other.view.shape)
            theirs = other._as_operand
            if theirs.dtype is mine.dtype:
                return mine, theirs, mine.dtype
            dtype = promote(mine.dtype, theirs.dtype)
            return compute.cast(mine, dtype), compute.cast(theirs, dtype), dtype
        if not isinstance(other, (bool, int, float)):
            return None
        dtype = _weak_dtype(other, mine.dtype)
        return (
            compute.cast(mine, dtype),
            compute.number_buffer(other, dtype, self.view.device),
            dtype,
        )

    def _convert_numpy(self, other: Any) -> Any:
        """NumPy scalars become Python numbers, NumPy arrays become Buffers that share their
        memory.
        """
        if getattr(other, "shape", None) == () and hasattr(other, "item"):
            return other.item()
        return (
            self._from_view(View.from_host(other))
            if hasattr(other, "__array_interface__")
            else None
        )

    def _binary(self, op: Ops, other: Any, reverse: bool = False) -> Any:
        pair = self._pair(op, other)
        if pair is None:
            return NotImplemented
        left, right, dtype = pair
        if dtype is BOOL and op is not MAX:
            raise DTypeError(f"cannot {OP_VERBS[op]} bool", hint="convert with float() first")
        if op is FDIV and dtype.kind != "float":
            dtype = dtypes.default_float
            left, right = compute.cast(left, dtype), compute.cast(right, dtype)
        if reverse:
            left, right = right, left
        if left.op is BUFFER and right.op is BUFFER:
            return self._from_view(
                compute.compute_binary(op, dtype, left, right, self.view.storage.device)
            )
        return self._compute(UOp(op, dtype, (left, right)))

    def _compared(self, op: Ops, other: Any, reverse: bool = False) -> Any:
        pair = self._pair(op, other)
        if pair is None:
            return NotImplemented
        left, right, _ = pair
        return self._compute(UOp(op, BOOL, (right, left) if reverse else (left, right)))

    def _compute(self, value: UOp) -> Self:
        return self._from_view(compute.compute_value(value, self.view.storage.device))

    def __add__(self, other: Any) -> Self:
        return self._binary(ADD, other)  # type: ignore[no-any-return]

    def __radd__(self, other: Any) -> Self:
        return self._binary(ADD, other, reverse=True)  # type: ignore[no-any-return]

    def __sub__(self, other: Any) -> Self:
        return self._binary(SUB, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Any) -> Self:
        return self._binary(SUB, other, reverse=True)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> Self:
        return self._binary(MUL, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Any) -> Self:
        return self._binary(MUL, other, reverse=True)  # type: ignore[no-any-return]

    def __truediv__(self, other: Any) -> Self:
        return self._binary(FDIV, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Any) -> Self:
        return self._binary(FDIV, other, reverse=True)  # type: ignore[no-any-return]

    def __pow__(self, other: Any) -> Self:
        return self._power(other)  # type: ignore[no-any-return]

    def __rpow__(self, other: Any) -> Self:
        return self._power(other, reverse=True)  # type: ignore[no-any-return]

    def _power(self, other: Any, reverse: bool = False) -> Any:
        """Powers of floats; of ints only to whole numbers, which wrap as products do."""
        is_whole = isinstance(other, int) and not isinstance(other, bool)
        if self.dtype.kind in ("int", "uint") and is_whole and not reverse:
            if other < 0:
                raise DTypeError(f"{self.dtype.name} has no power {other}", hint="use float()")
            return self._compute(compute.integer_power(self._as_operand, other))
        pair = self._pair(POW, other)
        if pair is None:
            return NotImplemented
        if pair[2].kind != "float":
            raise DTypeError(f"cannot raise {pair[2].name} to a power", hint="use float() first")
        return self._binary(POW, other, reverse)

    def maximum(self, other: Any) -> Self:
        """The elementwise maximum.

        >>> from glassgrad.buffer import Buffer
        >>> Buffer([1, 5]).maximum(3).to_python()
        [3, 5]
        """
        found = self._binary(MAX, other)
        if found is NotImplemented:
            raise DTypeError(f"maximum() of a Buffer and a {type(other).__name__}")
        return found  # type: ignore[no-any-return]

    def __lt__(self, other: Any) -> Self:
        return self._compared(CMPLT, other)  # type: ignore[no-any-return]

    def __gt__(self, other: Any) -> Self:
        return self._compared(CMPLT, other, reverse=True)  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> Self:
        return self._at_most(other)  # type: ignore[no-any-return]

    def __ge__(self, other: Any) -> Self:
        return self._at_most(other, reverse=True)  # type: ignore[no-any-return]

    def _at_most(self, other: Any, reverse: bool = False) -> Any:
        """x < y or x == y: "not y < x" would be True for nan."""
        pair = self._pair(CMPLT, other)
        if pair is None:
            return NotImplemented
        left, right, _ = pair
        sides = (right, left) if reverse else (left, right)
        return self._compute(UOp(Ops.OR, BOOL, (UOp(CMPLT, BOOL, sides), UOp(CMPEQ, BOOL, sides))))

    def __eq__(self, other: object) -> Any:
        return self._compared(CMPEQ, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(CMPNE, other)

    __hash__ = object.__hash__

    # ------------------------------------------------------------------ one operand

    def __neg__(self) -> Self:
        if self.dtype is BOOL:
            raise DTypeError("cannot negate bool", hint="convert with float() first")
        return self._compute(UOp(NEG, self.dtype, (self._as_operand,)))

    def log(self) -> Self:
        """The natural logarithm.

        >>> from glassgrad.buffer import Buffer
        >>> Buffer([1.0]).log().to_python()
        [0.0]
        """
        value = self._float_operand("take the logarithm of")
        return self._compute(UOp(LOG2, value.dtype, (value,)) * math.log(2))

    def exp(self) -> Self:
        """e to the power of each element.

        >>> from glassgrad.buffer import Buffer
        >>> Buffer([0.0]).exp().to_python()
        [1.0]
        """
        value = self._float_operand("take the exponential of")
        return self._compute(UOp(EXP2, value.dtype, (value * (1 / math.log(2)),)))

    def _float_operand(self, what: str) -> UOp:
        if self.dtype.kind != "float":
            raise DTypeError(f"cannot {what} {self.dtype.name}", hint="convert with float() first")
        return self._as_operand


def _weak_dtype(value: Any, dtype: DType) -> DType:
    """The common dtype of a buffer and a Python number: the number can only change the kind."""
    if dtype.kind == "float" or isinstance(value, bool):
        return dtype
    if isinstance(value, float):
        return dtypes.default_float
    return dtypes.default_int if dtype.kind == "bool" else dtype


def _shape_mismatch(word: str, one: Ints, other: Ints) -> ShapeError:
    """The error for different shapes, with the expand() that would make them equal."""
    wide = max(one, other, key=len)
    narrow = other if wide is one else one
    padded = (1,) * (len(wide) - len(narrow)) + narrow
    sizes = [max(a, b) for a, b in zip(wide, padded, strict=True)]
    fits = all(a == b or 1 in (a, b) for a, b in zip(wide, padded, strict=True))
    shape = tuple(sizes)
    hints = [
        f"{name}.expand({shape})" for name, had in (("left", one), ("right", other)) if had != shape
    ]
    return ShapeError(
        f"cannot {word} buffers of shapes {one} and {other}: they must be equal",
        hint=f"repeat with {' and '.join(hints)}" if fits else "no expand makes them fit",
    )
