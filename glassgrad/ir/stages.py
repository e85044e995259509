"""The nouns of the road: what one stage hands to the next, and the Target that stages read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import field, frozen
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


class Dot(NamedTuple):
    """An instruction that adds to a 32-bit lane the products of the narrow lanes in its place."""

    left: DType
    right: DType
    name: str  # what the compiler calls it
    takes: DType | None = None  # what it wants operands to look like, if not as what they are
    adds: bool = True  # to a third operand; else the sum is made afterwards

    @property
    def steps(self) -> int:
        """How many products go into a lane."""
        return 32 // self.left.bits


@frozen
class Target:
    """Facts about a machine. Stages read these and never ask which device they work for."""

    name: str
    language: str  # which renderer: "llvm", "c", "cuda", "metal", "opencl", "python"
    arch: str = ""  # the compiler's name of the processor
    features: str = ""  # the compiler's list of what the processor has
    vector_bytes: int = 32  # width of a vector register
    registers: int = 16  # number of vector registers
    has_vector_alu: bool = True  # arithmetic on vectors; else only loads and stores are vectors
    has_threads: bool = False  # a grid of thread groups (a GPU) instead of cores
    cores: int = 1
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 32 << 20
    line_bytes: int = 64  # what a cache fetches at a time
    l1_ways: int = 8  # lines that have the same place in the nearest cache
    shared_bytes: int = 0  # memory that the threads of a group share
    group_size: int = 1  # most threads in a group
    grid_sizes: tuple[int, ...] = (1 << 30, 1 << 30, 1 << 30)
    max_params: int = 64
    index_dtype: DType = dtypes.int64
    native: frozenset[Ops] = frozenset()  # of EXP2 LOG2 SIN POW THREEFRY: what need not be expanded
    dtypes: frozenset[DType] = field(default_factory=lambda: frozenset(dtypes.all))
    core_work_ns: int = 20_000  # less work than this is not worth a second core
    has_hints: bool = True  # lowering prefetches, streams and reorders; off: only what is needed
    reports_indices: bool = True  # CHECKs write bad indices down; else these are only made harmless
    dots: tuple[Dot, ...] = ()  # sums of narrow products in one instruction, of whole vectors


@frozen
class Param:
    """The arg of Ops.PARAM: which argument of the kernel, and how its elements lie."""

    slot: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Elements from the first to the last that can be addressed."""
        if 0 in self.shape:
            return 0
        last = sum((n - 1) * max(s, 0) for n, s in zip(self.shape, self.strides, strict=True))
        return last + 1


@frozen
class Check:
    """What a CHECK of the graph was for: a size, an axis, whether negative indices were wrapped."""

    arg: tuple[int, int, bool]
    origin: Origin | None  # where the user wrote it
    number: int = -1  # of its node


@frozen
class Kernel:
    """One kernel: a SINK of STOREs of scalar expressions under ranges. Loops have no shape yet.

    `outer` are the ranges that all stores share; they may run in any order and at the same time.
    `rewrites` says that some buffer is both read and written, so no element may be stored twice.
    `checks[i]` is what CHECK number i of the body was for its user: equal kernels may differ there.
    """

    body: UOp
    outer: tuple[UOp, ...] = ()
    rewrites: bool = False
    checks: tuple[Check, ...] = field(default=(), compare=False)


ERROR_CELLS = UOp(Ops.SINK)  # stands in `buffers` for the slot that a kernel's CHECKs write to


@frozen
class Schedule:
    """Kernels in the order in which they run; `buffers[i]` are what kernel i's slots hold.

    `stored[i]` are the values that kernel i leaves in memory.
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[tuple[UOp, ...], ...]
    outputs: tuple[UOp, ...]
    stored: tuple[tuple[UOp, ...], ...]

    @property
    def checks(self) -> list[tuple[Check, ...]]:
        """What the CHECKs of each kernel were for their user."""
        return [kernel.checks for kernel in self.kernels]


class MaskBound(NamedTuple):
    """A loop that may begin late or end early: at places, of which each step covers some."""

    axis: int
    begin: UOp
    end: UOp | None
    step: int = 1


@frozen
class Nest:
    """A kernel whose loops have a shape; `recipe` are the moves that gave it.

    `mask_bounds` are the loops that may be shorter than they are (loops/analysis/mask_bounds.py).
    """

    body: UOp
    outer: tuple[UOp, ...] = ()
    rewrites: bool = False
    mask_bounds: tuple[MaskBound, ...] = ()
    recipe: tuple[Any, ...] = ()
    name: str = "kernel"
    label: str = "kernel"  # the name with colours


@frozen
class Program:
    """A flat list of instructions. Each uop's sources come before it.

    On a machine with cores, the function runs its CORE ranges from `begin` to `end` of `cores`
    steps; on one with threads, SPECIALs are coordinates in the grid `groups` x `threads`.
    """

    name: str
    uops: tuple[UOp, ...]
    cores: int = 1
    groups: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    scratch_bytes: int = 0
    label: str = ""


@frozen
class Source:
    """A program as text of a language that a compiler takes."""

    name: str
    text: str
    language: str
    program: Program


class Executable(Protocol):
    """Code on a device. `address` is 0 where it cannot be called natively."""

    @property
    def source(self) -> Source: ...

    @property
    def address(self) -> int: ...

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None: ...


@frozen
class Reference:
    """What a launch must compute (VERIFY=1): the same kernel, compiled without loop moves."""

    executable: Executable
    kernel: Kernel


@frozen
class Launch:
    """One call of an executable: which buffers of the plan it takes."""

    executable: Executable
    slots: tuple[int, ...]
    bytes: int = 0
    operations: int = 0
    variables: tuple[UOp, ...] = ()  # whose values it takes, in order
    reference: Reference | None = None


# The recipe for a nest; or the nest after it, where the chooser has applied it already.
Choose = Callable[[Nest, Target], Nest | tuple[Any, ...]]
