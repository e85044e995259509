"""The nouns of the pipeline: what one stage hands to the next, and the Target that stages read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import field, frozen
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


class Dot(NamedTuple):
    """An instruction that adds the products of narrow lanes to the 32-bit lanes that contain
    them.
    """

    left: DType
    right: DType
    name: str  # the compiler's name of the intrinsic
    operand_dtype: DType | None = None  # dtype that the intrinsic declares for operands, if another
    accumulates: bool = True  # adds to a third operand; otherwise a separate addition follows

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
    features: str = ""  # the compiler's list of CPU features
    vector_bytes: int = 32  # width of a vector register
    registers: int = 16  # number of vector registers
    has_vector_alu: bool = True  # vector arithmetic; otherwise only loads and stores are vectors
    has_threads: bool = False  # a grid of thread groups (a GPU) instead of cores
    cores: int = 1
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 32 << 20
    line_bytes: int = 64  # bytes of a cache line
    l1_ways: int = 8  # associativity of L1
    shared_bytes: int = 0  # bytes shared by the threads of a group
    group_size: int = 1  # maximum threads of a group
    grid_sizes: tuple[int, ...] = (1 << 30, 1 << 30, 1 << 30)
    max_params: int = 64
    index_dtype: DType = dtypes.int64
    # which of EXP2 LOG2 SIN POW THREEFRY the target has natively
    native: frozenset[Ops] = frozenset()
    dtypes: frozenset[DType] = field(default_factory=lambda: frozenset(dtypes.all))
    core_work_ns: int = 20_000  # less work does not pay for waking a second core
    # prefetches, non-temporal stores and reordering; off: only what is needed
    has_hints: bool = True
    reports_indices: bool = True  # CHECKs report bad indices; otherwise they are only clamped
    dots: tuple[Dot, ...] = ()  # int8 and int16 dot-product instructions, for whole vectors


@frozen
class Param:
    """The arg of Ops.PARAM: which argument of the kernel, and how its elements lie."""

    slot: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Elements from the first to the last addressable one."""
        if 0 in self.shape:
            return 0
        last = sum((n - 1) * max(s, 0) for n, s in zip(self.shape, self.strides, strict=True))
        return last + 1


@frozen
class Check:
    """The user-level meaning of a CHECK: size, axis, and whether negative indices were wrapped."""

    arg: tuple[int, int, bool]
    origin: Origin | None  # the user's line
    number: int = -1  # number of its node


@frozen
class Kernel:
    """One kernel: a SINK of STOREs of scalar expressions under ranges, before loop moves.

    `outer` are the ranges that all stores share; they may run in any order or in parallel.
    `may_alias`: some buffer is both read and written, so no element may be stored twice.
    `checks[i]` describes CHECK number i; equal kernels may differ there.
    """

    body: UOp
    outer: tuple[UOp, ...] = ()
    may_alias: bool = False
    checks: tuple[Check, ...] = field(default=(), compare=False)


ERROR_CELLS = UOp(Ops.SINK)  # stands in `buffers` for the slot of the cells that CHECKs report to


@frozen
class Schedule:
    """Kernels in run order; `buffers[i]` are the nodes whose buffers kernel i's slots hold.

    `stored[i]` are the values that kernel i stores.
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[tuple[UOp, ...], ...]
    outputs: tuple[UOp, ...]
    stored: tuple[tuple[UOp, ...], ...]

    @property
    def checks(self) -> list[tuple[Check, ...]]:
        """The `checks` of each kernel."""
        return [kernel.checks for kernel in self.kernels]


class MaskBound(NamedTuple):
    """A loop that may start late or end early, at `begin` and `end` in elements; a step covers
    `step` elements.
    """

    axis: int
    begin: UOp
    end: UOp | None
    step: int = 1


@frozen
class Nest:
    """A kernel after loop moves; `recipe` lists them.

    `mask_bounds` are the loops that a mask shortens (loops/analysis/mask_bounds.py).
    """

    body: UOp
    outer: tuple[UOp, ...] = ()
    may_alias: bool = False
    mask_bounds: tuple[MaskBound, ...] = ()
    recipe: tuple[Any, ...] = ()
    name: str = "kernel"
    label: str = "kernel"  # the name with colors


@frozen
class Program:
    """A flat list of instructions, sources before their users.

    On a machine with cores, the function runs steps `begin` to `end` of its CORE ranges, of `cores`
    in all; on one with threads, SPECIALs are coordinates in the grid `groups` x `threads`.
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
    """A program as text of a language that a compiler accepts."""

    name: str
    text: str
    language: str
    program: Program


class Executable(Protocol):
    """Code on a device. `address` is 0 if it cannot be called natively."""

    @property
    def source(self) -> Source: ...

    @property
    def address(self) -> int: ...

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None: ...


@frozen
class Reference:
    """The expected result of a launch (VERIFY=1): the same kernel, compiled without loop moves."""

    executable: Executable
    kernel: Kernel


@frozen
class Launch:
    """One call of an executable, with the plan's buffers that it takes."""

    executable: Executable
    slots: tuple[int, ...]
    bytes: int = 0
    operations: int = 0
    variables: tuple[UOp, ...] = ()  # VARIABLEs passed as arguments, in order
    reference: Reference | None = None


# The recipe for a nest; or the nest after it, where the chooser has applied it already.
Choose = Callable[[Nest, Target], Nest | tuple[Any, ...]]
