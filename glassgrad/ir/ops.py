"""Ops: one row per operation: number of sources, stages in which it is legal, meaning."""

from __future__ import annotations

from enum import Enum, Flag, IntEnum
from typing import NamedTuple


class Stage(Flag):
    """The stages of the pipeline in which an op may appear."""

    GRAPH = 1  # recorded by Tensor: values have shapes
    KERNEL = 2  # one kernel or loop nest: scalars under ranges
    PROGRAM = 4  # a flat list of instructions


GRAPH, KERNEL, PROGRAM = Stage.GRAPH, Stage.KERNEL, Stage.PROGRAM
SCALAR = KERNEL | PROGRAM
EVERYWHERE = GRAPH | KERNEL | PROGRAM
VARIADIC = -1  # the arity of an op with any number of sources


class Ops(IntEnum):
    """Each member is a table row: (number of sources, stages, meaning)."""

    arity: int
    stages: Stage
    meaning: str

    def __new__(cls, arity: int, stages: Stage, meaning: str) -> Ops:
        value = len(cls.__members__) + 1
        member = int.__new__(cls, value)
        member._value_ = value
        member.arity = arity
        member.stages = stages
        member.meaning = meaning
        return member

    def __str__(self) -> str:
        return f"Ops.{self.name}"

    # leaves
    CONST = 0, EVERYWHERE, "arg, a number"
    BUFFER = 0, GRAPH, "the contents of arg, a View of device memory"
    IOTA = VARIADIC, GRAPH, "0, 1, 2, … arg-1"
    VARIABLE = 0, EVERYWHERE, "an integer bound at launch; arg: name, smallest, largest"
    BIND = 1, GRAPH, "variable x with the value arg"
    PARAM = 0, SCALAR, "the kernel's buffer argument; arg: slot, shape, strides"
    SPECIAL = 0, PROGRAM, "a coordinate of the launch grid; arg: name, size"
    RANGE = 1, SCALAR, "0 ≤ i < src; arg: number, kind"
    SCRATCH = 0, PROGRAM, "memory of a core, thread or group; arg: number, elements, offset, shared"
    ACC = 1, PROGRAM, "a register that starts as src and is written by ASSIGN; arg: number"

    # one source
    CAST = 1, EVERYWHERE, "x converted to dtype"
    BITCAST = 1, EVERYWHERE, "x's bits read as dtype"
    NEG = 1, EVERYWHERE, "-x"
    RECIPROCAL = 1, EVERYWHERE, "1/x"
    SQRT = 1, EVERYWHERE, "the square root of x"
    EXP2 = 1, EVERYWHERE, "2 to the power x"
    LOG2 = 1, EVERYWHERE, "log of x to base 2"
    SIN = 1, EVERYWHERE, "sin of x"
    TRUNC = 1, EVERYWHERE, "x rounded towards zero"
    CHECK = 1, GRAPH | KERNEL, "x if 0 ≤ x < arg[0]; else 0, and the run ends in an IndexError"

    # two sources
    ADD = 2, EVERYWHERE, "x + y"
    SUB = 2, EVERYWHERE, "x - y"
    MUL = 2, EVERYWHERE, "x * y"
    FDIV = 2, EVERYWHERE, "x / y of floats"
    FLOORDIV = 2, EVERYWHERE, "x // y of ints, rounded down"
    FLOORMOD = 2, EVERYWHERE, "x - x//y*y of ints: the sign of y"
    CDIV = 2, PROGRAM, "x / y of ints, rounded towards zero"
    CMOD = 2, PROGRAM, "the remainder of CDIV: the sign of x"
    MAX = 2, EVERYWHERE, "the larger; nan if either is"
    MIN = 2, EVERYWHERE, "the smaller; nan if either is"
    POW = 2, EVERYWHERE, "x to the power y of floats"
    SHL = 2, EVERYWHERE, "x << y"
    SHR = 2, EVERYWHERE, "x >> y, keeping the sign of signed ints"
    AND = 2, EVERYWHERE, "x & y"
    OR = 2, EVERYWHERE, "x | y"
    XOR = 2, EVERYWHERE, "x ^ y"
    CMPLT = 2, EVERYWHERE, "x < y"
    CMPEQ = 2, EVERYWHERE, "x == y"
    CMPNE = 2, EVERYWHERE, "x != y"
    THREEFRY = 2, EVERYWHERE, "random bits of counter x under key y (uint64)"

    # three sources
    WHERE = 3, EVERYWHERE, "y where x else z"
    MULACC = 3, PROGRAM, "x * y + z, rounded once where the machine can"
    DOT = 3, PROGRAM, "z, plus in each lane the products of the narrow lanes of x and y in it"

    # movement: the same elements seen in another order; costs nothing
    RESHAPE = VARIADIC, GRAPH, "the elements in row-major order as shape arg"
    PERMUTE = 1, GRAPH, "axis i is axis arg[i] of x"
    EXPAND = VARIADIC, GRAPH, "axes of size 1 repeated to shape arg"
    PAD = VARIADIC, GRAPH, "zeros around x; arg: (before, after) per axis"
    SHRINK = VARIADIC, GRAPH, "a box cut out of x; arg: (start, stop) per axis"
    FLIP = 1, GRAPH, "the axes in arg reversed"
    WINDOW = 1, GRAPH, "y[o, …, k] = x[o*stride + k*dilation]; arg: axis, size, stride, dilation"
    WINDOW_ADJOINT = 1, GRAPH, "adjoint of WINDOW: y[i, …, k] = x[(i-k*dilation)/stride, …, k] or 0"
    GATHER = 2, GRAPH, "x at index y along axis arg; the other axes are equal"

    # reductions and everything that is in memory
    REDUCE = VARIADIC, GRAPH | KERNEL, "graph: arg = (op, axes); kernel: x over ranges src[1:]"
    SCAN = (
        VARIADIC,
        GRAPH | KERNEL,
        "x combined with all before it; arg: (op, axis), or op and ranges",
    )
    CONTIGUOUS = (
        1,
        GRAPH,
        "x, in a buffer of its own; arg PREFER_SCRATCH: in scratch if all readers share its loops",
    )
    DETACH = 1, GRAPH, "x, but no gradient flows"
    CUSTOM = VARIADIC, GRAPH, "x; its gradient is what the function arg makes of it"
    DEFERRED = (
        VARIADIC,
        GRAPH,
        "a result of the function in arg; its graph is recorded when it is needed",
    )
    ASSIGN = 2, GRAPH | PROGRAM, "graph: buffer x after y was written at arg; program: ACC x = y"
    COPY = 1, GRAPH, "x on device arg"
    INDEX = (
        VARIADIC,
        SCALAR,
        "the address of an element: buffer, one index per axis, and a bool gate or none",
    )
    LOAD = 1, SCALAR, "the element at INDEX x; 0 where its gate is false"
    STORE = (
        VARIADIC,
        SCALAR,
        "y to INDEX x, or combined with the element there by op arg; src[2:]: ranges",
    )
    STAGE = VARIADIC, KERNEL, "x in scratch of shape arg at the indices, under ranges; see INDEX"
    SINK = VARIADIC, GRAPH | KERNEL, "all of its sources"

    # only in programs
    STACK = VARIADIC, PROGRAM, "a vector of the scalars src"
    GEP = 1, PROGRAM, "element arg of vector x"
    SHUFFLE = 2, PROGRAM, "the elements arg of vector x, and after those of vector y, in this order"
    AFTER = VARIADIC, PROGRAM, "x as it is after src[1:] happened"
    END = VARIADIC, PROGRAM, "closes the loop of RANGE x"
    IF = 1, PROGRAM, "the instructions up to ENDIF run only where x"
    ENDIF = 1, PROGRAM, "closes IF x"
    PREFETCH = 1, PROGRAM, "fetch the cache line of INDEX x, which is read soon, or written if arg"
    BARRIER = 0, PROGRAM, "the threads of a group wait for each other"


