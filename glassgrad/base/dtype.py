"""Dtypes: their sizes and formats, and which dtype two of them promote to."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, TypeAlias

from glassgrad.base.errors import DTypeError
from glassgrad.base.fast_dataclasses import field, unique

ConstType = float | int | bool
Kind = Literal["void", "bool", "uint", "int", "float", "index"]

# The class `dtypes` has members of these names, which shadow the types.
_bool: TypeAlias = bool
_int: TypeAlias = int
_float: TypeAlias = float


@unique
class DType:
    """An element type; `vec(n)` is a vector of n. There is one instance per dtype."""

    kind: Kind
    bits: int
    name: str
    alias: str
    format: str | None
    count: int = 1
    scalar: DType = field(default=None)

    VECTORS: ClassVar[dict[tuple[DType, int], DType]] = {}

    def __post_init__(self) -> None:
        if self.scalar is None:
            object.__setattr__(self, "scalar", self)

    @property
    def itemsize(self) -> int:
        return (self.bits * self.count + 7) // 8

    @property
    def fmt(self) -> str | None:
        return self.format

    def vec(self, count: int) -> DType:
        """float.vec(4) is a vector of four floats; vec(1) is the scalar."""
        if count == 1:
            return self.scalar
        key = (self.scalar, count)
        if (found := DType.VECTORS.get(key)) is not None:
            return found
        scalar = self.scalar
        vector = DType(
            scalar.kind, scalar.bits, scalar.name, f"{scalar.alias}{count}", None, count, scalar
        )
        return DType.VECTORS.setdefault(key, vector)

    def __repr__(self) -> str:
        if self.count > 1:
            return f"dtypes.{self.scalar.alias}.vec({self.count})"
        return f"dtypes.{self.alias}"

    def __reduce__(self) -> tuple[object, ...]:
        return _from_name, (self.name, self.count)


def _from_name(name: str, count: int) -> DType:
    return dtypes.named(name).vec(count)


class dtypes:
    """The dtypes, their aliases and their groups."""

    void = DType("void", 0, "void", "void", None)
    index = DType("index", 64, "index", "index", None)
    bool = DType("bool", 8, "bool", "bool", "?")
    int8 = char = DType("int", 8, "int8", "char", "b")
    uint8 = uchar = DType("uint", 8, "uint8", "uchar", "B")
    int16 = short = DType("int", 16, "int16", "short", "h")
    uint16 = ushort = DType("uint", 16, "uint16", "ushort", "H")
    int32 = int = DType("int", 32, "int32", "int", "i")
    uint32 = uint = DType("uint", 32, "uint32", "uint", "I")
    int64 = long = DType("int", 64, "int64", "long", "q")
    uint64 = ulong = DType("uint", 64, "uint64", "ulong", "Q")
    fp8e4m3 = DType("float", 8, "fp8e4m3", "fp8e4m3", None)
    fp8e5m2 = DType("float", 8, "fp8e5m2", "fp8e5m2", None)
    float16 = half = DType("float", 16, "float16", "half", "e")
    bfloat16 = DType("float", 16, "bfloat16", "bfloat16", None)
    float32 = float = DType("float", 32, "float32", "float", "f")
    float64 = double = DType("float", 64, "float64", "double", "d")

    default_float: ClassVar[DType] = float32
    default_int: ClassVar[DType] = int32

    fp8s = fp8_ocp = (fp8e4m3, fp8e5m2)
    floats = (*fp8s, float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = uints + sints
    int8s, int16s, int32s, int64s = zip(uints, sints, strict=True)
    all = (*floats, *ints, bool)

    @staticmethod
    def named(name: str) -> DType:
        """The dtype with this name or alias: "float32", "half", "long"."""
        found = NAMES.get(name.lower())
        if found is None:
            raise DTypeError(f"there is no dtype {name!r}", hint=f"one of {', '.join(NAMES)}")
        return found

    @staticmethod
    def is_float(dtype: DType) -> _bool:
        return dtype.kind == "float"

    @staticmethod
    def is_int(dtype: DType) -> _bool:
        """Integers, and index, the dtype of index arithmetic; not bool."""
        return dtype.kind in ("int", "uint", "index")

    @staticmethod
    def is_unsigned(dtype: DType) -> _bool:
        return dtype.kind == "uint"

    @staticmethod
    def is_bool(dtype: DType) -> _bool:
        return dtype.kind == "bool"

    @staticmethod
    def min(dtype: DType) -> ConstType:
        """The smallest value: -inf for floats that have it."""
        if dtype.kind == "float":
            return -dtypes.max(dtype)
        if dtype.kind in ("int", "index"):
            return -(1 << (dtype.bits - 1))
        return False if dtype.kind == "bool" else 0

    @staticmethod
    def max(dtype: DType) -> ConstType:
        """The largest value: inf for floats that have it."""
        if dtype.kind == "float":
            return 448.0 if dtype.scalar is dtypes.fp8e4m3 else math.inf
        if dtype.kind == "bool":
            return True
        return (1 << (dtype.bits - (dtype.kind != "uint"))) - 1

    @staticmethod
    def finfo(dtype: DType) -> tuple[_int, _int]:
        """(exponent bits, mantissa bits) of a float dtype."""
        return FLOAT_LAYOUT[dtype.scalar]

    @staticmethod
    def from_py(value: object) -> DType:
        """The dtype of a Python scalar, or of the widest scalar of a nested list."""
        if isinstance(value, _bool):
            return dtypes.bool
        if isinstance(value, _int):
            return dtypes.default_int
        if isinstance(value, _float):
            return dtypes.default_float
        if isinstance(value, (list, tuple)):
            found = [dtypes.from_py(item) for item in value]
            return max(found, key=PRIORITY.__getitem__) if found else dtypes.default_float
        raise DTypeError(
            f"cannot infer a dtype from {type(value).__name__}",
            hint="use a number, a bool, or a list of these",
        )


NAMES: dict[str, DType] = {}
for _dtype in (*dtypes.all, dtypes.index, dtypes.void):
    NAMES[_dtype.name] = NAMES[_dtype.alias] = _dtype
    setattr(DType, _dtype.name, _dtype)  # DType.float32 is dtypes.float32

DTypeLike = DType | str

FLOAT_LAYOUT: dict[DType, tuple[_int, _int]] = {
    dtypes.fp8e4m3: (4, 3),
    dtypes.fp8e5m2: (5, 2),
    dtypes.float16: (5, 10),
    dtypes.bfloat16: (8, 7),
    dtypes.float32: (8, 23),
    dtypes.float64: (11, 52),
}

# The promotion lattice: each dtype points at the ones directly above it.
ABOVE: dict[DType, tuple[DType, ...]] = {
    dtypes.bool: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,),
    dtypes.int16: (dtypes.int32,),
    dtypes.int32: (dtypes.int64,),
    dtypes.int64: (dtypes.uint64,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16),
    dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.uint32: (dtypes.int64, dtypes.uint64),
    dtypes.uint64: (dtypes.fp8e4m3, dtypes.fp8e5m2),
    dtypes.fp8e4m3: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e5m2: (dtypes.float16, dtypes.bfloat16),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64,),
    dtypes.float64: (),
}


def _reachable(dtype: DType) -> frozenset[DType]:
    found = {dtype}
    for above in ABOVE[dtype]:
        found |= _reachable(above)
    return frozenset(found)


UPWARD: dict[DType, frozenset[DType]] = {dtype: _reachable(dtype) for dtype in ABOVE}
# Fewer dtypes above means higher up; of equals, float16 comes before bfloat16.
PRIORITY: dict[DType, tuple[_int, _int]] = {
    dtype: (-len(UPWARD[dtype]), index) for index, dtype in enumerate(dtypes.all)
}


def promote(*found: DType) -> DType:
    """The lowest dtype in the lattice that all of these promote to.

    >>> promote(dtypes.int8, dtypes.uint8), promote(dtypes.int64, dtypes.float16)
    (dtypes.short, dtypes.half)
    """
    if len(set(found)) == 1:
        return found[0]
    shared = frozenset.intersection(*(UPWARD[dtype] for dtype in found))
    return min(shared, key=PRIORITY.__getitem__)


def promote_float(*found: DType) -> DType:
    """The lowest float dtype for these; ints promote to the default float."""
    dtype = promote(*found)
    return dtype if dtype.kind == "float" else dtypes.default_float


def sum_dtype(dtype: DType) -> DType:
    """The dtype of a sum: small ints widen, to avoid overflow."""
    if dtype.kind == "uint":
        return promote(dtype, dtypes.uint32)
    if dtype.kind in ("int", "bool"):
        return promote(dtype, dtypes.int32)
    return dtype


def to_dtype(like: DTypeLike) -> DType:
    return like if isinstance(like, DType) else dtypes.named(like)


EXACT_INTS = 1 << 53  # all ints up to here are exact in float64


def round_int_to_odd(value: int) -> float:
    """An int of more than 53 bits as a float64 that rounds to lower-precision floats as the int
    would: the last bit is sticky for all dropped bits.
    """
    size = abs(value)
    shift = size.bit_length() - 53
    kept = size >> shift
    size = (kept | ((kept << shift) != size)) << shift
    return _float(size if value >= 0 else -size)


def wrap(value: ConstType, dtype: DType) -> ConstType:
    """A Python number as a constant of the dtype: ints wrap, floats keep their digits.

    Floats are rounded to their format where they are computed with (base/rounding.py).
    """
    if dtype.kind == "bool":
        return _bool(value)
    if dtype.kind == "float":
        is_long = isinstance(value, _int) and abs(value) >= EXACT_INTS and dtype.bits < 64
        return round_int_to_odd(_int(value)) if is_long else _float(value)
    if isinstance(value, _float) and not math.isfinite(value):
        raise DTypeError(f"{value} cannot be represented in {dtype.name}")
    if dtype.kind == "index":
        return _int(value)
    whole = _int(value) & ((1 << dtype.bits) - 1)
    if dtype.kind == "int" and whole >> (dtype.bits - 1):
        whole -= 1 << dtype.bits
    return whole
