"""What DEBUG prints: devices, launches, recipes, sources, passes, programs, machine code.

1  devices as they are opened           4  the source of every kernel
2  one line per launch                  5  the kernel before and after each pass
3  each kernel's recipe and buffers     6  its program         7  its machine code
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from glassgrad.base.config import DEBUG
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.events import Event, PassDone, listen
from glassgrad.base.terminal import ansipad
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Executable, Kernel, Launch, Nest, Program, Source
from glassgrad.ir.uop import UOp


def report_launch(launch: Launch, device: str, seconds: float) -> None:
    """*** CPU  3  E_4_4   arg 3   mem 0.00 GB   tm 25.88us/ 0.03ms ( 0.00 GFLOPS  0.0 GB/s)"""
    program = launch.executable.source.program
    total = GlobalCounters.time_sum_s * 1e3
    rate = launch.operations / seconds / 1e9
    moved = launch.bytes / seconds / 1e9
    print(
        f"*** {device:<8}{GlobalCounters.kernel_count:>5} {ansipad(program.label, 36)} "
        f"arg {len(launch.slots):>2} mem {GlobalCounters.mem_used / 1e9:6.2f} GB "
        f"tm {seconds * 1e6:9.2f}us/{total:9.2f}ms ({rate:8.2f} GFLOPS {moved:6.1f} GB/s)"
    )


def report_nest(kernel: Kernel, nest: Nest) -> None:
    """The kernel's name, its loop moves, and its arguments with the shapes of the user's
    tensors.
    """
    if DEBUG >= 3:
        print(nest.label)
        for opt in nest.recipe:
            print(f"    {opt}")
        for param in buffers(kernel.body):
            print(f"    data{param.arg.slot} {param.dtype.name} {param.arg.shape}")


def report_unproven_kernels() -> None:
    """How many kernels zero their results first, or use a simpler recipe, for lack of a coverage
    proof.
    """
    if DEBUG >= 3 and GlobalCounters.uncovered_count:
        count = GlobalCounters.uncovered_count
        print(f"not proved to write every element of their results: {count} kernels")


def report_capture(name: str, count: int) -> None:
    """A function is captured again, for other arguments or other Python values."""
    if DEBUG >= 2:
        print(f"captured {name} once more: it has {count} captures")


def report_search(
    sources: Sequence[Source], seconds: tuple[float, float], count: int, spent: float
) -> None:
    """search r_64_16: 12.40us -> r_8_8_16: 9.10us, 211 recipes in 8.2 s"""
    labels = [source.program.label for source in sources]
    texts = [f"{label}: {s * 1e6:.2f}us" for label, s in zip(labels, seconds, strict=True)]
    print(f"search {' -> '.join(texts)}, {count} recipes in {spent:.1f} s")


def buffers(body: UOp) -> list[UOp]:
    """The PARAMs of a kernel, by slot."""
    found = [node for node in body.toposort() if node.op is Ops.PARAM]
    return sorted(found, key=lambda param: int(param.arg.slot))


def report_program(program: Program) -> None:
    if DEBUG >= 6:
        for line in program_listing(program.uops):
            print(line)


def program_listing(instructions: Sequence[UOp]) -> Iterator[str]:
    """One numbered instruction per line, indented by loop depth."""
    numbers: dict[UOp, int] = {}
    depth = 0
    for number, uop in enumerate(instructions):
        numbers[uop] = number
        depth -= uop.op in (Ops.END, Ops.ENDIF)
        sources = ", ".join(str(numbers[source]) for source in uop.src)
        arg = "" if uop.arg is None else f"  {uop.arg}"
        yield f"{number:5} {'  ' * depth}{uop.op.name}({sources}) {uop.dtype}{arg}"
        depth += uop.op in (Ops.RANGE, Ops.IF)


def report_source(source: Source) -> None:
    if DEBUG >= 4:
        print(source.text)


def report_executable(executable: Executable) -> None:
    assembly = getattr(executable, "assembly", None)
    if DEBUG >= 7 and assembly is not None:
        print(assembly())


@contextmanager
def passes_shown(kernel: Kernel | None = None) -> Iterator[None]:
    """With DEBUG=5, print the kernel and every pass that runs inside of this context."""
    if DEBUG < 5:
        yield
        return
    if kernel is not None:
        print(kernel.body)
    with listen(_show_pass):
        yield


def _show_pass(event: Event) -> None:
    if isinstance(event, PassDone) and event.before != event.after:
        text = pass_result(event.after)
        print(f"after {event.name!r} ({event.seconds * 1e3:.2f} ms):\n{text}")


def pass_result(value: object) -> str:
    """The result of a pass as text; instructions are a numbered listing."""
    if isinstance(value, tuple) and value and isinstance(value[0], UOp):
        return "\n".join(program_listing(value))
    return str(value)