class Exclusive(NamedTuple):
    """The arg of an exclusive SCAN, which combines only what comes before each step."""

    op: Ops


# arg of a program's STORE that may bypass the caches
NON_TEMPORAL = "non-temporal"
# arg of a CONTIGUOUS that is computed once, and stored only if another kernel reads it
PREFER_SCRATCH = "prefer scratch"


class OpGroup:
    """Sets of ops that rules and checks share."""

    UNARY = frozenset(
        (Ops.CAST, Ops.BITCAST, Ops.NEG, Ops.RECIPROCAL, Ops.SQRT, Ops.EXP2, Ops.LOG2, Ops.SIN)
        + (Ops.TRUNC,)
    )
    COMPARISON = frozenset((Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE))
    BINARY = COMPARISON | frozenset(
        (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD)
        + (Ops.MAX, Ops.MIN, Ops.POW, Ops.SHL, Ops.SHR, Ops.AND, Ops.OR, Ops.XOR, Ops.THREEFRY)
    )
    TERNARY = frozenset((Ops.WHERE, Ops.MULACC))
    ELEMENTWISE = UNARY | BINARY | TERNARY
    POINTWISE = ELEMENTWISE | {Ops.CHECK}  # CHECK is also done per element, but has a side effect
    COMMUTATIVE = frozenset(
        (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPEQ, Ops.CMPNE)
    )
    MOVEMENT = frozenset(
        (Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP)
        + (Ops.WINDOW, Ops.WINDOW_ADJOINT, Ops.GATHER)
    )
    REDUCING = frozenset((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN))
    SCANNING = REDUCING | {Ops.MULACC}  # y[i] = y[i-1]*b[i] + x[i] for sources x, b


class AxisKind(Enum):
    """What a loop of a nest becomes on the machine; the value is the color of its size in names."""

    LOOP = "white"  # a plain loop over output elements
    REDUCE = "red"  # a plain loop of a reduction
    GLOBAL = "blue"  # one group of threads per value
    LOCAL = "cyan"  # one thread of the group per value
    GROUP = "green"  # threads of the group that share one reduction
    CORE = "BLUE"  # a loop that is divided among cores
    UPCAST = "yellow"  # unrolled: one register per value
    LANE = "YELLOW"  # the lanes of one vector register
    UNROLL = "magenta"  # unrolled steps of a reduction

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"AxisKind.{self.name}"

    @property
    def is_unrolled(self) -> bool:
        return self in UNROLLED


UNROLLED = frozenset((AxisKind.UPCAST, AxisKind.LANE, AxisKind.UNROLL))
